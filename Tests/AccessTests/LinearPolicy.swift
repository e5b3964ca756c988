import Access
import Message
import Rules

/// The model of `AccessPolicy`: the same decisions by a walk over all rules in their order. It knows no private destinations and no
/// report-only rules.
struct LinearPolicy {
    let rules: [AccessRule]
    let allowsByDefault: Bool

    private func holds(_ rule: AccessRule, _ request: AccessRequest, _ address: IPAddress?) -> Bool? {
        rule.conditions.hold(request, address: address, paths: rule.isAllow ? .everySpelling : .anySpelling)
    }

    /// `Verdict.summary`, for a request whose port is open and a public address.
    func verdict(_ request: AccessRequest, _ address: IPAddress?) -> String {
        guard let address = request.destination.address ?? address else { return verdictByName(request) }
        guard let rule = rules.first(where: { holds($0, request, address) == true }) else {
            return allowsByDefault ? "allow" : "deny no-rule"
        }
        return rule.isAllow ? "allow \(rule.number)" : "deny \(rule.number) rule"
    }

    private func verdictByName(_ request: AccessRequest) -> String {
        var (mayAllow, mayDeny) = (false, false)
        var final: AccessRule?
        for rule in rules {
            let holds = holds(rule, request, nil)
            if holds == false { continue }
            if rule.isAllow { mayAllow = true } else { mayDeny = true }
            if holds == true {
                final = rule
                break
            }
        }
        if final == nil { if allowsByDefault { mayAllow = true } else { mayDeny = true } }
        if mayAllow && mayDeny { return "needs address" }
        if mayDeny { return final.map { $0.isAllow ? "deny no-rule" : "deny \($0.number) rule" } ?? "deny no-rule" }
        return "allow" + (final.map { " \($0.number)" } ?? "")
    }

    /// Whether an allow rule names the address before a deny rule matches.
    func opens(_ request: AccessRequest, _ address: IPAddress) -> Bool {
        for rule in rules {
            let holds = holds(rule, request, address)
            if rule.isAllow && holds != false && rule.conditions.name(address) { return true }
            if !rule.isAllow && holds == true { return false }
        }
        return false
    }

    func allowsEveryPath(_ request: AccessRequest) -> Bool {
        verdict(request, nil).hasPrefix("allow")
            && !rules.contains { $0.conditions.dependOnRequest && $0.conditions.holdBesidesDetails(request) }
    }

    func mayRemainTunnel(_ request: AccessRequest) -> Bool {
        for rule in rules {
            var outside = rule.conditions
            outside.paths = []
            outside.methods = []
            let holds = outside.hold(request, address: request.destination.address, paths: .asSent)
            if holds == false { continue }
            if !rule.conditions.paths.isEmpty || !rule.conditions.methods.isEmpty { return false }
            if holds == true { return true }
        }
        return true
    }

    /// The exact reason of a denial by the default or by a rule that denies everything; the number of the nearest rule.
    func shortfall(_ request: AccessRequest, _ address: IPAddress?, deniedBy number: Int?) -> DenialReason? {
        let address = request.destination.address ?? address
        let misses = rules.prefix { $0.number != number }.compactMap { rule -> RuleCondition? in
            guard rule.isAllow, address != nil || !rule.conditions.namesAddresses else { return nil }
            return rule.conditions.unmet(by: request, address: address, paths: .everySpelling)
        }
        guard !misses.isEmpty else { return nil }
        let visible = misses.filter { $0.isDisjoint(with: [.user, .client]) }
        guard !visible.isEmpty else {
            return misses.contains { !$0.contains(.client) } ? .userNotAllowed : .clientNotAllowed
        }
        guard !visible.contains(where: { $0.isDisjoint(with: [.host, .address]) }) else { return nil }
        return visible.contains { $0.contains(.host) } ? .hostNotAllowed : .addressNotAllowed
    }
}

/// The same numbers in each run (SplitMix64).
struct SeededNumbers: RandomNumberGenerator {
    private var state: UInt64
    init(_ seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
