import Message
import Rules

/// What the rules say about all paths of a host, and what report-only rules say.
extension AccessPolicy {
    /// Whether the rules allow this request, and each one that differs from it in path, query and fields alone, now and later, whatever the
    /// host resolves to.
    ///
    /// False if a rule that looks at any of these may concern the request, before or behind the one that decides: rules behind it may open
    /// an address. False if a rule that only reports may concern it, too: each request is reported.
    package func allowsEveryPath(_ request: AccessRequest) -> Bool {
        let dependent = firstRule(for: request, address: nil) {
            $0.conditions.dependOnRequest && $0.concerns(request.identity) && $0.conditions.holdBesidesDetails(request)
        }
        guard dependent == nil, !mayBeReported(request), case .allow = decide(request, address: nil) else {
            return false
        }
        return true
    }
}
