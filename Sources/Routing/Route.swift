/// A host and a port that a socket can be connected to, or that a proxy can be asked to connect to.
package struct Endpoint: Hashable, Sendable, CustomStringConvertible {
    /// A name in lower case or a canonical address, without brackets.
    package let host: String
    package let port: UInt16

    package init(host: String, port: UInt16) {
        self.host = host
        self.port = port
    }

    /// As in a CONNECT request (RFC 9110 §9.3.6): an IPv6 address stands in brackets.
    package var description: String { host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]:\(port)" : "\(host):\(port)" }
}

/// How to get to an origin.
package enum Route: Hashable, Sendable {
    /// Connect to the origin itself.
    case direct
    /// Connect to another HTTP proxy and let it go on from there.
    case proxy(NextProxy)
}

/// Another HTTP proxy on the way to an origin.
package struct NextProxy: Hashable, Sendable {
    package let endpoint: Endpoint
    /// The connection to the proxy itself uses TLS.
    package let isSecured: Bool

    package init(_ endpoint: Endpoint, isSecured: Bool = false) {
        self.endpoint = endpoint
        self.isSecured = isSecured
    }
}

/// The routes for a request, the one to try first at the front.
///
/// When a route fails, `failOver` moves to the next one. A denial by the rules of access is not a failure of the route.
package struct RoutePlan: Equatable, Sendable {
    package private(set) var current: Route
    private var others: ArraySlice<Route>

    /// - Parameter others: to be tried in this order after `first`.
    package init(_ first: Route, then others: [Route] = []) {
        current = first
        self.others = others[...]
    }

    package static let direct = RoutePlan(.direct)

    /// Moves to the next route. Returns false, and changes nothing, if the failure is not one of the route or no route
    /// is left.
    package mutating func failOver(after failure: OpeningFailure) -> Bool {
        guard failure.isOfRoute, let next = others.popFirst() else { return false }
        current = next
        return true
    }
}

/// Which routes lead to which origins. Today there is one answer: every origin is reached directly.
package struct RouteTable: Sendable {
    package init() {}

    /// Asked before a connection is asked for.
    package func route(for origin: Origin) -> RoutePlan { .direct }
}
