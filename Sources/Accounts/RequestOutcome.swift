/// How a request was answered. The access log, `/stats`, `/metrics`, the dashboard and the manual use these names.
@usableFromInline
package enum RequestOutcome: UInt8, CaseIterable, Sendable {
    case none
    case hit, stale, revalidated, collapsed, miss, passed, refused, failed, tunnel, opened, local

    package var name: StaticString {
        switch self {
        case .none: "none"
        case .hit: "hit"
        case .stale: "stale"
        case .revalidated: "revalidated"
        case .collapsed: "collapsed"
        case .miss: "miss"
        case .passed: "pass"
        case .refused: "refused"
        case .failed: "error"
        case .tunnel: "tunnel"
        case .opened: "opened"
        case .local: "local"
        }
    }

    /// One sentence for the manual.
    package var meaning: StaticString {
        switch self {
        case .none: "The client left before Larder had decided how to answer."
        case .hit: "The request was answered from the store; no origin was asked."
        case .stale: "The request was answered with a stale stored response, because that was allowed."
        case .revalidated: "The request was answered from the store after the origin had confirmed it with 304."
        case .collapsed: "The request was answered by a fetch that another request had started."
        case .miss: "The request was answered by an origin, and the response or a part of it was stored."
        case .passed: "The request was answered by an origin, and the response was not stored."
        case .refused: "Larder refused the request because of access rules, syntax or limits."
        case .failed: "The origin, or the connection to it, failed."
        case .tunnel: "CONNECT opened a tunnel, or the connection switched to another protocol (101)."
        case .opened:
            "CONNECT to a host of `intercept.hosts`: Larder opened the tunnel, and answers the requests inside one by one."
        case .local: "Larder answered itself: OPTIONS and TRACE with `Max-Forwards: 0`."
        }
    }

    /// The counters whose sum is the number of such requests. Empty: only the access log has the outcome.
    package var counters: [Counter] {
        switch self {
        case .none, .local: []
        case .hit: [.hits]
        case .stale: [.staleHits]
        case .revalidated: [.revalidated]
        case .collapsed: [.collapsed]
        case .miss: [.misses]
        case .passed: [.passed]
        case .refused: [.refused]
        case .failed: [.failed]
        case .tunnel: [.tunnels, .upgrades]
        case .opened: [.tunnelsOpened]
        }
    }

    /// The content was stored already, or was arriving because of another request.
    @inlinable
    package var isFromCache: Bool {
        switch self {
        case .hit, .stale, .revalidated, .collapsed: true
        case .none, .miss, .passed, .refused, .failed, .tunnel, .opened, .local: false
        }
    }

    /// The outcome counts for the hit ratio: the store or an origin answered. A `pass` counts as well, even if the response could not
    /// have been stored.
    package var countsForHitRatio: Bool { isFromCache || self == .miss || self == .passed }
}
