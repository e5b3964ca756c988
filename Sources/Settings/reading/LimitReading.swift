import Limiting
import Rules

/// `limits.rules`: a list of `name`, `match: { conditions }`, `per` and figures.
extension SettingKind where Value == LimitPlan {
    static var limitRules: SettingKind {
        let kind = SettingKind<[LimitRule]>.elements(
            "rules", allowed: "a list of name: NAME, match: { … }, per: client and requests: 50/s",
            read: readLimitRule)
        return SettingKind(
            allowed: kind.allowed,
            read: { node, problems in
                guard let rules = kind.read(node, &problems) else { return nil }
                return plan(of: rules, &problems)
            }, render: { kind.render($0.rules) })
    }

    /// Rules that share the buckets of another one get its figures.
    private static func plan(of rules: [LimitRule], _ problems: inout [SettingProblem]) -> LimitPlan? {
        var found: [SettingProblem] = []
        var names: Set<String> = []
        for (index, rule) in rules.enumerated() where !names.insert(rule.name).inserted {
            found.append(
                SettingProblem(
                    line: rule.line, place: "[\(index + 1)].name", message: "the name \(rule.name) is used twice"))
        }
        var result = rules
        for (index, rule) in rules.enumerated() {
            guard let name = rule.shares else { continue }
            if let other = rules.first(where: { $0.name == name && $0.shares == nil }) {
                result[index].terms = other.terms
                result[index].scope = other.scope
                result[index].isOfNode = other.isOfNode
            } else {
                let own = rules.filter { $0.shares == nil }.map(\.name)
                found.append(
                    SettingProblem(
                        line: rule.line, place: "[\(index + 1)].share",
                        message: "no rule with buckets has the name \(name)",
                        hint: nearestName(to: name, among: own).map { "did you mean \($0)?" }))
            }
        }
        for (index, rule) in result.enumerated() where rule.terms.connections != nil && !rule.mayCountConnections {
            found.append(
                SettingProblem(
                    line: rule.line, place: "[\(index + 1)].connections",
                    message:
                        "connections are counted when they are accepted, before anything but the address of the client is known",
                    hint: "use per: client or per: all, and no condition but client; concurrent counts requests"))
        }
        problems += found
        return found.isEmpty ? LimitPlan(result) : nil
    }
}

extension LimitRule {
    /// Whether the rule looks at nothing but the address of the client.
    fileprivate var mayCountConnections: Bool {
        guard scope == .client || scope == .all else { return false }
        return conditions.parts.allSatisfy { $0.name == "client" }
    }
}

@Sendable
private func readLimitRule(
    _ node: ConfigurationNode, number: Int, _ problems: inout [SettingProblem]
) -> LimitRule? {
    let expected = "keys such as name: NAME, match: { client: … }, per: client and requests: 50/s"
    guard var reader = MappingReader(node, expected: expected, problems: &problems) else { return nil }
    let name = reader.requiredValue("name", SettingKind<String>.text(64))
    let conditions = reader.value("match", .conditions(of: .limit)) ?? RuleConditions()
    let shares = reader.value("share", SettingKind<String>.text(64))
    let scope = reader.value("per", SettingKind<LimitScope>.choice)
    let isOfFleet = reader.value("fleet", SettingKind<Bool>.flag)
    let terms = readLimitTerms(&reader)
    if shares != nil {
        for key in ["per", "fleet"] + limitFigures {
            reader.refuse(key, "a rule with share has the figures of the other rule")
        }
    } else if terms.isEmpty, !limitFigures.contains(where: { reader.has($0) }) {
        for key in limitFigures.prefix(1) { reader.require(key) }
    }
    guard reader.finish("key", into: &problems), let name else { return nil }
    return LimitRule(
        name: name, conditions, per: scope ?? .client, terms, shares: shares, isOfNode: isOfFleet == false,
        line: node.line)
}

/// The keys of `LimitTerms`.
private let limitFigures = [
    "requests", "burst", "concurrent", "connections", "bandwidth", "budget", "request_body", "request_size",
    "response_body",
]

private func readLimitTerms(_ reader: inout MappingReader) -> LimitTerms {
    var terms = LimitTerms()
    let requests = reader.value("requests", SettingKind<TokenRate>.requestRate)
    let burst = reader.value("burst", SettingKind<Int>.count(1...Int(TokenRate.countMax)))
    if !reader.has("requests") { reader.refuse("burst", "burst needs requests", hint: "requests: 50/s") }
    terms.requests = requests.map { rate in
        burst.map { TokenRate(rate.count, per: rate.period, burst: UInt64($0)) } ?? rate
    }
    terms.concurrent = reader.value("concurrent", SettingKind<Int>.count(1...1_000_000))
    terms.connections = reader.value("connections", SettingKind<Int>.count(1...1_000_000))
    terms.bandwidth = reader.value("bandwidth", SettingKind<UInt64>.rate)
    terms.budget = reader.value("budget", SettingKind<ByteBudget>.budget)
    terms.requestBody = reader.value("request_body", SettingKind<UInt64>.size(1...1 << 50))
    terms.requestSize = reader.value("request_size", SettingKind<UInt64>.size(1...1 << 50))
    terms.responseBody = reader.value("response_body", SettingKind<UInt64>.size(1...1 << 50))
    return terms
}

extension SettingKind where Value == TokenRate {
    /// `50/s`, `1000/h`.
    static var requestRate: SettingKind {
        .scalar(
            "a number from 1 to \(TokenRate.countMax) per s, m, h or d, such as 50/s",
            parse: { text in
                let parts = text.split(separator: "/", omittingEmptySubsequences: false)
                guard parts.count == 2, let count = parseCount(String(parts[0]), in: 1...Int(TokenRate.countMax)),
                    let period = TokenRate.Period(rawValue: String(parts[1]))
                else { return nil }
                return TokenRate(UInt64(count), per: period)
            }, render: { $0.text }, hint: { Int($0) == nil ? nil : "a rate needs its time: \($0)/s, \($0)/m" })
    }
}

extension SettingKind where Value == ByteBudget {
    /// `{ bytes: 10GiB, every: day, count: both }`
    static var budget: SettingKind {
        let allowed = "keys such as bytes: 10GiB and every: day"
        return SettingKind(
            allowed: allowed,
            read: { node, problems in
                guard var reader = MappingReader(node, expected: allowed, problems: &problems) else { return nil }
                let bytes = reader.requiredValue("bytes", SettingKind<UInt64>.size(1...1 << 60))
                let window = reader.requiredValue("every", SettingKind<ByteBudget.Window>.choice)
                let counts = reader.value("count", SettingKind<ByteBudget.Direction>.choice)
                guard reader.finish("key", into: &problems), let bytes, let window else { return nil }
                return ByteBudget(bytes, every: window, counts: counts ?? .download)
            },
            render: { "{ bytes: \(renderSize($0.bytes)), every: \($0.window.rawValue), count: \($0.counts.rawValue) }" }
        )
    }
}
