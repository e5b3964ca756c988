import Limiting
import Message
import Rules
import Testing

private func address(_ text: String) -> IPAddress {
    guard let address = IPAddress(strict: text.utf8) else { preconditionFailure("\(text) is no address") }
    return address
}

@Suite("limits.rules: which buckets a request uses") struct LimitPlanTests {
    private static let anyFigure = LimitTerms(concurrent: 1)

    private func request(
        _ client: String? = "192.0.2.1", user: String? = nil, groups: [String] = [], path: String = "/a"
    ) -> RuleRequest {
        RuleRequest(
            client: client.map(address),
            identity: user.map { Identity(name: $0, scheme: .basic, groups: groups) }, method: .get,
            destination: DestinationHost("a.example".utf8)!, port: 80, isTunnel: false,
            pathAndQuery: Array(path.utf8)[...])
    }

    private func buckets(_ rules: [LimitRule], _ request: RuleRequest) -> [String] {
        LimitPlan(rules).uses(for: request).map { "\($0.bucket.rule) \($0.bucket.subject.description)" }
    }

    private func rule(
        _ name: String, per scope: LimitScope = .client, shares: String? = nil,
        _ set: (inout RuleConditions) -> Void = { _ in }
    ) -> LimitRule {
        var conditions = RuleConditions()
        set(&conditions)
        return LimitRule(name: name, conditions, per: scope, Self.anyFigure, shares: shares)
    }

    @Test(
        arguments: [
            (LimitScope.client, "192.0.2.1", nil, [], ["a client 192.0.2.1"]),
            (.client, "::ffff:192.0.2.1", nil, [], ["a client 192.0.2.1"]),
            (.client, "2001:db8::1", nil, [], ["a client 2001:db8::/64"]),
            (.client, "2001:db8::ffff:1", nil, [], ["a client 2001:db8::/64"]),
            (.client, "2001:db8:0:1::1", nil, [], ["a client 2001:db8:0:1::/64"]),
            (.client, nil, nil, [], ["a client on a Unix socket"]),
            (.user, "192.0.2.1", "ann", [], ["a user ann"]),
            (.user, "192.0.2.1", nil, [], ["a client 192.0.2.1"]),
            (.group, "192.0.2.1", "ann", ["x", "y"], ["a group x", "a group y"]),
            (.group, "192.0.2.1", "ann", [], []),
            (.group, "192.0.2.1", nil, [], []),
            (.all, "192.0.2.1", "ann", ["x"], ["a all"]),
        ] as [(LimitScope, String?, String?, [String], [String])])
    func `whose bucket it is`(
        _ scope: LimitScope, _ client: String?, _ user: String?, _ groups: [String], _ expected: [String]
    ) {
        #expect(buckets([rule("a", per: scope)], request(client, user: user, groups: groups)) == expected)
    }

    @Test func `all rules that match hold`() {
        let rules = [
            rule("a"), rule("b", per: .all), rule("c") { $0.users = ["bob"] },
            rule("d") { $0.paths = [PathPattern("/a")!] },
        ]
        #expect(buckets(rules, request()) == ["a client 192.0.2.1", "b all", "d client 192.0.2.1"])
        #expect(buckets(rules, request(user: "bob", path: "/b")).contains("c client 192.0.2.1"))
    }

    /// An origin may serve each of them as `/api/x`.
    @Test(arguments: [
        "/api/x", "//api/x", "/%61pi/x", "/./api/x", "/y/../api/x", "/api;v=1/x", "/api%2fx", "/%2561pi/x",
    ])
    func `a limit by path counts every spelling of it`(_ path: String) {
        let rules = [rule("api") { $0.paths = [PathPattern("/api/*")!] }]
        #expect(buckets(rules, request(path: path)) == ["api client 192.0.2.1"])
        #expect(buckets(rules, request(path: "/other%2fx")) == [])
    }

    @Test func `rules that share a bucket count a request once`() {
        let rules = [rule("a") { $0.ports = [80...80] }, rule("b", shares: "a") { $0.users = ["bob"] }]
        #expect(buckets(rules, request(user: "bob")) == ["a client 192.0.2.1"])
        #expect(buckets([rule("a") { $0.ports = [1...1] }, rules[1]], request(user: "bob")) == ["a client 192.0.2.1"])
    }

    @Test func `a rule for connections alone does not concern requests`() {
        let plan = LimitPlan([LimitRule(name: "a", RuleConditions(), LimitTerms(connections: 5))])
        #expect(plan.uses(for: request()).isEmpty && plan.countsConnections)
        #expect(plan.uses(forConnectionOf: address("192.0.2.1")).count == 1)
        #expect(!LimitPlan([rule("a")]).countsConnections)
    }

    @Test func `a connection is judged by its address`() {
        var conditions = RuleConditions()
        conditions.clients = [AddressRange("192.0.2.0/24")!]
        let plan = LimitPlan([LimitRule(name: "a", conditions, LimitTerms(connections: 5))])
        #expect(
            plan.uses(forConnectionOf: address("192.0.2.9")).map(\.bucket.subject) == [.client(address("192.0.2.9"))])
        #expect(plan.uses(forConnectionOf: address("192.0.3.9")).isEmpty)
        #expect(plan.uses(forConnectionOf: nil).isEmpty)
    }

    @Test func `other paths have the buckets of rules without paths, and the patterns of the rest are named`() {
        let plan = LimitPlan([
            rule("a"), rule("b") { $0.paths = [PathPattern("/big/*")!] },
            rule("c") {
                $0.paths = [PathPattern("/c")!]
                $0.users = ["bob"]
            },
        ])
        let request = request(path: "/big/1")
        #expect(plan.uses(for: request).map(\.bucket.rule) == ["a", "b"])
        #expect(plan.usesOfOtherPaths(like: request).map(\.bucket.rule) == ["a"])
        #expect(plan.pathsOfConcern(like: request) == [PathPattern("/big/*")!])
    }

    @Test func `an excess says what it is about, and when to come again`() {
        let own = LimitExcess(
            LimitBucket(rule: "each", .client(address("192.0.2.1"))), .requests(TokenRate(5, per: .second, burst: 9)),
            wait: 1_000_000_001)
        #expect(own.text == "limit each for client 192.0.2.1: 5/s requests, at most 9 at once")
        #expect(own.retryAfter == 2)
        let shared = LimitExcess(LimitBucket(rule: "line", .all), .concurrent(7), wait: 0)
        #expect(shared.text == "limit line for all clients together: 7 under way" && shared.retryAfter == 1)
    }
}
