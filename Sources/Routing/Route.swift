/// A host and port to connect to, or to ask a proxy to connect to.
package struct Endpoint: Hashable, Sendable, CustomStringConvertible {
    /// A name in lower case or a canonical address, without brackets.
    package let host: String
    package let port: UInt16

    package init(host: String, port: UInt16) {
        self.host = host
        self.port = port
    }

    /// `host:port` as in a CONNECT request (RFC 9110 §9.3.6), with an IPv6 address in brackets.
    package var description: String { host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]:\(port)" : "\(host):\(port)" }
}

/// How Larder reaches an origin.
package enum Route: Hashable, Sendable {
    /// Connect to the origin itself.
    case direct
    /// Connect to another HTTP proxy, which connects to the origin.
    case proxy(NextProxy)
    /// The origin that is inside this process.
    case builtIn
}

/// Another HTTP proxy on the way to an origin.
package struct NextProxy: Hashable, Sendable {
    package let endpoint: Endpoint
    /// Whether the connection to the proxy itself uses TLS.
    package let isSecured: Bool

    package init(_ endpoint: Endpoint, isSecured: Bool = false) {
        self.endpoint = endpoint
        self.isSecured = isSecured
    }
}

/// The routes for a request, in the order in which they are tried.
///
/// When a route fails, `failOver` moves to the next one.
package struct RoutePlan: Equatable, Sendable {
    package private(set) var current: Route
    private var others: ArraySlice<Route>

    /// - Parameter others: the routes to try after `first`, in this order.
    package init(_ first: Route, then others: [Route] = []) {
        current = first
        self.others = others[...]
    }

    package static let direct = RoutePlan(.direct)

    /// Moves to the next route. Returns false, and changes nothing, if another route would not help or none is left.
    package mutating func failOver(after failure: OpeningFailure) -> Bool {
        guard failure.isOfRoute, let next = others.popFirst() else { return false }
        current = next
        return true
    }
}

/// The routes to each origin. Today every origin is reached directly, except the one that is built in.
package struct RouteTable: Sendable {
    private let builtIn: String?

    /// - Parameter builtIn: the host of the origin inside this process. It has no address, so nothing else can be reached under its name.
    package init(builtIn: String? = nil) { self.builtIn = builtIn }

    /// The routes to an origin. Asked before a connection is requested.
    package func route(for origin: Origin) -> RoutePlan { isBuiltIn(origin) ? RoutePlan(.builtIn) : .direct }

    /// Whether the origin is the one inside this process. It is reached on the default ports alone.
    package func isBuiltIn(_ origin: Origin) -> Bool {
        // Asked for every request: what costs least comes first.
        guard origin.endpoint.port == 80 || origin.endpoint.port == 443, let builtIn,
            origin.endpoint.host.utf8.count == builtIn.utf8.count
        else { return false }
        return origin.endpoint.host == builtIn
    }
}
