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
        _ set: (inout TreatmentChanges) -> Void = { _ in }
    ) -> CacheRule {
        var rule = CacheRule(zone: zone, key: key, number: number)
        rule.conditions.hosts = host.flatMap { HostPattern($0) }.map { [$0] } ?? []
        rule.conditions.types = type.flatMap { MediaTypePattern($0) }.map { [$0] } ?? []
        set(&rule.changes)
        return rule
    }
    static let house: CacheTreatment = {
        var house = CacheTreatment()
        house.negativeTTL = Seconds(5)
        return house
    }()
    static let packages: CacheZone = {
        var zone = CacheZone(name: "packages", memory: 64 << 20)
        zone.changes.use = .staleOnError
        zone.changes.ttl = Seconds(60)
        return zone
    }()
    static let rules = CacheRules(
        house: house, zones: [packages, CacheZone(name: "small", memory: 8 << 20)],
        rules: [
            rule(1, type: "text/html") { $0.ttl = Seconds(1) },
            rule(2, host: "p.example", zone: "packages", key: KeyRules(sortsQuery: true)) { $0.use = .cacheFirst },
            rule(3, host: "s.example", zone: "small") { $0.objectSizeMax = 5 },
            rule(4, host: "q.example", zone: "packages"),
            rule(5, host: "d.example", zone: "default") { $0.use = .noWrite },
        ], policyClients: [AddressRange("192.0.2.0/24")].compactMap { $0 })

    static func treatment(_ base: CacheTreatment = house, _ set: (inout CacheTreatment) -> Void) -> CacheTreatment {
        var treatment = base
        set(&treatment)
        return treatment
    }
    static let inPackages = treatment {
        $0.zone = 1
        $0.use = .staleOnError
        $0.ttl = Seconds(60)
        $0.objectSizeMax = 8 << 20
    }

    static let rows: [(host: String, expected: CacheTreatment)] = [
        ("other.example", house),
        (
            "p.example",
            treatment(inPackages) {
                $0.rule = 2; $0.use = .cacheFirst; $0.keyRule = 2
            }
        ),
        (
            "s.example",
            treatment {
                $0.rule = 3; $0.zone = 2; $0.objectSizeMax = 5
            }
        ),
        ("q.example", treatment(inPackages) { $0.rule = 4 }),
        (
            "d.example",
            treatment {
                $0.rule = 5; $0.use = .noWrite
            }
        ),
    ]
    @Test(arguments: rows.indices) func `house, zone, rule: each says what the last did not`(_ index: Int) {
        let row = Self.rows[index]
        #expect(Self.rules.treatment(of: Self.request(row.host)) == row.expected, "\(row.host)")
    }

    static let html = ArraySlice("text/html".utf8)
    static let responseRows: [(host: String, type: ArraySlice<UInt8>?, expected: CacheTreatment)] = [
        ("other.example", nil, house), ("other.example", ArraySlice("text/css".utf8), house),
        (
            "other.example", html,
            treatment {
                $0.rule = 1; $0.ttl = Seconds(1)
            }
        ),
        // Rule 1 comes first; zone and key stay, and with the zone what it says.
        (
            "p.example", html,
            treatment(inPackages) {
                $0.rule = 1; $0.ttl = Seconds(1); $0.keyRule = 2
            }
        ),
        (
            "p.example", nil,
            treatment(inPackages) {
                $0.rule = 2; $0.use = .cacheFirst; $0.keyRule = 2
            }
        ),
    ]
    @Test(arguments: responseRows.indices) func `a response has a type, and rules with one count`(_ index: Int) {
        let row = Self.responseRows[index]
        let request = Self.request(row.host)
        let made = Self.rules.treatment(
            of: request, responseType: row.type, keeping: Self.rules.treatment(of: request))
        #expect(made == row.expected, "row \(index)")
    }

    @Test func `a client that is heeded has the last word, but on zone and key`() {
        let policy = LarderPolicy.parse("no-read, ttl=7, zone=small, key=x".utf8)
        let expected = Self.treatment(Self.inPackages) {
            $0.rule = 2
            $0.use = .noRead
            $0.ttl = Seconds(7)
            $0.keyRule = 2
        }
        let request = Self.request("p.example")
        let asked = Self.rules.treatment(of: request, clientPolicy: policy)
        #expect(asked == expected)
        let answered = Self.rules.treatment(of: request, responseType: Self.html, keeping: asked, clientPolicy: policy)
        #expect(answered == Self.treatment(expected) { $0.rule = 1 })
        #expect(Self.rules.treatment(of: Self.request(), clientPolicy: policy).ttl == Seconds(7))
        #expect(CacheRules().treatment(of: request, responseType: Self.html, keeping: asked) == asked)
    }

    @Test func `who is heeded`() {
        #expect(Self.rules.heedsPolicy(of: IPAddress(v4: 0xC000_0207)))
        #expect(!Self.rules.heedsPolicy(of: IPAddress(v4: 0xC000_0307)))
        #expect(!Self.rules.heedsPolicy(of: nil))
        #expect(!CacheRules().heedsPolicy(of: IPAddress(v4: 0x7F00_0001)))
    }

    @Test func `the key is made by the rule that decided`() {
        #expect(
            Self.rules.keyRules(for: Self.rules.treatment(of: Self.request("p.example"))) == KeyRules(sortsQuery: true))
        #expect(Self.rules.keyRules(for: Self.rules.treatment(of: Self.request("q.example"))) == nil)
        #expect(Self.rules.keyRules(for: Self.house) == nil)
    }

    @Test func `what need not be asked`() {
        #expect(CacheRules(house: Self.house, zones: [Self.packages]).isTrivial)
        #expect(!CacheRules(rules: [Self.rule(1)]).isTrivial)
        #expect(!CacheRules(policyClients: AddressRange.loopback).isTrivial)
        #expect(Self.rules.dependOnType && !CacheRules(rules: [Self.rule(1)]).dependOnType)
        var named = Self.rule(1)
        named.conditions.users = ["alice"]
        #expect(CacheRules(rules: [named]).dependOnUser && !Self.rules.dependOnUser)
        #expect(Self.rules.zoneNames == ["default", "packages", "small"])
        #expect(Self.rules.house == Self.house)
    }
}
