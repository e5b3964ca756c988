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

/// A bar would end the cell.
private func escapeCell(_ text: String) -> String {
    text.split(separator: "|", omittingEmptySubsequences: false).joined(separator: "\\|")
}

private let manualHead = """
    # Configuration

    <!-- Made from Sources/Settings by `LARDER_RENDER=1 swift test --filter Rendering`; change it there. -->

    Larder reads one YAML file: `--config FILE`, else `larder.yaml` in the working directory, else `/etc/larder/larder.yaml`;
    without any, the defaults below. `conf/larder.yaml` is all of it with comments, `conf/examples/` has one file per use.
    `larder check` tells everything that is wrong with a file, each with its line, what was expected and the key you may have
    meant; `larder check -v` shows what is in effect.

    `SIGHUP` reads the file again. If it has errors, nothing changes. Settings marked *live* take effect for requests that
    begin then; those marked *restart* are reported and wait for the next start.

    Sizes are `64KiB`, `256MiB`, `10GiB`, `1TiB`, their decimal cousins (`64kB`, `1GB`), or plain bytes. Durations are `500ms`,
    `30s`, `5m`, `1h`, `2d`. Flags are `yes` or `no`. Where a list is expected, one value stands for a list of one. Text that begins
    with `*` or holds `: ` needs quotes. Anchors, aliases and tags are not read.

    """

private let manualTail = """

    ## The cache in detail

    Rules of the cache have the same conditions as rules of access, within `match:`, but for two: they have no `address`, and they have
    `type`, compared with the `Content-Type` of the response. What they can say, and what `cache.zones` can: [policies.md](policies.md).
    `larder check` prints all rules as it understood them, one line each; `larder check --json` for scripts.

    ## Access in detail

    A request passes four gates, and each refusal says which one and why.

    1. **The client's address** must be in `access.clients`. Without the key these are loopback only; where
       `access.authentication` is configured, everybody who authenticates. Clients on a `unix:` listener pass: the
       socket's permissions are theirs. Larder does not start with a listener beyond loopback while neither is configured.
    2. **The user**, where `access.authentication` is configured: name and password against the users' file (407 otherwise).
    3. **The rules**, in order; the first one that matches decides, else `access.default`.
    4. **The address that is dialled**, each time, for every method: rules with `address` are asked again with it, and
       addresses that are not public are refused unless they are opened. A name that resolves to a private address gets nowhere.

    ### Rules

    A rule is `allow:` or `deny:` with conditions. All its conditions must hold; within a condition, any value. A rule
    without conditions holds for every request.

    | condition | values |
    |---|---|
    | `host` | `example.org` is that name; `*.example.com` every name below example.com, at any depth, but not example.com itself; `*` any host; an address is that address, in whatever spelling it is asked for (`0x7f.1`, `2130706433`, `[::ffff:127.0.0.1]`) |
    | `address` | an address or a range such as `10.0.0.0/8`, compared with the address that is dialled, after the name service was asked |
    | `port` | `443`, or a range such as `8000-8999` |
    | `method` | `GET`, `HEAD`, `CONNECT` …, in upper case |
    | `path` | the whole path without the query, `*` for any bytes: `/pool/*`, `*.deb`. Case counts. A tunnel has no path, so no rule with one holds for it |
    | `user` | authenticated names, as in the users' file |
    | `client` | addresses and ranges of clients |
    | `reason` | no condition: what a `deny` rule tells the client |

    A path counts in the spelling that is safer: an `allow` rule holds only if the path matches as sent and as an origin might read it
    (percent-encoding undone, `//` merged, `..` resolved); a `deny` rule holds if either does. Origins that tell paths apart in other ways
    (case, `;parameters`) need rules for each.

    ### Private destinations

    Not public are loopback, private, unique-local, link-local, shared (100.64.0.0/10), multicast, documentation, benchmarking and reserved
    addresses, `0.0.0.0` and `::`, by the registries of IANA, and the metadata services of clouds. IPv6 addresses that
    carry an IPv4 address (NAT64, 6to4, Teredo, mapped) are judged by that.

    An `allow` rule that names an address, in `address` or as the literal in `host`, opens just that address, for the requests that
    match its other conditions. It may stand after another `allow` rule that matches, not after a `deny` rule that does.
    `private_destinations: allow` opens all of them, except the metadata services: those always need a rule.

    ### CONNECT

    A tunnel hides what goes through it, so its port must be in `access.connect_ports` or named in the `port` condition of an
    `allow` rule that matches.

    ### Users

    `larder passwd FILE USER` makes and changes the file. Hashes are bcrypt (`$2y$`, `$2b$`, `$2a$`), yescrypt (`$y$`), SHA-512 (`$6$`) or
    SHA-256 (`$5$`); plain text, DES, MD5 (`$apr1$`) and SHA-1 are refused. A verified password is remembered for
    `remember` as a keyed digest, never as itself; a client that fails too often has to wait.

    """
