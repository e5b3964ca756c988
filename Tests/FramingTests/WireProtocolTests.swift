import Framing
import Testing

@Suite("A connection's first bytes tell what the client speaks")
struct WireProtocolTests {
    static let rows: [(bytes: [UInt8], expected: WireProtocol?)] = [
        ([], nil),
        (Array("GET http://a/ HTTP/1.1\r\n\r\n".utf8), .http1),
        (Array("POST http://a/ HTTP/1.1\r\n\r\n".utf8), .http1),
        (Array("P".utf8), nil), (Array("PRI".utf8), nil), (Array("PROX".utf8), nil), (Array("PROXY".utf8), nil),
        ([0x0D], nil), (Array("\r\n\r\n".utf8), nil), (Array("PROPFIND http://a/ HTTP/1.1\r\n".utf8), .http1),
        (Array("\r\nGET http://a/ HTTP/1.1\r\n\r\n".utf8), .http1),
        ([0x16], .tls), ([0x16, 0x03, 0x01, 0x02, 0x00, 0x01], .tls),
        (Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8), .http2),
        ([0x05], .socks5), ([0x05, 0x01, 0x00], .socks5),
        (Array("PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n".utf8), .proxyProtocol),
        ([0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A, 0x21], .proxyProtocol),
        // Nothing that is known is left to the parser of heads, which says what is wrong with it.
        ([0x00], .http1), ([0x04, 0x01], .http1), ([0x80, 0x2E], .http1),
    ]

    @Test(arguments: rows) func `the first bytes decide the protocol`(_ row: (bytes: [UInt8], expected: WireProtocol?))
    {
        #expect(recognise(row.bytes.span) == row.expected)
    }

    @Test func `every case is recognised by some bytes`() {
        #expect(Set(Self.rows.compactMap(\.expected)) == Set(WireProtocol.allCases))
    }
}
