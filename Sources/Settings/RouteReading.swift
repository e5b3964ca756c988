import Message
import Routing
import Rules

/// `routes`: a list of `match: { conditions }` with `via: [ … ]`.
extension SettingKind where Value == [RouteRule] {
    static var routes: SettingKind {
        .elements("routes", allowed: "a list of match: { … }, via: [ … ]", read: readRoute)
    }
}

@Sendable
private func readRoute(_ node: ConfigurationNode, number: Int, _ problems: inout [SettingProblem]) -> RouteRule? {
    let expected = "keys such as match: { … } and via: [ … ]"
    guard var reader = MappingReader(node, expected: expected, problems: &problems) else { return nil }
    let conditions = reader.value("match", .routeConditions) ?? RuleConditions()
    let routes = reader.requiredValue("via", SettingKind<Route>.route.list())
    let choice = reader.value("choose", SettingKind<RouteRule.Choice>.choice) ?? .order
    if let routes {
        if Set(routes.map { "\($0)" }).count < routes.count { reader.refuse("via", "the same route twice") }
        if choice == .hash, routes.filter({ $0 != .direct }).count < 2 {
            reader.refuse("choose", "hash chooses among several proxies", hint: "name them in via, or leave choose out")
        }
    }
    guard reader.finish("key", into: &problems), let routes else { return nil }
    return RouteRule(conditions, via: routes, choice: choice, number: number, line: node.line)
}

extension SettingKind where Value == RuleConditions {
    static var routeConditions: SettingKind { .conditions(of: .route) }
}

extension SettingKind where Value == Route {
    static var route: SettingKind {
        let kind = scalar(
            "direct, or a proxy such as http://HOST:PORT, https://HOST:PORT or socks5://HOST:PORT",
            parse: { text in text == "direct" ? .direct : NextProxy(url: text).map { .proxy($0) } },
            render: { "\"\($0)\"" }, hint: hint)
        return SettingKind(
            allowed: kind.allowed,
            read: { node, problems in
                guard case .scalar(let text, _) = node.value, text.contains("@") else {
                    return kind.read(node, &problems)
                }
                var own: [SettingProblem] = []
                if let route = kind.read(node, &own) { return route }
                // The text may have a password.
                problems += own.map {
                    SettingProblem(
                        line: $0.line, place: $0.place,
                        message: "found a URL that is not valid, expected \(kind.allowed)",
                        hint: $0.hint)
                }
                return nil
            }, render: kind.render)
    }

    @Sendable private static func hint(_ text: String) -> String? {
        if let near = nearestName(to: text, among: ["direct"]) { return "did you mean \(near)?" }
        guard let (scheme, rest) = NextProxy.split(url: text) else {
            return text.contains("@") ? "a URL begins with http://" : "did you mean http://\(text)?"
        }
        if scheme == "socks5h" || scheme == "socks" || scheme == "socks4" {
            return "socks5:// is known, and lets the proxy resolve names"
        }
        guard NextProxy.Kind(rawValue: scheme) != nil else {
            return nearestName(to: scheme, among: NextProxy.Kind.allCases.map(\.rawValue)).map {
                "did you mean \($0)://?"
            }
        }
        let authority = rest.split(separator: "@").last ?? ""
        if authority.contains("/") { return "a proxy has no path" }
        if rest.contains("@") {
            return "percent-encode what is special in the user or the password: @ is %40, : is %3A"
        }
        return "name the port, \(scheme)://\(authority):3128"
    }
}
