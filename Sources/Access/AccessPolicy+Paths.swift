import Rules

/// What the rules say about all paths of a host.
extension AccessPolicy {
    /// Whether the rules allow this request, and each one that differs from it in path and query alone, whatever the host resolves to.
    ///
    /// False if a rule with paths may concern the request, before or behind the one that decides: rules behind it may open an address.
    package func allowsEveryPath(_ request: AccessRequest) -> Bool {
        guard !hasPaths || !rules.contains(where: { isByPath($0, request) }) else { return false }
        guard case .allow = decide(request, address: nil) else { return false }
        return true
    }

    private func isByPath(_ rule: AccessRule, _ request: AccessRequest) -> Bool {
        !rule.conditions.paths.isEmpty && rule.conditions.holdBesidesPath(request)
    }
}
