package import Access
import Message
package import Rules

/// One rule of `routes`: requests that match reach their origin by one of its routes.
package struct RouteRule: Sendable, Equatable {
    package enum Choice: String, CaseIterable, Sendable {
        /// The first route that works.
        case order
        /// The proxies in an order that depends on the URL, so that each has its share of all URLs, and that several Larders find alike. A
        /// proxy that joins or leaves moves only its own share (rendezvous hashing, Thaler and Ravishankar 1998).
        case hash
    }
    package var conditions: RuleConditions
    /// What `via` names, never empty.
    package var routes: [Route]
    package var choice: Choice
    /// The position in the list, from 1. `explain` and the log name the rule by it.
    package var number: Int
    /// The line in the configuration file; 0 if it does not come from a file.
    package var line: Int

    package init(
        _ conditions: RuleConditions, via routes: [Route], choice: Choice = .order, number: Int, line: Int = 0
    ) {
        precondition(!routes.isEmpty, "a rule has a route")
        self.conditions = conditions
        self.routes = routes
        self.choice = choice
        self.number = number
        self.line = line
    }

    /// - Parameter uri: what the order depends on with `hash`.
    func plan(for uri: some Sequence<UInt8>) -> RoutePlan {
        guard choice == .hash, routes.count > 1 else {
            return RoutePlan(routes[0], then: Array(routes.dropFirst()), rule: number)
        }
        let key = fnv1a(uri)
        var proxies: [(weight: UInt64, route: Route)] = []
        var others: [Route] = []
        for route in routes {
            if case .proxy(let proxy) = route {
                proxies.append((mixed(key ^ fnv1a(proxy.description.utf8)), route))
            } else {
                others.append(route)
            }
        }
        let order = proxies.sorted { $0.weight > $1.weight }.map(\.route) + others
        return RoutePlan(order[0], then: Array(order.dropFirst()), rule: number)
    }
}

/// The routes to each origin: the first rule that matches, and a direct connection if none does.
package struct RouteTable: Sendable {
    private let builtIn: String?
    package let rules: [RouteRule]

    /// - Parameter builtIn: the host of the origin inside this process. It has no address, so nothing else can be reached under its name.
    package init(builtIn: String? = nil, rules: [RouteRule] = []) {
        self.builtIn = builtIn
        self.rules = rules
    }

    /// The proxies that the rules name, each once, in their order.
    package var nextProxies: [NextProxy] {
        var found: [NextProxy] = []
        for rule in rules {
            for case .proxy(let proxy) in rule.routes where !found.contains(proxy) { found.append(proxy) }
        }
        return found
    }

    /// The routes for a request. Asked before a connection is requested.
    ///
    /// - Parameters:
    ///   - request: evaluated only if there are rules.
    ///   - uri: of the resource, or `host:port` for a tunnel.
    package func routes(
        for request: @autoclosure () -> AccessRequest, to origin: Origin, uri: @autoclosure () -> [UInt8]
    ) -> RoutePlan {
        if isBuiltIn(origin) { return RoutePlan(.builtIn) }
        guard !rules.isEmpty else { return .direct }
        let request = request()
        guard let rule = rules.first(where: { $0.conditions.holdForRequest(request, paths: .asSent) }) else {
            return .direct
        }
        return rule.plan(for: uri())
    }

    /// Whether the origin is the one inside this process. It is reached on the default ports alone.
    package func isBuiltIn(_ origin: Origin) -> Bool {
        // Asked for every request: what costs least comes first.
        guard origin.endpoint.port == 80 || origin.endpoint.port == 443, let builtIn,
            origin.endpoint.host.utf8.count == builtIn.utf8.count
        else { return false }
        return origin.endpoint.host == builtIn
    }
}

/// FNV-1a. Several Larders must find the same order, so the hash has no secret.
private func fnv1a(_ bytes: some Sequence<UInt8>) -> UInt64 {
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
    return hash
}

/// The finalizer of SplitMix64: every bit of the result depends on every bit of the value.
private func mixed(_ value: UInt64) -> UInt64 {
    var z = value
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
}
