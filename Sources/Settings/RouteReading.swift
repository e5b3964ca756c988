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

extension NextProxy {
    /// `scheme://[user[:password]@]host:port`, with user and password percent-encoded (RFC 3986 §3.2). A slash may follow.
    ///
    /// - Returns: nil unless the text is such a URL. The port must be there: programs disagree on the default.
    package init?(url text: String) {
        guard let (scheme, rest) = NextProxy.split(url: text), let kind = Kind(rawValue: scheme) else { return nil }
        var authority = Array(rest.utf8)[...]
        if authority.last == UInt8(ascii: "/") { authority.removeLast() }
        var logIn: ProxyLogIn?
        if let at = authority.lastIndex(of: UInt8(ascii: "@")) {
            let parts = authority[..<at].split(
                separator: UInt8(ascii: ":"), maxSplits: 1, omittingEmptySubsequences: false)
            guard let user = percentDecoded(parts[0]), let password = percentDecoded(parts.count > 1 ? parts[1] : []),
                let both = ProxyLogIn(user: user, password: password)
            else { return nil }
            logIn = both
            authority = authority[(at + 1)...]
        }
        guard let colon = authority.lastIndex(of: UInt8(ascii: ":")), let host = DestinationHost(authority[..<colon]),
            case let digits = authority[(colon + 1)...], digits.allSatisfy({ (0x30...0x39).contains($0) }),
            let port = UInt16(String(decoding: digits, as: UTF8.self)), port > 0
        else { return nil }
        self.init(Endpoint(host: host.description, port: port), kind, logIn: logIn)
    }

    /// The scheme in lower case, and what follows `://`.
    fileprivate static func split(url text: String) -> (scheme: String, rest: String)? {
        guard let colon = text.firstIndex(of: ":"), text[colon...].hasPrefix("://") else { return nil }
        return (text[..<colon].lowercased(), String(text[colon...].dropFirst(3)))
    }
}

/// Returns nil if a percent sign is not followed by two hexadecimal digits (RFC 3986 §2.1).
private func percentDecoded(_ text: ArraySlice<UInt8>) -> [UInt8]? {
    var bytes: [UInt8] = []
    var index = text.startIndex
    while index < text.endIndex {
        guard text[index] == UInt8(ascii: "%") else {
            bytes.append(text[index])
            index += 1
            continue
        }
        guard index + 2 < text.endIndex,
            let byte = UInt8(String(decoding: text[index + 1...index + 2], as: UTF8.self), radix: 16)
        else { return nil }
        bytes.append(byte)
        index += 3
    }
    return bytes
}
