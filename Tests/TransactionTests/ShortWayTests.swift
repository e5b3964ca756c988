import Access
import Authentication
import Caching
import Framing
import Message
import Rules
import Testing
import Transaction

@Suite("What one request says about the next one on its connection")
struct ShortWayTests {
    private static let proofOfAlice = "Proxy-Authorization: Basic YWxpY2U6c2VjcmV0"

    private struct Head {
        let bytes: [UInt8]
        let parsed: RequestHead

        init(_ line: String, _ fields: String...) throws {
            let bytes = Array("\(line) HTTP/1.1\r\nHost: a.example\r\n\(fields.map { $0 + "\r\n" }.joined())\r\n".utf8)
            var (parsed, progress) = (RequestHead(), HeadProgress())
            let isComplete = try parseRequestHead(bytes.span, into: &parsed, progress: &progress, limits: Limits())
            self.bytes = bytes
            self.parsed = parsed
            try #require(isComplete)
        }
    }

    private static func way(
        isProven: Bool = false, rules: [AccessRule] = [], cacheRules: [CacheRule] = []
    ) throws -> ShortWay {
        let head = try Head("GET http://a.example/first", isProven ? proofOfAlice : "A: b")
        let alice = Identity(name: "alice", scheme: .basic, expiry: .seconds(160))
        var settings = AccessSettings()
        settings.rules = rules
        let destination = try #require(DestinationHost("a.example".utf8))
        return ShortWay(
            for: AccessRequest(
                client: nil, identity: isProven ? alice : nil, method: .get, destination: destination, port: 80,
                isTunnel: false, pathAndQuery: ArraySlice("/first".utf8)),
            head.parsed.target, head.bytes.span,
            proof: isProven
                ? ProvenCredentials(Array("Basic YWxpY2U6c2VjcmV0".utf8)[...], of: alice, SipHash(key: (1, 2))) : nil,
            settings: 7,
            access: AccessPolicy(from: settings), rules: CacheRules(rules: cacheRules))
    }

    private static func concerns(_ way: ShortWay, _ head: Head, settings: UInt64 = 7, second: Int = 100) -> Bool {
        way.concerns(
            head.parsed.method, head.parsed.target, head.parsed.fields, head.bytes.span, settings: settings,
            now: .seconds(second))
    }

    static let rows: [(line: String, concerns: Bool)] = [
        ("GET http://a.example/first", true), ("GET http://a.example/other?x", true), ("GET http://a.example", true),
        ("GET http://a.example:80/", true), ("HEAD http://a.example/first", false),
        ("POST http://a.example/first", false),
        ("GET http://b.example/first", false), ("GET http://a.exampl/", false), ("GET http://a.example.org/", false),
        ("GET http://a.example:81/first", false), ("GET https://a.example/first", false),
        ("GET https://a.example:80/first", false),
        // The same host, but decided about anew.
        ("GET http://A.example/first", false),
    ]
    @Test(arguments: rows) func `it concerns what differs in path and query alone`(
        _ row: (line: String, concerns: Bool)
    ) throws {
        #expect(Self.concerns(try Self.way(), try Head(row.line)) == row.concerns)
    }

    @Test func `it concerns the same credentials, until they end and the settings change`() throws {
        let way = try Self.way(isProven: true)
        let head = try Head("GET http://a.example/", Self.proofOfAlice)
        #expect(way.user == "alice")
        #expect(Self.concerns(way, head))
        #expect(!Self.concerns(way, head, settings: 8))
        #expect(!Self.concerns(way, head, second: 160))
        #expect(!Self.concerns(way, try Head("GET http://a.example/")))
        #expect(!Self.concerns(way, try Head("GET http://a.example/", "Proxy-Authorization: Basic ZXZlOnNlY3JldA==")))
        #expect(!Self.concerns(way, try Head("GET http://b.example/", Self.proofOfAlice)))
        // Credentials that nobody asked for are left to those who read them.
        #expect(!Self.concerns(try Self.way(), head))
    }

    private static func rule(_ effect: AccessRule.Effect, path: String? = nil) -> AccessRule {
        var rule = AccessRule(effect: effect, number: 1)
        rule.conditions.paths = path.flatMap { PathPattern($0) }.map { [$0] } ?? []
        return rule
    }

    private static func leads(_ way: ShortWay, to path: String = "/other") throws -> Bool {
        let head = try Head("GET http://a.example\(path)")
        return way.handling(of: head.parsed.target, head.bytes.span) != nil
    }

    @Test func `it leads where access does not depend on the path`() throws {
        #expect(try Self.leads(Self.way()))
        #expect(try Self.leads(Self.way(rules: [Self.rule(.allow)])))
        #expect(try !Self.leads(Self.way(rules: [Self.rule(.deny(reason: nil))])))
        #expect(try !Self.leads(Self.way(rules: [Self.rule(.allow, path: "/first"), Self.rule(.deny(reason: nil))])))
        #expect(try !Self.leads(Self.way(rules: [Self.rule(.deny(reason: nil), path: "/other"), Self.rule(.allow)])))
    }

    static let paths: [(path: String, leads: Bool)] = [
        ("/other", true), ("/other?x=/pool/a", true), ("/pool/a", false), ("/pool/a?x", false), ("/pool", true),
        // An empty path is "/", which the rules look at.
        ("", false), ("?x", false),
    ]
    @Test(arguments: paths) func `it leads around paths that have rules of their own`(
        _ row: (path: String, leads: Bool)
    ) throws {
        var rule = CacheRule(number: 1)
        rule.conditions.paths = try [#require(PathPattern("/pool/*"))]
        #expect(try Self.leads(Self.way(cacheRules: [rule]), to: row.path) == row.leads)
    }

    @Test func `it leads nowhere if hits are not served as they are stored`() throws {
        var rule = CacheRule(number: 1)
        rule.changes.use = .revalidateAlways
        #expect(try !Self.leads(Self.way(cacheRules: [rule])))
        rule.changes = HandlingChanges()
        rule.changes.ttl = Seconds(5)
        #expect(try Self.leads(Self.way(cacheRules: [rule])))
    }
}
