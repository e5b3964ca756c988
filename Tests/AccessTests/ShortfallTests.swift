import Access
import Message
import Rules
import Testing

@Suite("What a denied request lacks")
struct ShortfallTests {
    struct Row: Sendable {
        let rules: [AccessRule]
        let request: AccessRequest
        let address: String?
        let expected: String

        /// - Parameter expected: the exact reason of the denial, then the sentence about the nearest rule, if there is one.
        init(_ rules: [AccessRule], _ request: AccessRequest, _ expected: String, at address: String? = nil) {
            self.rules = rules
            self.request = request
            self.address = address
            self.expected = expected
        }
    }

    static let get = rule(.allow, host: ["a.example"], method: ["GET", "HEAD"])
    static let web = rule(.allow, host: ["a.example"], port: [80, 443])
    static let path = rule(.allow, host: ["a.example"], path: ["/secret-project/*"])
    static let all = rule(.deny(reason: "not on the list"))
    static let post = request("a.example", method: .post)

    static let rows: [Row] = [
        Row([get], post, "method-not-allowed: rule 1 allows this host, but only with GET, HEAD"),
        Row([get, all], post, "method-not-allowed: rule 1 allows this host, but only with GET, HEAD"),
        Row(
            [web], request("a.example", port: 81), "port-not-allowed: rule 1 allows this host, but only to port 80, 443"
        ),
        Row(
            [rule(.allow, host: ["a.example"], port: [443], method: ["GET"])], post,
            "port-not-allowed: rule 1 allows this host, but only to port 443 and with GET"),
        Row([path], request("a.example"), "path-not-allowed: rule 1 allows this host, but only for other paths"),
        Row(
            [path], request("a.example", port: 443, method: .connect),
            "path-not-allowed: rule 1 allows this host, but only for some paths, which a tunnel does not show"),
        Row([get, all], request("b.example"), "host-not-allowed"),
        Row([get, rule(.allow, address: ["8.0.0.0/8"])], request("b.example"), "host-not-allowed", at: "9.9.9.9"),
        Row([rule(.allow, address: ["8.0.0.0/8"])], request("b.example"), "address-not-allowed", at: "9.9.9.9"),
        // The rule with the fewest conditions that fail is the nearest, then the first.
        Row(
            [rule(.allow, host: ["a.example"], port: [443], method: ["GET"]), get], post,
            "method-not-allowed: rule 2 allows this host, but only with GET, HEAD"),
        // A rule behind the one that denies everything never matches.
        Row([all, get], post, "rule"),
        Row(
            [web, all, get], request("a.example", port: 81, method: .post),
            "port-not-allowed: rule 1 allows this host, but only to port 80, 443"),
        // A rule that denies this request, and not everything, has its own reason.
        Row([get, rule(.deny(reason: nil), method: ["POST"])], post, "rule"),
        Row([], request("a.example", port: 22, method: .connect), "connect-port", at: "8.8.8.8"),
        // Nothing is advised that a rule before denies.
        Row(
            [rule(.deny(reason: nil), method: ["GET"]), get], post,
            "method-not-allowed: rule 2 allows this host, but only with HEAD"),
        Row([rule(.deny(reason: nil), method: ["GET", "HEAD"]), get], post, "no-rule"),
        Row(
            [rule(.deny(reason: nil), port: [80]), web], request("a.example", port: 81),
            "port-not-allowed: rule 2 allows this host, but only to port 443"),
        Row(
            [rule(.deny(reason: nil), address: ["10.0.0.0/8"], method: ["GET"]), get],
            request("a.example", method: .put), "method-not-allowed: rule 2 allows this host, but only with HEAD"),
        Row(
            [rule(.allow, host: ["a.example"], method: ["CONNECT"])], request("a.example", port: 8080), "no-rule"),
        Row(
            [rule(.allow, host: ["a.example"], method: ["CONNECT"])], request("a.example", port: 443),
            "method-not-allowed: rule 1 allows this host, but only with CONNECT"),
        // The host has not been resolved, so nothing is said about a rule for an address.
        Row([rule(.allow, address: ["8.0.0.0/8"], method: ["GET"])], post, "no-rule"),
        Row(
            [rule(.allow, address: ["8.0.0.0/8"], method: ["GET"])], post,
            "method-not-allowed: rule 1 allows this host, but only with GET",
            at: "8.8.8.8"),
        Row(
            [rule(.allow, method: ["A", "B", "C", "D", "E", "F", "G"])], post,
            "method-not-allowed: rule 1 allows this host, but only with A, B, C, D, E, F or others"),
    ]
    @Test(arguments: rows.indices) func `the nearest allow rule says what is missing`(_ index: Int) {
        let row = Self.rows[index]
        let verdict = policy(row.rules, private: .allow).decide(row.request, address: row.address.map(ip))
        guard case .deny(let denial) = verdict else {
            Issue.record("row \(index): \(verdict)")
            return
        }
        let said = denial.exactReason.rawValue + (denial.shortfall?.text.map { ": \($0)" } ?? "")
        #expect(said == row.expected, "row \(index)")
        #expect(denial.hint == denial.shortfall?.text ?? "\(denial.exactReason.hint)")
    }

    static let alice = rule(.allow, host: ["a.example"], method: ["GET"], user: ["alice"])
    static let lab = rule(.allow, host: ["a.example"], client: ["192.0.2.0/24"])
    static let audiences: [(rules: [AccessRule], request: AccessRequest, client: String, administrator: String)] = [
        (
            [alice], request("a.example", user: "bob"), "user-not-allowed",
            "user-not-allowed: rule 1 allows this host, but only for user alice"
        ),
        (
            [alice], request("a.example", method: .post, user: "bob"), "user-not-allowed",
            "method-not-allowed: rule 1 allows this host, but only with GET and for user alice"
        ),
        // Bob may do something. Whether others may reach the host is not for him.
        (
            [alice, rule(.allow, host: ["b.example"])], request("a.example", user: "bob"), "host-not-allowed",
            "user-not-allowed: rule 1 allows this host, but only for user alice"
        ),
        (
            [lab], request("a.example"), "client-not-allowed",
            "client-not-allowed: rule 1 allows this host, but only for client 192.0.2.0/24"
        ),
        (
            [lab, alice], request("a.example", user: "bob"), "user-not-allowed",
            "client-not-allowed: rule 1 allows this host, but only for client 192.0.2.0/24"
        ),
    ]
    @Test(arguments: audiences.indices)
    func `a client learns nothing of rules for others, and an administrator does`(_ index: Int) {
        let row = Self.audiences[index]
        func said(_ audience: Shortfall.Audience) -> String {
            let found = policy(row.rules).shortfall(of: row.request, address: nil, deniedBy: nil, toldTo: audience)
            return (found?.reason.rawValue ?? "") + (found?.text.map { ": \($0)" } ?? "")
        }
        #expect(said(.client) == row.client, "row \(index)")
        #expect(said(.administrator) == row.administrator, "row \(index)")
        guard case .deny(let denial) = policy(row.rules).decide(row.request, address: nil) else {
            Issue.record("row \(index)")
            return
        }
        #expect(denial.exactReason.rawValue == row.client.prefix { $0 != ":" })
        #expect(!denial.hint.contains("alice") && !denial.hint.contains("192.0.2"), "row \(index)")
    }

    @Test func `paths and hosts of rules are not listed`() {
        for request in [request("a.example"), request("b.example")] {
            guard case .deny(let denial) = policy([Self.path]).decide(request, address: nil) else {
                Issue.record("\(request)")
                return
            }
            #expect(!"\(denial.text) \(denial.hint)".contains("secret-project"))
            #expect(denial.hint.contains("a.example") == false)
        }
    }

    @Test func `what the rules advise, they allow`() {
        let rules = [
            rule(.deny(reason: nil), host: ["a.example"], method: ["DELETE"]), Self.get, Self.web,
            rule(.deny(reason: nil), port: [8080]),
            rule(.allow, host: ["*.example"], port: [8080, 8081], method: ["PUT"]),
        ]
        for method in [Method.post, .delete, .put] {
            for port: UInt16 in [80, 8080, 9000] {
                let denied = request("a.example", port: port, method: method)
                guard case .deny(let denial) = policy(rules).decide(denied, address: nil),
                    let text = denial.shortfall?.text
                else { continue }
                let words = text.split { " ,".contains($0) }.map(String.init)
                let methods = words.filter { $0.allSatisfy { $0.isUppercase } }
                let ports = words.compactMap(UInt16.init).dropFirst()
                for method in methods.isEmpty ? [denied.methodText] : methods {
                    for port in ports.isEmpty ? [port] : Array(ports) {
                        let advised = denied.with(method: method, port: port)
                        #expect(policy(rules).decide(advised, address: nil).summary.hasPrefix("allow"), "\(text)")
                    }
                }
            }
        }
    }

    @Test(arguments: DenialReason.allCases) func `each reason is a token with a sentence that says what to do`(
        _ reason: DenialReason
    ) {
        #expect(reason.rawValue.allSatisfy { $0 == "-" || $0.isLowercase })
        #expect("\(reason.hint)".hasSuffix(".") && "\(reason.meaning)".hasSuffix("."))
    }
}
