import Access
import Rules

/// `access.rules`: a list of `allow: { conditions }` and `deny: { conditions, reason }`.
extension SettingKind where Value == [AccessRule] {
    static var rules: SettingKind {
        SettingKind(
            allowed: "a list of allow: { … } and deny: { … }",
            read: { node, problems in
                guard case .list(let elements) = node.value else {
                    problems.append(SettingProblem(node, message: "found \(node.found), expected a list of rules"))
                    return nil
                }
                var rules: [AccessRule] = []
                for (index, element) in elements.enumerated() {
                    var own: [SettingProblem] = []
                    if let rule = readRule(element, number: index + 1, &own) { rules.append(rule) }
                    problems += own.map { $0.inside("[\(index + 1)]") }
                }
                return rules.count == elements.count ? rules : nil
            }, render: { rules in rules.isEmpty ? "[]" : "\(rules.count) rules" })
    }
}

private func readRule(_ node: ConfigurationNode, number: Int, _ problems: inout [SettingProblem]) -> AccessRule? {
    guard case .mapping(let entries) = node.value, entries.count == 1, let entry = entries.first,
        entry.key == "allow" || entry.key == "deny"
    else {
        problems.append(
            SettingProblem(node, message: "found \(ruleFound(node)), expected allow: { … } or deny: { … }"))
        return nil
    }
    var reader = ConditionReader(isAllow: entry.key == "allow")
    reader.read(entry.value)
    problems += reader.problems.map { $0.inside(".\(entry.key)") }
    guard reader.problems.isEmpty else { return nil }
    let effect: AccessRule.Effect = reader.isAllow ? .allow : .deny(reason: reader.reason)
    return AccessRule(effect: effect, conditions: reader.conditions, number: number, line: node.line)
}

private func ruleFound(_ node: ConfigurationNode) -> String {
    guard case .mapping(let entries) = node.value else { return node.found }
    return "keys " + entries.map { "\"\($0.key)\"" }.joined(separator: ", ")
}

/// The conditions of one rule.
private struct ConditionReader {
    let isAllow: Bool
    var conditions = AccessRule.Conditions()
    var reason: String?
    var problems: [SettingProblem] = []

    init(isAllow: Bool) { self.isAllow = isAllow }

    mutating func read(_ node: ConfigurationNode) {
        if node.isNull { return }  // `deny:` alone holds for everything
        guard case .mapping(let entries) = node.value else {
            problems.append(
                SettingProblem(node, message: "found \(node.found), expected conditions such as { host: … }"))
            return
        }
        for entry in entries { read(entry) }
    }

    private mutating func read(_ entry: ConfigurationNode.Entry) {
        switch entry.key {
        case "host": conditions.hosts = values(entry, .hostPattern)
        case "address": conditions.addresses = values(entry, .addressRange)
        case "port": conditions.ports = values(entry, .portRange)
        case "method": conditions.methods = values(entry, .method)
        case "user": conditions.users = values(entry, .text(255))
        case "client": conditions.clients = values(entry, .addressRange)
        case "reason" where !isAllow: reason = value(entry, .text(500))
        case "reason":
            problems.append(
                SettingProblem(line: entry.keyLine, place: ".reason", message: "only a deny rule has a reason"))
        default:
            let names = ["host", "address", "port", "method", "user", "client"] + (isAllow ? [] : ["reason"])
            let near = nearestName(to: entry.key, among: names).map { "did you mean \($0)?" }
            problems.append(
                SettingProblem(
                    line: entry.keyLine, place: ".\(entry.key)", message: "unknown condition",
                    hint: near ?? "known are \(names.joined(separator: ", "))"))
        }
    }

    private mutating func values<Value>(_ entry: ConfigurationNode.Entry, _ kind: SettingKind<Value>) -> [Value] {
        value(entry, kind.list()) ?? []
    }

    private mutating func value<Value>(_ entry: ConfigurationNode.Entry, _ kind: SettingKind<Value>) -> Value? {
        var own: [SettingProblem] = []
        let value = kind.read(entry.value, &own)
        problems += own.map { $0.inside(".\(entry.key)") }
        return value
    }
}
