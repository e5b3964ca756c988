/// `docs/configuration.md`: the reference of all settings, rendered from the declarations.
package func renderManual() -> String {
    var text = manualHead
    for section in Settings.sections { text += "\n" + renderSection(section) }
    return text + manualTail
}

private func renderSection(_ section: Settings.Section) -> String {
    let title = section.key.isEmpty ? "General" : "`\(section.key)`"
    var text = "## \(title)\n\n\(section.meaning)\n\n"
    text += "| key | meaning | values | default | reload |\n|---|---|---|---|---|\n"
    for setting in section.settings { text += row(setting) }
    return text
}

private func row(_ setting: any SettingDeclaration) -> String {
    let value = setting.text(in: Configuration())
    let standard = setting.defaultMeaning ?? "`\(value)`"
    let cells = ["`\(setting.key)`", setting.meaning, setting.allowed, standard, setting.reload.rawValue]
    return "| " + cells.map(escapeCell).joined(separator: " | ") + " |\n"
}

/// A vertical bar would end the cell.
private func escapeCell(_ text: String) -> String {
    text.split(separator: "|", omittingEmptySubsequences: false).joined(separator: "\\|")
}

private let manualHead = """
    # Configuration

    <!-- Rendered from Sources/Settings by `LARDER_RENDER=1 swift test --filter Rendering`; change it there. -->

    Larder reads one YAML file: the one that `--config` names, or `larder.yaml` in the working directory, or
    `/etc/larder/larder.yaml`. Without any of them, the defaults below hold. `conf/larder.yaml` contains every setting with a comment, and
    `conf/examples/` has a file for each common use. `larder check` reports everything that is wrong with a file, each problem with its
    line, what was expected, and the key you may have meant. `larder check -v` shows the value of every setting.

    It also reads what the file names, as `serve` does: certificates, keys, passwords, lists, PAC files. And it asks the machine what `serve` asks before it
    starts, with nothing made or changed: whether the access log can be opened, whether the directory of a disk is a store or can become one, whether the addresses of
    `listen`, `admin` and `fleet.node.peer` are those of this machine, and whether sockets can be made at their paths. What is missing or wrong is an error, and
    `serve` would not start. So run it on the machine of `serve` and as its user. `larder check --elsewhere` is for a file that is meant for another machine or user: it looks at none of that.
    `serve` alone finds what the moment decides: a port or a store that another process has, which may be the Larder that runs; a port that its user may not use; and what
    its service manager hands over, such as sockets and secrets from descriptors.

    `SIGHUP` makes Larder read the file again. If the file has errors, nothing changes. Settings marked *live* apply to
    requests that start after that. Larder reports changes to settings marked *restart* and applies them at its next start.

    Sizes are written as `64KiB`, `256MiB`, `10GiB` or `1TiB`, in decimal units (`64kB`, `1GB`), or as bytes. Durations are written as
    `500ms`, `30s`, `5m`, `1h` or `2d`. Flags are `yes` or `no`. Instead of a list with one value you can write the value. Text that
    starts with `*` or contains `: ` needs quotes. Anchors, aliases and tags are not supported.

    """

private let manualTail = """

    ## The cache in detail

    Cache rules have their conditions under `match:`. They are `host`, `port`, `method`, `scheme`, `path`, `user`, `group`, `client` and `listener` of
    access rules, and `type`, which is compared with the `Content-Type` of the response. [policies.md](policies.md) explains what cache rules and
    `cache.zones` can say. `larder check` prints every rule as Larder understands it, one line each; `larder check --json` is for scripts.

    ## Access in detail

    A request has to pass four checks. Each refusal says which check failed, and why.

    1. **The client's address** must be in `access.clients`. Without that setting, only loopback is allowed; if
       `access.authentication` is configured and required, every client that authenticates is. Clients of a `unix:` listener always pass:
       the permissions of the socket file decide who can connect. Larder does not start with a listener that other machines can
       reach if neither setting is present.
    2. **The user**, if `access.authentication` is configured. A client without a right name and password gets 407. With `access.authentication.required: no`, that
       holds for wrong credentials, and for requests that an `authenticate` rule is for.
    3. **The rules**, in order. The first rule that matches decides, and `access.default` if none does.
    4. **The address that Larder connects to**, for every connection and every method. Rules with `address` are checked again with it, and an
       address that is not public is refused unless a rule opens it. So a host name that resolves to a private address leads
       nowhere.

    ### Rules

    A rule is `allow:`, `deny:`, `redirect:` or `authenticate:` with conditions. All of its conditions must hold; of the values of a condition, any one. A rule
    without conditions holds for every request.

    | condition | values |
    |---|---|
    | `host` | `example.org` is that host; `*.example.com` is every host below example.com, at any depth, but not example.com itself; `*` is any host; an address is that address, however the request spells it (`0x7f.1`, `2130706433`, `[::ffff:127.0.0.1]`) |
    | `address` | an address or a network such as `10.0.0.0/8`. It is compared with the address that Larder connects to, after the host name was resolved |
    | `port` | `443`, or a range such as `8000-8999` |
    | `method` | `GET`, `HEAD`, `CONNECT` …, in upper case |
    | `path` | the whole path without the query; `*` stands for any characters: `/pool/*`, `*.deb`. Braces stand for part of a segment: `{hex}` and `{digits}` for one or more of them, `{hex:64}` for exactly 64, `{jar\\|pom}` for one of these texts, and any other name, such as `{version}`, for one or more characters. `{=version}` is what `{version}` has matched before, if that is a whole segment and no `*` follows it: `*/{name}/{version}/{=name}-{=version}.jar`. Upper and lower case differ. A tunnel has no path, so a rule with this condition never holds for it |
    | `scheme` | `http` or `https`. A tunnel has none, so a rule with this condition never holds for it: use `method: CONNECT` |
    | `sni` | hosts as in `host`, compared with the server name that a client sends first in a tunnel (TLS), and then for the requests in it if the tunnel is opened. Before it is known, the rule holds for nothing; without TLS or a name, it never does ([access.md](access.md#5-what-a-tunnel-hides)) |
    | `user` | names of users, as in the users' file |
    | `group` | names of groups of users |
    | `client` | addresses and networks of clients |
    | `listener` | names of listeners |
    | `query` | names of query parameters, decoded, or names with values: `service=git-upload-pack`. One of them is in the query |
    | `content_type` | a media type of the request: `application/json`, `image/*` |
    | `request_size` | `{ at_most: 10MiB }`, `{ at_least: 1MiB }`, or both: the length of the body as the request declares it. A request without a body has 0; that of a chunked body is not known |
    | `upgrade` | protocols of `Upgrade`, without versions: `websocket`; `*` is any |
    | `credential` | `client`: the request has `Authorization`; `none`: it has not; `own`: Larder sends a credential of its own with it, for which `credentials` has a rule; `{ own: NAME }`: that credential |
    | `user_agent` | a part of `User-Agent`, or a pattern with `*` for all of it. Case does not matter. It protects nothing: every client can send any |
    | `time` | days, times or both: `mon-fri 08:00-18:00`, `sat,sun`, `22:00-06:00 utc`. Times are local times of this machine or of `zone`, or UTC with `utc` behind them. The end does not belong to the window; a window over midnight belongs to the day on which it begins |

    `zone: Europe/Berlin` beside `time` is the time zone of its local times, a name of the time zone database (package tzdata; `TZDIR` names another
    directory than `/usr/share/zoneinfo`). The file is read when the configuration is: a reload takes over a newer one. At a change of the clock a window
    follows the local time: what is between 02:00 and 03:00 happens twice in autumn and not at all in spring.

    These are not conditions:

    | key | meaning |
    |---|---|
    | `reason` | the text that a `deny` rule shows to the client |
    | `to` | the page of a `redirect` rule |
    | `intercept` | whether the tunnels that an `allow` rule allows are opened ([https.md](https.md)) |
    | `shared` | `yes` in an `allow` rule: a wildcard such as `*.github.io`, below which anybody can have a name, is meant ([Wildcards](#wildcards)) |
    | `tunnel` | what the tunnels that an `allow` rule lets through may carry: `tls` or `any`, see [CONNECT](#connect) |
    | `profile` | in an `allow` rule, `packages-read`, `source-read` or `model-api`. The rule stands for the rules of that profile ([learn.md](learn.md#profiles)) |
    | `report` | `yes`: the rule decides nothing. A request that it matches is counted, has its number in `reported` of the access log, and `larder explain` shows it. Such a rule does not make the default `deny` |

    An `authenticate` rule asks for credentials with 407, and holds only for requests that have none. For others the rules behind it decide
    ([access.md](access.md#3-name-the-destinations)). It has no `user` and no `group`, and is read as `deny` rules are.

    A `redirect` rule denies. It answers GET and HEAD with 302 and its page, and other requests with 403 and the address of the page in the text, CONNECT too.

    ### Values from files

    A value of `host`, `address`, `client` or `user` can be a file with values:

    ```yaml
    access:
      default: allow
      rules:
        - deny: { host: [ ads.example, { file: /etc/larder/blocked.txt } ], reason: "blocked" }
    ```

    The file has one value on each line; `#` begins a comment. A list of hosts can have the form of a hosts file, too: names behind `0.0.0.0`,
    `127.0.0.1`, `::` or `::1`. `*` alone is not accepted. Larder reads the file again when it changes, within some seconds. If the new contents have a
    fault, it says which line, and the earlier contents stay in force. A list of 500,000 hosts takes about 30 MB. Neither requests nor reloads wait while a file is
    read, and a reload reads only files that have changed.

    ### What is certain, and what is possible

    A rule that opens something must not be deceived, and neither may a rule that closes something. An `allow` rule holds only where its conditions
    hold for certain; a `deny` or `redirect` rule holds where they may hold.

    | | `allow` | `deny`, `redirect` |
    |---|---|---|
    | `query` | the name stands between `&` and `=` as it is in the rule, and no `;` is in the parameter; a value is the same wherever the name stands | the name is there in any reading: behind `&` or `;`, as sent, decoded once or twice, with `+` for a space, in any case, cut off at `[` or NUL |
    | `content_type`, `user_agent` | the field is there, and all of its lines match | any of its lines matches |
    | `request_size` | the length is declared and in the range | the length is in the range, or not known (chunked) |
    | `upgrade` | `Connection` has `upgrade`, and all protocols offered match | any protocol offered matches |

    A tunnel shows none of these except `user_agent` and `time`: a rule with another of them never holds for CONNECT, as with `path`. For hosts whose
    tunnels are opened ([https.md](https.md)) they hold for each request inside. While a rule with one of these conditions may concern a request, each
    request is compared with the rules, hits too.

    ### Wildcards

    An `allow` rule cannot have a wildcard such as `*.com` or `*.co.uk`, below which anybody can register a name: Larder does not start with one. Below
    suffixes of companies that give names to their customers, such as `*.github.io`, a rule must say what may be done there, with `path` or with
    `method` (without `CONNECT`, which hides methods), or that all of these names are meant: `shared: yes`. Use `"*"` to allow every host.

    The same path can be written in several ways. An `allow` rule holds only if the path matches as sent and in every way an origin might read it: with
    percent-encoding undone once or several times, overlong UTF-8 decoded, `\\` as `/`, `//` merged and `..` resolved, cut off at NUL, and without
    `;parameters` (unless a path of the rule has some). A `deny` rule holds if any of these matches. Origins that treat upper and lower case as equal need a
    rule for each.

    ### Private destinations

    These addresses are not public: loopback, private, unique-local, link-local, shared (100.64.0.0/10), multicast, documentation,
    benchmarking and reserved addresses, `0.0.0.0` and `::` (all by the IANA registries), and the metadata services of clouds. An IPv6 address
    that contains an IPv4 address (NAT64, 6to4, Teredo, mapped) is treated like that IPv4 address.

    An `allow` rule that names an address, in `address` or literally in `host`, opens that address alone, and only for requests that
    match its other conditions. It may come after another `allow` rule that matches, but not after a `deny` rule that matches.
    `private_destinations: allow` opens all of them except the metadata services, which always need a rule.

    ### CONNECT

    Larder cannot see what goes through a tunnel. The port of a tunnel must therefore be in `access.connect_ports`, or in the `port` condition
    of an `allow` rule that matches.

    What the client sends first in the tunnel is read before any of it goes to the origin; nothing is decrypted. `tunnel` in the rule that allows the
    tunnel says what it must be:

    | `tunnel` | the first bytes |
    |---|---|
    | `tls` | a ClientHello of TLS |
    | `any` | anything; nothing is read |
    | left out, port 443 | a ClientHello of TLS |
    | left out, another port, and rules decide by the host | a ClientHello of TLS, the first line of an SSH client, or something that the server sends first |
    | left out, another port, and no rule decides by the host | anything; nothing is read |

    Rules decide by the host if any rule up to the one that allows the tunnel has a `host` other than `*` and might hold for this client and port. Then a
    ClientHello must name the host of the CONNECT as well, by SNI. If CONNECT names an address, no SNI is needed. A ClientHello must be whole within
    16 KiB and 5 seconds. [access.md](access.md#5-what-a-tunnel-hides) says what happens otherwise.

    ### Users

    `larder passwd FILE USER` creates and changes the file. Larder accepts bcrypt (`$2y$`, `$2b$`, `$2a$`), yescrypt (`$y$`), SHA-512 (`$6$`) and
    SHA-256 (`$5$`) hashes. It refuses plain text, DES, MD5 (`$apr1$`) and SHA-1. For the time of `remember`, Larder stores a keyed digest
    of a password that was right, never the password; so does the connection on which it was proven. A client that sends wrong passwords too often has to wait.

    """
