import Caching
import Message
import Rules
import Testing

@Suite("Keys of digests: one for all addresses that have the digest")
struct DigestKeyTests {
    static let digits = String(repeating: "0af9", count: 16)

    static func rules(
        paths: [String] = ["*/sha256/{hex:64}", "/v2/{hex:2}/{hex:62}/{file}", "/open/{hex:64}*"], host: String? = nil,
        source: DigestRule.Source = .path, authorization: AuthorizationUse? = nil, sharesDigests: Bool = true
    ) -> CacheRules {
        var rule = CacheRule(key: KeyRules(sharesDigests: sharesDigests), number: 1)
        rule.key?.digestHost = host
        rule.conditions.hosts = ["a.example", "b.example"].compactMap { HostPattern($0) }
        rule.conditions.paths = paths.compactMap { PathPattern($0) }
        rule.changes.digest = DigestRule(source: source, algorithm: .sha256)
        rule.changes.authorization = authorization
        return CacheRules(rules: [rule])
    }

    static func key(_ uri: String, _ rules: CacheRules) throws -> DigestKey? {
        let target = try #require(TargetURI(uri.utf8))
        let host = try #require(DestinationHost(target.host.utf8))
        let request = RuleRequest(
            client: nil, method: .get, scheme: target.scheme, destination: host, port: target.port, isTunnel: false,
            pathAndQuery: target.pathAndQuery[...])
        return rules.digestKey(of: target.normalised, rules.handling(of: request))
    }

    static let rows: [(uri: String, host: String?, key: String?)] = [
        ("http://a.example/sha256/\(digits)", nil, "http://a.example/sha256:\(digits)#digest"),
        ("http://a.example/x/y/sha256/\(digits.uppercased())", nil, "http://a.example/sha256:\(digits)#digest"),
        ("http://a.example:8080/sha256/\(digits)", nil, "http://a.example:8080/sha256:\(digits)#digest"),
        ("https://b.example/sha256/\(digits)", "a.example", "https://a.example/sha256:\(digits)#digest"),
        (
            "http://b.example/v2/0a/\(digits.dropFirst(2))/f", "a.example",
            "http://a.example/sha256:\(digits)#digest"
        ),
        ("http://a.example/open/\(digits).gz", nil, "http://a.example/sha256:\(digits)#digest"),
        // The query may be what gives access.
        ("http://a.example/open/\(digits).gz?token=1", nil, nil),
        ("http://a.example/sha256/\(digits)?token=1", nil, nil), ("http://a.example/sha256/\(digits)?", nil, nil),
        ("http://a.example/sha256/\(digits)0", nil, nil), ("http://a.example/", nil, nil),
        ("http://c.example/sha256/\(digits)", nil, nil),
    ]
    @Test(arguments: rows) func `an address with a digest has the key of the digest`(
        _ row: (uri: String, host: String?, key: String?)
    ) throws {
        let found = try Self.key(row.uri, Self.rules(host: row.host))
        #expect(found.map { String(decoding: $0.bytes, as: UTF8.self) } == row.key)
        #expect(found?.digest == row.key.map { _ in ExpectedDigest(.sha256, Array(Self.digits.utf8)) })
    }

    static let without: [(why: String, rules: CacheRules)] = [
        ("the rule does not say so", rules(sharesDigests: false)),
        ("the digest is in the response", rules(source: .field("Repr-Digest"))),
        ("the origin decides for each request", rules(authorization: .validate)),
        ("each credential has keys of its own", rules(authorization: .separate)),
    ]
    @Test(arguments: without.indices) func `otherwise the address has a key of its own`(_ index: Int) throws {
        let row = Self.without[index]
        #expect(try Self.key("http://a.example/sha256/\(Self.digits)", row.rules) == nil, "\(row.why)")
    }

    @Test func `what is public is shared`() throws {
        #expect(try Self.key("http://a.example/sha256/\(Self.digits)", Self.rules(authorization: .public)) != nil)
    }
}
