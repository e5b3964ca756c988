import Access
import Message
import Routing
import Rules
import Testing

private func proxy(_ host: String) -> Route { .proxy(NextProxy(Endpoint(host: host, port: 3128))) }

private func request(_ host: String, port: UInt16 = 80, client: IPAddress? = nil) -> AccessRequest {
    AccessRequest(
        client: client, method: .get, destination: DestinationHost(host.utf8)!, port: port, isTunnel: false,
        pathAndQuery: Array("/a".utf8)[...])
}

extension RouteChoice {
    fileprivate var plan: RoutePlan {
        guard case .plan(let plan) = self else { preconditionFailure("a PAC file has to be asked: \(self)") }
        return plan
    }
}

private func rule(_ number: Int, host: String?, via routes: Route...) -> RouteRule {
    var conditions = RuleConditions()
    if let host { conditions.hosts = [HostPattern(host)!] }
    return RouteRule(conditions, via: routes, number: number)
}

@Suite("The table of routes") struct RouteTableTests {
    private func plan(
        _ table: RouteTable, _ host: String, port: UInt16 = 80, scheme: Scheme = .http, uri: String = ""
    ) -> RoutePlan {
        table.choice(
            for: request(host, port: port), to: Origin(scheme, Endpoint(host: host, port: port)), uri: Array(uri.utf8)
        ).plan
    }

    @Test func `what comes by a route for some clients has a key of its own, where a proxy can change it`() {
        func some(_ number: Int, _ client: String, _ routes: Route...) -> RouteRule {
            var conditions = RuleConditions()
            conditions.clients = [AddressRange(client)!]
            return RouteRule(conditions, via: routes, number: number)
        }
        let named = Route.proxy(NextProxy(Endpoint(host: "a", port: 3128), credential: "corp"))
        let table = RouteTable(
            builtIn: "built.in",
            rules: [
                some(1, "10.1.0.0/16", proxy("a"), .direct), some(2, "10.2.0.0/16", named),
                rule(3, host: "b.example", via: proxy("b")), some(4, "10.3.0.0/16", proxy("a"), .direct),
            ])
        func tag(
            _ client: String, _ host: String = "a.example", _ scheme: Scheme = .http, proves: Bool = true
        ) -> String? {
            table.keyTag(
                for: request(host, client: IPAddress(strict: client.utf8)),
                to: Origin(scheme, Endpoint(host: host, port: 80)),
                provesOrigin: proves
            ).map { String(decoding: $0, as: UTF8.self) }
        }
        #expect(tag("10.1.0.1") == "#route:http://a:3128,direct")
        #expect(tag("10.2.0.1") == "#route:http://a:3128 as corp")
        #expect(tag("10.3.0.1") == tag("10.1.0.1"), "the same routes")
        #expect(tag("10.3.0.1", "b.example") == nil, "a rule for all decides")
        #expect(tag("10.9.0.1") == nil && tag("10.1.0.1", "built.in") == nil)
        #expect(tag("10.1.0.1", "a.example", .https) == nil)
        #expect(tag("10.1.0.1", "a.example", .https, proves: false) != nil)
        #expect(table.keyTags.count == 2 && table.dependsOnClient && !table.dependsOnUser)
    }

    static let rows: [(scheme: Scheme, host: String, port: UInt16, isBuiltIn: Bool)] = [
        (.http, "built.in", 80, true), (.https, "built.in", 443, true), (.http, "built.in", 443, true),
        (.http, "built.in", 22, false), (.http, "a.built.in", 80, false), (.http, "127.0.0.1", 80, false),
    ]
    @Test(arguments: rows) func `the origin inside the process has one name and two ports, whatever the rules say`(
        _ row: (scheme: Scheme, host: String, port: UInt16, isBuiltIn: Bool)
    ) {
        let table = RouteTable(builtIn: "built.in", rules: [rule(1, host: nil, via: proxy("p"))])
        #expect(
            plan(table, row.host, port: row.port, scheme: row.scheme).current == (row.isBuiltIn ? .builtIn : proxy("p"))
        )
        #expect(plan(RouteTable(), row.host, port: row.port, scheme: row.scheme) == .direct)
    }

    @Test(
        arguments: [("a.internal", "direct", 1), ("b.example", "http://one:3128", 2), ("c.test", "direct", nil)]
            as [(String, String, Int?)])
    func `the first rule that matches counts, and without one the origin is connected to`(
        host: String, route: String, number: Int?
    ) {
        let table = RouteTable(rules: [
            rule(1, host: "*.internal", via: .direct), rule(2, host: "*.example", via: proxy("one"), .direct),
            rule(3, host: "b.example", via: proxy("two")),
        ])
        let plan = plan(table, host)
        #expect("\(plan.current)" == route)
        #expect(plan.rule == number)
    }

    @Test func `routes are tried in their order`() {
        let routes = [proxy("one"), .direct, proxy("two")]
        let plan = plan(RouteTable(rules: [RouteRule(RuleConditions(), via: routes, number: 1)]), "a.example")
        #expect(plan.routes == routes)
    }

    @Test(arguments: [(false, Scheme.http), (true, Scheme.https)])
    func `a rule with a PAC file has a question, and a tunnel is asked for as https`(isTunnel: Bool, scheme: Scheme) {
        let rule = RouteRule(RuleConditions(), .script(.file("/a.pac"), otherwise: [.direct]), number: 2)
        let table = RouteTable(rules: [RoutingTests.rule(1, host: "*.test", via: .direct), rule])
        let endpoint = Endpoint(host: "a.example", port: 8080)
        let request = AccessRequest(
            client: nil, method: isTunnel ? .connect : .get, destination: DestinationHost("a.example".utf8)!,
            port: 8080,
            isTunnel: isTunnel, pathAndQuery: [])
        let choice = table.choice(for: request, to: Origin(.http, endpoint), uri: [])
        #expect(choice == .script(ScriptedChoice(.file("/a.pac"), origin: Origin(scheme, endpoint), rule: rule)))
        #expect(table.nextProxies == [], "nobody knows which proxies a script names")
    }

    @Test func `what a PAC file says is a plan, and if it says nothing its rule decides`() {
        let strict = RouteRule(RuleConditions(), .script(.file("/a.pac"), otherwise: []), number: 3)
        let lax = RouteRule(
            RuleConditions(), .script(.file("/a.pac"), otherwise: [proxy("spare"), .direct]), number: 3)
        let said = PACVerdict.success([proxy("one"), .direct])
        func plan(_ rule: RouteRule, _ verdict: PACVerdict, mayLeadDirectly: Bool = true) -> RoutePlan? {
            ScriptedChoice(
                .file("/a.pac"), origin: Origin(.http, Endpoint(host: "a.example", port: 80)), rule: rule,
                mayLeadDirectly: mayLeadDirectly
            ).plan(by: verdict)
        }
        for rule in [strict, lax] {
            #expect(plan(rule, said) == RoutePlan(proxy("one"), then: [.direct], rule: 3))
            #expect(plan(rule, said, mayLeadDirectly: false) == RoutePlan(proxy("one"), rule: 3))
            #expect(plan(rule, .success([.direct]), mayLeadDirectly: false) == nil)
        }
        #expect(plan(strict, .failure(.timedOut)) == nil, "another route would be a decision that nobody has made")
        #expect(plan(lax, .failure(.timedOut)) == RoutePlan(proxy("spare"), then: [.direct], rule: 3))
        #expect(plan(lax, .failure(.timedOut), mayLeadDirectly: false) == RoutePlan(proxy("spare"), rule: 3))
    }

    @Test func `the environment says the proxy of each scheme`() throws {
        let environment = try ProxyEnvironment { ["http_proxy": "http://one:3128", "no_proxy": "b.example"][$0] }
        let table = RouteTable(
            rules: [RouteRule(RuleConditions(), .environment, number: 1)], environment: environment)
        #expect(plan(table, "a.example") == RoutePlan(proxy("one"), rule: 1))
        #expect(plan(table, "b.example") == RoutePlan(.direct, rule: 1))
        #expect(plan(table, "a.example", port: 443, scheme: .https) == RoutePlan(.direct, rule: 1))
        #expect(table.nextProxies.map { "\($0)" } == ["http://one:3128"])
    }

    @Test func `routes that are down come last, in their order`() {
        let plan = RoutePlan(proxy("one"), then: [proxy("two"), .direct, proxy("three")], rule: 4)
        let deferred = plan.deferring { $0 == proxy("one") || $0 == .direct }
        #expect(deferred.routes == [proxy("two"), proxy("three"), proxy("one"), .direct])
        #expect(deferred.rule == 4)
        #expect(plan.deferring { _ in true }.routes == plan.routes)
        #expect(plan.deferring { _ in false }.routes == plan.routes)
    }
}

@Suite("Proxies chosen by rendezvous hashing") struct RendezvousTests {
    private static let proxies = ["one", "two", "three", "four"].map(proxy)
    private static let uris = (0..<1000).map { "http://a.example/\($0)" }

    private func order(_ uri: String, _ routes: [Route]) -> [Route] {
        let rule = RouteRule(RuleConditions(), via: routes, choice: .hash, number: 1)
        return RouteTable(rules: [rule]).choice(
            for: request("a.example"), to: Origin(.http, Endpoint(host: "a.example", port: 80)), uri: Array(uri.utf8)
        ).plan.routes
    }

    @Test func `each proxy has its share`() {
        let firsts = Dictionary(grouping: Self.uris) { order($0, Self.proxies)[0] }
        for proxy in Self.proxies { #expect((190...310).contains(firsts[proxy, default: []].count), "\(proxy)") }
    }

    @Test func `the order of the configuration does not matter`() {
        for uri in Self.uris.prefix(50) { #expect(order(uri, Self.proxies) == order(uri, Self.proxies.reversed())) }
    }

    @Test func `a proxy that leaves moves only its own share`() {
        let fewer = Array(Self.proxies.dropLast())
        for uri in Self.uris {
            let all = order(uri, Self.proxies)
            #expect(order(uri, fewer) == all.filter { $0 != Self.proxies.last })
        }
    }

    @Test func `other routes come behind all proxies`() {
        #expect(order("http://a.example/", [.direct] + Self.proxies).last == .direct)
    }

    @Test func `the choice is the same in every process`() {
        let hosts = order("http://a.example/1", Self.proxies).map { "\($0)" }
        #expect(hosts == ["two", "one", "three", "four"].map { "http://\($0):3128" })
    }
}

@Suite("Circuits") struct CircuitTests {
    private static let terms = Circuit.Terms(failuresMax: 2, pause: .seconds(5), pauseMax: .seconds(15))

    /// What is done at a second, and what must follow.
    enum Step: Sendable {
        case fails(opens: Bool), succeeds(wasOpen: Bool), isOpen(Bool)
    }
    static let rows: [(name: String, steps: [(Int, Step)])] = [
        (
            "it is closed until so many failures in a row",
            [
                (0, .isOpen(false)), (0, .fails(opens: false)), (0, .isOpen(false)), (1, .fails(opens: true)),
                (1, .isOpen(true)),
            ]
        ),
        (
            "a success forgets failures",
            [
                (0, .fails(opens: false)), (0, .succeeds(wasOpen: false)), (0, .fails(opens: false)),
                (0, .isOpen(false)),
            ]
        ),
        (
            "when the time is over one tries, and the others wait",
            [
                (0, .fails(opens: false)), (0, .fails(opens: true)), (4, .isOpen(true)), (5, .isOpen(false)),
                (5, .isOpen(true)),
                (6, .succeeds(wasOpen: true)), (6, .isOpen(false)), (6, .isOpen(false)),
            ]
        ),
        (
            "a failed try opens it for twice as long, up to a limit",
            [
                (0, .fails(opens: false)), (0, .fails(opens: true)), (5, .isOpen(false)), (6, .fails(opens: false)),
                (15, .isOpen(true)), (16, .isOpen(false)), (16, .fails(opens: false)), (30, .isOpen(true)),
                (31, .isOpen(false)),
            ]
        ),
        (
            "failures of attempts that began before it opened do not count",
            [
                (0, .fails(opens: false)), (0, .fails(opens: true)), (1, .fails(opens: false)),
                (2, .fails(opens: false)),
                (5, .isOpen(false)),
            ]
        ),
        (
            "if the one that tries never reports, another one tries after a while",
            [
                (0, .fails(opens: false)), (0, .fails(opens: true)), (5, .isOpen(false)), (9, .isOpen(true)),
                (10, .isOpen(false)),
            ]
        ),
    ]

    @Test(arguments: rows) func `each step has its result`(_ row: (name: String, steps: [(Int, Step)])) {
        var circuit = Circuit()
        for (index, (second, step)) in row.steps.enumerated() {
            let now = Duration.seconds(second)
            let (result, expected) =
                switch step {
                case .fails(let opens): (circuit.failed(now: now, Self.terms), opens)
                case .succeeds(let wasOpen): (circuit.succeeded(Self.terms), wasOpen)
                case .isOpen(let isOpen): (circuit.isOpen(now: now, Self.terms), isOpen)
                }
            #expect(result == expected, "\(row.name): step \(index), \(step)")
        }
    }
}
