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

    static let rows: [(value: String, isKnown: Bool)] = [
        (digits, true), ("sha256:\(digits)", true), ("\"\(digits)\"", true), ("  \(digits) ", true),
        ("sha512:\(digits)", false), (digits + "0", false), (String(digits.dropLast()), false), ("", false),
        ("g" + digits.dropFirst(), false), ("W/\"\(digits)\"", false),
    ]
    @Test(arguments: rows) func `the digits of a field`(_ value: String, _ isKnown: Bool) {
        let rule = DigestRule(source: .field("Docker-Content-Digest"), algorithm: .sha256)
        #expect(Self.expected(rule, "docker-content-digest: \(value)") == (isKnown ? Self.digits.lowercased() : nil))
    }

    @Test func `two fields prove nothing`() {
        let rule = DigestRule(source: .field("X-Digest"), algorithm: .sha256)
        #expect(Self.expected(rule, "X-Digest: \(Self.digits)", "X-Digest: \(Self.digits)") == nil)
        #expect(Self.expected(rule) == nil)
    }
}
