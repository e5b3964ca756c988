/// The commands of `larder`, as DESIGN.md section 8 promises them; some come with later versions.
enum Command: String, CaseIterable {
    case serve, check, purge, stats, ls, du, explain, warm, passwd, ca, doctor, version

    static var names: [String] { allCases.map(\.rawValue) }

    var isPartOfThisVersion: Bool {
        switch self {
        case .serve, .check, .purge, .stats, .passwd, .version: true
        case .ls, .du, .explain, .warm, .ca, .doctor: false
        }
    }

    /// What follows the command's name.
    var synopsis: String {
        switch self {
        case .serve, .check, .stats, .version: ""
        case .purge: "URL | --prefix URL | --host HOST | --all"
        case .passwd: "FILE USER"
        case .ls, .du: "[PREFIX]"
        case .explain, .warm: "URL"
        case .ca, .doctor: ""
        }
    }

    var meaning: String {
        switch self {
        case .serve: "run the proxy in the foreground"
        case .check: "check the configuration and say all that is wrong with it"
        case .purge: "remove stored responses from the running proxy"
        case .stats: "show the numbers of the running proxy"
        case .ls: "list what is stored"
        case .du: "show what takes how much space"
        case .explain: "say what would be done with a request, and why"
        case .warm: "fetch URLs into the cache"
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
        case .purge: [.prefix, .host, .all, .dryRun, .socket, .config, .json, .help]
        case .stats: [.socket, .config, .json, .help]
        case .passwd: [.delete, .config, .help]
        case .version: [.config, .json, .help]
        case .ls, .du, .explain, .warm, .ca, .doctor: [.config, .json, .help]
        }
    }
}

/// Every option there is: named, and explained, once.
enum Option: String, CaseIterable {
    case config, json, help, verbose, prefix, host, all, socket, delete
    case dryRun = "dry-run"

    var long: String { "--\(rawValue)" }

    var short: String? {
        switch self {
        case .config: "-c"
        case .help: "-h"
        case .verbose: "-v"
        case .json, .prefix, .host, .all, .socket, .delete, .dryRun: nil
        }
    }

    /// The name of its value in help; nil: it takes none.
    var value: String? {
        switch self {
        case .config: "FILE"
        case .prefix: "URL"
        case .host: "HOST"
        case .socket: "PATH"
        case .json, .help, .verbose, .all, .delete, .dryRun: nil
        }
    }

    var meaning: String {
        switch self {
        case .config: "configuration file (default: larder.yaml, then /etc/larder/larder.yaml)"
        case .json: "print JSON for scripts"
        case .help: "show this"
        case .verbose: "show the effective settings and rules as well"
        case .prefix: "everything whose URL begins with this"
        case .host: "everything of this host"
        case .all: "everything"
        case .socket: "admin socket of the running proxy (default: as configured)"
        case .delete: "delete the user"
        case .dryRun: "only count, remove nothing"
        }
    }
}
