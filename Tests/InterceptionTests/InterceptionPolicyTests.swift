import Interception
import Message
import Rules
import Testing

@Suite("Which tunnels are opened")
struct InterceptionPolicyTests {
    static func policy(refused: InterceptSettings.RefusedUse = .open) throws -> InterceptionPolicy {
        var settings = InterceptSettings()
        settings.hosts = [
            try #require(HostPattern("*.example.org")), try #require(HostPattern("one.test")),
            try #require(HostPattern("192.0.2.1")),
        ]
        settings.refused = refused
        return InterceptionPolicy(settings)
    }

    static func host(_ text: String) throws -> DestinationHost { try #require(DestinationHost(Array(text.utf8))) }

    static let listed: [(host: String, rule: Bool?, expected: Bool)] = [
        ("a.example.org", nil, true), ("a.b.example.org", nil, true), ("example.org", nil, false),
        ("one.test", nil, true), ("two.test", nil, false), ("192.0.2.1", nil, true), ("0xC0.0.2.1", nil, true),
        ("192.0.2.2", nil, false), ("two.test", true, true), ("one.test", false, false),
    ]

    @Test(arguments: listed)
    func `listed hosts, and those of a rule that says so`(_ row: (host: String, rule: Bool?, expected: Bool)) throws {
        #expect(try Self.policy().concerns(Self.host(row.host), rule: row.rule) == row.expected)
    }

    enum Outcome { case remain, open, deny }
    struct Row: Sendable {
        var isCertifiable, isRefused, mayRemain: Bool
        var use: InterceptSettings.RefusedUse
        var expected: Outcome
    }
    static let rows = [
        Row(isCertifiable: true, isRefused: false, mayRemain: true, use: .open, expected: .open),
        Row(isCertifiable: true, isRefused: false, mayRemain: false, use: .open, expected: .open),
        Row(isCertifiable: true, isRefused: false, mayRemain: true, use: .tunnel, expected: .open),
        // No client would accept the certificate.
        Row(isCertifiable: false, isRefused: false, mayRemain: true, use: .open, expected: .remain),
        Row(isCertifiable: false, isRefused: false, mayRemain: false, use: .open, expected: .deny),
        Row(isCertifiable: false, isRefused: true, mayRemain: true, use: .tunnel, expected: .remain),
        Row(isCertifiable: false, isRefused: true, mayRemain: false, use: .tunnel, expected: .deny),
        // The client refused the certificate before. What the rules look at stays visible.
        Row(isCertifiable: true, isRefused: true, mayRemain: true, use: .open, expected: .open),
        Row(isCertifiable: true, isRefused: true, mayRemain: true, use: .tunnel, expected: .remain),
        Row(isCertifiable: true, isRefused: true, mayRemain: false, use: .tunnel, expected: .open),
    ]

    @Test(arguments: rows) func `a listed tunnel remains one only where nothing is lost`(_ row: Row) throws {
        let host = try Self.host("one.test")
        let terms = TunnelTerms(.recognised, namesHost: true)
        let decision = try Self.policy(refused: row.use).decide(
            .init(
                host: host, rule: nil, mayRemainTunnel: row.mayRemain, terms: terms, isCertifiable: row.isCertifiable,
                isRefused: row.isRefused))
        let expected: InterceptionPolicy.Decision =
            switch row.expected {
            case .remain: .remain
            case .open: .open(TunnelTarget(host: host, terms: terms, use: .open(mayRemain: row.mayRemain)))
            case .deny: .deny
            }
        #expect(decision == expected)
    }

    @Test func `a host that is not listed remains a tunnel, whatever else holds`() throws {
        let question = InterceptionPolicy.Question(
            host: try Self.host("two.test"), rule: nil, mayRemainTunnel: false, terms: .anything, isCertifiable: false,
            isRefused: false)
        #expect(try Self.policy().decide(question) == .remain)
    }
}

@Suite("Clients that do not accept a certificate")
struct LeafRefusalsTests {
    /// - Parameter change: by how much the wall clock was set meanwhile.
    static func at(_ seconds: Int64, clockAhead change: Int64 = 0) -> Moment {
        Moment(uptime: .seconds(50 + seconds), wallTime: WallTime(secondsSinceEpoch: 1_000_000 + seconds + change))
    }
    static func key(_ client: String?, _ host: String = "a.test") throws -> LeafRefusals.Key {
        LeafRefusals.Key(client: client, host: try #require(DestinationHost(Array(host.utf8))))
    }

    @Test(arguments: [-86_400, 86_400] as [Int64])
    func `how old a refusal is does not depend on the time of day`(_ change: Int64) throws {
        var refusals = LeafRefusals()
        let (key, other) = (try Self.key("x"), try Self.key("y"))
        _ = refusals.note(.alert(48), of: key, now: Self.at(0))
        #expect(refusals.contains(key, now: Self.at(86_399, clockAhead: change)))
        #expect(!refusals.contains(key, now: Self.at(86_400, clockAhead: change)))
        // Two connections that ended early prove nothing if they were further apart than a minute.
        let news = [0, 61].map { refusals.note(.ended, of: other, now: Self.at($0, clockAhead: $0 == 0 ? 0 : change)) }
        #expect(news == [false, false])
        let isCertain = refusals.note(.ended, of: other, now: Self.at(121))
        #expect(isCertain)
        #expect(refusals.list(now: Self.at(122)).map(\.key) == [other, key])
    }

    @Test(arguments: [UInt8(42), 43, 45, 46, 48])
    func `an alert about the certificate is certain at once`(_ code: UInt8) throws {
        var refusals = LeafRefusals()
        let key = try Self.key("192.0.2.1")
        let first = refusals.note(.alert(code), of: key, now: Self.at(0))
        #expect(first)
        #expect(refusals.contains(key, now: Self.at(1)))
        let second = refusals.note(.alert(code), of: key, now: Self.at(2))
        #expect(!second, "it is no news the second time")
        #expect(refusals.list(now: Self.at(3)).map(\.entry.count) == [2])
        #expect(try !refusals.contains(Self.key("192.0.2.2"), now: Self.at(1)))
        #expect(try !refusals.contains(Self.key("192.0.2.1", "b.test"), now: Self.at(1)))
    }

    @Test(arguments: [UInt8(0), 20, 40, 70, 80, 90, 112])
    func `other alerts say nothing about it`(_ code: UInt8) throws {
        var refusals = LeafRefusals()
        let isNews = refusals.note(.alert(code), of: try Self.key("x"), now: Self.at(0))
        #expect(!isNews)
        #expect(refusals.count == 0)
    }

    @Test func `an end without an alert counts from the second time within a minute`() throws {
        var refusals = LeafRefusals()
        let key = try Self.key(nil)
        // At 61 it is too long after the first.
        let news = [0, 61, 121].map { refusals.note(.ended, of: key, now: Self.at($0)) }
        #expect(news == [false, false, true])
        #expect(refusals.contains(key, now: Self.at(121)))
        var other = LeafRefusals()
        _ = other.note(.ended, of: key, now: Self.at(0))
        #expect(!other.contains(key, now: Self.at(0)))
        #expect(other.list(now: Self.at(0)).isEmpty)
    }

    @Test func `a refusal is forgotten after a day, or when the client accepts`() throws {
        var refusals = LeafRefusals()
        let key = try Self.key("u")
        _ = refusals.note(.alert(48), of: key, now: Self.at(0))
        #expect(refusals.contains(key, now: Self.at(86_399)))
        #expect(!refusals.contains(key, now: Self.at(86_400)))
        let isNews = refusals.note(.alert(48), of: key, now: Self.at(90_000))
        #expect(isNews, "it is news again")
        refusals.forget(key)
        #expect(!refusals.contains(key, now: Self.at(90_001)))
    }

    @Test func `the table is bounded, and the oldest entries leave`() throws {
        var refusals = LeafRefusals(countMax: 8)
        for number in 0..<9 {
            _ = refusals.note(.alert(48), of: try Self.key("\(number)"), now: Self.at(Int64(number)))
        }
        #expect(refusals.count == 7)
        #expect(try !refusals.contains(Self.key("0"), now: Self.at(10)))
        #expect(try refusals.contains(Self.key("8"), now: Self.at(10)))
        #expect(refusals.list(now: Self.at(10)).first?.key.client == "8")
    }
}
