import Origins
import Rules

/// `bandwidth.classes`: a list of `name`, `match: { conditions }` and `rate`.
extension SettingKind where Value == [BandwidthClass] {
    static var bandwidthClasses: SettingKind {
        let kind = elements(
            "classes", allowed: "a list of name: NAME, match: { … } and rate: RATE", read: readBandwidthClass)
        return SettingKind(
            allowed: kind.allowed,
            read: { node, problems in
                guard let classes = kind.read(node, &problems) else { return nil }
                var names: Set<String> = []
                for (index, one) in classes.enumerated() where !names.insert(one.name).inserted {
                    problems.append(
                        SettingProblem(
                            line: one.line, place: "[\(index + 1)].name",
                            message: "the name \(one.name) is used twice"))
                }
                return names.count == classes.count ? classes : nil
            }, render: kind.render)
    }
}

@Sendable
private func readBandwidthClass(
    _ node: ConfigurationNode, number: Int, _ problems: inout [SettingProblem]
) -> BandwidthClass? {
    let expected = "keys such as name: NAME, match: { host: … } and rate: 10MiB/s"
    guard var reader = MappingReader(node, expected: expected, problems: &problems) else { return nil }
    let name = reader.requiredValue("name", SettingKind<String>.text(64))
    let conditions = reader.value("match", .conditions(of: .bandwidth)) ?? RuleConditions()
    let rate = reader.requiredValue("rate", SettingKind<UInt64>.rate)
    guard reader.finish("key", into: &problems), let name, let rate else { return nil }
    return BandwidthClass(name: name, conditions, rate: rate, line: node.line)
}

extension SettingKind where Value == UInt64 {
    /// A rate in bytes per second.
    static var rate: SettingKind { rate(1 << 10...1 << 40, such: "10MiB/s or 100Mbit/s") }

    /// A rate in bytes per second, within bounds.
    static func rate(_ bounds: ClosedRange<UInt64>, such examples: String) -> SettingKind {
        .scalar(
            "a rate from \(renderRate(bounds.lowerBound)) to \(renderRate(bounds.upperBound)), such as \(examples)",
            parse: { text in parseRate(text).flatMap { bounds.contains($0) ? $0 : nil } },
            render: renderRate,
            hint: { text in
                if Int(text) != nil { return "a rate needs a unit: \(text)KiB/s, \(text)kbit/s" }
                return parseRate(text + "/s") == nil ? nil : "did you mean \(text)/s?"
            })
    }
}
