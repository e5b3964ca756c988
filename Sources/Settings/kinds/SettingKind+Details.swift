import Message
import Rules
import Texts

// The values of conditions on the details of a request.

extension SettingKind where Value == Scheme {
    static var scheme: SettingKind {
        .scalar(
            "http or https", parse: { $0 == "http" ? .http : $0 == "https" ? .https : nil },
            render: { $0 == .http ? "http" : "https" },
            hint: { $0.contains(":") ? "without \"://\"" : nil })
    }
}

extension SettingKind where Value == String {
    /// The name of a query parameter, decoded; or the name and the value.
    static var queryName: SettingKind {
        .scalar(
            "the name of a query parameter, or name=value", parse: { isQueryCondition($0) ? $0 : nil },
            render: { yamlQuoted("\($0)") },
            hint: { text in
                text.contains("%") ? "write it decoded" : nil
            })
    }

    @Sendable private static func isQueryCondition(_ text: String) -> Bool {
        let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        return parts.allSatisfy(isQueryName)
    }

    @Sendable private static func isQueryName(_ text: String) -> Bool {
        (1...255).contains(text.utf8.count) && text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
            && !text.contains(where: { "=&;%?#".contains($0) })
    }

    /// The name of a protocol in `Upgrade` (RFC 9110 §7.8), in lower case; `*` is any.
    static var upgradeName: SettingKind {
        .scalar(
            "a protocol such as websocket, or *",
            parse: { $0 == "*" ? $0 : !$0.isEmpty && $0.utf8.allSatisfy(isTchar) ? $0.lowercased() : nil },
            render: { $0.utf8.allSatisfy { isAlpha($0) || isDigit($0) } ? $0 : yamlQuoted($0) },
            hint: { $0.contains("/") ? "without a version" : nil })
    }
}

extension SettingKind where Value == TextPattern {
    static var userAgent: SettingKind {
        .scalar(
            "a part of User-Agent such as curl/, or a pattern with * for all of it", parse: { TextPattern($0) },
            render: { yamlQuoted("\($0)") })
    }
}

extension SettingKind where Value == TimeWindow {
    static var timeWindow: SettingKind {
        .scalar(
            "days, times or both, such as \"mon-fri 08:00-18:00\", with utc behind them for UTC",
            parse: { TimeWindow($0) }, render: { yamlQuoted("\($0)") },
            hint: { text in
                text.contains("/")
                    ? "the zone has a key of its own: zone: Europe/Berlin"
                    : "days are mon, tue, wed, thu, fri, sat, sun"
            })
    }
}

extension SettingKind where Value == NamedZone {
    /// A name of the time zone database. Whether it is there is found out when its file is read.
    static var timeZone: SettingKind {
        .scalar(
            "a time zone such as Europe/Berlin", parse: { isZoneName($0) ? NamedZone($0) : nil }, render: { $0.name },
            hint: { $0.lowercased() == "utc" ? nil : $0.contains(":") ? "name the place, not the offset" : nil })
    }

    /// Segments of letters, digits, `_`, `+` and `-`: never a path out of the directory of zones.
    @Sendable private static func isZoneName(_ text: String) -> Bool {
        let segments = text.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        return text.utf8.count <= 64
            && segments.allSatisfy { segment in
                !segment.isEmpty
                    && segment.allSatisfy {
                        (0x30...0x39).contains($0) || (0x41...0x5A).contains($0 & 0xDF) || "_+-".utf8.contains($0)
                    }
            }
    }
}

extension SettingKind where Value == ClosedRange<UInt64> {
    /// `{ at_least: 1MiB }`, `{ at_most: 10MiB }`, or both.
    static var bodyLength: SettingKind {
        let expected = "{ at_most: … } or { at_least: … }"
        return SettingKind(
            allowed: expected,
            read: { node, problems in
                guard var reader = MappingReader(node, expected: expected, problems: &problems) else { return nil }
                let size = SettingKind<UInt64>.size(0...(1 << 50))
                let least = reader.value("at_least", size)
                let most = reader.value("at_most", size)
                guard reader.finish("key", into: &problems) else { return nil }
                guard least != nil || most != nil else {
                    problems.append(SettingProblem(node, message: "found \(node.found), expected \(expected)"))
                    return nil
                }
                guard least ?? 0 <= most ?? .max else {
                    problems.append(SettingProblem(node, message: "at_least is more than at_most"))
                    return nil
                }
                return (least ?? 0)...(most ?? .max)
            }, render: { "{ at_least: \(renderSize($0.lowerBound)), at_most: \(renderSize($0.upperBound)) }" })
    }
}

extension SettingKind where Value == String {
    /// The page of a rule `redirect`.
    static var pageURL: SettingKind {
        .scalar(
            "an absolute URL with http or https",
            parse: { text in
                text.utf8.count <= 2000 && text.utf8.allSatisfy(isVchar) && TargetURI(text.utf8) != nil ? text : nil
            }, render: { yamlQuoted("\($0)") })
    }
}
