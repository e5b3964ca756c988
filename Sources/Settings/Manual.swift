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

    `SIGHUP` makes Larder read the file again. If the file has errors, nothing changes. Settings marked *live* apply to
    requests that start after that. Larder reports changes to settings marked *restart* and applies them at its next start.

    Sizes are written as `64KiB`, `256MiB`, `10GiB` or `1TiB`, in decimal units (`64kB`, `1GB`), or as bytes. Durations are written as
    `500ms`, `30s`, `5m`, `1h` or `2d`. Flags are `yes` or `no`. Instead of a list with one value you can write the value. Text that
    starts with `*` or contains `: ` needs quotes. Anchors, aliases and tags are not supported.

    """

private let manualTail = """

    ## The cache in detail

    Cache rules have their conditions under `match:`. They are the conditions of access rules, except that there is no `address`, and that
    there is `type`, which is compared with the `Content-Type` of the response. [policies.md](policies.md) explains what cache rules and
    `cache.zones` can say. `larder check` prints every rule as Larder understands it, one line each; `larder check --json` is for scripts.

    ## Access in detail

    A request has to pass four checks. Each refusal says which check failed, and why.

    1. **The client's address** must be in `access.clients`. Without that setting, only loopback is allowed; if
       `access.authentication` is configured, every client that authenticates is. Clients of a `unix:` listener always pass:
       the permissions of the socket file decide who can connect. Larder does not start with a listener that other machines can
       reach if neither setting is present.
    2. **The user**, if `access.authentication` is configured. A client without a right name and password gets 407.
    3. **The rules**, in order. The first rule that matches decides, and `access.default` if none does.
    4. **The address that Larder connects to**, for every connection and every method. Rules with `address` are checked again with it, and an
       address that is not public is refused unless a rule opens it. So a host name that resolves to a private address leads
       nowhere.

    ### Rules

    A rule is `allow:` or `deny:` with conditions. All of its conditions must hold; of the values of a condition, any one. A rule
    without conditions holds for every request.

    | condition | values |
    |---|---|
    | `host` | `example.org` is that host; `*.example.com` is every host below example.com, at any depth, but not example.com itself; `*` is any host; an address is that address, however the request spells it (`0x7f.1`, `2130706433`, `[::ffff:127.0.0.1]`) |
    | `address` | an address or a network such as `10.0.0.0/8`. It is compared with the address that Larder connects to, after the host name was resolved |
    | `port` | `443`, or a range such as `8000-8999` |
    | `method` | `GET`, `HEAD`, `CONNECT` …, in upper case |
    | `path` | the whole path without the query; `*` stands for any characters: `/pool/*`, `*.deb`. Braces stand for part of a segment: `{hex}` and `{digits}` for one or more of them, `{hex:64}` for exactly 64, `{jar\\|pom}` for one of these texts, and any other name, such as `{version}`, for one or more characters. Upper and lower case differ. A tunnel has no path, so a rule with this condition never holds for it |
    | `user` | names of users, as in the users' file |
    | `client` | addresses and networks of clients |
    | `profile` | not a condition: in an `allow` rule, `packages-read`, `source-read` or `model-api`. The rule stands for the rules of that profile ([learn.md](learn.md#profiles)) |
    | `reason` | not a condition: the text that a `deny` rule shows to the client |

    The same path can be written in several ways. An `allow` rule holds only if the path matches both as sent and as an origin might read it
    (with percent-encoding undone, `//` merged and `..` resolved). A `deny` rule holds if either matches. Origins that treat other spellings
    as equal (case, `;parameters`) need a rule for each.

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

    ### Users

    `larder passwd FILE USER` creates and changes the file. Larder accepts bcrypt (`$2y$`, `$2b$`, `$2a$`), yescrypt (`$y$`), SHA-512 (`$6$`) and
    SHA-256 (`$5$`) hashes. It refuses plain text, DES, MD5 (`$apr1$`) and SHA-1. For the time of `remember`, Larder stores a keyed digest
    of a password that was right, never the password; so does the connection on which it was proven. A client that sends wrong passwords too often has to wait.

    """
