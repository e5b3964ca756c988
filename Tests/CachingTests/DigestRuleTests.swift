import Caching
import Message
import Rules
import Testing

@Suite("Digests that prove a body")
struct DigestRuleTests {
    static let digits = String(repeating: "0aF9", count: 16)

    static func expected(_ rule: DigestRule, path: String = "/", _ lines: String...) -> String? {
        var conditions = RuleConditions()
        conditions.paths = ["/plain", "/blobs/sha256:{hex:64}"].compactMap { PathPattern($0) }
        return rule.expected(path: ArraySlice(path.utf8), conditions: conditions, response: fields(lines)).map {
            text($0.digits)
        }
    }

    @Test func `the digits of the path`() {
        let rule = DigestRule(source: .path, algorithm: .sha256)
        #expect(Self.expected(rule, path: "/blobs/sha256:\(Self.digits)") == Self.digits.lowercased())
        #expect(Self.expected(rule, path: "/plain") == nil)
        #expect(
            Self.expected(DigestRule(source: .path, algorithm: .sha512), path: "/blobs/sha256:\(Self.digits)") == nil)
    }

    @Test func `the digits of a path that divides them`() {
        var conditions = RuleConditions()
        conditions.paths = ["/packages/{hex:2}/{hex:2}/{hex:60}/{file}"].compactMap { PathPattern($0) }
        let path = "/packages/0a/F9/\(Self.digits.dropFirst(4))/a.whl"
        let found = DigestRule(source: .path, algorithm: .blake2b256).expected(
            path: ArraySlice(path.utf8), conditions: conditions, response: Fields())
        #expect(found == ExpectedDigest(.blake2b256, Array(Self.digits.lowercased().utf8)))
    }

    static let rows: [(value: String, isKnown: Bool)] = [
        (digits, true), ("sha256:\(digits)", true), ("\"\(digits)\"", true), ("  \(digits) ", true),
        ("sha512:\(digits)", false), (digits + "0", false), (String(digits.dropLast()), false), ("", false),
        ("g" + digits.dropFirst(), false), ("W/\"\(digits)\"", false),
    ]
    @Test(arguments: rows) func `the digits of a field`(_ value: String, _ isKnown: Bool) {
        let rule = DigestRule(source: .field("Docker-Content-Digest"), algorithm: .sha256)
        #expect(Self.expected(rule, "docker-content-digest: \(value)") == (isKnown ? Self.digits.lowercased() : nil))
    }

    /// Of "secret", in base64.
    static let base64 = "K7gNU3sdo+OL0wNhqoVWhr3g6s1xYv72ol/pe/Unols="
    static let hex = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"
    static let fields9530: [(field: String, value: String, isKnown: Bool)] = [
        ("Repr-Digest", "sha-256=:\(base64):", true), ("Content-Digest", "md5=:AAAA:, sha-256=:\(base64):", true),
        ("Repr-Digest", "sha-512=:\(base64):", false), ("Repr-Digest", "sha-256=:AAAA:", false),
        ("Repr-Digest", "sha-256=\"\(base64)\"", false), ("Repr-Digest", base64, false), ("Repr-Digest", hex, false),
        ("X-Amz-Checksum-Sha256", base64, true), ("X-Amz-Checksum-Sha256", "\"\(base64)\"", true),
        ("X-Amz-Checksum-Sha256", String(base64.dropLast(4)), false),
    ]
    @Test(arguments: fields9530) func `the digest of RFC 9530, and in base64`(
        _ row: (field: String, value: String, isKnown: Bool)
    ) {
        let rule = DigestRule(source: .field(row.field), algorithm: .sha256)
        #expect(Self.expected(rule, "\(row.field): \(row.value)") == (row.isKnown ? Self.hex : nil))
    }

    @Test func `two fields prove nothing`() {
        let rule = DigestRule(source: .field("X-Digest"), algorithm: .sha256)
        #expect(Self.expected(rule, "X-Digest: \(Self.digits)", "X-Digest: \(Self.digits)") == nil)
        #expect(Self.expected(rule) == nil)
    }
}
