import Framing
import Message
import Testing

/// A header of version 2. `values` follow the addresses.
private func binary(
    _ command: UInt8 = 0x21, _ family: UInt8 = 0x11,
    _ addresses: [UInt8] = [192, 0, 2, 1, 192, 0, 2, 2, 0xDC, 0x04, 0x01, 0xBB], _ values: [UInt8] = []
) -> [UInt8] {
    let length = addresses.count + values.count
    return [0x0D, 0x0A, 0x0D, 0x0A, 0, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A, command, family]
        + [UInt8(length >> 8), UInt8(length & 255)] + addresses + values
}

private let v6Addresses: [UInt8] =
    [0x20, 0x01, 0x0D, 0xB8] + [UInt8](repeating: 0, count: 11) + [1] + [UInt8](repeating: 0, count: 15) + [2]
    + [0xDC, 0x04, 0x01, 0xBB]

@Suite("The PROXY protocol, sections 2.1 and 2.2")
struct ProxyHeaderTests {
    private static let v4 = IPAddress(v4: 0xC000_0201)
    private static let v6 = IPAddress(v6: 0x2001_0DB8_0000_0000, low: 1)

    static let complete: [(name: String, bytes: [UInt8], source: ProxyHeader.Source)] = [
        ("TCP4", Array("PROXY TCP4 192.0.2.1 192.0.2.2 56324 443\r\n".utf8), .client(v4, port: 56324)),
        ("TCP6", Array("PROXY TCP6 2001:db8::1 2001:db8::2 56324 443\r\n".utf8), .client(v6, port: 56324)),
        ("a mapped address is IPv4", Array("PROXY TCP6 ::ffff:192.0.2.1 ::1 1 2\r\n".utf8), .client(v4, port: 1)),
        ("UNKNOWN alone", Array("PROXY UNKNOWN\r\n".utf8), .ownConnection),
        ("what follows UNKNOWN is ignored", Array("PROXY UNKNOWN x y z\r\n".utf8), .ownConnection),
        ("binary TCP4", binary(), .client(v4, port: 56324)),
        ("binary TCP6", binary(0x21, 0x21, v6Addresses), .client(v6, port: 56324)),
        ("LOCAL", binary(0x20, 0x00, []), .ownConnection),
        ("of LOCAL nothing is looked at", binary(0x20, 0xFF, [1, 2, 3]), .ownConnection),
        ("UNSPEC", binary(0x21, 0x00, []), .ownConnection),
        ("a Unix socket", binary(0x21, 0x31, [UInt8](repeating: 0, count: 216)), .ownConnection),
        (
            "additional values are skipped", valued(values([(4, [1, 2, 3]), (0x20, []), (0xEE, [9])])),
            .client(v4, port: 56324)
        ),
        ("the checksum", checked(0), .client(v4, port: 56324)),
    ]

    /// A header for TCP4 with additional values.
    private static func valued(_ values: [UInt8]) -> [UInt8] {
        binary(0x21, 0x11, [192, 0, 2, 1, 192, 0, 2, 2, 0xDC, 0x04, 0x01, 0xBB], values)
    }

    private static func values(_ list: [(UInt8, [UInt8])]) -> [UInt8] {
        list.flatMap { [$0.0, UInt8($0.1.count >> 8), UInt8($0.1.count & 255)] + $0.1 }
    }

    /// With a checksum, changed by so much. The sum is by a table, unlike that of the parser.
    private static func checked(_ change: UInt32) -> [UInt8] {
        var bytes = valued(values([(3, [0, 0, 0, 0])]))
        let table = (0..<256).map { entry in
            (0..<8).reduce(UInt32(entry)) { sum, _ in sum >> 1 ^ (sum & 1 == 1 ? 0x82F6_3B78 : 0) }
        }
        let sum = ~bytes.reduce(~UInt32(0)) { table[Int(($0 ^ UInt32($1)) & 255)] ^ $0 >> 8 } &+ change
        bytes.replaceSubrange((bytes.count - 4)..., with: [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: sum >> $0) })
        return bytes
    }

    @Test(arguments: complete) func `the client is the one that is named`(
        _ row: (name: String, bytes: [UInt8], source: ProxyHeader.Source)
    ) {
        let expected = ProxyHeader.Reading.complete(ProxyHeader(source: row.source, byteCount: row.bytes.count))
        #expect(ProxyHeader.read(row.bytes.span) == expected)
        #expect(ProxyHeader.read((row.bytes + Array("GET".utf8)).span) == expected, "what follows is not looked at")
    }

    @Test(arguments: complete) func `a header may arrive byte by byte`(
        _ row: (name: String, bytes: [UInt8], source: ProxyHeader.Source)
    ) {
        for length in 0..<row.bytes.count {
            guard case .incomplete(let needs) = ProxyHeader.read(Array(row.bytes[..<length]).span) else {
                Issue.record("\(length) bytes of \(row.name)")
                return
            }
            #expect(needs > length && needs <= row.bytes.count || length < 16)
        }
    }

    static let malformed: [(bytes: [UInt8], fault: ProxyHeader.Fault)] = [
        (Array("GET / HTTP/1.1\r\n".utf8), .noHeader),
        (Array("PROXY\r\n".utf8), .noHeader),
        (Array("PROXY TCP4 192.0.2.1 192.0.2.2 1 2\n".utf8), .line),
        (Array("PROXY TCP4 192.0.2.1 192.0.2.2 1\r\n".utf8), .line),
        (Array("PROXY TCP4 192.0.2.1 192.0.2.2 1 2 3\r\n".utf8), .line),
        (Array("PROXY  TCP4 192.0.2.1 192.0.2.2 1 2\r\n".utf8), .line),
        (Array("PROXY TCP4 192.0.2.01 192.0.2.2 1 2\r\n".utf8), .line),
        (Array("PROXY TCP4 192.0.2.1 192.0.2.2 01 2\r\n".utf8), .line),
        (Array("PROXY TCP4 192.0.2.1 192.0.2.2 1 65536\r\n".utf8), .line),
        (Array("PROXY TCP4 ::1 ::1 1 2\r\n".utf8), .line),
        (Array("PROXY TCP6 192.0.2.1 192.0.2.2 1 2\r\n".utf8), .line),
        (Array("PROXY UDP4 192.0.2.1 192.0.2.2 1 2\r\n".utf8), .line),
        (Array("PROXY tcp4 192.0.2.1 192.0.2.2 1 2\r\n".utf8), .line),
        (Array("PROXY UNKNOWN ".utf8) + [UInt8](repeating: 0x61, count: 100), .tooLong),
        (binary(0x11), .command),
        (binary(0x22), .command),
        (binary(0x21, 0x12), .family),
        (binary(0x21, 0x41), .family),
        (binary(0x21, 0x11, [192, 0, 2, 1]), .addresses),
        (binary(0x21, 0x21), .addresses),
        (binary(0x21, 0x31), .addresses),
        (valued([4, 0]), .values),
        (valued([4, 0, 2, 1]), .values),
        (valued(values([(3, [1, 2])])), .values),
        (checked(1), .checksum),
        (binary(0x21, 0x11, [UInt8](repeating: 0, count: 4096)), .tooLong),
    ]

    @Test(arguments: malformed) func `what breaks the rules is no header`(
        _ row: (bytes: [UInt8], fault: ProxyHeader.Fault)
    ) {
        #expect(ProxyHeader.read(row.bytes.span) == .malformed(row.fault))
    }

    @Test func `every fault has its row`() {
        #expect(Set(Self.malformed.map(\.fault)) == Set(ProxyHeader.Fault.allCases))
    }

    @Test func `a line of 107 bytes is the longest`() {
        let longest = Array("PROXY UNKNOWN ".utf8) + [UInt8](repeating: 0x61, count: 91) + [0x0D, 0x0A]
        #expect(longest.count == ProxyHeader.lineBytesMax)
        #expect(ProxyHeader.read(longest.span) == .complete(ProxyHeader(source: .ownConnection, byteCount: 107)))
    }
}
