/// Every option there is: named, and explained, once.
enum Option: String, CaseIterable {
    case config, json, help, verbose, socket, delete
    case url, prefix, host, tag, type, zone, storage, all, soft
    case olderThan = "older-than"
    case dryRun = "dry-run"
    case repair
    case by, count, header, `as`, client, from, page, proxy, jobs, retries, user

    /// Which stored responses are meant; all that are given must hold.
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

    /// It may be given more than once.
    var isRepeatable: Bool { self == .header || self == .page }

    /// The name of its value in help; nil: it takes none.
    var value: String? {
        switch self {
        case .config, .from: "FILE"
        case .url, .prefix, .page: "URL"
        case .host: "HOST"
        case .socket: "PATH"
        case .tag: "TAG"
        case .type: "TYPE"
        case .zone, .user, .as: "NAME"
        case .storage: "POLICY"
        case .olderThan: "AGE"
        case .by: "WHAT"
        case .count, .jobs, .retries: "N"
        case .header: "LINE"
        case .client, .proxy: "ADDRESS"
        case .json, .help, .verbose, .all, .delete, .dryRun, .soft, .repair: nil
        }
    }

    var meaning: String {
        switch self {
        case .config: "configuration file (default: larder.yaml, then /etc/larder/larder.yaml)"
        case .json: "print JSON for scripts"
        case .help: "show this"
        case .verbose: "show more: all effective settings and rules, every URL"
        case .url: "this URL, in all its variants"
        case .prefix: "URLs that begin with this"
        case .host: "one host, or *.example.org for all below"
        case .tag: "responses with this Surrogate-Key or Cache-Tag"
        case .type: "one content type, text/html, or all of a kind, image/*"
        case .zone: "one zone"
        case .storage: "one storage policy: session, permanent or pinned"
        case .olderThan: "stored or validated at least this long ago: 90s, 30m, 12h, 7d"
        case .all: "everything"
        case .soft: "mark stale instead of removing"
        case .socket: "admin socket of the running proxy (default: as configured)"
        case .delete: "delete the user"
        case .dryRun: "only count, change nothing"
        case .repair: "put right what can be; no proxy may be using the disk"
        case .by: "hits (default) or bytes"
        case .count: "how many to show (default: 10)"
        case .header: "a field of the request, \"Name: value\"; may be repeated"
        case .as: "as if this user had authenticated"
        case .client: "as if the request came from this address (default: 127.0.0.1)"
        case .from: "URLs from a file, one per line; - for standard input"
        case .page: "a page, and what its HTML and CSS name; may be repeated"
        case .proxy: "host and port of the proxy (default: as configured)"
        case .jobs: "fetches at a time (default: 4)"
        case .retries: "further attempts where something failed (default: 2)"
        case .user: "user at the proxy; the password is asked for, or read from standard input"
        }
    }
}
