import Access
import Message
import Rules
import Testing

@Suite("Rules with a server name (SNI, RFC 6066 §3)")
struct ServerNameTests {
    private static func named(
        _ effect: AccessRule.Effect, sni: [String], host: [String] = [], port: [UInt16] = [], address: [String] = []
    ) -> AccessRule {
        var made = rule(effect, host: host, address: address, port: port)
        made.conditions.serverNames = sni.compactMap { HostPattern($0) }
        return made
    }

    private static func tunnel(_ host: String, _ name: ServerName = .unread, port: UInt16 = 443, user: String? = nil)
        -> AccessRequest
    {
        var made = request(host, port: port, method: .connect, user: user)
        made.serverName = name
        return made
    }
    private static func sent(_ name: String) -> ServerName { DestinationHost(name.utf8).map { .host($0) } ?? .absent }

    private static let cdn = AccessTests.policy([
        named(.allow, sni: ["good.example", "*.fine.example"], host: ["cdn.example"]),
        rule(.allow, host: ["a.example"]),
    ])
    private static let denying = AccessTests.policy([named(.deny(reason: nil), sni: ["bad.example"]), rule(.allow)])

    static let rows: [(policy: AccessPolicy, request: AccessRequest, verdict: String)] = [
        (cdn, tunnel("cdn.example"), "needs server name"),
        (cdn, tunnel("cdn.example", sent("good.example")), "allow 1"),
        (cdn, tunnel("cdn.example", sent("x.fine.example")), "allow 1"),
        (cdn, tunnel("cdn.example", sent("bad.example")), "deny no-rule"),
        (cdn, tunnel("cdn.example", .absent), "deny no-rule"), (cdn, request("cdn.example"), "deny no-rule"),
        // The rule with a name cannot matter.
        (cdn, tunnel("a.example"), "allow 2"), (cdn, tunnel("b.example"), "deny no-rule"),
        (denying, tunnel("a.example"), "needs server name"),
        (denying, tunnel("a.example", sent("bad.example")), "deny 1 rule"),
        (denying, tunnel("a.example", sent("a.example")), "allow 2"),
        (denying, tunnel("a.example", .absent), "allow 2"),
        (denying, request("a.example"), "allow 2"),
    ]
    @Test(arguments: rows.indices) func `a rule with a name decides when the name is known`(_ index: Int) {
        let row = Self.rows[index]
        #expect(row.policy.decide(row.request, address: nil).summary == row.verdict, "row \(index)")
    }

    @Test func `before the name is known, an allow rule opens nothing`() {
        let policy = AccessTests.policy([
            Self.named(.allow, sni: ["good.example"], host: ["10.0.0.1"], port: [8443]),
            rule(.allow, host: ["10.0.0.1"]),
        ])
        let address = ip("10.0.0.1")
        #expect(policy.decide(Self.tunnel("10.0.0.1", port: 8443), address: nil).summary == "needs server name")
        #expect(policy.mayDial(Self.tunnel("10.0.0.1", port: 8443), address: address)?.reason == .connectPort)
        #expect(
            policy.mayDial(Self.tunnel("10.0.0.1", Self.sent("bad.example"), port: 8443), address: address)?.reason
                == .connectPort)
        #expect(policy.mayDial(Self.tunnel("10.0.0.1", Self.sent("good.example"), port: 8443), address: address) == nil)
    }

    @Test func `a rule that denies first does not wait for a name`() {
        let policy = AccessTests.policy([
            rule(.deny(reason: nil), host: ["a.example"]), Self.named(.allow, sni: ["good.example"]),
        ])
        #expect(policy.decide(Self.tunnel("a.example"), address: nil).summary == "deny 1 rule")
        #expect(policy.decide(Self.tunnel("b.example"), address: nil).summary == "needs server name")
    }

    @Test func `a name that a rule allows need not be the host`() {
        let terms = Self.cdn.tunnelTerms(Self.tunnel("cdn.example", Self.sent("good.example")), allowedBy: 1)
        #expect(terms == TunnelTerms(.tls, namesHost: false))
        #expect(Self.cdn.tunnelTerms(Self.tunnel("a.example"), allowedBy: 2) == TunnelTerms(.tls, namesHost: true))
    }

    @Test func `a log-in is asked for with the CONNECT`() {
        let policy = AccessTests.policy([Self.named(.authenticate, sni: ["good.example"]), rule(.allow)])
        #expect(policy.decide(Self.tunnel("a.example"), address: nil).summary == "deny 1 not-authenticated")
        #expect(policy.decide(Self.tunnel("a.example", user: "ann"), address: nil).summary == "allow 2")
    }
}
