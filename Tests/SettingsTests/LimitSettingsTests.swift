import Limiting
import Rules
import Testing

@testable import Settings

@Suite("limits.rules: how rules are written") struct LimitSettingsTests {
    private func read(_ text: String) throws -> (plan: LimitPlan?, problems: [String]) {
        let result = try load("limits: { rules: \(text) }")
        return (result.configuration?.limitPlan, result.errors.map { "\($0)" })
    }

    @Test func `a rule with everything`() throws {
        let (plan, problems) = try read(
            "[ { name: a, match: { client: 192.0.2.0/24, path: /x }, per: user, requests: 50/m, burst: 7, concurrent: 3, bandwidth: 1MiB/s } ]"
        )
        #expect(problems.isEmpty)
        let rule = try #require(plan?.rules.first)
        #expect(rule.name == "a" && rule.scope == .user && rule.conditions.paths.count == 1)
        #expect(
            rule.terms
                == LimitTerms(requests: TokenRate(50, per: .minute, burst: 7), concurrent: 3, bandwidth: 1 << 20))
    }

    @Test func `budgets and sizes`() throws {
        let rule = try #require(
            try read(
                "[ { name: a, budget: { bytes: 10GiB, every: day, count: both }, request_body: 10MiB, request_size: 11MiB, response_body: 1GiB } ]"
            ).plan?.rules.first)
        #expect(rule.terms.budget == ByteBudget(10 << 30, every: .day, counts: .both))
        #expect(rule.terms.requestBody == 10 << 20 && rule.terms.requestSize == 11 << 20)
        #expect(rule.terms.responseBody == 1 << 30)
        let short = try read("[ { name: a, budget: { bytes: 1GiB, every: week } } ]").plan?.rules.first
        #expect(short?.terms.budget?.counts == .download)
        #expect(
            try load("limits: { budgets_file: /var/lib/larder/budgets }").configuration?.budgetsFile
                == "/var/lib/larder/budgets")
    }

    @Test func `a rule is for each client unless it says otherwise, and its burst is its rate`() throws {
        let rule = try #require(try read("[ { name: a, requests: 5/s } ]").plan?.rules.first)
        #expect(rule.scope == .client && rule.conditions.isEverything && rule.terms.requests?.burst == 5)
    }

    @Test func `a rule holds for all nodes of a fleet unless it says otherwise`() throws {
        let plan = try read(
            "[ { name: a, requests: 5/s }, { name: b, requests: 5/s, fleet: no }, { name: c, share: b } ]"
        ).plan
        #expect(plan?.rules.map(\.isOfNode) == [false, true, true])
        #expect(try read("[ { name: a, fleet: no } ]").problems.contains { $0.contains("requests is missing") })
    }

    @Test func `a rule that shares has the figures and the scope of the other`() throws {
        let plan = try read(
            "[ { name: b, match: { user: x }, share: a }, { name: a, per: all, concurrent: 9 } ]"
        ).plan
        let rule = try #require(plan?.rules.first)
        #expect(rule.terms.concurrent == 9 && rule.scope == .all && rule.bucket == "a")
    }

    @Test(arguments: [
        ("[ { name: a } ]", "requests is missing"),
        ("[ { requests: 5/s } ]", "name is missing"),
        ("[ { name: a, requests: 5 } ]", "a rate needs its time: 5/s, 5/m"),
        ("[ { name: a, requests: 0/s } ]", "a number from 1 to 1000000 per s, m, h or d"),
        ("[ { name: a, requests: 5/w } ]", "a number from 1 to 1000000 per s, m, h or d"),
        ("[ { name: a, burst: 5 } ]", "burst needs requests"),
        ("[ { name: a, budget: { every: day } } ]", "bytes is missing"),
        ("[ { name: a, budget: { bytes: 1GiB, every: dya } } ]", "did you mean day?"),
        ("[ { name: a, budget: { bytes: 1GiB } } ]", "every is missing"),
        ("[ { name: a, request_body: 0 } ]", "a size from 1"),
        ("[ { name: a, per: clients, requests: 5/s } ]", "did you mean client?"),
        ("[ { name: a, reqests: 5/s } ]", "did you mean requests?"),
        ("[ { name: a, requests: 5/s }, { name: a, requests: 6/s } ]", "the name a is used twice"),
        ("[ { name: a, share: b } ]", "no rule with buckets has the name b"),
        ("[ { name: abc, requests: 5/s }, { name: b, share: abd } ]", "did you mean abc?"),
        (
            "[ { name: abc, requests: 5/s }, { name: b, share: abc, concurrent: 4 } ]",
            "has the figures of the other rule"
        ),
        ("[ { name: a, per: user, connections: 5 } ]", "connections are counted when they are accepted"),
        ("[ { name: a, match: { path: /x }, connections: 5 } ]", "connections are counted when they are accepted"),
        ("[ { name: a, match: { address: 10.0.0.0/8 }, requests: 5/s } ]", "a limit has no address"),
        ("[ { name: a, match: { type: text/html }, requests: 5/s } ]", "a limit has no type"),
    ])
    func `mistakes are named with what was meant`(_ text: String, _ expected: String) throws {
        let (plan, problems) = try read(text)
        #expect(plan == nil && problems.contains { $0.contains(expected) }, "\(problems)")
    }
}
