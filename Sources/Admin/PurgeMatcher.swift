import Glibc
import Message

/// Whether a stored response, known by its normalised URI, is among those a purge selects.
struct PurgeMatcher {
    private enum Rule {
        case exactly([UInt8])
        case prefix([UInt8])
        case host(String)
        case all
        /// The selection is no URI: nothing is stored under it.
        case nothing
    }
    private let rule: Rule

    init(_ selection: PurgeRequest.Selection) {
        rule =
            switch selection {
            case .all: .all
            case .url(let text): TargetURI(Array(text.utf8)).map { .exactly($0.normalised) } ?? .nothing
            case .prefix(let text): PurgeMatcher.prefix(text)
            case .host(let host): .host(host.lowercased())
            }
    }

    /// A prefix that is a URI itself is normalised as URIs are, so that `HTTP://Example.org` finds what it means.
    private static func prefix(_ text: String) -> Rule {
        guard let uri = TargetURI(Array(text.utf8)) else { return .prefix(Array(text.utf8)) }
        let normalised = uri.normalised
        // An empty path became "/": without it the prefix meant the host's name, whatever follows.
        let hadPath = text.utf8.dropFirst(uri.scheme == .http ? 7 : 8).contains(UInt8(ascii: "/"))
        return .prefix(hadPath ? normalised : normalised.dropLast())
    }

    func callAsFunction(_ uri: [UInt8]) -> Bool {
        switch rule {
        case .all: true
        case .nothing: false
        case .exactly(let wanted): uri == wanted
        case .prefix(let prefix): uri.starts(with: prefix)
        case .host(let host): TargetURI(uri).map { $0.host == host } ?? false
        }
    }
}

func wallClockSeconds() -> Int64 { Int64(time(nil)) }
