package import Message
import Rules

/// What a request lacks that the rules do not allow: the condition that keeps the nearest allow rule from matching.
package struct Shortfall: Sendable, Equatable {
    package let reason: DenialReason
    /// The number of the nearest allow rule. Nil if no rule comes near.
    package let nearestRule: Int?
    /// A sentence without a period: what the nearest rule would allow. Nil if no rule comes near.
    package let text: String?

    init(_ reason: DenialReason, nearestRule: Int? = nil, text: String? = nil) {
        self.reason = reason
        self.nearestRule = nearestRule
        self.text = text
    }

    /// Who reads it.
    ///
    /// A client learns nothing that it could not find out by trying: rules for other users and other addresses do not exist for it, and
    /// neither the hosts nor the paths of a rule are listed. An administrator can read the rules anyway.
    package enum Audience: Sendable { case client, administrator }

    /// A denied request costs the rules this many more times at most.
    static let candidatesMax = 4
    /// The ports, methods, users or clients of a rule that are listed.
    static let valuesMax = 6
}

extension AccessPolicy {
    /// Returns nil if a rule denies this very request, if no rule allows anything, or if what allows it cannot be told.
    ///
    /// - Parameters:
    ///   - address: what the host resolved to; nil if it is not known.
    ///   - number: the deny rule that decided; nil if the default did. Only a rule that denies everything stands for a default.
    package func shortfall(
        of request: AccessRequest, address: IPAddress?, deniedBy number: Int?, toldTo audience: Shortfall.Audience
    ) -> Shortfall? {
        let address = request.destination.address ?? address
        if let number, let rule = rules.first(where: { $0.number == number }), !rule.conditions.isEverything {
            return nil
        }
        let misses = rules.prefix { $0.number != number }.compactMap { rule -> Miss? in
            // Nothing is said about the address of a host that has not been resolved.
            guard rule.isAllow, address != nil || rule.conditions.addresses.isEmpty else { return nil }
            return Miss(rule, rule.conditions.unmet(by: request, address: address, paths: .everySpelling))
        }
        guard !misses.isEmpty else { return nil }
        let visible =
            switch audience {
            case .client: misses.filter { $0.unmet.isDisjoint(with: [.user, .client]) }
            case .administrator: misses
            }
        guard !visible.isEmpty else {
            return Shortfall(misses.contains { !$0.unmet.contains(.client) } ? .userNotAllowed : .clientNotAllowed)
        }
        let near = visible.filter { $0.unmet.isDisjoint(with: [.host, .address]) }
        guard !near.isEmpty else {
            return Shortfall(visible.contains { $0.unmet.contains(.host) } ? .hostNotAllowed : .addressNotAllowed)
        }
        for miss in near.sorted(by: { $0.isNearer(than: $1) }).prefix(Shortfall.candidatesMax) {
            if let found = shortfall(of: request, address: address, miss) { return found }
        }
        return nil
    }

    /// What would make the rule match. Returns nil if a deny rule before it would match then.
    private func shortfall(of request: AccessRequest, address: IPAddress?, _ miss: Miss) -> Shortfall? {
        let conditions = miss.rule.conditions
        let missesPort = miss.unmet.contains(.port)
        let missesMethod = miss.unmet.contains(.method)
        // Those that are not shown are not tried.
        let ports = missesPort ? conditions.ports.prefix(Shortfall.valuesMax) : [request.port...request.port]
        let methods = missesMethod ? conditions.methods.prefix(Shortfall.valuesMax) : [request.methodText]
        func isOpen(_ method: String, _ port: ClosedRange<UInt16>) -> Bool {
            self.isOpen(request.with(method: method, port: port.lowerBound), address: address, for: miss.rule)
        }
        let openPorts = ports.filter { port in methods.contains { isOpen($0, port) } }
        let openMethods = methods.filter { method in openPorts.contains { isOpen(method, $0) } }
        guard !openMethods.isEmpty, let unmet = miss.first else { return nil }

        var parts: [String] = []
        if missesPort {
            parts.append("to port \(listed(openPorts.map(RuleConditions.text), of: conditions.ports.count))")
        }
        if missesMethod { parts.append("with \(listed(openMethods, of: conditions.methods.count))") }
        if miss.unmet.contains(.path) {
            parts.append(request.isTunnel ? "for some paths, which a tunnel does not show" : "for other paths")
        }
        if miss.unmet.contains(.user) { parts.append("for user \(listed(conditions.users))") }
        if miss.unmet.contains(.client) { parts.append("for client \(listed(conditions.clients.map { "\($0)" }))") }
        return Shortfall(
            DenialReason(unmet: unmet), nearestRule: miss.rule.number,
            text: "rule \(miss.rule.number) allows this host, but only \(parts.joined(separator: " and "))")
    }

    /// Whether nothing before the rule denies the request, nor would a closed port for tunnels.
    private func isOpen(_ request: AccessRequest, address: IPAddress?, for rule: AccessRule) -> Bool {
        if !mayTunnelByDefault(request, .public), !rule.conditions.name(port: request.port) { return false }
        return rules.prefix { $0.number != rule.number }.allSatisfy { other in
            other.isAllow || other.holds(request, address: address) == false
        }
    }

    /// - Parameter count: how many there are. Nil: as many as `values` has.
    private func listed(_ values: some Collection<String>, of count: Int? = nil) -> String {
        values.prefix(Shortfall.valuesMax).joined(separator: ", ")
            + ((count ?? values.count) > Shortfall.valuesMax ? " or others" : "")
    }
}

/// An allow rule that does not match, and why.
private struct Miss {
    let rule: AccessRule
    let unmet: Set<RuleCondition>

    init(_ rule: AccessRule, _ unmet: Set<RuleCondition>) {
        self.rule = rule
        self.unmet = unmet
    }

    /// The condition that names the shortfall, if there are several.
    var first: RuleCondition? { RuleCondition.allCases.first(where: unmet.contains) }

    func isNearer(than other: Miss) -> Bool {
        (unmet.count, rule.number) < (other.unmet.count, other.rule.number)
    }
}
