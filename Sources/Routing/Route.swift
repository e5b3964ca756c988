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
    /// Connect to another proxy, which connects to the origin. Indirect, so that a route that is copied for each request is one word.
    indirect case proxy(NextProxy)
    /// The origin that is inside this process.
    case builtIn
    /// Ask another node of the fleet, which has the response or fetches it.
    indirect case peer(FleetPeer)
}

extension Route: CustomStringConvertible {
    /// `direct`, or the URL of the proxy without the user.
    package var description: String {
        switch self {
        case .direct: "direct"
        case .proxy(let proxy): "\(proxy)"
        case .builtIn: "built in"
        case .peer(let peer): "node \(peer)"
        }
    }
}

/// The routes for a request, in the order in which they are tried.
///
/// When a route fails, `failOver` moves to the next one.
package struct RoutePlan: Equatable, Sendable {
    package private(set) var current: Route
    private var others: ArraySlice<Route>
    /// The number of the rule that names these routes. Nil if no rule does.
    package let rule: Int?

    /// - Parameter others: the routes to try after `first`, in this order.
    package init(_ first: Route, then others: [Route] = [], rule: Int? = nil) {
        current = first
        self.others = others[...]
        self.rule = rule
    }

    /// All routes that are left, the present one first.
    package var routes: [Route] { [current] + others }

    /// Whether there is more than one route.
    package var hasChoice: Bool { !others.isEmpty }

    /// The same routes, those for which `isDown` is true last.
    package func deferring(_ isDown: (Route) -> Bool) -> RoutePlan {
        let routes = routes
        let down = routes.map(isDown)
        guard down.contains(true), down.contains(false) else { return self }
        let order = routes.indices.filter { !down[$0] } + routes.indices.filter { down[$0] }
        return RoutePlan(routes[order[0]], then: order.dropFirst().map { routes[$0] }, rule: rule)
    }

    package static let direct = RoutePlan(.direct)

    /// The plan without these routes. Nil if none is left.
    package func without(_ refused: [Route]) -> RoutePlan? {
        let left = routes.filter { !refused.contains($0) }
        return left.first.map { RoutePlan($0, then: Array(left.dropFirst()), rule: rule) }
    }

    /// Moves to the next route. Returns false, and changes nothing, if another route would not help or none is left.
    package mutating func failOver(after failure: OpeningFailure) -> Bool {
        guard failure.isOfRoute, let next = others.popFirst() else { return false }
        current = next
        return true
    }
}
