import Caching
import Message
import Rules
import Testing

@Suite("Cache rules")
struct CacheRulesTests {
    static func request(_ host: String = "a.example", path: String = "/", user: String? = nil) -> RuleRequest {
        guard let destination = DestinationHost(host.utf8) else { preconditionFailure("\(host) is no host") }
        return RuleRequest(
            client: nil, identity: user.map { Identity(name: $0, scheme: .basic) }, method: .get,
            destination: destination, port: 80, isTunnel: false,
            pathAndQuery: ArraySlice(path.utf8))
    }
    static func rule(
        _ number: Int, host: String? = nil, type: String? = nil, zone: String? = nil, key: KeyRules? = nil,
        _ set: (inout HandlingChanges) -> Void = { _ in }
    ) -> CacheRule {
        var rule = CacheRule(zone: zone, key: key, number: number)
        rule.conditions.hosts = host.flatMap { HostPattern($0) }.map { [$0] } ?? []
        rule.conditions.types = type.flatMap { MediaTypePattern($0) }.map { [$0] } ?? []
        set(&rule.changes)
        return rule
    }
    static let defaultHandling: CacheHandling = {
        var defaultHandling = CacheHandling()
        defaultHandling.negativeTTL = Seconds(5)
        return defaultHandling
    }()
    static let packages: CacheZone = {
        var zone = CacheZone(name: "packages", memory: 64 << 20)
        zone.changes.use = .staleOnError
        zone.changes.ttl = Seconds(60)
        return zone
    }()
    static let rules = CacheRules(
        defaultHandling: defaultHandling, zones: [packages, CacheZone(name: "small", memory: 8 << 20)],
        rules: [
            rule(1, type: "text/html") { $0.ttl = Seconds(1) },
            rule(2, host: "p.example", zone: "packages", key: KeyRules(sortsQuery: true)) { $0.use = .cacheFirst },
            rule(3, host: "s.example", zone: "small") { $0.objectSizeMax = 5 },
            rule(4, host: "q.example", zone: "packages"),
            rule(5, host: "d.example", zone: "default") { $0.use = .noWrite },
        ], policyClients: [AddressRange("192.0.2.0/24")].compactMap { $0 })

    static func handling(_ base: CacheHandling = defaultHandling, _ set: (inout CacheHandling) -> Void) -> CacheHandling
    {
        var handling = base
        set(&handling)
        return handling
    }
    static let inPackages = handling {
        $0.zone = 1
        $0.use = .staleOnError
        $0.ttl = Seconds(60)
        $0.objectSizeMax = 8 << 20
    }

    static let rows: [(host: String, expected: CacheHandling)] = [
        ("other.example", defaultHandling),
        (
            "p.example",
            handling(inPackages) {
                $0.rule = 2; $0.use = .cacheFirst; $0.keyRule = 2
            }
        ),
        (
            "s.example",
            handling {
                $0.rule = 3; $0.zone = 2; $0.objectSizeMax = 5
            }
        ),
        ("q.example", handling(inPackages) { $0.rule = 4 }),
        (
            "d.example",
            handling {
                $0.rule = 5; $0.use = .noWrite
            }
        ),
    ]
    @Test(arguments: rows.indices)
    func `the default, the zone and the rule apply in this order, and the last one that sets something wins`(
        _ index: Int
    ) {
        let row = Self.rows[index]
        #expect(Self.rules.handling(of: Self.request(row.host)) == row.expected, "\(row.host)")
    }

    static let html = ArraySlice("text/html".utf8)
    static let responseRows: [(host: String, type: ArraySlice<UInt8>?, expected: CacheHandling)] = [
        ("other.example", nil, defaultHandling), ("other.example", ArraySlice("text/css".utf8), defaultHandling),
        (
            "other.example", html,
            handling {
                $0.rule = 1; $0.ttl = Seconds(1)
            }
        ),
        // Rule 1 comes first; zone and key stay, and with the zone what it says.
        (
            "p.example", html,
            handling(inPackages) {
                $0.rule = 1; $0.ttl = Seconds(1); $0.keyRule = 2
            }
        ),
        (
            "p.example", nil,
            handling(inPackages) {
                $0.rule = 2; $0.use = .cacheFirst; $0.keyRule = 2
            }
        ),
    ]
    @Test(arguments: responseRows.indices) func `rules with a type count once the response is known`(_ index: Int) {
        let row = Self.responseRows[index]
        let request = Self.request(row.host)
        let made = Self.rules.handling(
            of: request, responseType: row.type, keeping: Self.rules.handling(of: request))
        #expect(made == row.expected, "row \(index)")
    }

    @Test func `a trusted client overrides everything except zone and key`() {
        let policy = LarderPolicy.parse("no-read, ttl=7, zone=small, key=x".utf8)
        let expected = Self.handling(Self.inPackages) {
            $0.rule = 2
            $0.use = .noRead
            $0.ttl = Seconds(7)
            $0.hasLifetimeOfClient = true
            $0.keyRule = 2
        }
        let request = Self.request("p.example")
        let asked = Self.rules.handling(of: request, clientPolicy: policy)
        #expect(asked == expected)
        let answered = Self.rules.handling(of: request, responseType: Self.html, keeping: asked, clientPolicy: policy)
        #expect(answered == Self.handling(expected) { $0.rule = 1 })
        #expect(Self.rules.handling(of: Self.request(), clientPolicy: policy).ttl == Seconds(7))
        #expect(CacheRules().handling(of: request, responseType: Self.html, keeping: asked) == asked)
    }

    @Test func `Larder-Policy is obeyed from trusted clients only`() {
        #expect(Self.rules.heedsPolicy(of: IPAddress(v4: 0xC000_0207)))
        #expect(!Self.rules.heedsPolicy(of: IPAddress(v4: 0xC000_0307)))
        #expect(!Self.rules.heedsPolicy(of: nil))
        #expect(!CacheRules().heedsPolicy(of: IPAddress(v4: 0x7F00_0001)))
    }

    @Test func `the key is made by the rule that decided`() {
        #expect(
            Self.rules.keyRules(for: Self.rules.handling(of: Self.request("p.example"))) == KeyRules(sortsQuery: true))
        #expect(Self.rules.keyRules(for: Self.rules.handling(of: Self.request("q.example"))) == nil)
        #expect(Self.rules.keyRules(for: Self.defaultHandling) == nil)
    }

    @Test func `the rules know which facts they do not need`() {
        #expect(CacheRules(defaultHandling: Self.defaultHandling, zones: [Self.packages]).isTrivial)
        #expect(!CacheRules(rules: [Self.rule(1)]).isTrivial)
        #expect(!CacheRules(policyClients: AddressRange.loopback).isTrivial)
        #expect(Self.rules.dependOnType && !CacheRules(rules: [Self.rule(1)]).dependOnType)
        var named = Self.rule(1)
        named.conditions.users = ["alice"]
        #expect(CacheRules(rules: [named]).dependOnUser && !Self.rules.dependOnUser)
        #expect(Self.rules.zoneNames == ["default", "packages", "small"])
        #expect(Self.rules.defaultHandling == Self.defaultHandling)
    }
}

@Suite("Cache rules for all paths of a host")
struct HandlingOfPathsTests {
    private static func rule(
        _ number: Int, host: String? = nil, path: String? = nil, type: String? = nil, key: KeyRules? = nil,
        ttl: Int64 = 60
    ) -> CacheRule {
        var rule = CacheRulesTests.rule(number, host: host, type: type, key: key) { $0.ttl = Seconds(ttl) }
        rule.conditions.paths = path.flatMap { PathPattern($0) }.map { [$0] } ?? []
        return rule
    }

    /// The number of the rule that decides, 0 for none, and the exceptions. Nil: the rules have to look at each request.
    static let rows: [(rules: [CacheRule], recipes: [CacheRule], expected: String?)] = [
        ([], [], "0"),
        ([rule(1, host: "b.example")], [], "0"),
        ([rule(1, host: "a.example"), rule(2)], [], "1"),
        ([rule(1, host: "b.example", path: "/x"), rule(2, path: "*/never/*")], [], "0 */never/*"),
        ([rule(1, path: "/a/*"), rule(2, host: "a.example"), rule(3, path: "/b")], [], "2 /a/*"),
        ([rule(1, path: "/a"), rule(2, path: "/b")], [rule(3, host: "a.example", path: "/c")], "0 /a /b /c"),
        ([rule(1, path: "/a")], [rule(2, host: "*.example"), rule(3, host: "a.example", path: "/c")], "2 /a"),
        ([rule(1, host: "b.example", type: "text/html")], [], "0"),
        ([rule(1, type: "text/html")], [], nil),
        ([rule(1, path: "/a", type: "text/html"), rule(2)], [], nil),
        ([rule(1, host: "a.example"), rule(2, type: "text/html")], [], "1"),
        ([rule(1, key: KeyRules(sortsQuery: true))], [], nil),
        ([rule(1, path: "/a", key: KeyRules(sortsQuery: true))], [], "0 /a"),
        ((1...CacheRules.exceptionsMax).map { rule($0, path: "/a") }, [], "0" + String(repeating: " /a", count: 8)),
        ((0...CacheRules.exceptionsMax).map { rule($0 + 1, path: "/a") }, [], nil),
    ]
    @Test(arguments: rows.indices) func `which rule decides, and which paths have others`(_ index: Int) {
        let row = Self.rows[index]
        let rules = CacheRules(rules: row.rules, recipeRules: row.recipes)
        let paths = rules.handlingOfPaths(like: CacheRulesTests.request())
        let text = paths.map { paths in
            ([String(paths.handling.rule ?? 0)] + paths.exceptions.map(\.description)).joined(separator: " ")
        }
        #expect(text == row.expected)
    }

    @Test(arguments: rows.indices, ["/", "/a", "/b", "/c", "/a/x", "/x/never/y"])
    func `a path that is no exception has this handling`(_ index: Int, _ path: String) {
        let row = Self.rows[index]
        let rules = CacheRules(rules: row.rules, recipeRules: row.recipes)
        guard let paths = rules.handlingOfPaths(like: CacheRulesTests.request()),
            !paths.exceptions.contains(where: { $0.mayMatch(Array(path.utf8).span) })
        else { return }
        #expect(paths.handling == rules.handling(of: CacheRulesTests.request(path: path)))
    }

    @Test func `what a hit is served in spite of`() {
        func serves(_ set: (inout CacheHandling) -> Void) -> Bool {
            CacheRulesTests.handling(CacheHandling(), set).servesAsStored
        }
        #expect(serves { _ in } && serves { $0.ttl = Seconds(5) } && serves { $0.isImmutable = true })
        #expect(
            !serves { $0.use = .revalidateAlways } && !serves { $0.use = .noRead } && !serves { $0.use = .cacheFirst })
        #expect(!serves { $0.zone = 1 } && !serves { $0.keyRule = 1 } && !serves { $0.compression = .once })
        #expect(!serves { $0.hasParticulars = true })
        #expect(!serves { $0.fold(isProven: true, standsForImmutable: false, provesBodies: false) })
    }
}

@Suite("Cache rules: whoever asks")
struct WhoeverAsksTests {
    @Test func `a request may get the handlings of all rules for some clients, up to the first for everybody`() {
        func rule(_ number: Int, user: String? = nil, host: String? = nil, path: String? = nil) -> CacheRule {
            var rule = CacheRulesTests.rule(number, host: host, key: KeyRules(sortsQuery: true))
            rule.conditions.users = user.map { [$0] } ?? []
            rule.conditions.paths = path.flatMap { PathPattern($0) }.map { [$0] } ?? []
            return rule
        }
        let some = [rule(1, user: "ann"), rule(2, user: "bob", host: "b.example"), rule(3, user: "cid", path: "/c")]
        let request = CacheRulesTests.request(path: "/")
        #expect(CacheRules(rules: some).handlings(whoeverSends: request).map(\.keyRule) == [1, nil])
        let all = CacheRules(rules: some + [rule(4), rule(5, user: "dan")])
        #expect(all.handlings(whoeverSends: request).map(\.keyRule) == [1, 4])
        #expect(
            all.handlings(whoeverSends: CacheRulesTests.request("b.example", path: "/c")).map(\.keyRule) == [
                1, 2, 3, 4,
            ])
    }
}
