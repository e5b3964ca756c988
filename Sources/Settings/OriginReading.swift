import Routing
import Rules

/// `origins`: a list of `match: { conditions }` with what holds for the origins that match.
extension SettingKind where Value == [OriginRule] {
    static var origins: SettingKind {
        .elements(
            "origins", allowed: "a list of match: { … } with timeouts: { … }, retries: N or tls: { … }",
            read: readOrigin)
    }
}

@Sendable
private func readOrigin(_ node: ConfigurationNode, number: Int, _ problems: inout [SettingProblem]) -> OriginRule? {
    let expected = "keys such as match: { … } and timeouts: { … }"
    guard var reader = MappingReader(node, expected: expected, problems: &problems) else { return nil }
    let conditions = reader.value("match", .conditions(of: .origin)) ?? RuleConditions()
    let timeouts = reader.value("timeouts", .originTimeouts)
    let retries = reader.value("retries", .count(0...10))
    let tls = reader.value("tls", .originTLS)
    if let tls { reader.requireNamedOrigins(of: conditions, for: tls, "tls") }
    guard reader.finish("key", into: &problems) else { return nil }
    guard timeouts != nil || retries != nil || tls != nil else {
        problems.append(SettingProblem(node, message: "the rule says nothing", hint: "add timeouts, retries or tls"))
        return nil
    }
    return OriginRule(
        conditions, timeouts: timeouts ?? OriginRule.Timeouts(), retriesMax: retries, tls: tls, number: number,
        line: node.line)
}

extension SettingKind where Value == OriginRule.Timeouts {
    fileprivate static var originTimeouts: SettingKind {
        let expected = "keys such as connect: 2s and first_byte: 5m"
        return SettingKind(
            allowed: expected,
            read: { node, problems in
                guard var reader = MappingReader(node, expected: expected, problems: &problems) else { return nil }
                var timeouts = OriginRule.Timeouts()
                let limit = SettingKind<Duration>.duration
                timeouts.connect = reader.value("connect", limit(TimeoutSettings.connectBounds))
                timeouts.firstByte = reader.value("first_byte", limit(TimeoutSettings.firstByteBounds))
                timeouts.idle = reader.value("idle", limit(TimeoutSettings.idleBounds))
                timeouts.total = reader.value("total", limit(TimeoutSettings.totalBounds).or("off"))
                return reader.finish("key", into: &problems) ? timeouts : nil
            }, render: { _ in "" })
    }
}
