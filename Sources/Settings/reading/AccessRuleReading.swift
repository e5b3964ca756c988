import Access
import Rules

/// `access.rules`: a list of `allow: { conditions }`, `deny: { conditions, reason }`, `redirect: { conditions, to }` and `authenticate: { conditions }`.
extension SettingKind where Value == [AccessRule] {
    static var rules: SettingKind {
        .elements(
            "rules", allowed: "a list of allow: { … }, deny: { … }, redirect: { … } and authenticate: { … }",
            read: readRule)
    }
}

@Sendable
private func readRule(_ node: ConfigurationNode, number: Int, _ problems: inout [SettingProblem]) -> AccessRule? {
    guard case .mapping(let entries) = node.value, entries.count == 1, let entry = entries.first,
        ["allow", "deny", "redirect", "authenticate"].contains(entry.key)
    else {
        problems.append(
            SettingProblem(
                node,
                message:
                    "found \(ruleFound(node)), expected allow: { … }, deny: { … }, redirect: { … } or authenticate: { … }",
                hint: ruleHint(node)))
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
    var tunnel: TunnelProtocols?
    var profile: AccessProfile?
    var isForSharedNames = false
    if entry.key != "allow" { reader.refuse("shared", "only an allow rule says shared") }
    switch entry.key {
    case "deny":
        effect = .deny(reason: reader.value("reason", .text(500)))
        reader.refuse("intercept", "a deny rule opens no tunnel")
        reader.refuse("tunnel", "a deny rule opens no tunnel")
        reader.refuse("profile", "only an allow rule has a profile")
        reader.refuse("to", "only a redirect rule has a page")
    case "redirect":
        effect = .redirect(to: reader.requiredValue("to", .pageURL) ?? "")
        reader.refuse("intercept", "a redirect rule opens no tunnel")
        reader.refuse("tunnel", "a redirect rule opens no tunnel")
        reader.refuse("profile", "only an allow rule has a profile")
        reader.refuse("reason", "only a deny rule has a reason")
    case "authenticate":
        effect = .authenticate
        reader.refuse(
            "user", "who has to log in is not known yet", hint: "name users in allow and deny rules behind it")
        reader.refuse(
            "group", "who has to log in is not known yet", hint: "name groups in allow and deny rules behind it")
        reader.refuse("intercept", "an authenticate rule opens no tunnel")
        reader.refuse("tunnel", "an authenticate rule opens no tunnel")
        reader.refuse("profile", "only an allow rule has a profile")
        reader.refuse("reason", "only a deny rule has a reason")
        reader.refuse("to", "only a redirect rule has a page")
    default:
        reader.refuse("reason", "only a deny rule has a reason")
        reader.refuse("to", "only a redirect rule has a page")
        intercept = reader.value("intercept", .flag)
        tunnel = reader.value("tunnel", .choice)
        isForSharedNames = reader.value("shared", .flag) ?? false
        profile = reader.value("profile", .choice)
        if let profile { checkProfile(profile, conditions, &reader) }
    }
    let isReport = reader.value("report", .flag) ?? false
    guard reader.finish("condition", into: &problems) else { return nil }
    var rule = AccessRule(
        effect: effect, conditions: conditions, intercept: intercept, tunnel: tunnel, profile: profile,
        isReport: isReport, number: number, line: line)
    rule.isForSharedNames = isForSharedNames
    return rule
}

private func ruleHint(_ node: ConfigurationNode) -> String? {
    guard case .mapping(let entries) = node.value, entries.count == 1, let name = entries.first?.key else { return nil }
    return nearestName(to: name, among: ["allow", "deny", "redirect", "authenticate"]).map { "did you mean \($0)?" }
}

private func ruleFound(_ node: ConfigurationNode) -> String {
    guard case .mapping(let entries) = node.value else { return node.found }
    return "keys " + entries.map { "\"\($0.key)\"" }.joined(separator: ", ")
}
