/// The commands of `larder`, as DESIGN.md section 8 promises them, and `top`; some come with later versions.
enum Command: String, CaseIterable {
    case serve, check, purge, stats, ls, du, top, explain, warm, verify, export, `import`, passwd, ca, doctor, version

    static var names: [String] { allCases.map(\.rawValue) }

    var isPartOfThisVersion: Bool {
        switch self {
        case .serve, .check, .purge, .stats, .ls, .du, .top, .explain, .warm, .verify, .export, .import, .passwd,
            .version:
            true
        case .ca, .doctor: false
        }
    }

    /// What follows the command's name.
    var synopsis: String {
        switch self {
        case .serve, .check, .stats, .verify, .version, .ca, .doctor: ""
        case .export, .import: "FILE.tar"
        case .ls, .du, .top: "[PREFIX] [CONDITION]..."
        case .purge: "[URL] [CONDITION]... | --all"
        case .passwd: "FILE USER"
        case .explain: "[METHOD] URL"
        case .warm: "[URL]... [--from FILE] [--page URL]..."
        }
    }

    var meaning: String {
        switch self {
        case .serve: "run the proxy in the foreground"
        case .check: "check the configuration and say all that is wrong with it"
        case .purge: "remove stored responses from the running proxy, or mark them stale"
        case .stats: "show the numbers of the running proxy"
        case .ls: "list what is stored"
        case .du: "show what takes how much space, by host and by zone"
        case .top: "show what is asked for most, or takes most space"
        case .explain: "say what would be done with a request, and why"
        case .warm: "fetch URLs through the proxy, so that they are stored"
        case .verify: "check all that is on disk, and repair it"
        case .export: "write what is on a zone's disk into an archive, for a site without a network"
        case .import: "take what an archive holds into a zone's disk"
        case .passwd: "set or delete a user's password in an htpasswd file"
        case .ca: "make and show the certificate authority for intercepting TLS"
        case .doctor: "look for what commonly goes wrong"
        case .version: "show the version"
        }
    }

    /// What it takes, in the order help shows it. Every command takes `--config` and `--help`.
    var options: [Option] {
        switch self {
        case .serve: [.config, .help]
        case .check: [.verbose, .config, .json, .help]
        case .purge: Option.conditions + [.all, .soft, .dryRun, .socket, .config, .json, .help]
        case .stats: [.socket, .config, .json, .help]
        case .ls, .du: [.url] + Option.conditions + [.socket, .config, .json, .help]
        case .top: [.by, .count, .url] + Option.conditions + [.socket, .config, .json, .help]
        case .explain: [.header, .as, .client, .socket, .config, .json, .help]
        case .warm: [.from, .page, .header, .jobs, .retries, .user, .proxy, .verbose, .config, .json, .help]
        case .verify: [.repair, .zone, .config, .json, .help]
        case .export, .import: [.zone, .host, .prefix, .dryRun, .config, .json, .help]
        case .passwd: [.delete, .config, .help]
        case .version: [.config, .json, .help]
        case .ca, .doctor: [.config, .json, .help]
        }
    }
}
