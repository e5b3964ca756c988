import Access
import Rules

/// `access.rules`: a list of `allow: { conditions }` and `deny: { conditions, reason }`.
extension SettingKind where Value == [AccessRule] {
    static var rules: SettingKind {
        .elements("rules", allowed: "a list of allow: { … } and deny: { … }", read: readRule)
    }
}

@Sendable
private func readRule(_ node: ConfigurationNode, number: Int, _ problems: inout [SettingProblem]) -> AccessRule? {
    guard case .mapping(let entries) = node.value, entries.count == 1, let entry = entries.first,
        entry.key == "allow" || entry.key == "deny"
    else {
        problems.append(
            SettingProblem(node, message: "found \(ruleFound(node)), expected allow: { … } or deny: { … }"))
        return nil
    }
    var own: [SettingProblem] = []
    let rule = readRule(entry, number: number, line: node.line, &own)
    problems += own.map { $0.inside(".\(entry.key)") }
    return rule
}

private func readRule(
    _ entry: ConfigurationNode.Entry, number: Int, line: Int, _ problems: inout [SettingProblem]
) -> AccessRule? {
    let expected = "conditions such as { host: … }"
    guard var reader = MappingReader(entry.value, expected: expected, problems: &problems) else { return nil }
    let conditions = readConditions(&reader, of: .access)
    var effect = AccessRule.Effect.allow
    var intercept: Bool?
    var profile: AccessProfile?
    if entry.key == "deny" {
        effect = .deny(reason: reader.value("reason", .text(500)))
        reader.refuse("intercept", "a deny rule opens no tunnel")
        reader.refuse("profile", "only an allow rule has a profile")
    } else {
        reader.refuse("reason", "only a deny rule has a reason")
        intercept = reader.value("intercept", .flag)
        profile = reader.value("profile", .choice)
        if let profile { checkProfile(profile, conditions, &reader) }
    }
    guard reader.finish("condition", into: &problems) else { return nil }
    return AccessRule(
        effect: effect, conditions: conditions, intercept: intercept, profile: profile, number: number,
        line: line)
}

private func ruleFound(_ node: ConfigurationNode) -> String {
    guard case .mapping(let entries) = node.value else { return node.found }
    return "keys " + entries.map { "\"\($0.key)\"" }.joined(separator: ", ")
}
