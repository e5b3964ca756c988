import Message
import Routing
import Rules
import Texts

/// `routes`: a list of `match: { conditions }` with `via: [ … ]`, `via: environment` or `pac: FILE or URL`, perhaps with `credential: NAME`.
extension SettingKind where Value == [RouteRule] {
    static var routes: SettingKind {
        .elements("routes", allowed: "a list of match: { … }, with via: [ … ] or pac: FILE", read: readRoute)
    }
}

@Sendable
private func readRoute(_ node: ConfigurationNode, number: Int, _ problems: inout [SettingProblem]) -> RouteRule? {
    let expected = "keys such as match: { … } and via: [ … ]"
    guard var reader = MappingReader(node, expected: expected, problems: &problems) else { return nil }
    let conditions = reader.value("match", .routeConditions) ?? RuleConditions()
    let via = reader.value("via", .via)
    let choice = reader.value("choose", SettingKind<RouteRule.Choice>.choice)
    let script = reader.value("pac", .pacFile)
    let otherwise = reader.value("otherwise", SettingKind<Route>.route.list()) ?? []
    if reader.has("pac") {
        reader.refuse("via", "the PAC file says the routes", hint: "name those that are taken if it fails in otherwise")
        reader.refuse("choose", "the PAC file says the order", hint: "leave choose out")
        if otherwise.hasRepetition { reader.refuse("otherwise", "the same route twice") }
    } else {
        reader.require("via")
        reader.refuse("otherwise", "belongs to a PAC file", hint: "name further routes in via")
    }
    let credential = reader.value("credential", .plainName)
    let grantees = readGrantees(hasScript: reader.has("pac"), via, otherwise, &reader)
    switch via {
    case .routes(let routes):
        if credential != nil { requireProofless(routes, &reader) }
        if routes.hasRepetition { reader.refuse("via", "the same route twice") }
        if choice == .hash, routes.filter({ $0 != .direct }).count < 2 {
            reader.refuse("choose", "hash chooses among several proxies", hint: "name them in via, or leave choose out")
        }
    case .environment:
        reader.refuse("choose", "the environment names one proxy for each scheme", hint: "leave choose out")
    case nil: break
    }
    guard reader.finish("key", into: &problems) else { return nil }
    let ways: RouteRule.Ways
    switch (via, script) {
    case (.routes(let routes), nil):
        ways = .listed(credential.map { name in routes.map { $0.proving(name) } } ?? routes, choice ?? .order)
    case (.environment, nil): ways = .environment
    case (nil, let source?): ways = .script(source, otherwise: otherwise)
    case (nil, nil), (.some, .some): return nil
    }
    let grant = credential.flatMap { name in grantees.isEmpty ? nil : CredentialGrant(name, to: grantees) }
    return RouteRule(conditions, ways, grant: grant, number: number, line: node.line)
}

extension [Route] {
    /// A proxy is the same with another user, because the log and the statistics show no users.
    fileprivate var hasRepetition: Bool { Set(map { "\($0)" }).count < count }
}

/// A value of `via`.
private enum Via: Sendable, Equatable {
    case routes([Route])
    case environment
}

extension SettingKind where Value == Via {
    fileprivate static var via: SettingKind {
        let routes = SettingKind<Route>.route.list()
        return SettingKind(
            allowed: routes.allowed,
            read: { node, problems in
                if case .scalar("environment", _) = node.value { return .environment }
                return routes.read(node, &problems).map { .routes($0) }
            },
            render: { via in
                switch via {
                case .routes(let list): routes.render(list)
                case .environment: "environment"
                }
            })
    }
}

extension SettingKind where Value == PACSource {
    fileprivate static var pacFile: SettingKind {
        let kind = scalar(
            "the path or the http or https URL of a PAC file", parse: { PACSource($0) }, render: { "\($0)" },
            hint: { text in
                if let (scheme, _) = NextProxy.split(url: text), scheme != "http", scheme != "https" {
                    return "http:// and https:// are known"
                }
                return nil
            })
        return SettingKind(
            allowed: kind.allowed,
            read: { node, problems in
                guard case .scalar(let text, _) = node.value, text.contains("://"), text.contains("@"),
                    PACSource(text) == nil
                else { return kind.read(node, &problems) }
                // The text may have a password.
                problems.append(
                    SettingProblem(
                        node, message: "found a URL with a user, expected \(kind.allowed)",
                        hint: "remove the user: Larder has no log-in for the server of a PAC file"))
                return nil
            }, render: kind.render)
    }
}

/// `proxies`: who gets the credential where others name the proxies.
private func readGrantees(
    hasScript: Bool, _ via: Via?, _ otherwise: [Route], _ reader: inout MappingReader
) -> [NextProxy] {
    let routes = reader.value("proxies", SettingKind<Route>.route.list()) ?? []
    guard hasScript || via == .environment else {
        reader.refuse("proxies", "via names the proxies", hint: "leave proxies out")
        return []
    }
    if !reader.has("proxies") {
        reader.refuse(
            "credential", "\(hasScript ? "a PAC file" : "the environment") does not decide who gets it",
            hint: "list the proxies that do: proxies: [ \"http://HOST:PORT\" ]")
    }
    if !reader.has("credential") {
        reader.refuse("proxies", "lists the proxies that get a credential", hint: "add credential: NAME")
    }
    if routes.hasRepetition { reader.refuse("proxies", "the same proxy twice") }
    var grantees: [NextProxy] = []
    for route in routes {
        guard case .proxy(let proxy) = route else {
            reader.refuse("proxies", "\(route) is no proxy", hint: "leave it out")
            continue
        }
        let own = otherwise.contains {
            if case .proxy(let other) = $0 { other.logIn != nil && other.place == proxy.place } else { false }
        }
        if proxy.logIn != nil || own {
            reader.refuse(
                own ? "otherwise" : "proxies", "the URL of \(proxy) has a user as well", hint: "remove it from the URL")
        } else {
            grantees.append(proxy)
        }
    }
    return grantees
}

/// A credential is for proxies, and stands in place of what their URLs may have.
private func requireProofless(_ routes: [Route], _ reader: inout MappingReader) {
    let proxies = routes.compactMap { if case .proxy(let proxy) = $0 { proxy } else { nil } }
    if proxies.isEmpty { reader.refuse("credential", "via names no proxy", hint: "leave credential out") }
    for proxy in proxies where proxy.logIn != nil {
        reader.refuse("credential", "the URL of \(proxy) has a user as well", hint: "remove it from the URL")
    }
}

extension Route {
    fileprivate func proving(_ credential: String) -> Route {
        guard case .proxy(let proxy) = self, proxy.logIn == nil else { return self }
        return .proxy(proxy.proving(credential))
    }
}

extension SettingKind where Value == RuleConditions {
    static var routeConditions: SettingKind { .conditions(of: .route) }
}

extension SettingKind where Value == Route {
    static var route: SettingKind {
        let kind = scalar(
            "direct, or a proxy such as http://HOST:PORT, https://HOST:PORT or socks5://HOST:PORT",
            parse: { text in text == "direct" ? .direct : NextProxy(url: text).map { .proxy($0) } },
            render: { yamlQuoted("\($0)") }, hint: hint)
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
        if let near = nearestName(to: text, among: ["direct", "environment"]) {
            return near == text ? "environment stands alone: via: environment" : "did you mean \(near)?"
        }
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
