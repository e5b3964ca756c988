import Message
import Rules
import Testing

@Suite("RFC 6890 Special-Purpose IP Address Registries")
struct AddressClassTests {
    static let rows: [(String, AddressClass)] = [
        ("8.8.8.8", .public), ("1.0.0.0", .public), ("223.255.255.255", .public), ("2a00:1450:4001::1", .public),
        ("0.0.0.0", .unspecified), ("0.1.2.3", .unspecified), ("::", .unspecified),
        ("127.0.0.1", .loopback), ("127.255.255.254", .loopback), ("::1", .loopback), ("128.0.0.0", .public),
        ("10.0.0.0", .privateUse), ("10.255.255.255", .privateUse), ("11.0.0.0", .public), ("9.255.255.255", .public),
        ("172.15.255.255", .public), ("172.16.0.0", .privateUse), ("172.31.255.255", .privateUse),
        ("172.32.0.0", .public),
        ("192.168.0.1", .privateUse), ("192.169.0.0", .public), ("192.167.255.255", .public),
        ("100.63.255.255", .public), ("100.64.0.0", .sharedSpace), ("100.127.255.255", .sharedSpace),
        ("100.128.0.0", .public), ("169.254.1.1", .linkLocal), ("169.253.255.255", .public),
        ("192.0.0.1", .reserved), ("192.0.1.0", .public), ("192.0.2.7", .documentation),
        ("198.51.100.1", .documentation), ("203.0.113.255", .documentation), ("203.0.114.0", .public),
        ("198.18.0.0", .benchmarking), ("198.19.255.255", .benchmarking), ("198.20.0.0", .public),
        ("192.88.99.1", .reserved), ("224.0.0.1", .multicast), ("239.255.255.255", .multicast),
        ("240.0.0.0", .reserved), ("255.255.255.254", .reserved), ("255.255.255.255", .broadcast),
        ("fc00::1", .uniqueLocal), ("fdff::1", .uniqueLocal), ("fe80::1", .linkLocal), ("febf::1", .linkLocal),
        ("fec0::1", .uniqueLocal), ("ff02::1", .multicast), ("2001:db8::1", .documentation),
        ("3fff::1", .documentation),
        ("3fff:1000::1", .public), ("2001:2::1", .benchmarking), ("2001:2:1::1", .reserved), ("2001:200::1", .public),
        ("100::1", .reserved), ("4000::1", .reserved), ("5f00::1", .reserved), ("::2:0:0:1", .reserved),
    ]
    @Test(arguments: rows) func `each row of the registry has its class up to its bounds`(
        _ text: String, _ expected: AddressClass
    ) {
        #expect(addressClass(ip(text)) == expected)
        #expect(addressClass(ip(text)).isPublic == (expected == .public))
    }

    static let metadata = [
        "169.254.169.254", "169.254.170.2", "169.254.170.23", "169.254.0.23", "100.100.100.200", "168.63.129.16",
        "192.0.0.192", "fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "fe80::a9fe:a9fe",
    ]
    @Test(arguments: metadata) func `addresses of metadata services have a class of their own`(_ text: String) {
        #expect(addressClass(ip(text)) == .metadata)
    }

    static let carried: [(String, AddressClass)] = [
        ("::ffff:10.0.0.1", .privateUse), ("::127.0.0.1", .loopback), ("::ffff:0:127.0.0.1", .loopback),
        ("64:ff9b::127.0.0.1", .loopback), ("64:ff9b::169.254.169.254", .metadata), ("64:ff9b::8.8.8.8", .public),
        ("64:ff9b:1::8.8.8.8", .privateUse), ("2002:7f00:1::1", .loopback), ("2002:a9fe:a9fe::", .metadata),
        ("2002:808:808::1", .public),
        // Teredo: server 8.8.8.8, then the client inverted: ~127.0.0.1, ~8.8.8.8.
        ("2001:0:808:808::80ff:fffe", .loopback), ("2001:0:808:808::f7f7:f7f7", .public),
        ("2001:0:7f00:1::f7f7:f7f7", .loopback),
        // What gives credentials counts most: the server is private, the client is ~169.254.169.254.
        ("2001:0:a00:1::5601:5601", .metadata), ("64:ff9b:1::169.254.169.254", .metadata),
        // The prefixes of 48, 56 and 64 bits leave out bits 64 to 71 (RFC 6052 §2.2).
        ("64:ff9b:1:a9fe:a9:fe00::", .metadata), ("64:ff9b:1:ff:ffa9:fe00::", .privateUse),
        ("64:ff9b:1:a9:fe:a9fe::", .metadata), ("64:ff9b:1::a9:fea9:fe00:0", .metadata),
        // ISATAP, in networks of every kind.
        ("2a00:1450:4001::5efe:127.0.0.1", .loopback), ("2a00:1450:4001::200:5efe:10.0.0.1", .privateUse),
        ("2a00:1450:4001::5efe:8.8.8.8", .public), ("fe80::5efe:169.254.169.254", .metadata),
        ("fe80::5efe:8.8.8.8", .linkLocal), ("2001:db8::5efe:8.8.8.8", .documentation),
        ("4000::5efe:8.8.8.8", .reserved), ("::8.8.8.8", .public), ("::ffff:0:8.8.8.8", .public),
    ]
    @Test(arguments: carried) func `an address that contains an IPv4 address has the class of that address`(
        _ text: String, _ expected: AddressClass
    ) {
        #expect(addressClass(ip(text)) == expected)
    }
}

@Suite("RFC 4632 §3.1 Address ranges")
struct AddressRangeTests {
    static let rows: [(range: String, address: String, expected: Bool)] = [
        ("10.0.0.0/8", "10.0.0.0", true), ("10.0.0.0/8", "10.255.255.255", true), ("10.0.0.0/8", "11.0.0.0", false),
        ("0.0.0.0/0", "255.255.255.255", true), ("0.0.0.0/0", "::1", false), ("::/0", "127.0.0.1", false),
        ("::/0", "ffff::1", true), ("192.0.2.1", "192.0.2.1", true), ("192.0.2.1", "192.0.2.0", false),
        ("192.0.2.0/31", "192.0.2.1", true), ("192.0.2.0/31", "192.0.2.2", false), ("::1", "::1", true),
        ("2001:db8::/32", "2001:db8:ffff::1", true), ("2001:db8::/32", "2001:db9::", false),
        ("2001:db8::/64", "2001:db8::ffff", true), ("2001:db8::/64", "2001:db8:0:1::", false),
        ("2001:db8::8/126", "2001:db8::b", true), ("2001:db8::8/126", "2001:db8::c", false),
        ("127.0.0.0/8", "::ffff:127.9.9.9", true),
    ]
    @Test(arguments: rows) func `a range contains its first and last address and none beside them`(
        _ range: String, _ address: String, _ expected: Bool
    ) throws {
        #expect(try #require(AddressRange(range)).contains(ip(address)) == expected)
    }

    static let refused = [
        "", "/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/+8", "10.0.0.0/08", "10.0.0.0/8/8", "10.0.0.1/8",
        "10/8", "::1/129", "[::1]", "0x7f.0.0.1", "example.org", "10.0.0.0 /8", "fe80::1%eth0", "2001:db8::1/64",
    ]
    @Test(arguments: refused) func `is no range`(_ text: String) { #expect(AddressRange(text) == nil) }

    @Test(arguments: ["10.0.0.0/8", "::1", "192.0.2.1", "2001:db8::/32"])
    func `is shown as it was written`(_ text: String) throws {
        #expect(try "\(#require(AddressRange(text)))" == text)
    }
}
