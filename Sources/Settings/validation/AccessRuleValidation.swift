import Authentication
import Access
import Message
import Rules

/// Rules that can never decide are mistakes.
func accessRuleWarnings(_ configuration: Configuration, _ reader: ConfigurationReader) -> [ConfigurationError] {
    let rules = configuration.access.rules
    var warnings = coveredWarnings(rules, reader) + authenticateWarnings(configuration.access, reader)
    for rule in rules where !rule.conditions.paths.isEmpty && rule.conditions.methods == ["CONNECT"] {
        warnings.append(
            reader.error("access.rules[\(rule.number)]", "never matches: Larder cannot see the path in a tunnel"))
    }
    for rule in rules where rule.isAllow && !rule.conditions.serverNames.isEmpty {
        let conditions = rule.conditions
        guard !conditions.namesHosts, !conditions.namesAddresses else { continue }
        warnings.append(
            reader.error(
                "access.rules[\(rule.number)]", "allows tunnels to every host: a client can send any server name",
                hint: "name host or address as well"))
    }
    return warnings
}

/// Rules that ask for a log-in which every request has, and log-ins that nothing asks for.
private func authenticateWarnings(
    _ access: AccessSettings, _ reader: ConfigurationReader
) -> [ConfigurationError] {
    let asking = access.rules.filter { $0.effect == .authenticate && !$0.isReport }
    if access.authentication.isRequired {
        return asking.map {
            reader.error(
                "access.rules[\($0.number)]", "decides nothing: every request has to carry credentials",
                hint: "set access.authentication.required: no")
        }
    }
    guard access.authentication.isConfigured, asking.isEmpty else { return [] }
    return [
        reader.error(
            "access.authentication.required", "no client is ever asked for credentials",
            hint: "add a rule authenticate: { … } to access.rules, or remove required")
    ]
}

/// Rules that never decide, because a rule before them matches all that they match. Only what is certain.
private func coveredWarnings(_ rules: [AccessRule], _ reader: ConfigurationReader) -> [ConfigurationError] {
    var search = CoveringRules()
    var warnings: [ConfigurationError] = []
    for (position, rule) in rules.enumerated() where !rule.isReport {
        if let earlier = search.first(thatCovers: rule) {
            let isEverything = earlier.conditions.isEverything
            warnings.append(
                reader.error(
                    "access.rules[\(rule.number)]",
                    "is never reached: rule \(earlier.number) matches \(isEverything ? "everything" : "all that it matches")",
                    hint: "move it up"))
            // All that follow are not reached, either.
            if isEverything { break }
        }
        // It does not hold for those who have logged in.
        if rule.effect == .authenticate { continue }
        // What stands for a profile has fewer conditions than the rules of the profile.
        if rule.profile == nil { search.add(rule, at: position) }
    }
    return warnings
}

/// Finds a rule before another one that covers it, without a comparison of each with each.
private struct CoveringRules {
    private var rules: [AccessRule] = []
    private var byHost = HostIndex()
    /// The positions of the rules without hosts.
    private var withoutHosts: [Int] = []

    /// Only so many of the rules without hosts are compared with each rule.
    private static let comparisonsMax = 64

    mutating func add(_ rule: AccessRule, at position: Int) {
        if rule.conditions.hosts.isEmpty {
            if rule.conditions.hostLists.isEmpty { withoutHosts.append(rules.count) }
        } else {
            byHost.add(rule.conditions.hosts, at: rules.count)
        }
        rules.append(rule)
    }

    func first(thatCovers rule: AccessRule) -> AccessRule? {
        func covers(_ position: Int) -> Bool { rules[position].covers(rule) }
        let position =
            withoutHosts.prefix(CoveringRules.comparisonsMax).first(where: covers)
            ?? rule.conditions.hosts.first.flatMap { byHost.first(for: $0.example, where: covers) }
        return position.map { rules[$0] }
    }
}

extension AccessRule {
    /// Whether the other rule, behind this one, decides nothing.
    fileprivate func covers(_ other: AccessRule) -> Bool {
        // An allow rule can open an address or a port even behind another one.
        let opens = other.isAllow && isAllow
        let conditions = other.conditions
        let names =
            conditions.namesAddresses || !conditions.ports.isEmpty || !conditions.hostLists.isEmpty
            || conditions.hosts.contains(where: \.isAddress)
        if opens && names { return false }
        return self.conditions.cover(conditions, readingPathsAlike: !isAllow || other.isAllow)
    }
}

extension HostPattern {
    /// A host that matches.
    fileprivate var example: DestinationHost {
        switch self {
        case .any: .name("x")
        case .exact(let name): .name(name)
        case .below(let suffix): .name("x" + suffix)
        case .address(let address): .address(address)
        }
    }

    fileprivate var isAddress: Bool { if case .address = self { true } else { false } }
}
