import Message
import Rules

/// The next proxies that variables of the environment name: `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy`.
///
/// They have no standard. This follows curl: the variable in lower case counts before the one in upper case, an empty one counts as absent,
/// and `HTTP_PROXY` is not read at all. A CGI program finds the field `Proxy` of its client's request under that name (RFC 3875 §4.1.18), so a
/// client could choose the proxy. A tunnel counts as https.
package struct ProxyEnvironment: Sendable, Equatable {
    private let http: Route
    private let https: Route
    private let exceptions: [Exception]

    /// Why a variable cannot be used. Never shows its value, which may have a password.
    package struct Fault: Error, Equatable, Sendable {
        package let variable: String
        package let reason: Reason

        package init(variable: String, reason: Reason) {
            self.variable = variable
            self.reason = reason
        }

        package enum Reason: Equatable, Sendable {
            /// It is not the URL of a proxy with a host and a port.
            case notAProxy
            /// The scheme of its URL is none that Larder speaks.
            case scheme(String)
            /// An entry of `no_proxy` is none of its forms.
            case exception(String)
        }

        package var text: String {
            switch reason {
            case .notAProxy:
                "is not the URL of a proxy: expected http://HOST:PORT, https://HOST:PORT or socks5://HOST:PORT"
            case .scheme(let scheme): "names a proxy with \(scheme)://, expected http://, https:// or socks5://"
            case .exception(let entry):
                "has \"\(entry)\", expected names, .SUFFIX, addresses, networks such as 10.0.0.0/8, each with or without :PORT, or *"
            }
        }
    }

    /// An environment that names no proxy.
    package init() { (http, https, exceptions) = (.direct, .direct, []) }

    /// - Parameter variable: its value; nil if it is not set.
    package init(_ variable: (String) -> String?) throws(Fault) {
        func value(_ names: String...) -> (name: String, value: String)? {
            for name in names {
                if let value = variable(name), !value.isEmpty { return (name, value) }
            }
            return nil
        }
        let all = value("all_proxy", "ALL_PROXY")
        http = try Self.route(value("http_proxy") ?? all)
        https = try Self.route(value("https_proxy", "HTTPS_PROXY") ?? all)
        var exceptions: [Exception] = []
        if let (name, list) = value("no_proxy", "NO_PROXY") {
            for entry in list.utf8.split(whereSeparator: { $0 == UInt8(ascii: ",") || $0 == 0x20 || $0 == 0x09 }) {
                guard let exception = Exception(Array(entry)) else {
                    throw Fault(variable: name, reason: .exception(readable(entry)))
                }
                exceptions.append(exception)
            }
        }
        self.exceptions = exceptions
    }

    private static func route(_ variable: (name: String, value: String)?) throws(Fault) -> Route {
        guard let (name, value) = variable else { return .direct }
        // Without a scheme it is an HTTP proxy.
        let (scheme, rest) = NextProxy.split(url: value) ?? ("http", value)
        let known: String
        switch scheme {
        case "http", "https", "socks5": known = scheme
        // Larder leaves names to a SOCKS proxy in any case.
        case "socks5h": known = "socks5"
        default: throw Fault(variable: name, reason: .scheme(readable(scheme.utf8)))
        }
        guard let proxy = NextProxy(url: "\(known)://\(rest)") else { throw Fault(variable: name, reason: .notAProxy) }
        return .proxy(proxy)
    }

    /// - Parameter origin: of a tunnel, with the scheme `https`.
    package func route(to origin: Origin) -> Route {
        let route = origin.scheme == .https ? https : http
        guard case .proxy = route, let host = DestinationHost(origin.hostText) else { return route }
        let isException = exceptions.contains { $0.matches(host, port: origin.endpoint.port) }
        return isException ? .direct : route
    }

    /// The routes that there are.
    package var routes: [Route] { http == https ? [http] : [http, https] }
}

extension Origin {
    /// The host as in a URI, an IPv6 address in brackets.
    fileprivate var hostText: [UInt8] {
        let host = Array(endpoint.host.utf8)
        return host.contains(UInt8(ascii: ":")) ? [UInt8(ascii: "[")] + host + [UInt8(ascii: "]")] : host
    }
}

/// An entry of `no_proxy`.
private struct Exception: Sendable, Equatable {
    enum Host: Sendable, Equatable {
        case any
        /// The name and all names below it. A leading dot makes no difference, as for curl.
        case domain(String)
        case addresses(AddressRange)
    }
    let host: Host
    /// Nil: any.
    let port: UInt16?

    init?(_ entry: [UInt8]) {
        var text = entry[...]
        var port: UInt16?
        // The colons of an IPv6 address belong to it, with or without brackets.
        let isBareV6 = entry.count { $0 == UInt8(ascii: ":") } > 1 && entry.first != UInt8(ascii: "[")
        if !isBareV6, let colon = entry.lastIndex(of: UInt8(ascii: ":")), !entry[colon...].contains(UInt8(ascii: "]")) {
            guard let number = UInt16(String(decoding: entry[(colon + 1)...], as: UTF8.self)), number > 0 else {
                return nil
            }
            port = number
            text = entry[..<colon]
        }
        self.port = port
        if text.elementsEqual("*".utf8) {
            host = .any
            return
        }
        if let range = Self.addresses(text) {
            host = .addresses(range)
            return
        }
        if text.starts(with: "*.".utf8) { text = text.dropFirst() }
        if text.first == UInt8(ascii: ".") { text = text.dropFirst() }
        guard case .name(let name)? = DestinationHost(text) else { return nil }
        host = .domain(name)
    }

    /// An address, with or without brackets, or a network.
    private static func addresses(_ text: ArraySlice<UInt8>) -> AddressRange? {
        let inner = text.filter { $0 != UInt8(ascii: "[") && $0 != UInt8(ascii: "]") }
        return AddressRange(String(decoding: inner, as: UTF8.self))
    }

    func matches(_ destination: DestinationHost, port: UInt16) -> Bool {
        if let own = self.port, own != port { return false }
        switch (host, destination) {
        case (.any, _): return true
        case (.domain(let own), .name(let name)): return name == own || name.hasSuffix("." + own)
        case (.addresses(let range), .address(let address)): return range.contains(address)
        case (.domain, .address), (.addresses, .name): return false
        }
    }
}
