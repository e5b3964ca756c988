import Access
import Message
import Routing
import Rules
import Testing

private func proxy(_ host: String) -> Route { .proxy(NextProxy(Endpoint(host: host, port: 3128))) }

/// What the tables below make of a path, with PAC files that say what their name says.
private struct Policy {
    let table: RouteTable

    /// - Parameter environment: the proxy of the environment; nil: it has none.
    init(_ rules: [(path: String?, ways: RouteRule.Ways)], environment: String? = nil) throws {
        let variables = try ProxyEnvironment { name in
            name == "http_proxy" ? environment.map { "http://\($0):3128" } : nil
        }
        table = RouteTable(
            rules: rules.enumerated().map { index, rule in
                var conditions = RuleConditions()
                if let path = rule.path { conditions.paths = [PathPattern(path)!] }
                return RouteRule(conditions, rule.ways, number: index + 1)
            }, environment: variables)
    }

    /// Nil: the request is refused.
    func routes(_ path: some Sequence<UInt8>) -> [Route]? {
        let uri = Array("http://a.example".utf8) + path
        let request = AccessRequest(
            client: nil, method: .get, destination: DestinationHost("a.example".utf8)!, port: 80, isTunnel: false,
            pathAndQuery: Array(path)[...])
        switch table.choice(for: request, to: Origin(.http, Endpoint(host: "a.example", port: 80)), uri: uri) {
        case .plan(let plan): return plan.routes
        case .script(let choice): return choice.plan(by: .success(Policy.said(by: choice.source)))?.routes
        }
    }

    func routes(_ path: String) -> [Route]? { routes(path.utf8) }

    /// The routes that the name of a PAC file stands for: `/one,direct`.
    static func said(by source: PACSource) -> [Route] {
        guard case .file(let name) = source else { return [] }
        return name.dropFirst().split(separator: ",").map { $0 == "direct" ? .direct : proxy(String($0)) }
    }
}

private func script(_ answer: String) -> RouteRule.Ways { .script(.file("/\(answer)"), otherwise: []) }

@Suite("Routes of paths that an origin may take for others")
struct DisputedRouteTests {
    /// Origins may take each for `/secret/x`.
    static let spellings = [
        "//secret/x", "/%73ecret/x", "/secret;a/x", "/./secret/x", "/a/..%2fsecret/x", "/secret%2fx",
    ]

    static let leading: [(ways: RouteRule.Ways, plainly: [Route], otherwise: [Route])] = [
        (.listed([proxy("one")], .order), [proxy("one")], [proxy("one")]),
        (.listed([proxy("one"), .direct], .order), [proxy("one"), .direct], [proxy("one")]),
        (.listed([proxy("one"), .direct], .hash), [proxy("one"), .direct], [proxy("one")]),
        (script("one"), [proxy("one")], [proxy("one")]),
        (script("one,direct"), [proxy("one"), .direct], [proxy("one")]),
        (.environment, [proxy("environment")], [proxy("environment")]),
    ]
    @Test(arguments: leading, spellings) func `a rule leads to its proxies in every spelling`(
        _ row: (ways: RouteRule.Ways, plainly: [Route], otherwise: [Route]), _ path: String
    ) throws {
        let policy = try Policy(
            [("/secret/*", row.ways), (nil, .listed([proxy("other")], .order))], environment: "environment")
        #expect(policy.routes("/secret/x") == row.plainly)
        #expect(policy.routes(path) == row.otherwise)
        #expect(policy.routes("/public/x") == [proxy("other")])
    }

    static let direct: [(ways: RouteRule.Ways, otherwise: [Route]?)] = [
        (.listed([.direct], .order), [proxy("other")]), (.environment, [proxy("other")]),
        // Whether it leads to a proxy is known too late for the next rule.
        (script("direct"), nil),
    ]
    @Test(arguments: direct, ["/public/..%2fsecret", "/public/../secret", "/a/..;/public/x", "//public/x"])
    func `a rule leads directly where no other reading goes to a proxy`(
        _ row: (ways: RouteRule.Ways, otherwise: [Route]?), _ path: String
    ) throws {
        let policy = try Policy([("/public/*", row.ways), (nil, .listed([proxy("other")], .order))])
        #expect(policy.routes("/public/x") == [.direct])
        #expect(policy.routes("/public/%78") == [.direct])
        #expect(policy.routes(path) == row.otherwise)
        let alone = try Policy([("/public/*", row.ways)])
        #expect(alone.routes(path) == [.direct], "there is no other way")
    }

    @Test func `what a script may say is decided by the rules behind it`() throws {
        for (ways, isDirect) in [
            (RouteRule.Ways.listed([.direct], .order), true), (.environment, true), (script("direct"), false),
            (.listed([proxy("two"), .direct], .order), false),
        ] {
            let policy = try Policy([("/secret/*", script("direct")), (nil, ways)])
            #expect(policy.routes("//secret/x") == (isDirect ? [.direct] : nil), "\(ways)")
        }
    }

    /// A tunnel has no path, so nothing about it is disputed.
    @Test func `a rule with a path holds for no tunnel`() throws {
        let policy = try Policy([("/*", script("one"))])
        let request = AccessRequest(
            client: nil, method: .connect, destination: DestinationHost("a.example".utf8)!, port: 443, isTunnel: true,
            pathAndQuery: [])
        let origin = Origin(.https, Endpoint(host: "a.example", port: 443))
        #expect(policy.table.choice(for: request, to: origin, uri: []) == .plan(.direct))
    }

    /// Whoever spells a path may not pass by a proxy that stands in the way of what the origin takes it for.
    @Test(arguments: 1...400) func `no spelling goes directly where one of its readings does not`(_ seed: Int) throws {
        var random = Random(state: UInt64(seed))
        let rules = (0..<Int.random(in: 1...4, using: &random)).map { index -> (path: String?, ways: RouteRule.Ways) in
            let ways: RouteRule.Ways =
                switch Int.random(in: 0..<8, using: &random) {
                case 0: .listed([.direct], .order)
                case 1: .listed([proxy("p\(index)"), .direct], .order)
                case 2: .listed([proxy("p\(index)"), proxy("q\(index)")], .hash)
                case 3: .environment
                case 4: script("direct")
                case 5: script("p\(index),direct")
                case 6: script("p\(index)")
                default: .listed([proxy("p\(index)")], .order)
                }
            return (Bool.random(using: &random) ? nil : Self.patterns.randomElement(using: &random)!, ways)
        }
        let policy = try Policy(rules, environment: Bool.random(using: &random) ? "environment" : nil)
        for _ in 0..<50 {
            let path = (0..<Int.random(in: 1...4, using: &random)).map { _ in
                Self.pieces.randomElement(using: &random)!
            }.joined()
            let bytes = Array(("/" + path).utf8)
            guard let readings = PathReadings(bytes[...]), let routes = policy.routes(bytes), routes.contains(.direct)
            else { continue }
            for reading in readings.paths where reading.first == UInt8(ascii: "/") && PathReadings(reading[...]) == nil
            {
                let plain = policy.routes(reading)
                #expect(
                    plain?.contains(.direct) == true,
                    "\(rules): /\(path) goes directly, and \(String(decoding: reading, as: UTF8.self)) does not")
            }
        }
    }

    private static let patterns = ["/a/*", "/b/*", "/a/b", "/a", "/*", "/b"]
    private static let pieces = ["a", "b", "/", "/", "//", "..", ".", "%2f", "%61", "%2e%2e", ";x", "\\", "%252f"]

    /// SplitMix64.
    private struct Random: RandomNumberGenerator {
        var state: UInt64
        mutating func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var z = state
            z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
            z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
            return z ^ (z >> 31)
        }
    }
}
