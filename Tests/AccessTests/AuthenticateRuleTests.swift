import Access
import Message
import Rules
import Testing

@Suite("Rules that ask who sends a request")
struct AuthenticateRuleTests {
    /// `a.example` is open to all, `b.example` to who has logged in, and bob may not POST there.
    private static let policy = AccessTests.policy([
        rule(.allow, host: ["a.example"]),
        rule(.authenticate, host: ["b.example", "c.example"], path: ["/x/*"]),
        rule(.authenticate, host: ["b.example"]),
        rule(.deny(reason: nil), host: ["b.example"], method: ["POST"], user: ["bob"]),
        rule(.allow, host: ["b.example", "c.example"]),
    ])

    static let rows: [(what: String, request: AccessRequest, verdict: String)] = [
        ("a host before it", request("a.example"), "allow 1"),
        ("nobody", request("b.example"), "deny 3 not-authenticated"),
        ("somebody", request("b.example", user: "ann"), "allow 5"),
        ("the rules behind it go on", request("b.example", method: .post, user: "bob"), "deny 4 rule"),
        ("another host", request("d.example"), "deny no-rule"),
        ("another path", request("c.example", path: "/y"), "allow 5"),
        ("the path", request("c.example", path: "/x/y"), "deny 2 not-authenticated"),
        ("any reading of the path", request("c.example", path: "/y/%2e./x/y"), "deny 2 not-authenticated"),
        ("the path, for somebody", request("c.example", user: "ann", path: "/x/y"), "allow 5"),
        (
            "CONNECT, whatever the path will be", request("c.example", port: 443, method: .connect),
            "deny 2 not-authenticated"
        ),
        ("CONNECT of somebody", request("c.example", port: 443, method: .connect, user: "ann"), "allow 5"),
    ]
    @Test(arguments: rows) func `it holds for requests of nobody`(
        _ row: (what: String, request: AccessRequest, verdict: String)
    ) {
        let verdict = Self.policy.decide(row.request, address: nil)
        #expect(verdict.summary == row.verdict, "\(row.what)")
        guard case .deny(let denial) = verdict else { return }
        #expect(denial.asksForCredentials == (denial.reason == .notAuthenticated), "\(row.what)")
        #expect(denial.reason != .notAuthenticated || denial.shortfall == nil)
        #expect(!denial.withoutCredentials.asksForCredentials && denial.withoutCredentials.reason == denial.reason)
    }

    @Test func `an address decides when it is known`() {
        let policy = AccessTests.policy([rule(.authenticate, address: ["8.8.8.0/24"]), rule(.allow)])
        #expect(policy.decide(request("a.example"), address: nil).summary == "needs address")
        #expect(policy.decide(request("a.example"), address: ip("8.8.8.8")).summary == "deny 1 not-authenticated")
        #expect(policy.decide(request("a.example"), address: ip("9.9.9.9")).summary == "allow 2")
        #expect(policy.decide(request("a.example", user: "ann"), address: nil).summary == "allow 2")
        #expect(policy.mayDial(request("a.example"), address: ip("8.8.8.8"))?.asksForCredentials == true)
    }

    @Test func `before an allow rule that opens a private address it keeps nobody out who has logged in`() {
        let policy = AccessTests.policy([rule(.authenticate, host: ["a.example"]), rule(.allow, address: ["10.0.0.1"])])
        #expect(policy.mayDial(request("a.example"), address: ip("10.0.0.1"))?.reason == .notAuthenticated)
        #expect(policy.mayDial(request("a.example", user: "ann"), address: ip("10.0.0.1")) == nil)
    }

    @Test func `a decision holds for every path where no rule about paths can ask`() {
        let policy = Self.policy
        #expect(policy.allowsEveryPath(request("a.example")))
        #expect(policy.allowsEveryPath(request("c.example", user: "ann")))
        #expect(!policy.allowsEveryPath(request("c.example", path: "/y")))
    }

    @Test func `a tunnel of somebody is ruled by the rules behind it`() {
        let policy = AccessTests.policy([
            rule(.authenticate, host: ["b.example"]), rule(.deny(reason: nil), host: ["b.example"], path: ["/x"]),
            rule(.allow),
        ])
        #expect(!policy.mayRemainTunnel(request("b.example", port: 443, method: .connect, user: "ann")))
        let tunnel = request("d.example", port: 22, method: .connect)
        #expect(policy.tunnelTerms(tunnel, allowedBy: 3) == TunnelTerms(.recognised, namesHost: true))
    }

    @Test func `jobs that learn have to log in like others`() {
        var settings = AccessSettings()
        settings.rules = [rule(.authenticate), rule(.deny(reason: nil))]
        for index in settings.rules.indices { settings.rules[index].number = index + 1 }
        let lenient = AccessPolicy(from: settings.lenient)
        #expect(lenient.decide(request("a.example"), address: nil).summary == "deny 1 not-authenticated")
        #expect(lenient.decide(request("a.example", user: "ann"), address: nil).summary == "allow")
    }
}
