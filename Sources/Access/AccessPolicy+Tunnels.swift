import Message
import Rules

/// What the rules say about opening tunnels (TLS interception).
extension AccessPolicy {
    /// `intercept` of a rule.
    ///
    /// - Parameter number: the rule of `Verdict.allow`; nil if no rule matched.
    package func intercept(byRule number: Int?) -> Bool? {
        number.flatMap { number in rules.first { $0.number == number }?.intercept }
    }

    /// Whether the rules say the same about every request that could be sent inside this tunnel as about the tunnel itself, so that
    /// nothing is lost if Larder does not see the requests.
    ///
    /// False if any rule up to the one that decides asks for a path or a method. The client of such a tunnel could do what the rule
    /// denies.
    package func mayRemainTunnel(_ request: AccessRequest) -> Bool {
        for rule in rules {
            var outside = rule.conditions
            outside.paths = []
            outside.methods = []
            // The address may be unknown: then the rule may decide, and so may those behind it.
            let holds = outside.hold(request, address: request.destination.address, paths: .asSent)
            if holds == false { continue }
            if !rule.conditions.paths.isEmpty || !rule.conditions.methods.isEmpty { return false }
            if holds == true { return true }
        }
        return true
    }
}
