/// The commands of `larder`.
enum Command: String, CaseIterable {
    case serve, check, purge, stats, ls, du, top, explain, warm, verify, export, `import`, passwd, recipe, ca, doctor,
        session, budget, credential, learn, version

    static var names: [String] { allCases.map(\.rawValue) }

    /// The arguments, for the first line of the help.
    var synopsis: String {
        switch self {
        case .serve, .check, .stats, .verify, .version, .doctor: ""
        case .ca: AuthorityVerb.allCases.map(\.rawValue).joined(separator: "|")
        case .export, .import: "FILE.tar"
        case .ls, .du, .top: "[PREFIX] [CONDITION]..."
        case .purge: "[URL] [CONDITION]... | --all"
        case .passwd: "FILE USER"
        case .explain: "[METHOD] URL"
        case .warm: "[URL]... [--from FILE] [--page URL]..."
        case .session: "clear [NAME]"
        case .budget: "reset LIMIT"
        case .credential: "issue NAME | list | revoke [NAME|ID|PLACEHOLDER]"
        case .learn: "start JOB | stop JOB | list | show JOB | forget JOB"
        case .recipe: "list | show NAME | test URL | hosts"
        }
    }

    var meaning: String {
        switch self {
        case .serve: "run the proxy in the foreground"
        case .check: "check the configuration and what it names on this machine, and report everything that is wrong"
        case .purge: "remove stored responses from the running proxy, or mark them as stale"
        case .stats: "show the statistics of the running proxy"
        case .ls: "list the stored responses"
        case .du: "show how much space stored responses take, by host and by zone"
        case .top: "show the stored responses that are requested most, or take most space"
        case .explain: "explain what Larder would do with a request, and why"
        case .warm: "fetch URLs through the proxy so that they are stored"
        case .verify: "check the disk tier, and repair it"
        case .export: "write the stored responses of a zone's disk to an archive, for a site without a network"
        case .import: "read the stored responses of an archive into a zone's disk"
        case .passwd: "set a password in a file of users, make a token, or delete a user"
        case .recipe: "show what Larder knows about package ecosystems, and what it does with a URL"
        case .ca: "create, show and replace the certificate authority for opened hosts"
        case .doctor: "test what this machine downloads with through the proxy, or (--server) the proxy's own machine"
        case .session: "make the running proxy forget how it logged in to origins, what they refused, and their cookies"
        case .credential: "give clients placeholders for the credentials of the running proxy, and end them"
        case .budget: "let the budgets of a limit of the running proxy begin anew"
        case .learn: "note what a job requests, and show the smallest access rules that it needs"
        case .version: "show the version"
        }
    }

    /// The options it takes, in the order in which the help shows them. Every command takes `--config` and `--help`.
    var options: [Option] {
        switch self {
        case .serve: [.config, .help]
        case .check: [.verbose, .elsewhere, .config, .json, .help]
        case .purge: Option.conditions + [.all, .soft, .dryRun, .socket, .config, .json, .help]
        case .stats: [.fleet, .watch, .cancel, .socket, .config, .json, .help]
        case .credential: [.job, .for, .socket, .config, .json, .help]
        case .learn: [.client, .user, .listener, .allow, .for, .diff, .socket, .config, .json, .help]
        case .session: [.socket, .config, .json, .help]
        case .budget: [.client, .user, .group, .socket, .config, .json, .help]
        case .ls, .du: [.url] + Option.conditions + [.socket, .config, .json, .help]
        case .top: [.by, .count, .url] + Option.conditions + [.socket, .config, .json, .help]
        case .explain: [.header, .as, .client, .socket, .config, .json, .help]
        case .warm: [.from, .page, .header, .jobs, .retries, .user, .proxy, .verbose, .config, .json, .help]
        case .verify: [.repair, .zone, .config, .json, .help]
        case .export, .import: [.zone, .host, .prefix, .dryRun, .config, .json, .help]
        case .passwd: [.digest, .realm, .token, .groups, .expires, .delete, .config, .help]
        case .recipe, .version: [.config, .json, .help]
        case .ca: AuthorityVerb.allOptions + [.config, .json, .help]
        case .doctor: [.proxy, .server, .refusals, .config, .json, .help]
        }
    }

    /// The first word of the arguments and its meaning, for a command that does several things.
    var verbs: [(name: String, meaning: String)] {
        self == .ca ? AuthorityVerb.allCases.map { ($0.rawValue, $0.meaning) } : []
    }

    func allowsRepetition(of option: Option) -> Bool {
        option.isRepeatable || (self == .ca && (option == .host || option == .node))
    }
}
