import Access
import Message
import Routing
import Testing

private let origin = Endpoint(host: "a.example", port: 443)
private let plainProxy = NextProxy(Endpoint(host: "proxy.example", port: 3128))
private let securedProxy = NextProxy(Endpoint(host: "proxy.example", port: 3129), .https)
private let socksProxy = NextProxy(Endpoint(host: "proxy.example", port: 1080), .socks5)
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
private func dialling(
    _ endpoint: Endpoint, _ addressee: Opening.Addressee = .destination, then next: Opening.Action
) -> [Step] {
    [
        (.begin, .resolve(host: endpoint.host)),
        (.resolved([one]), .permit([one], port: endpoint.port, of: addressee)),
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
            dialling(plainProxy.endpoint, .configured, then: .ready)
        },
        OpeningRow(
            "TLS through a proxy: CONNECT names the origin, then TLS is with the origin", secured,
            over: .proxy(plainProxy)
        ) {
            dialling(plainProxy.endpoint, .configured, then: .askProxy(plainProxy, origin)) + [
                (.tunnelOpened(early: false), .secure(serverName: "sni.example")), (.secured, .ready),
            ]
        },
        OpeningRow("a tunnel through a proxy, whose server may speak first", .tunnel, over: .proxy(plainProxy)) {
            dialling(plainProxy.endpoint, .configured, then: .askProxy(plainProxy, origin)) + [
                (.tunnelOpened(early: true), .ready)
            ]
        },
        OpeningRow("plain text through a proxy with TLS of its own", .plain, over: .proxy(securedProxy)) {
            dialling(securedProxy.endpoint, .configured, then: .secure(serverName: "proxy.example")) + [
                (.secured, .ready)
            ]
        },
        OpeningRow(
            "plain text through a SOCKS proxy, which forwards nothing by itself", .plain, over: .proxy(socksProxy)
        ) {
            dialling(socksProxy.endpoint, .configured, then: .askProxy(socksProxy, origin)) + [
                (.tunnelOpened(early: false), .ready)
            ]
        },
        OpeningRow("every leg there is", secured, over: .proxy(securedProxy)) {
            dialling(securedProxy.endpoint, .configured, then: .secure(serverName: "proxy.example")) + [
                (.secured, .askProxy(securedProxy, origin)),
                (.tunnelOpened(early: false), .secure(serverName: "sni.example")), (.secured, .ready),
            ]
        },
    ]

    /// Another node of the fleet, over TLS, whatever the scheme of the request. The origin is its business.
    private static let node = FleetPeer(
        Endpoint(host: "10.20.0.11", port: 3130), serverName: "caches.internal")
    static let nodes: [OpeningRow] = [
        OpeningRow("another node of the fleet", .plain, over: .peer(node)) {
            dialling(node.endpoint, .configured, then: .securePeer(node)) + [(.secured, .ready)]
        }
    ]

    static let challenges: [OpeningRow] = [
        OpeningRow(
            "a challenge is answered over the same connection, if that persists", secured, over: .proxy(plainProxy)
        ) {
            dialling(plainProxy.endpoint, .configured, then: .askProxy(plainProxy, origin)) + [
                (.tunnelChallenged(persists: true), .askProxy(plainProxy, origin)),
                (.tunnelOpened(early: false), .secure(serverName: "sni.example")), (.secured, .ready),
            ]
        },
        OpeningRow("and over another one to the same addresses otherwise", .tunnel, over: .proxy(securedProxy)) {
            dialling(securedProxy.endpoint, .configured, then: .secure(serverName: "proxy.example")) + [
                (.secured, .askProxy(securedProxy, origin)),
                (.tunnelChallenged(persists: false), .connect([one], port: securedProxy.endpoint.port)),
                (.connected, .secure(serverName: "proxy.example")), (.secured, .askProxy(securedProxy, origin)),
                (.tunnelOpened(early: false), .ready),
            ]
        },
        OpeningRow("challenges end", .tunnel, over: .proxy(plainProxy)) {
            dialling(plainProxy.endpoint, .configured, then: .askProxy(plainProxy, origin))
                + Array(
                    repeating: (.tunnelChallenged(persists: true), .askProxy(plainProxy, origin)),
                    count: Opening.challengesMax)
                + [(.tunnelChallenged(persists: true), .fail(.nextProxy(plainProxy, .logIn)))]
        },
    ]

    @Test(arguments: ways + nodes + challenges) func `one leg follows the other`(_ row: OpeningRow) {
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
        ("resolve", .unresolved(.unasked), .nameUnasked), ("resolve", .unresolved(.tooMany), .tooManyNames),
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
        ("askProxy", .tunnelRefused(.logIn), .nextProxy(plainProxy, .logIn)),
        ("askProxy", .tunnelRefused(.refused(status: 502)), .nextProxy(plainProxy, .refused(status: 502))),
        ("askProxy", .closed, .unreachable(.terminated)),
        ("askProxy", .timedOut, .unreachable(.timedOut)),
    ]

    /// The same failure of a leg that leads to the proxy.
    private func failure(_ failure: OpeningFailure, of proxy: NextProxy) -> OpeningFailure {
        switch failure {
        case .nameNotFound: .nextProxy(proxy, .unresolved(.notFound))
        case .nameTimeout: .nextProxy(proxy, .unresolved(.timedOut))
        case .nameUnasked: .nextProxy(proxy, .unresolved(.unasked))
        case .tooManyNames: failure
        case .unreachable(let failure): .nextProxy(proxy, .unreachable(failure))
        case .insecure(let failure): .nextProxy(proxy, .insecure(failure))
        case .nextProxy(_, let failure): .nextProxy(proxy, failure)
        case .denied, .unavailable, .routeUnknown: failure
        }
    }

    private func leg(_ action: Opening.Action) -> String {
        switch action {
        case .resolve: "resolve"
        case .permit: "permit"
        case .connect, .connectBuiltIn: "connect"
        case .secure, .securePeer: "secure"
        case .askProxy: "askProxy"
        case .ready, .fail, .nothing: "ended"
        }
    }

    @Test(arguments: ways + nodes) func `each leg can fail in each of its ways`(_ row: OpeningRow) {
        let steps = row.steps()
        for (index, step) in steps.enumerated() {
            for (leg, event, failure) in Self.failures where leg == self.leg(step.action) {
                var opening = Opening(row.goal)
                // Once there is a tunnel, the connection is that to the origin.
                let isBehindProxy = steps[..<index].contains { self.leg($0.action) == "askProxy" }
                let failure = row.goal.proxy.map { isBehindProxy ? failure : self.failure(failure, of: $0) } ?? failure
                for (event, _) in steps[...index] { _ = opening.on(event) }
                expect(&opening, event, .fail(failure), "\(event) in leg \(index)")
                expect(&opening, event, .nothing, "it fails once")
            }
        }
    }

    @Test func `a node gets requests for all origins over the same connections`() {
        let route = Route.peer(Self.node)
        let one = LinkKey(Origin(.https, origin), over: route)
        let other = LinkKey(
            Origin(.http, Endpoint(host: "b.example", port: 80)), over: route, identity: .client(1))
        #expect(one == other && one.goal == OpeningGoal(Self.node.endpoint, for: .plain, over: route))
        #expect(one.goal.addressesBehindProxy.isEmpty && one.goal.proxy == nil)
    }

    @Test(arguments: ways + nodes) func `a cancelled opening does nothing more, whatever arrives`(_ row: OpeningRow) {
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

    /// What a proxy would connect to itself, and what is judged before.
    static let literals: [(host: String, addresses: [IPAddress])] = [
        ("192.168.1.7", [IPAddress(v4: 0xC0A8_0107)]), ("::1", [IPAddress(v6: 0, low: 1)]),
        ("localhost", [IPAddress(v4: 0x7F00_0001), IPAddress(v6: 0, low: 1)]),
        ("a.localhost", [IPAddress(v4: 0x7F00_0001), IPAddress(v6: 0, low: 1)]), ("nolocalhost", []), ("a.example", []),
    ]
    @Test(arguments: literals, [OpeningGoal.Use.plain, secured, .tunnel])
    func `a proxy is not dialled for an address that the rules deny`(
        _ row: (host: String, addresses: [IPAddress]), _ use: OpeningGoal.Use
    ) {
        let goal = OpeningGoal(Endpoint(host: row.host, port: 22), for: use, over: .proxy(plainProxy))
        #expect(goal.addressesBehindProxy == row.addresses)
        var opening = Opening(goal)
        guard !row.addresses.isEmpty else {
            return expect(&opening, .begin, .resolve(host: "proxy.example"))
        }
        expect(&opening, .begin, .permit(row.addresses, port: 22, of: .destination))
        var denied = opening
        expect(&denied, .judged(row.addresses.map { _ in denial }), .fail(.denied(denial)))
        expect(&opening, .judged(row.addresses.map { _ in nil }), .resolve(host: "proxy.example"))
        #expect(
            OpeningGoal(goal.destination, for: use).addressesBehindProxy.isEmpty,
            "a direct connection is judged when it is dialled")
    }

    @Test(arguments: [OpeningGoal.Use.plain, secured])
    func `a server that speaks before it was asked is not the origin`(_ use: OpeningGoal.Use) {
        var opening = Opening(OpeningGoal(origin, for: use, over: .proxy(socksProxy)))
        for event in [Opening.Event.begin, .resolved([one]), .judged([nil]), .connected] { _ = opening.on(event) }
        expect(&opening, .tunnelOpened(early: true), .fail(.nextProxy(socksProxy, .unintelligible)))
    }

    @Test func `only addresses that are permitted are dialled, in their order`() {
        var opening = Opening(OpeningGoal(origin, for: .plain))
        let three = IPAddress(v4: 0x0303_0303)
        _ = opening.on(.begin)
        expect(&opening, .resolved([one, two, three]), .permit([one, two, three], port: 443, of: .destination))
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
        expect(&plan, .nextProxy(securedProxy, .insecure(.certificate)), failsOver: true)
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
        (.nameNotFound, true), (.nameTimeout, true), (.nameUnasked, true), (.tooManyNames, false),
        (.denied(denial), false),
        (.unreachable(.refused), true),
        (.unreachable(.timedOut), true), (.unavailable, true), (.insecure(.disagreement), true),
        (.nextProxy(plainProxy, .unresolved(.notFound)), true), (.nextProxy(plainProxy, .unreachable(.refused)), true),
        (.nextProxy(plainProxy, .insecure(.certificate)), true), (.nextProxy(plainProxy, .unintelligible), true),
        (.nextProxy(plainProxy, .logIn), true), (.nextProxy(plainProxy, .refused(status: 403)), false),
        (.nextProxy(plainProxy, .refused(status: 404)), false), (.nextProxy(plainProxy, .refused(status: 500)), true),
        (.nextProxy(plainProxy, .refused(status: 502)), false), (.nextProxy(plainProxy, .refused(status: 503)), true),
        (.nextProxy(plainProxy, .refused(status: 504)), false),
        (.nextProxy(socksProxy, .socksRefused(.generalFailure)), true),
        (.nextProxy(socksProxy, .socksRefused(.notAllowed)), false),
        (.nextProxy(socksProxy, .socksRefused(.connectionRefused)), false),
    ]

    @Test(arguments: failures)
    func `another route is tried if the route failed, but not if the destination did`(
        failure: OpeningFailure, isOfRoute: Bool
    ) {
        var plan = Self.plan
        expect(&plan, failure, failsOver: isOfRoute)
        #expect((plan.current == .proxy(plainProxy)) == !isOfRoute)
    }

    @Test func `routes that have refused are left out`() {
        let left = Self.plan.without([.proxy(plainProxy)])
        #expect(left == RoutePlan(.proxy(securedProxy), then: [.direct]))
        #expect(Self.plan.without(Self.plan.routes) == nil)
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
        LinkKey(Origin(.https, origin), over: .proxy(plainProxy.proving("corp"))),
        LinkKey(Origin(.https, origin), tlsProfile: TLSProfile(1)),
        LinkKey(Origin(.https, origin), identity: .client(7)),
        LinkKey(Origin(.https, origin), identity: .credential(secretNumber: 7)),
    ]

    @Test func `equal keys share connections`() { #expect(Self.key == LinkKey(Origin(.https, origin))) }

    @Test func `the profile names the server, of https alone`() {
        let profile = TLSProfile(1, serverName: "other.example")
        #expect(
            LinkKey(Origin(.https, origin), tlsProfile: profile).goal.use
                == .secured(serverName: "other.example", profile))
        #expect(
            LinkKey(Origin(.https, origin), tlsProfile: TLSProfile(1)).goal.use
                == .secured(serverName: origin.host, TLSProfile(1)))
        #expect(LinkKey(Origin(.http, origin), tlsProfile: profile) == LinkKey(Origin(.http, origin)))
    }

    @Test func `a rule's profile is for the origin, and not for the proxy before it`() {
        let profile = TLSProfile(1, serverName: "other.example")
        let goal = LinkKey(Origin(.https, origin), over: .proxy(securedProxy), tlsProfile: profile).goal
        var opening = Opening(goal)
        let address = IPAddress(v4: 0xC000_0201)
        _ = opening.on(.begin)
        _ = opening.on(.resolved([address]))
        _ = opening.on(.judged([nil]))
        #expect(opening.on(.connected) == .secure(serverName: securedProxy.endpoint.host, .general))
        #expect(opening.on(.secured) == .askProxy(securedProxy, origin))
        #expect(opening.on(.tunnelOpened(early: false)) == .secure(serverName: "other.example", profile))
    }

    @Test(arguments: others) func `keys that differ in any part do not share connections`(_ key: LinkKey) {
        #expect(key != Self.key)
    }
}
