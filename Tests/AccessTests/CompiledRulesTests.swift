import Access
import Message
import Rules
import Testing

@Suite("The compiled rules decide like a walk over all rules")
struct CompiledRulesTests {
    /// Few values, so that most rules concern most requests.
    struct Source {
        var numbers: SeededNumbers
        static let hosts = [
            "a.example", "b.a.example", "c.b.a.example", "other.example", "xa.example", "8.8.8.7", "2001:4860::1",
        ]
        static let patterns = [
            "a.example", "*.a.example", "*.b.a.example", "b.a.example", "*.example", "*", "8.8.8.7", "2001:4860::1",
            "other.example",
        ]
        static let ranges = ["8.8.8.0/24", "8.8.0.0/16", "8.8.8.7", "0.0.0.0/0", "2001:4860::/32", "::/0"]
        static let clients = ["10.1.2.3", "10.1.9.9", "10.2.0.1", "fd00::1"]
        static let networks = ["10.0.0.0/8", "10.1.0.0/16", "10.1.2.0/24", "10.1.2.3", "fd00::/8", "0.0.0.0/0"]

        mutating func some<Value>(_ values: [Value], oneIn chance: Int = 2, upTo most: Int = 2) -> [Value] {
            guard Int.random(in: 0..<chance, using: &numbers) == 0 else { return [] }
            return (0..<Int.random(in: 1...most, using: &numbers)).compactMap { _ in
                values.randomElement(using: &numbers)
            }
        }

        mutating func rule(_ number: Int) -> AccessRule {
            var conditions = RuleConditions()
            let hosts = some(Source.patterns, oneIn: 2, upTo: 3).compactMap { HostPattern($0) }
            if Bool.random(using: &numbers) {
                conditions.hosts = hosts
            } else if !hosts.isEmpty {
                let name = ["one", "two", "three"].randomElement(using: &numbers) ?? ""
                conditions.hostLists = [HostList("\(name) \(hosts)", HostSet(hosts))]
            }
            conditions.addresses = some(Source.ranges, oneIn: 4).compactMap { AddressRange($0) }
            conditions.clients = some(Source.networks, oneIn: 3).compactMap { AddressRange($0) }
            conditions.users = some(["ann", "bob"], oneIn: 5)
            conditions.groups = some(["staff", "guests"], oneIn: 6)
            conditions.methods = some(["GET", "POST"], oneIn: 4)
            conditions.ports = some([80...80, 443...443], oneIn: 5)
            conditions.paths = some(["/a/*", "/b"], oneIn: 6).compactMap { PathPattern($0) }
            conditions.listeners = some(["inner"], oneIn: 9)
            let isAllow = Bool.random(using: &numbers)
            return AccessRule(effect: isAllow ? .allow : .deny(reason: nil), conditions: conditions, number: number)
        }

        mutating func request() -> AccessRequest {
            let user = ["ann", "bob", "eve"].randomElement(using: &numbers) ?? ""
            let isTunnel = Int.random(in: 0..<5, using: &numbers) == 0
            var made = AccessTests.request(
                Source.hosts.randomElement(using: &numbers) ?? "", port: isTunnel ? 443 : 80,
                method: isTunnel ? .connect : .get,
                client: Source.clients.randomElement(using: &numbers),
                path: ["/a/x", "/b", "/"].randomElement(using: &numbers) ?? "")
            if Bool.random(using: &numbers) {
                made.identity = Identity(name: user, scheme: .basic, groups: some(["staff", "guests"]))
            }
            made.listener = Bool.random(using: &numbers) ? "inner" : nil
            return made
        }
    }

    @Test(arguments: 0..<300) func `every decision`(_ seed: UInt64) {
        var source = Source(numbers: SeededNumbers(seed))
        let count = Int.random(in: 0...12, using: &source.numbers)
        let rules = (0..<count).map { source.rule($0 + 1) }
        let allows = Bool.random(using: &source.numbers)
        let model = LinearPolicy(rules: rules, allowsByDefault: allows)
        let policy = policy(rules, default: allows ? .allow : .deny)
        for _ in 0..<20 {
            let request = source.request()
            let address = Bool.random(using: &source.numbers) ? ip("8.8.8.7") : nil
            let verdict = policy.decide(request, address: address)
            #expect(verdict.summary == model.verdict(request, address), "\(rules) \(request)")
            #expect(policy.allowsEveryPath(request) == model.allowsEveryPath(request), "\(rules) \(request)")
            #expect(policy.mayRemainTunnel(request) == model.mayRemainTunnel(request), "\(rules) \(request)")
            guard case .deny(let denial) = verdict else { continue }
            guard denial.rule.map({ rules[$0 - 1].conditions.isEverything }) ?? true else { continue }
            // Where the model finds that some rule is near, the table of `ShortfallTests` says what is told.
            guard let expected = model.shortfall(request, address, deniedBy: denial.rule) else { continue }
            #expect(denial.shortfall?.reason == expected, "\(rules) \(request)")
        }
    }

    @Test(arguments: 0..<100) func `what opens a private address`(_ seed: UInt64) {
        var source = Source(numbers: SeededNumbers(seed &+ 1000))
        let rules = (0..<8).map { source.rule($0 + 1) }.map { rule in
            var rule = rule
            if rule.number % 3 == 0 { rule.conditions.addresses = [AddressRange(ip("10.0.0.1"))] }
            return rule
        }
        let model = LinearPolicy(rules: rules, allowsByDefault: true)
        let policy = policy(rules, default: .allow)
        for _ in 0..<20 {
            let request = source.request()
            guard model.verdict(request, ip("10.0.0.1")).hasPrefix("allow"), request.destination.address == nil else {
                continue
            }
            #expect(
                (policy.mayDial(request, address: ip("10.0.0.1")) == nil) == model.opens(request, ip("10.0.0.1")),
                "\(rules) \(request)")
        }
    }

    @Test func `report-only rules decide nothing, and are told`() {
        var first = rule(.deny(reason: nil), host: ["a.example"])
        first.isReport = true
        var second = rule(.allow, host: ["*"], method: ["GET"])
        second.isReport = true
        let policy = policy([first, second, rule(.allow, port: [80])])
        #expect(policy.decide(request("a.example"), address: nil) == .allow(rule: 3))
        #expect(policy.reports(for: request("a.example"), address: nil) == [1, 2])
        #expect(policy.reports(for: request("b.example", method: .post), address: nil) == [])
        #expect(!policy.allowsEveryPath(request("a.example")))
        #expect(policy.decide(request("a.example", port: 81), address: nil).summary == "deny no-rule")
    }

    @Test func `a redirect denies, and names the page`() {
        let policy = policy([rule(.redirect(to: "https://help.example/"), host: ["a.example"]), rule(.allow)])
        guard case .deny(let denial) = policy.decide(request("a.example"), address: nil) else {
            Issue.record("a redirect is a denial")
            return
        }
        #expect(denial.page == "https://help.example/" && denial.rule == 1 && denial.reason == .rule)
        #expect(denial.text == "rule 1 denies GET to a.example:80; see https://help.example/")
        #expect(policy.decide(request("b.example"), address: nil) == .allow(rule: 2))
    }
}
