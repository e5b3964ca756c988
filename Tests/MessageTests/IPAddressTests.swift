import Message
import Testing

@Suite("Addresses are recognised in every spelling")
struct IPAddressTests {
    static let spellings: [(String, String)] = [
        ("127.0.0.1", "127.0.0.1"), ("127.0.0.1.", "127.0.0.1"), ("127.1", "127.0.0.1"), ("127.0.1", "127.0.0.1"),
        ("2130706433", "127.0.0.1"), ("0x7f000001", "127.0.0.1"), ("0X7F.1", "127.0.0.1"), ("0177.0.0.01", "127.0.0.1"),
        ("017700000001", "127.0.0.1"), ("0", "0.0.0.0"), ("0x", "0.0.0.0"), ("1.2.65535", "1.2.255.255"),
        ("1.16777215", "1.255.255.255"), ("4294967295", "255.255.255.255"), ("[::1]", "::1"), ("::1", "::1"),
        ("[::ffff:127.0.0.1]", "127.0.0.1"), ("[::FFFF:7f00:1]", "127.0.0.1"), ("[0:0:0:0:0:ffff:7f00:1]", "127.0.0.1"),
        ("[2001:DB8:0:0:1:0:0:1]", "2001:db8::1:0:0:1"), ("::", "::"), ("1::", "1::"),
        ("1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"), ("::2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8"),
        ("1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:102:304"), ("64:ff9b::1.2.3.4", "64:ff9b::102:304"),
    ]
    @Test(arguments: spellings) func `is canonicalised`(_ text: String, _ canonical: String) {
        #expect(IPAddress(anySpelling: text.utf8)?.description == canonical)
        #expect(IPAddress(strict: canonical.utf8)?.description == canonical)
    }

    static let none = [
        "", ".", "a", "localhost", "1.2.3.4.5", "256.0.0.1", "1.2.3.256", "1.2.65536", "1.16777216", "4294967296", "08",
        "0x1g", "1..2", ".1", "1.2.3.4..", "+1", "-1", " 1", "99999999999999999999999", "[]", "[1.2.3.4]", "[::1",
        "::1]",
        "[fe80::1%eth0]", "fe80::1%25eth0", ":", ":::", "1::2::3", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9",
        "1:2:3:4:5:6:7:8::", "::1:2:3:4:5:6:7:8", "12345::", "1:", ":1", "::1.2.3", "::01.2.3.4", "::1.2.3.4:5", "::g",
        "1:2:3:4:5:6:7:1.2.3.4",
    ]
    @Test(arguments: none) func `is no address`(_ text: String) {
        #expect(IPAddress(anySpelling: text.utf8) == nil)
        #expect(IPAddress(strict: text.utf8) == nil)
    }

    @Test(arguments: [
        "127.1", "0x7f.0.0.1", "01.2.3.4", "1.2.3.04", "00.0.0.0", "1", "[::1]", "1.2.3.4.", "1.2.3.", ".1.2.3",
        "1.2..4",
    ])
    func `the strict parser refuses all loose spellings`(_ text: String) {
        #expect(IPAddress(strict: text.utf8) == nil)
    }

    @Test(arguments: [
        ("1", true), ("a.1", true), ("a.1.", true), ("0x", true), ("a.0xff", true), ("a.0X1g", false), ("a1", false),
        ("1.a", false), ("", false), (".", false), ("a.09", true), ("example.com", false),
    ]) func `a host ends in a number`(_ text: String, _ expected: Bool) {
        #expect(hostEndsInNumber(text.utf8) == expected)
    }

    @Test func `an IPv4-mapped address equals the IPv4 address`() {
        let mapped = IPAddress(v6: 0, low: 0xFFFF_7F00_0001)
        #expect(mapped == IPAddress(v4: 0x7F00_0001))
        #expect(mapped.isV4 && mapped.v4 == 0x7F00_0001)
        #expect(mapped.v6.low == 0xFFFF_7F00_0001)
        #expect(IPAddress(v6: 0, low: 0x7F00_0001).v4 == nil)
    }
}
