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
        var bound = Int.max
        if let number, let position = position(ofRule: number) {
            guard rules[position].conditions.isEverything else { return nil }
            bound = position
        }
        let searched = Searched(request, address, bound, audience)
        let near = nearMisses(searched)
        guard !near.isEmpty else { return distantShortfall(searched) }
        for miss in near.sorted(by: { $0.isNearer(than: $1) }).prefix(Shortfall.candidatesMax) {
            if let found = shortfall(of: request, address: address, miss) { return found }
        }
        return nil
    }

    /// The allow rules before the one that denies that hold for host and address, and for who asks, unless an administrator asks.
    private func nearMisses(_ searched: Searched) -> [Miss] {
        var near: [Miss] = []
        func consider(_ rule: AccessRule) {
            guard searched.mayTell(of: rule) else { return }
            let unmet = rule.conditions.unmet(by: searched.request, address: searched.address, paths: .everySpelling)
            guard
                unmet.isDisjoint(
                    with: searched.audience == .client ? [.host, .address, .user, .client] : [.host, .address])
            else { return }
            near.append(Miss(rule, unmet))
        }
        switch searched.audience {
        case .client:
            _ = firstRule(for: searched.request, address: searched.address, below: searched.bound) {
                consider($0)
                return false
            }
        case .administrator: for rule in rules.prefix(searched.bound) { consider(rule) }
        }
        return near
    }

    /// What is missing if no allow rule comes near. Nil if there is none that can be told of.
    private func distantShortfall(_ searched: Searched) -> Shortfall? {
        let first = searched.address == nil ? index.firstAllowingByName : index.firstAllowing
        guard let first, first < searched.bound else { return nil }
        let request = searched.request
        func someRule(_ test: (RuleConditions) -> Bool) -> Bool {
            func passes(_ rule: AccessRule) -> Bool { searched.mayTell(of: rule) && test(rule.conditions) }
            switch searched.audience {
            case .administrator: return rules.prefix(searched.bound).contains(where: passes)
            case .client:
                return index.allowingByWho.first(for: request, address: searched.address, below: searched.bound) {
                    rules[$0].conditions.holdForClient(request) && passes(rules[$0])
                } != nil
            }
        }
        if someRule({ !$0.hostHolds(request) }) { return Shortfall(.hostNotAllowed) }
        if someRule({ _ in true }) { return Shortfall(.addressNotAllowed) }
        // Rules for others.
        let isForClient = rules[first...].prefix(searched.bound - first).contains {
            searched.mayTell(of: $0) && $0.conditions.clientHolds(request)
        }
        return Shortfall(isForClient ? .userNotAllowed : .clientNotAllowed)
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
        guard !openMethods.isEmpty, let reason = DenialReason(unmet: miss.unmet) else { return nil }

        var parts: [String] = []
        if missesPort {
            parts.append("to port \(listed(openPorts.map(RuleConditions.text), of: conditions.ports.count))")
        }
        if missesMethod { parts.append("with \(listed(openMethods, of: conditions.methods.count))") }
        if miss.unmet.contains(.path) {
            parts.append(request.isTunnel ? "for some paths, which a tunnel does not show" : "for other paths")
        }
        if !miss.unmet.isDisjoint(with: [.scheme, .details, .serverName]) {
            let names: Set = [
                "scheme", "sni", "query", "content_type", "request_size", "upgrade", "credential", "user_agent", "time",
            ]
            parts.append("with its \(conditions.parts.map(\.name).filter(names.contains).joined(separator: ", "))")
        }
        if miss.unmet.contains(.user) { parts.append(whom("user", of: conditions, "group")) }
        if miss.unmet.contains(.client) { parts.append(whom("client", of: conditions, "listener")) }
        return Shortfall(
            reason, nearestRule: miss.rule.number,
            text: "rule \(miss.rule.number) allows this host, but only \(parts.joined(separator: " and "))")
    }

    /// Whether nothing before the rule denies the request, nor would a closed port for tunnels.
    private func isOpen(_ request: AccessRequest, address: IPAddress?, for rule: AccessRule) -> Bool {
        if !mayTunnelByDefault(request, .public), !rule.conditions.name(port: request.port) { return false }
        return firstRule(for: request, address: address, below: position(ofRule: rule.number) ?? .max) { other in
            !other.isAllow && other.holds(request, address: address) != false
        } == nil
    }

    /// `for user ann, bob`; `for user ann and group staff`.
    private func whom(_ first: String, of conditions: RuleConditions, _ second: String) -> String {
        let parts = conditions.parts.filter { $0.name == first || $0.name == second }
        return "for " + parts.map { "\($0.name) \(listed($0.values))" }.joined(separator: " and ")
    }

    /// - Parameter count: how many there are. Nil: as many as `values` has.
    private func listed(_ values: some Collection<String>, of count: Int? = nil) -> String {
        values.prefix(Shortfall.valuesMax).joined(separator: ", ")
            + ((count ?? values.count) > Shortfall.valuesMax ? " or others" : "")
    }
}

/// Where rules that come near are looked for.
private struct Searched {
    let request: AccessRequest
    let address: IPAddress?
    /// The position of the rule that denies everything.
    let bound: Int
    let audience: Shortfall.Audience

    init(_ request: AccessRequest, _ address: IPAddress?, _ bound: Int, _ audience: Shortfall.Audience) {
        self.request = request
        self.address = address
        self.bound = bound
        self.audience = audience
    }

    /// Nothing is said about the address of a host that has not been resolved.
    func mayTell(of rule: AccessRule) -> Bool {
        rule.isAllow && !rule.isReport && (address != nil || !rule.conditions.namesAddresses)
    }
}

/// An allow rule that does not match, and why.
private struct Miss {
    let rule: AccessRule
    let unmet: RuleCondition

    init(_ rule: AccessRule, _ unmet: RuleCondition) {
        self.rule = rule
        self.unmet = unmet
    }

    func isNearer(than other: Miss) -> Bool {
        (unmet.count, rule.number) < (other.unmet.count, other.rule.number)
    }
}
