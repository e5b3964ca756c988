import Access
import Testing

@Suite("A tunnel may remain one where no rule looks inside")
struct RemainingTunnelTests {
    static let rows: [(what: String, rules: [AccessRule], expected: Bool)] = [
        ("no rules", [], true),
        ("a rule for the host", [rule(.allow, host: ["a.test"])], true),
        ("a rule for the host and the port", [rule(.allow, host: ["a.test"], port: [443])], true),
        (
            "a rule with a method: others are denied inside",
            [rule(.allow, host: ["a.test"], method: ["GET", "CONNECT"])], false
        ),
        ("CONNECT alone: requests inside have rules of their own", [rule(.allow, method: ["CONNECT"])], false),
        ("a path is denied before", [rule(.deny(reason: nil), path: ["/private/*"]), rule(.allow)], false),
        ("a path is denied elsewhere", [rule(.deny(reason: nil), host: ["b.test"], path: ["/p"]), rule(.allow)], true),
        (
            "a path is denied behind the rule that decides",
            [rule(.allow, host: ["a.test"]), rule(.deny(reason: nil), path: ["/p"])], true
        ),
        (
            "a method is denied to another client",
            [rule(.deny(reason: nil), method: ["POST"], client: ["192.0.2.1"]), rule(.allow)], true
        ),
        (
            "a method is denied to another user",
            [rule(.deny(reason: nil), method: ["POST"], user: ["bob"]), rule(.allow)],
            true
        ),
        (
            "a method is denied on another port",
            [rule(.deny(reason: nil), port: [80], method: ["POST"]), rule(.allow)],
            true
        ),
        // The address is not known yet, so either may decide.
        (
            "a rule with an address, then a path",
            [rule(.allow, address: ["192.0.2.0/24"]), rule(.allow, path: ["/p"])], false
        ),
        (
            "a rule with an address and a path", [rule(.allow, address: ["192.0.2.0/24"], path: ["/p"]), rule(.allow)],
            false
        ),
    ]

    @Test(arguments: rows) func `up to the rule that decides`(
        _ row: (what: String, rules: [AccessRule], expected: Bool)
    ) {
        let tunnel = request("a.test", port: 443, method: .connect, user: "ann")
        #expect(policy(row.rules).mayRemainTunnel(tunnel) == row.expected, "\(row.what)")
    }

    @Test func `intercept is what the rule with this number says`() {
        var open = rule(.allow)
        open.intercept = true
        let policy = policy([rule(.allow, host: ["b.test"]), open])
        #expect(policy.intercept(byRule: 2) == true)
        #expect(policy.intercept(byRule: 1) == nil)
        #expect(policy.intercept(byRule: nil) == nil)
        #expect(policy.intercept(byRule: 9) == nil)
    }
}
