import Message
import Rules

/// What the rules say about opening tunnels (TLS interception).
extension AccessPolicy {
    /// `intercept` of a rule.
    ///
    /// - Parameter number: the rule of `Verdict.allow`; nil if no rule matched.
    package func intercept(byRule number: Int?) -> Bool? {
        number.flatMap(rule(numbered:))?.intercept
    }

    /// Whether the rules say the same about every request that could be sent inside this tunnel as about the tunnel itself, so that
    /// nothing is lost if Larder does not see the requests.
    ///
    /// False if any rule up to the one that decides asks for a path, a method or another thing that is inside. The client of such a tunnel
    /// could do what the rule denies.
    package func mayRemainTunnel(_ request: AccessRequest) -> Bool {
        let address = request.destination.address
        // The address may be unknown: then a rule may decide, and so may those behind it.
        func holds(_ rule: AccessRule) -> Bool? { rule.outside.hold(request, address: address, paths: .asSent) }
        let decides = firstRule(for: request, address: address) { holds($0) == true }
        let looksInside = firstRule(for: request, address: address, below: decides.map { $0 + 1 } ?? .max) {
            $0.looksInside && holds($0) != false
        }
        return looksInside == nil
    }
}

extension AccessRule {
    fileprivate var looksInside: Bool {
        !conditions.paths.isEmpty || !conditions.methods.isEmpty || !conditions.schemes.isEmpty
            || conditions.details.lookInside || !conditions.details.userAgents.isEmpty
    }

    /// The conditions that a tunnel as a whole can be compared with.
    fileprivate var outside: RuleConditions {
        guard looksInside else { return conditions }
        var outside = conditions
        outside.paths = []
        outside.methods = []
        outside.schemes = []
        let times = outside.details.times
        outside.details = DetailConditions()
        outside.details.times = times
        return outside
    }
}
