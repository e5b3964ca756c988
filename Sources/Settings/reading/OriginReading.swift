import Origins
import Rules

/// `origins`: a list of `match: { conditions }` with what holds for the origins that match.
extension SettingKind where Value == [OriginRule] {
    static var origins: SettingKind {
        let kind = elements(
            "origins",
            allowed:
                "a list of match: { … } with timeouts: { … }, connections: { … }, retries: N, bandwidth: RATE, tls: { … }, fields: { … }, redirects: follow, cookies: JAR or request_coding: gzip",
            read: readOrigin)
        return SettingKind(
            allowed: kind.allowed,
            read: { node, problems in
                guard let rules = kind.read(node, &problems) else { return nil }
                // Who is not the first client of a resource must get what the first was given: for those clients the other rule would not count.
                for changing in rules.reversed() where !changing.settingsOnAll.isEmpty {
                    let dependent = rules.first {
                        $0.number < changing.number && $0.conditions.dependOnClient
                            && $0.mayShareRequests(with: changing)
                    }
                    guard let dependent else { continue }
                    problems.append(
                        SettingProblem(
                            line: changing.line, place: "[\(changing.number)]",
                            message:
                                "a rule before it has user or client, so what is stored would depend on who asked first",
                            hint: "move it before [\(dependent.number)]"))
                    return nil
                }
                return rules
            }, render: kind.render)
    }
}

@Sendable
private func readOrigin(_ node: ConfigurationNode, number: Int, _ problems: inout [SettingProblem]) -> OriginRule? {
    let expected = "keys such as match: { … } and timeouts: { … }"
    guard var reader = MappingReader(node, expected: expected, problems: &problems) else { return nil }
    let conditions = reader.value("match", .conditions(of: .origin)) ?? RuleConditions()
    let timeouts = reader.value("timeouts", .originTimeouts)
    let connections = reader.value("connections", .connections)
    let retries = reader.value("retries", .count(0...10))
    let bandwidth = reader.value("bandwidth", .rate)
    let tls = reader.value("tls", .originTLS)
    if let tls { reader.requireNamedOrigins(of: conditions, for: tls, "tls") }
    let fields = reader.value("fields", .fieldChanges)
    let cookies = reader.value("cookies", .cookieUse)
    if cookies != nil { reader.checkCookies(of: conditions, fields ?? []) }
    let coding = reader.value("request_coding", SettingKind<RequestCodingName>.choice)
    let redirects = reader.value("redirects", .redirects)
    let isHTTP10 = connections?.isHTTP10 == true
    if coding == .gzip, isHTTP10 {
        reader.refuse(
            "request_coding", "HTTP/1.0 has no chunks, which content of unknown length needs",
            hint: "leave one of the two out")
    }
    let rule = OriginRule(
        conditions, timeouts: timeouts ?? OriginRule.Timeouts(),
        connections: connections ?? OriginRule.Connections(), retriesMax: retries, bandwidth: bandwidth, tls: tls,
        fields: fields ?? [],
        encodesRequests: coding == .gzip,
        redirectsMax: redirects ?? nil, cookies: cookies,
        number: number,
        line: node.line)
    if conditions.dependOnClient {
        for setting in rule.settingsOnAll {
            reader.refuse(
                setting.rawValue,
                "the rule has user or client, and what is stored would be what the first of them was given",
                hint: "leave user and client out")
        }
    }
    guard reader.finish("key", into: &problems) else { return nil }
    guard
        timeouts != nil || connections != nil || retries != nil || bandwidth != nil || tls != nil || fields != nil
            || coding != nil || redirects != nil || cookies != nil
    else {
        problems.append(
            SettingProblem(
                node, message: "the rule says nothing",
                hint: "add timeouts, connections, retries, bandwidth, tls, fields, redirects, cookies or request_coding"
            ))
        return nil
    }
    return rule
}

/// `request_coding`.
private enum RequestCodingName: String, CaseIterable, Sendable { case gzip, none }

extension SettingKind where Value == Int? {
    /// `redirects`: how many are followed. Nil: none.
    fileprivate static var redirects: SettingKind {
        let allowed = "follow, pass or { max: N }"
        return SettingKind(
            allowed: allowed,
            read: { node, problems in
                switch node.value {
                case .scalar("follow", _): return .some(OriginRule.redirectsMaxDefault)
                case .scalar("pass", _): return .some(nil)
                case .mapping:
                    guard var reader = MappingReader(node, expected: allowed, problems: &problems) else { return nil }
                    let countMax = reader.requiredValue("max", .count(OriginRule.redirectsMaxBounds))
                    return reader.finish("key", into: &problems) ? .some(countMax) : nil
                case .scalar, .list:
                    problems.append(SettingProblem(node, message: "found \(node.found), expected \(allowed)"))
                    return nil
                }
            }, render: { _ in "" })
    }
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
