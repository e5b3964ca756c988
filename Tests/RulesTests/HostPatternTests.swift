import Message
import Rules
import Testing

@Suite("RFC 3986 §3.2.2 Hosts as rules see them")
struct DestinationHostTests {
    static let names: [(String, String)] = [
        ("example.org", "example.org"), ("EXAMPLE.Org", "example.org"), ("example.org.", "example.org"),
        ("a_b-c.example", "a_b-c.example"), ("1e100.net", "1e100.net"), ("localhost", "localhost"),
        ("127.0.0.1.example.org", "127.0.0.1.example.org"), ("xn--bcher-kva.example", "xn--bcher-kva.example"),
    ]
    @Test(arguments: names) func `a name is in lower case and without a dot at its end`(
        _ text: String, _ expected: String
    ) {
        #expect(DestinationHost(text.utf8) == .name(expected))
    }

    /// Spellings that inet_aton(3), getaddrinfo(3) or a URI parser takes for 127.0.0.1 or 169.254.169.254.
    static let spellings: [(String, String)] = [
        ("127.0.0.1", "127.0.0.1"), ("127.1", "127.0.0.1"), ("127.0.1", "127.0.0.1"), ("2130706433", "127.0.0.1"),
        ("0x7f000001", "127.0.0.1"), ("0X7F.1", "127.0.0.1"), ("0x7f.0x0.0x0.0x1", "127.0.0.1"),
        ("0177.0.0.1", "127.0.0.1"), ("017700000001", "127.0.0.1"), ("127.0.0.1.", "127.0.0.1"),
        ("[::ffff:127.0.0.1]", "127.0.0.1"), ("[::FFFF:7f00:1]", "127.0.0.1"),
        ("[0:0:0:0:0:ffff:7f00:0001]", "127.0.0.1"), ("0", "0.0.0.0"), ("[::1]", "::1"), ("[0:0::0:1]", "::1"),
        ("169.254.169.254", "169.254.169.254"), ("2852039166", "169.254.169.254"), ("0xa9fea9fe", "169.254.169.254"),
        ("0251.0376.0251.0376", "169.254.169.254"), ("169.254.43518", "169.254.169.254"),
        ("0xA9.254.0251.254", "169.254.169.254"), ("[::ffff:a9fe:a9fe]", "169.254.169.254"),
    ]
    @Test(arguments: spellings) func `an address in any spelling is one host`(_ text: String, _ expected: String) throws
    {
        let host = try #require(DestinationHost(text.utf8))
        #expect(host == .address(ip(expected)))
        #expect(host.description == expected)
    }

    static let refused = [
        "", ".", "..", "a..b", ".a", "a b", "a/b", "a@b", "a:b", "a%2eb", "127.0.0.1%00", "%31%32%37.0.0.1", "a\u{0}b",
        "１２７.0.0.1", "bücher.example", "256.256.256.256", "127.0.0.1.5", "1.2.3.4.5", "0x7f.0.0.0x100", "example.0x1",
        "127.0.0.1..", "[::1", "::1]", "[127.0.0.1]", "[fe80::1%25eth0]", "[]", "a*b", "*", "099.0.0.1", "a~b",
        "a,b", "a;b", "a&b", "a\u{1}", "a\t", String(repeating: "abcdefghi.", count: 25) + "test",
        String(repeating: "a", count: 64) + ".org",
    ]
    @Test(arguments: refused) func `is no host`(_ text: String) { #expect(DestinationHost(text.utf8) == nil) }
}

@Suite("Host patterns")
struct HostPatternTests {
    static let rows: [(pattern: String, host: String, expected: Bool)] = [
        ("example.org", "example.org", true), ("example.org", "EXAMPLE.ORG.", true),
        ("Example.ORG.", "example.org", true),
        ("example.org", "www.example.org", false), ("example.org", "notexample.org", false),
        ("*.example.com", "www.example.com", true), ("*.example.com", "a.b.example.com", true),
        ("*.example.com", "example.com", false), ("*.example.com", "badexample.com", false),
        ("*.example.com", "www.example.com.evil.org", false), ("*", "anything.example", true), ("*", "127.0.0.1", true),
        ("127.0.0.1", "0x7f.1", true), ("0x7f.1", "127.0.0.1", true), ("::1", "[::1]", true),
        ("[::1]", "[0:0::1]", true),
        ("127.0.0.1", "127.0.0.2", false), ("127.0.0.1", "localhost", false), ("*.1", "127.0.0.1", false),
    ]
    @Test(arguments: rows.filter { $0.pattern != "*.1" }) func `matches`(
        _ pattern: String, _ host: String, _ expected: Bool
    ) throws {
        let pattern = try #require(HostPattern(pattern))
        #expect(pattern.matches(try #require(DestinationHost(host.utf8))) == expected)
    }

    static let refused = [
        "", "*.", "*.*.com", "a.*.com", "*a.com", "**", "*.127.0.0.1", "*.1", "http://a", "a/b", "a:80", "10.0.0.0/8",
    ]
    @Test(arguments: refused) func `is no pattern`(_ text: String) { #expect(HostPattern(text) == nil) }

    @Test(arguments: ["*", "example.org", "*.example.com", "127.0.0.1", "::1"])
    func `is shown as it was written`(_ text: String) throws {
        #expect(try "\(#require(HostPattern(text)))" == text)
    }
}
