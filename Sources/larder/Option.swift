/// Every option of every command, named and explained once.
enum Option: String, CaseIterable {
    case config, json, help, verbose, socket, delete, token, groups, expires
    case url, prefix, host, tag, type, zone, storage, all, soft
    case olderThan = "older-than"
    case dryRun = "dry-run"
    case repair
    case out, days, unconstrained, node, finish, undo
    case keepRootKey = "keep-root-key"
    case rootKey = "root-key"
    case by, count, header, `as`, client, from, page, proxy, jobs, retries, user, server, refusals, watch, cancel,
        fleet, job
    case `for`, allow, diff, listener, group
    case digest, realm, elsewhere

    /// Options that select stored responses. If several are given, all of them must hold.
    static let conditions: [Option] = [.prefix, .host, .tag, .type, .zone, .storage, .olderThan]

    var long: String { "--\(rawValue)" }

    var short: String? {
        switch self {
        case .config: "-c"
        case .help: "-h"
        case .verbose: "-v"
        case .count: "-n"
        case .header: "-H"
        case .jobs: "-j"
        default: nil
        }
    }

    /// The option can be given more than once.
    var isRepeatable: Bool { self == .header || self == .page }

    /// The name of the value in the help. Nil if the option takes no value.
    var value: String? {
        switch self {
        case .config, .from, .keepRootKey, .rootKey: "FILE"
        case .out: "DIR"
        case .url, .prefix, .page: "URL"
        case .host: "HOST"
        case .socket: "PATH"
        case .tag: "TAG"
        case .type: "TYPE"
        case .zone, .user, .as, .node, .realm, .listener, .group: "NAME"
        case .storage: "POLICY"
        case .olderThan, .for: "AGE"
        case .by: "WHAT"
        case .count, .jobs, .retries, .days: "N"
        case .header: "LINE"
        case .cancel: "ID"
        case .job: "JOB"
        case .groups: "A,B"
        case .expires: "DATE"
        case .client, .proxy: "ADDRESS"
        case .json, .help, .verbose, .all, .delete, .digest, .token, .dryRun, .soft, .repair, .server, .refusals,
            .unconstrained,
            .finish, .undo, .watch, .fleet, .allow, .diff, .elsewhere:
            nil
        }
    }

    /// What the option means to this command.
    func meaning(in command: Command) -> String {
        switch (command, self) {
        case (.check, .verbose): "print every setting"
        case (.warm, .verbose): "print every URL"
        case (.warm, .proxy): "host and port of the proxy (default: from the configuration)"
        case (.doctor, .proxy): "host and port of the proxy (default: from the environment)"
        case (.learn, .client): "start: only requests from this address"
        case (.learn, .user): "start: only requests of this user"
        case (.learn, .listener): "start: only requests that come by this listener (name in listen)"
        case (.learn, .allow):
            "start: let through what the access rules deny to this client, user or listener, for 1h or as --for says"
        case (.learn, .for): "start: how long the job learns (90s, 30m, 12h, 7d; default: until it is stopped)"
        case (.learn, .diff): "show: the difference to the rules in force"
        case (.credential, .for):
            "issue: how long the placeholder holds (90s, 30m, 12h, 7d; default: until it is revoked)"
        case (.credential, .job): "issue: who or what the placeholder is for; revoke: those of this job"
        case (.budget, .client): "the budget of this address"
        case (.budget, .user): "the budget of this user"
        case (.ca, .host): "create, rotate: a host that the authority may certify, or *.example.org; can be repeated"
        default: meaning
        }
    }

    /// What it means to every command for which `meaning(in:)` has no text of its own.
    private var meaning: String {
        switch self {
        case .elsewhere:
            "the configuration is for another machine: do not look at the files, directories and URLs that it names"
        case .config: "configuration file (default: larder.yaml, then /etc/larder/larder.yaml)"
        case .json: "print JSON, for scripts"
        case .help: "show this help"
        case .verbose: "show more"
        case .url: "this URL, with all its variants"
        case .prefix: "URLs that start with this"
        case .host: "one host, or *.example.org for every host below it"
        case .tag: "responses with this Surrogate-Key or Cache-Tag"
        case .type: "one content type (text/html), or all of one kind (image/*)"
        case .zone: "one zone; default is the one without a name of its own"
        case .storage: "one storage policy: session, permanent or pinned"
        case .olderThan: "stored or validated at least this long ago (90s, 30m, 12h, 7d)"
        case .all: "every stored response"
        case .soft: "mark as stale instead of removing"
        case .socket: "the admin socket of the running proxy (default: from the configuration)"
        case .delete: "delete the user, or its tokens, instead of setting the password"
        case .digest: "the file is that of Digest: set the hashes of SHA-256 and MD5"
        case .realm: "with --digest, the realm of the proxy (default: larder)"
        case .token: "make a token for a file of bearer.tokens, and print it once"
        case .groups: "the groups of the token, with commas between"
        case .expires: "when the token expires, such as 2027-01-01"
        case .dryRun: "only count; change nothing"
        case .repair: "repair what can be repaired; the proxy must not be running"
        case .out: "the directory of the authority (default: /etc/larder/ca)"
        case .days: "how long new certificates are valid (default: 397)"
        case .unconstrained: "permit the authority to certify every name"
        case .node: "the name of a machine that gets an intermediate of its own; can be repeated"
        case .keepRootKey: "write the root's key to this file instead of destroying it"
        case .rootKey: "the root's key, as --keep-root-key wrote it"
        case .finish: "rotate: use the next authority"
        case .undo: "rotate: give up the next authority; install: remove what install added"
        case .by: "sort by hits (default) or by bytes"
        case .count: "how many lines to show (default: 10)"
        case .header: "a header of the request (\"Name: value\"); can be repeated"
        case .as: "as if this user had authenticated"
        case .client: "as if the request came from this address (default: 127.0.0.1)"
        case .from: "read URLs from a file, one per line; - is standard input"
        case .page: "fetch a page and everything that its HTML and CSS refer to; can be repeated"
        case .proxy: "host and port of the proxy"
        case .refusals: "show which clients do not accept the certificates that Larder shows in opened tunnels"
        case .server:
            "examine the machine of the proxy: files, disks, descriptors, name servers, clock, and the Redis of a fleet"
        case .jobs: "how many fetches run at a time (default: 4)"
        case .retries: "how often a failed fetch is tried again (default: 2)"
        case .watch: "show the traffic and every transfer, once a second, until interrupted"
        case .fleet: "show all nodes of the fleet, as this node knows them"
        case .cancel: "end this transfer; --watch and /transfers show the IDs"
        case .job: "this job"
        case .for: "how long (90s, 30m, 12h, 7d)"
        case .allow: "let through what the access rules deny"
        case .group: "the budget of this group of users"
        case .listener: "this listener"
        case .diff: "the difference to the rules in force"
        case .user: "user name for the proxy; the password is read from the terminal or from standard input"
        }
    }
}
