import Access
import Routing
import Origins
import Rules
import Testing

@Suite("origins: which terms hold") struct OriginTableTests {
    private static let general = OriginTerms(
        connect: .seconds(10), firstByte: .seconds(60), idle: .seconds(30), total: .seconds(100), retriesMax: 1)

    private static func rule(_ number: Int, host: String, _ change: (inout OriginRule) -> Void) -> OriginRule {
        var conditions = RuleConditions()
        conditions.hosts = [HostPattern(host)!]
        var rule = OriginRule(conditions, number: number)
        change(&rule)
        return rule
    }

    private static func request(to host: String) -> AccessRequest {
        AccessRequest(
            client: nil, method: .get, destination: DestinationHost(host.utf8)!, port: 80, isTunnel: false,
            pathAndQuery: Array("/a".utf8)[...])
    }

    private let table = OriginTable(
        [
            rule(1, host: "a.example") { $0.timeouts.connect = .seconds(1) },
            rule(2, host: "*.example") {
                $0.timeouts.total = .some(nil)
                $0.retriesMax = 3
            },
        ], general: general)

    private func terms(of host: String) -> OriginTerms { table.terms(for: Self.request(to: host)) }

    @Test func `the first rule that matches holds, and nothing of the others`() {
        let terms = terms(of: "a.example")
        #expect(terms.rule == 1 && terms.connect == .seconds(1))
        #expect(terms.total == .seconds(100) && terms.retriesMax == 1)
    }

    @Test func `what a rule leaves out is as for all origins`() {
        let terms = terms(of: "b.example")
        #expect(terms.rule == 2 && terms.connect == .seconds(10) && terms.firstByte == .seconds(60))
        #expect(terms.total == nil && terms.retriesMax == 3)
        #expect(
            terms.description
                == "connect 10s, first byte 60s, idle 30s, no limit for the whole, 3 retries; connections: at most 256, kept for 60s"
        )
    }

    @Test func `a rule has its profile, and the general one without`() {
        let rules = [Self.rule(1, host: "a.example") { _ in }, Self.rule(2, host: "b.example") { _ in }]
        let table = OriginTable(rules, general: Self.general, profiles: [2: TLSProfile(7, serverName: "x.test")])
        #expect(table.terms(for: Self.request(to: "a.example")).tls == .general)
        #expect(table.terms(for: Self.request(to: "b.example")).tls.number == 7)
    }

    @Test func `without a rule the general terms hold`() { #expect(terms(of: "c.test") === table.general) }

    @Test func `without rules nothing is looked at`() {
        let table = OriginTable(general: Self.general)
        func unasked() -> AccessRequest { fatalError("the request was looked at") }
        #expect(table.terms(for: unasked()) === table.general)
    }
}
