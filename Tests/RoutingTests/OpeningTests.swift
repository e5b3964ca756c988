import Access
import Message
import Routing
import Testing

private let origin = Endpoint(host: "a.example", port: 443)
private let plainProxy = NextProxy(Endpoint(host: "proxy.example", port: 3128))
private let securedProxy = NextProxy(Endpoint(host: "proxy.example", port: 3129), isSecured: true)
private let one = IPAddress(v4: 0x0101_0101)
private let two = IPAddress(v4: 0x0202_0202)
private let denial = Denial(reason: .privateDestination, text: "not public")
private let other = Denial(reason: .rule, text: "a rule")

/// A way through the machine: an event, and the action that it must lead to.
private typealias Step = (event: Opening.Event, action: Opening.Action)

struct OpeningRow: CustomTestStringConvertible, Sendable {
    let name: String
    let goal: OpeningGoal
    fileprivate let steps: @Sendable () -> [Step]
    var testDescription: String { name }

    fileprivate init(
        _ name: String, _ use: OpeningGoal.Use, over route: Route = .direct, _ steps: @escaping @Sendable () -> [Step]
    ) {
        self.name = name
        goal = OpeningGoal(origin, for: use, over: route)
        self.steps = steps
    }
}

/// From the start to an open socket, directly or through a proxy.
private func dialling(_ endpoint: Endpoint, then next: Opening.Action) -> [Step] {
    [
        (.begin, .resolve(host: endpoint.host)),
        (.resolved([one]), .permit([one], port: endpoint.port)),
        (.judged([nil]), .connect([one], port: endpoint.port)),
        (.connected, next),
    ]
}

/// Macros cannot call what mutates.
private func expect(
    _ opening: inout Opening, _ event: Opening.Event, _ action: Opening.Action, _ comment: Comment? = nil,
    at location: SourceLocation = #_sourceLocation
) {
    let next = opening.on(event)
    #expect(next == action, comment, sourceLocation: location)
}

private let secured = OpeningGoal.Use.secured(serverName: "sni.example")

@Suite("Opening a connection") struct OpeningTests {
    static let ways: [OpeningRow] = [
        OpeningRow("plain text, directly", .plain) { dialling(origin, then: .ready) },
        OpeningRow("TLS, directly: SNI names what the goal says, not what is dialled", secured) {
            dialling(origin, then: .secure(serverName: "sni.example")) + [(.secured, .ready)]
        },
        OpeningRow("a tunnel, directly, without TLS of ours", .tunnel) { dialling(origin, then: .ready) },
        OpeningRow("the origin inside the process: no name, no permission, no TLS", secured, over: .builtIn) {
            [(.begin, .connectBuiltIn), (.connected, .ready)]
        },
        OpeningRow("plain text through a proxy, which takes the request as it is", .plain, over: .proxy(plainProxy)) {
            dialling(plainProxy.endpoint, then: .ready)
        },
        OpeningRow(
            "TLS through a proxy: CONNECT names the origin, then TLS is with the origin", secured,
            over: .proxy(plainProxy)
        ) {
            dialling(plainProxy.endpoint, then: .askProxy(origin)) + [
                (.proxyAnswered(status: 200), .secure(serverName: "sni.example")), (.secured, .ready),
            ]
        },
        OpeningRow("a tunnel through a proxy", .tunnel, over: .proxy(plainProxy)) {
            dialling(plainProxy.endpoint, then: .askProxy(origin)) + [(.proxyAnswered(status: 204), .ready)]
        },
        OpeningRow("plain text through a proxy with TLS of its own", .plain, over: .proxy(securedProxy)) {
            dialling(securedProxy.endpoint, then: .secure(serverName: "proxy.example")) + [(.secured, .ready)]
        },
        OpeningRow("every leg there is", secured, over: .proxy(securedProxy)) {
            dialling(securedProxy.endpoint, then: .secure(serverName: "proxy.example")) + [
                (.secured, .askProxy(origin)),
                (.proxyAnswered(status: 200), .secure(serverName: "sni.example")), (.secured, .ready),
            ]
        },
    ]

    @Test(arguments: ways) func `one leg follows the other`(_ row: OpeningRow) {
        var opening = Opening(row.goal)
        for (event, action) in row.steps() {
            let next = opening.on(event)
            #expect(next == action, "after \(event)")
        }
    }

    /// What may happen in a leg, and how the opening fails then.
    private static let failures: [(leg: String, event: Opening.Event, failure: OpeningFailure)] = [
        ("resolve", .resolved([]), .nameNotFound),
        ("resolve", .unresolved(.notFound), .nameNotFound),
        ("resolve", .unresolved(.timedOut), .nameTimeout),
        ("resolve", .timedOut, .nameTimeout),
        ("permit", .judged([denial]), .denied(denial)),
        ("connect", .unreachable(.refused), .unreachable(.refused)),
        ("connect", .unreachable(.unroutable), .unreachable(.unroutable)),
        ("connect", .timedOut, .unreachable(.timedOut)),
        ("secure", .insecure(.certificate), .insecure(.certificate)),
        ("secure", .insecure(.clientCertificate), .insecure(.clientCertificate)),
        ("secure", .insecure(.disagreement), .insecure(.disagreement)),
        ("secure", .insecure(.noSession), .insecure(.noSession)),
        ("secure", .closed, .unreachable(.terminated)),
        ("secure", .timedOut, .unreachable(.timedOut)),
        ("askProxy", .proxyAnswered(status: 407), .proxyRefused(status: 407)),
        ("askProxy", .proxyAnswered(status: 502), .proxyRefused(status: 502)),
        ("askProxy", .proxyAnswered(status: 300), .proxyRefused(status: 300)),
        ("askProxy", .proxyUnintelligible, .proxyUnintelligible),
        ("askProxy", .closed, .unreachable(.terminated)),
        ("askProxy", .timedOut, .unreachable(.timedOut)),
    ]

    private func leg(_ action: Opening.Action) -> String {
        switch action {
        case .resolve: "resolve"
        case .permit: "permit"
        case .connect, .connectBuiltIn: "connect"
        case .secure: "secure"
        case .askProxy: "askProxy"
        case .ready, .fail, .nothing: "ended"
        }
    }

    @Test(arguments: ways) func `each leg can fail in each of its ways`(_ row: OpeningRow) {
        let steps = row.steps()
        for (index, step) in steps.enumerated() {
            for (leg, event, failure) in Self.failures where leg == self.leg(step.action) {
                var opening = Opening(row.goal)
                for (event, _) in steps[...index] { _ = opening.on(event) }
                expect(&opening, event, .fail(failure), "\(event) in leg \(index)")
                expect(&opening, event, .nothing, "it fails once")
            }
        }
    }

    @Test(arguments: ways) func `a cancelled opening does nothing more, whatever arrives`(_ row: OpeningRow) {
        let steps = row.steps()
        for count in steps.indices {
            var opening = Opening(row.goal)
            for (event, _) in steps[..<count] { _ = opening.on(event) }
            expect(&opening, .cancelled, .nothing)
            guard count > 0 else { continue }
            expect(&opening, steps[count].event, .nothing)
            expect(&opening, .timedOut, .nothing)
        }
    }

    @Test func `only addresses that are permitted are dialled, in their order`() {
        var opening = Opening(OpeningGoal(origin, for: .plain))
        let three = IPAddress(v4: 0x0303_0303)
        _ = opening.on(.begin)
        expect(&opening, .resolved([one, two, three]), .permit([one, two, three], port: 443))
        expect(&opening, .judged([nil, denial, nil]), .connect([one, three], port: 443))
    }

    @Test func `if no address is permitted, the opening fails with the denial of the first`() {
        var opening = Opening(OpeningGoal(origin, for: .tunnel))
        _ = opening.on(.begin)
        _ = opening.on(.resolved([one, two]))
        expect(&opening, .judged([other, denial]), .fail(.denied(other)))
    }
}

@Suite("Routes") struct RouteTests {
    private static let plan = RoutePlan(.proxy(plainProxy), then: [.proxy(securedProxy), .direct])

    @Test func `the next route follows one that fails, until none is left`() {
        var plan = Self.plan
        #expect(plan.current == .proxy(plainProxy))
        expect(&plan, .unreachable(.refused), failsOver: true)
        #expect(plan.current == .proxy(securedProxy))
        expect(&plan, .insecure(.certificate), failsOver: true)
        #expect(plan.current == .direct)
        expect(&plan, .nameNotFound, failsOver: false)
        #expect(plan.current == .direct)
    }

    private func expect(
        _ plan: inout RoutePlan, _ failure: OpeningFailure, failsOver: Bool,
        at location: SourceLocation = #_sourceLocation
    ) {
        let didFailOver = plan.failOver(after: failure)
        #expect(didFailOver == failsOver, sourceLocation: location)
    }

    static let failures: [(OpeningFailure, Bool)] = [
        (.nameNotFound, true), (.nameTimeout, true), (.denied(denial), false), (.unreachable(.refused), true),
        (.unreachable(.timedOut), true), (.insecure(.disagreement), true), (.proxyUnintelligible, true),
        (.proxyRefused(status: 403), false), (.proxyRefused(status: 404), false), (.proxyRefused(status: 407), true),
        (.proxyRefused(status: 502), false), (.proxyRefused(status: 503), true),
    ]

    @Test(arguments: failures)
    func `another route is tried if the route failed, but not if the destination did`(
        failure: OpeningFailure, isOfRoute: Bool
    ) {
        var plan = Self.plan
        expect(&plan, failure, failsOver: isOfRoute)
        #expect((plan.current == .proxy(plainProxy)) == !isOfRoute)
    }

    @Test func `the only route to an origin is direct`() {
        var plan = RouteTable().route(for: Origin(.https, origin))
        #expect(plan == .direct)
        expect(&plan, .unreachable(.refused), failsOver: false)
    }

    @Test func `the next hop is dialled`() {
        #expect(OpeningGoal(origin, for: .tunnel).dialled == origin)
        #expect(OpeningGoal(origin, for: .tunnel, over: .proxy(plainProxy)).dialled == plainProxy.endpoint)
    }

    @Test(arguments: [("a.example", "a.example:80"), ("1.2.3.4", "1.2.3.4:80"), ("::1", "[::1]:80")])
    func `an endpoint is written as CONNECT names it`(host: String, text: String) {
        #expect(Endpoint(host: host, port: 80).description == text)
    }
}

@Suite("Keys of connections") struct LinkKeyTests {
    private static let key = LinkKey(Origin(.https, origin))
    static let others = [
        LinkKey(Origin(.http, origin)),
        LinkKey(Origin(.https, Endpoint(host: "b.example", port: 443))),
        LinkKey(Origin(.https, Endpoint(host: "a.example", port: 8443))),
        LinkKey(Origin(.https, origin), over: .proxy(plainProxy)),
        LinkKey(Origin(.https, origin), tlsProfile: TLSProfile(1)),
        LinkKey(Origin(.https, origin), identity: BoundIdentity(client: 7)),
    ]

    @Test func `equal keys share connections`() { #expect(Self.key == LinkKey(Origin(.https, origin))) }

    @Test(arguments: others) func `keys that differ in any part do not share connections`(_ key: LinkKey) {
        #expect(key != Self.key)
    }
}

@Suite("The table of routes") struct RouteTableTests {
    static let rows: [(scheme: Scheme, host: String, port: UInt16, isBuiltIn: Bool)] = [
        (.http, "built.in", 80, true), (.https, "built.in", 443, true), (.http, "built.in", 443, true),
        (.http, "built.in", 22, false), (.http, "a.built.in", 80, false), (.http, "127.0.0.1", 80, false),
    ]
    @Test(arguments: rows) func `the origin inside the process has one name and two ports`(
        _ row: (scheme: Scheme, host: String, port: UInt16, isBuiltIn: Bool)
    ) {
        let origin = Origin(row.scheme, Endpoint(host: row.host, port: row.port))
        #expect(RouteTable(builtIn: "built.in").route(for: origin).current == (row.isBuiltIn ? .builtIn : .direct))
        #expect(RouteTable().route(for: origin) == .direct)
    }
}
