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
    /// Where the routes come from.
    package enum Ways: Sendable, Equatable {
        /// Those of `via`, never empty.
        case listed([Route], Choice)
        /// `pac`: a PAC file says them for each origin.
        ///
        /// - Parameter otherwise: the routes if it does not. Empty: the request is refused, because another way would be a decision that
        ///   nobody has made.
        case script(PACSource, otherwise: [Route])
        /// `via: environment`: the variables of Larder's own environment say them.
        case environment
    }
    package var conditions: RuleConditions
    package var ways: Ways
    /// For proxies that a PAC file or the environment names. Nil if none of them gets a credential.
    package var grant: CredentialGrant?
    /// The name of the credential that its proxies get. Nil if none does.
    package var credential: String? {
        guard case .listed(let routes, _) = ways else { return grant?.credential }
        for case .proxy(let proxy) in routes { if let credential = proxy.credential { return credential } }
        return nil
    }
    /// The position in the list, from 1. `explain` and the log name the rule by it.
    package var number: Int
    /// The line in the configuration file; 0 if it does not come from a file.
    package var line: Int

    package init(
        _ conditions: RuleConditions, via routes: [Route], choice: Choice = .order, number: Int, line: Int = 0
    ) {
        self.init(conditions, .listed(routes, choice), number: number, line: line)
    }

    package init(
        _ conditions: RuleConditions, _ ways: Ways, grant: CredentialGrant? = nil, number: Int, line: Int = 0
    ) {
        if case .listed(let routes, _) = ways {
            precondition(!routes.isEmpty, "a rule has a route")
            precondition(grant == nil, "listed proxies have their credential themselves")
        }
        self.conditions = conditions
        self.ways = ways
        self.grant = grant
        self.number = number
        self.line = line
    }

    /// The routes that the configuration itself names.
    package var routes: [Route] {
        switch ways {
        case .listed(let routes, _): routes
        case .script(_, let otherwise): otherwise
        case .environment: []
        }
    }

    /// The plan for routes that are tried in this order. Nil if there are none.
    private func plan(over routes: [Route]) -> RoutePlan? {
        routes.first.map { RoutePlan($0, then: Array(routes.dropFirst()), rule: number) }
    }

    fileprivate func plan(by verdict: PACVerdict) -> RoutePlan? {
        switch verdict {
        case .success(let routes): plan(over: granted(routes))
        case .failure: plan(over: granted(self.routes))
        }
    }

    /// How far the rule holds for the path of a request, if its other conditions hold. Nil: it does not.
    fileprivate func extent(for request: AccessRequest) -> Extent? {
        guard conditions.holdForRequest(request, paths: .anySpelling, unreadDetails: false) else { return nil }
        guard !conditions.paths.isEmpty, request.pathReadings != nil,
            !conditions.holdForRequest(request, paths: .everySpelling, unreadDetails: false)
        else { return .everyReading }
        return .someReading
    }

    /// Paths that an origin may take for others (`PathReadings`), as far as routes are concerned: what next proxies look for must not be passed by with
    /// another spelling. So a rule leads to its next proxies in any reading, and directly in all.
    fileprivate enum Extent {
        case everyReading
        /// The origin may take the path for one for which the rule does not hold.
        case someReading

        func permits(_ route: Route) -> Bool { self == .everyReading || route != .direct }
    }

    private func granted(_ route: Route) -> Route { grant?.applied(to: route) ?? route }

    private func granted(_ routes: [Route]) -> [Route] {
        guard let grant else { return routes }
        return routes.map { grant.applied(to: $0) }
    }

    /// The next proxies that the rule names, as far as they are known.
    fileprivate func knownRoutes(_ environment: ProxyEnvironment) -> [Route] {
        granted(ways == .environment ? environment.routes : routes)
    }

    /// - Parameter uri: what the order depends on.
    private func hashedPlan(_ routes: [Route], for uri: [UInt8]) -> RoutePlan {
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

    /// Names the routes, and as whom Larder takes them, in a key. It has no password, and stays the same when rules move.
    fileprivate var keyTag: [UInt8] {
        let text =
            switch ways {
            case .listed(let routes, _): routes.map(\.textInKey).joined(separator: ",")
            case .script(let source, let otherwise):
                "\(source) \(fnv1a(source.exactText.utf8)) "
                    + (otherwise.map(\.textInKey) + [grant?.credential ?? ""]).joined(separator: ",")
            case .environment: "environment " + (grant?.credential ?? "")
            }
        return Array("#route:\(text)".utf8)
    }

    /// Whether the rule has a route for a path for which it holds so far. What a PAC file says is not known, so its rule has one.
    ///
    /// - Parameter origin: of a tunnel, with the scheme `https`.
    fileprivate func leads(to origin: Origin, _ extent: Extent, _ environment: ProxyEnvironment) -> Bool {
        switch ways {
        case .listed(let routes, _): routes.contains(where: extent.permits)
        case .environment: extent.permits(environment.route(to: origin))
        case .script: true
        }
    }

    /// The routes of a rule without a PAC file. Nil if it has none for such a path.
    ///
    /// - Parameter uri: what the order depends on with `hash`.
    fileprivate func plan(
        for origin: Origin, uri: () -> [UInt8], _ extent: Extent, _ environment: ProxyEnvironment
    ) -> RoutePlan? {
        switch ways {
        case .listed(let routes, let choice):
            let permitted = extent == .everyReading ? routes : routes.filter(extent.permits)
            return choice == .hash && permitted.count > 1 ? hashedPlan(permitted, for: uri()) : plan(over: permitted)
        case .environment:
            let route = environment.route(to: origin)
            return extent.permits(route) ? RoutePlan(granted(route), rule: number) : nil
        case .script: return nil
        }
    }
}

extension Route {
    fileprivate var textInKey: String {
        guard case .proxy(let proxy) = self else { return description }
        let name = proxy.credential ?? proxy.logIn.map { String(decoding: $0.user, as: UTF8.self) }
        return "\(proxy)" + (name.map { " as \($0)" } ?? "")
    }
}

/// Which way a request goes, as far as the rules alone say it.
package enum RouteChoice: Sendable, Equatable {
    case plan(RoutePlan)
    /// A PAC file has to be asked. Indirect, so that the others are no larger.
    indirect case script(ScriptedChoice)

    fileprivate var isDirect: Bool {
        guard case .plan(let plan) = self else { return false }
        return plan.routes.allSatisfy { $0 == .direct }
    }
}

/// A question for a PAC file.
package struct ScriptedChoice: Sendable, Equatable {
    package let source: PACSource
    /// What is asked for. A tunnel counts as https, as in browsers: they cannot know what is inside.
    package let origin: Origin
    package let rule: RouteRule
    /// Whether the script may have the request go to the origin directly. It may not where the origin may take the path for one that the rule does not hold
    /// for, and that goes another way.
    package let mayLeadDirectly: Bool

    package init(_ source: PACSource, origin: Origin, rule: RouteRule, mayLeadDirectly: Bool = true) {
        self.source = source
        self.origin = origin
        self.rule = rule
        self.mayLeadDirectly = mayLeadDirectly
    }

    /// What becomes of the request if the script says this. Nil: it is refused.
    package func plan(by verdict: PACVerdict) -> RoutePlan? {
        let plan = rule.plan(by: verdict)
        return mayLeadDirectly ? plan : plan?.without([.direct])
    }
}

/// The routes to each origin: the first rule that matches, and a direct connection if none does.
package struct RouteTable: Sendable {
    private let builtIn: String?
    package let rules: [RouteRule]
    private let environment: ProxyEnvironment
    /// A next proxy gets a credential.
    package let hasCredentials: Bool
    /// A rule looks at who asks.
    package let dependsOnClient: Bool
    /// A rule looks at the identity.
    package let dependsOnUser: Bool

    /// - Parameters:
    ///   - builtIn: the host of the origin inside this process. It has no address, so nothing else can be reached under its name.
    ///   - environment: for rules with `via: environment`.
    package init(
        builtIn: String? = nil, rules: [RouteRule] = [], environment: ProxyEnvironment = ProxyEnvironment()
    ) {
        self.builtIn = builtIn
        self.rules = rules
        self.environment = environment
        hasCredentials = rules.contains { $0.credential != nil }
        dependsOnClient = rules.contains(where: \.conditions.dependOnClient)
        dependsOnUser = rules.contains(where: \.conditions.dependOnUser)
    }

    /// The proxies that the rules and the environment name, each once, in their order. Those of PAC files are not known.
    package var nextProxies: [NextProxy] {
        var found: [NextProxy] = []
        for rule in rules {
            for case .proxy(let proxy) in rule.knownRoutes(environment) where !found.contains(proxy) {
                found.append(proxy)
            }
        }
        return found
    }

    /// Which way a request goes. Asked before a connection is requested.
    ///
    /// - Parameters:
    ///   - request: evaluated only if there are rules.
    ///   - uri: of the resource, or `host:port` for a tunnel.
    package func choice(
        for request: @autoclosure () -> AccessRequest, to origin: Origin, uri: @autoclosure () -> [UInt8]
    ) -> RouteChoice {
        if isBuiltIn(origin) { return .plan(RoutePlan(.builtIn)) }
        guard !rules.isEmpty else { return .plan(.direct) }
        let request = request()
        let asked = request.isTunnel ? Origin(.https, origin.endpoint) : origin
        return choice(for: request, to: asked, uri: uri, among: rules[...])
    }

    private func choice(
        for request: AccessRequest, to origin: Origin, uri: () -> [UInt8], among rules: ArraySlice<RouteRule>
    ) -> RouteChoice {
        guard let (index, extent) = decision(on: request, to: origin, among: rules) else { return .plan(.direct) }
        let rule = rules[index]
        if let plan = rule.plan(for: origin, uri: uri, extent, environment) { return .plan(plan) }
        guard case .script(let source, _) = rule.ways else { preconditionFailure("a rule that decides has a route") }
        let mayLeadDirectly =
            extent == .everyReading
            || choice(for: request, to: origin, uri: uri, among: rules[(index + 1)...]).isDirect
        return .script(ScriptedChoice(source, origin: origin, rule: rule, mayLeadDirectly: mayLeadDirectly))
    }

    /// The end of the key of what a request fetches, if it takes routes that are for some clients alone. A next proxy reads what is not protected by TLS with
    /// the origin, and may change it: so what it lets some clients have is not for the others. Nil if who asks makes no difference, and nil for what no
    /// proxy can change.
    ///
    /// - Parameters:
    ///   - request: evaluated only if a rule looks at who asks.
    ///   - provesOrigin: whether TLS with the origin proves who it is. Asked of https alone.
    package func keyTag(
        for request: @autoclosure () -> AccessRequest, to origin: Origin, provesOrigin: @autoclosure () -> Bool
    ) -> [UInt8]? {
        guard dependsOnClient, !isBuiltIn(origin), origin.scheme == .http || !provesOrigin() else { return nil }
        guard let (index, _) = decision(on: request(), to: origin, among: rules[...]),
            rules[index].conditions.dependOnClient
        else { return nil }
        return rules[index].keyTag
    }

    /// All that `keyTag` may say.
    package var keyTags: Set<[UInt8]> { Set(rules.filter(\.conditions.dependOnClient).map(\.keyTag)) }

    /// The position of the rule that decides.
    private func decision(
        on request: AccessRequest, to origin: Origin, among rules: ArraySlice<RouteRule>
    ) -> (index: Int, extent: RouteRule.Extent)? {
        // By position: an iterator copies each rule, with all that it refers to.
        for index in rules.indices {
            guard let extent = rules[index].extent(for: request), rules[index].leads(to: origin, extent, environment)
            else { continue }
            return (index, extent)
        }
        return nil
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
