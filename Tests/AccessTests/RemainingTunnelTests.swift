import Access
import Rules
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

@Suite("What a tunnel must carry that is passed on unread")
struct TunnelTermsTests {
    static let strict = TunnelTerms(.tls, namesHost: true)
    static let recognised = TunnelTerms(.recognised, namesHost: true)
    static let unnamed = TunnelTerms(.tls, namesHost: false)

    static let rows: [(what: String, rules: [AccessRule], port: UInt16, by: Int?, expected: TunnelTerms)] = [
        ("no rules", [], 443, nil, unnamed), ("no rules", [], 8443, nil, .anything),
        ("a rule without a host", [rule(.allow, port: [443, 22])], 443, 1, unnamed),
        ("a rule without a host", [rule(.allow, port: [443, 22])], 22, 1, .anything),
        ("a rule for every host", [rule(.allow, host: ["*"])], 443, 1, unnamed),
        ("a rule for an address", [rule(.allow, address: ["192.0.2.1"])], 443, 1, unnamed),
        ("a rule for the host", [rule(.allow, host: ["a.test"])], 443, 1, strict),
        ("a rule for the host", [rule(.allow, host: ["*.test"], port: [22])], 22, 1, recognised),
        ("TLS on any port", [tunnel(.tls, rule(.allow, host: ["a.test"], port: [8443]))], 8443, 1, strict),
        ("TLS on any port, by a rule without a host", [tunnel(.tls, rule(.allow, port: [8443]))], 8443, 1, unnamed),
        ("anything", [tunnel(.any, rule(.allow, host: ["a.test"]))], 443, 1, .anything),
        (
            "anything elsewhere", [tunnel(.any, rule(.allow, host: ["b.test"])), rule(.allow, host: ["a.test"])], 443,
            2,
            strict
        ),
        // Another host would be denied, or allowed on other terms.
        ("a host is denied before", [rule(.deny(reason: nil), host: ["b.test"]), rule(.allow)], 443, 2, strict),
        ("a host is allowed before", [rule(.allow, host: ["b.test"]), rule(.allow)], 443, 2, strict),
        ("a host is allowed behind", [rule(.allow), rule(.allow, host: ["b.test"])], 443, 1, unnamed),
        ("a host is denied, and the default allows", [rule(.deny(reason: nil), host: ["b.test"])], 443, nil, strict),
        // Larder would not see the requests inside.
        (
            "a path of a host is denied", [rule(.deny(reason: nil), host: ["b.test"], path: ["/x/*"]), rule(.allow)],
            443, 2, strict
        ),
        (
            "a path of a host is denied, on a port of no protocol",
            [rule(.deny(reason: nil), host: ["b.test"], path: ["/x/*"]), rule(.allow)],
            8080, 2, TunnelTerms(.recognised, namesHost: true)
        ),
        (
            "a method of a host is denied",
            [rule(.deny(reason: nil), host: ["b.test"], method: ["POST"]), rule(.allow)], 443, 2, strict
        ),
        (
            "a host is denied on another port", [rule(.deny(reason: nil), host: ["b.test"], port: [80])], 443, nil,
            unnamed
        ),
        (
            "a host is denied to another user", [rule(.deny(reason: nil), host: ["b.test"], user: ["bob"])], 443, nil,
            unnamed
        ),
        (
            "a host with an address that is not known yet",
            [rule(.deny(reason: nil), host: ["b.test"], address: ["192.0.2.1"])], 443, nil, strict
        ),
    ]

    static func tunnel(_ protocols: TunnelProtocols, _ rule: AccessRule) -> AccessRule {
        var rule = rule
        rule.tunnel = protocols
        return rule
    }

    @Test(arguments: rows) func `by the rule that decides, the port, and the rules for hosts`(
        _ row: (what: String, rules: [AccessRule], port: UInt16, by: Int?, expected: TunnelTerms)
    ) {
        let tunnel = request("a.test", port: row.port, method: .connect, user: "ann")
        let terms = policy(row.rules, default: row.by == nil ? .allow : nil).tunnelTerms(tunnel, allowedBy: row.by)
        #expect(terms == row.expected, "\(row.what), port \(row.port)")
    }
}
