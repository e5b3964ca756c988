import Framing
import Message
import Testing

@Suite("Targets with bytes beyond ASCII are encoded (RFC 3986 §2.1)") struct EncodedTargetTests {
    /// The head with its target encoded. Nil if there is nothing to encode.
    private static func encoded(_ head: [UInt8]) -> [UInt8]? {
        EncodedTarget(ofHead: head.span)?.applied(to: head.span)
    }

    static let rows: [Row<String>] = [
        Row("UTF-8 in a path", "GET /\u{C3}\u{BC} HTTP/1.1\r\nHost: a\r\n\r\n", "/%C3%BC"),
        Row("Latin-1 in a path", "GET /\u{FC} HTTP/1.1\r\nHost: a\r\n\r\n", "/%FC"),
        Row("the first byte and the last one", "GET /\u{80}\u{FF} HTTP/1.1\r\nHost: a\r\n\r\n", "/%80%FF"),
        Row("a query", "GET /a?\u{E9}=%c3 HTTP/1.1\r\nHost: a\r\n\r\n", "/a?%E9=%c3"),
        Row("absolute-form", "GET http://a/\u{E9} HTTP/1.1\r\nHost: a\r\n\r\n", "http://a/%E9"),
        Row("a scheme in capitals", "GET HTTPS://a/\u{E9} HTTP/1.1\r\nHost: a\r\n\r\n", "HTTPS://a/%E9"),
        Row("a query alone", "GET http://a?\u{E9} HTTP/1.1\r\nHost: a\r\n\r\n", "http://a?%E9"),
        Row("what is encoded stays", "GET /%C3%BC\u{E9} HTTP/1.1\r\nHost: a\r\n\r\n", "/%C3%BC%E9"),
        Row("HTTP/1.0", "GET http://a/\u{E9} HTTP/1.0\r\n\r\n", "http://a/%E9"),
        Row("a method that is not common", "PROPFIND /\u{E9} HTTP/1.1\r\nHost: a\r\n\r\n", "/%E9"),
        Row("behind empty lines", "\r\n\r\nGET /\u{E9} HTTP/1.1\r\nHost: a\r\n\r\n", "/%E9"),
    ]
    @Test(arguments: rows) func `path and query are encoded, and then parsed`(_ row: Row<String>) throws {
        #expect(parseRequest(row.bytes)?.error == .badTarget)
        let head = try #require(Self.encoded(row.bytes))
        let result = try #require(parseRequest(head))
        #expect(result.error == nil && result.target == row.expect)
        #expect(Self.encoded(head) == nil)
    }

    static let refused: [Row<FramingError>] = [
        Row("a host", "GET http://\u{FC}/ HTTP/1.1\r\nHost: a\r\n\r\n", .badTarget),
        Row("a host, and a path", "GET http://\u{FC}/\u{FC} HTTP/1.1\r\nHost: a\r\n\r\n", .badTarget),
        Row("user information", "GET http://\u{FC}@a/ HTTP/1.1\r\nHost: a\r\n\r\n", .badTarget),
        Row("a port", "GET http://a:\u{FC}/ HTTP/1.1\r\nHost: a\r\n\r\n", .badTarget),
        Row("CONNECT", "CONNECT \u{FC}:443 HTTP/1.1\r\nHost: a\r\n\r\n", .badTarget),
        Row("another scheme", "GET ftp://a/\u{FC} HTTP/1.1\r\nHost: a\r\n\r\n", .badTarget),
        Row("a control character", "GET /\u{FC}\u{1} HTTP/1.1\r\nHost: a\r\n\r\n", .badTarget),
        Row("DEL", "GET /\u{FC}\u{7F} HTTP/1.1\r\nHost: a\r\n\r\n", .badTarget),
        Row("a fragment", "GET /\u{FC}#\u{FC} HTTP/1.1\r\nHost: a\r\n\r\n", .fragmentInTarget),
        Row("no version", "GET /\u{FC}\r\nHost: a\r\n\r\n", .badRequestLine),
        Row("a bad method", "G(T /\u{FC} HTTP/1.1\r\nHost: a\r\n\r\n", .badMethod),
    ]
    @Test(arguments: refused) func `what cannot be in a target is refused all the same`(_ row: Row<FramingError>) {
        #expect(parseRequest(row.bytes)?.error == .badTarget || row.expect == .badMethod)
        let head = Self.encoded(row.bytes) ?? row.bytes
        #expect(parseRequest(head)?.error == row.expect)
        #expect(Self.encoded(head) == nil)
    }

    @Test func `a target has to fit as it is sent on`() throws {
        var limits = Limits()
        limits.targetBytesMax = 20
        for (count, error) in [(6, nil), (7, FramingError.targetTooLong)] {
            let path = [UInt8(ascii: "/")] + [UInt8](repeating: 0xE9, count: count)
            let bytes = Array("GET ".utf8) + path + Array(" HTTP/1.1\r\nHost: a\r\n\r\n".utf8)
            let head = try #require(Self.encoded(bytes))
            #expect(parseRequest(head, limits: limits)?.error == error)
        }
    }

    @Test(arguments: rows) func `nothing is encoded before the request line is there`(_ row: Row<String>) throws {
        let line = try #require(
            row.bytes.lastIndex(of: UInt8(ascii: "H")).flatMap { _ in row.bytes.firstRange(of: Array(" HTTP".utf8)) })
        for count in 0..<line.lowerBound { #expect(Self.encoded(Array(row.bytes[..<count])) == nil) }
    }

    @Test(arguments: 0..<32) func `any target is encoded as byte for byte, or refused`(_ seed: Int) throws {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<200 {
            let path = (0..<Int.random(in: 0...12, using: &random)).map { _ in
                UInt8.random(in: 0x21...0xFF, using: &random)
            }
            guard !path.contains(0x7F), !path.contains(UInt8(ascii: "#")) else { continue }
            let target = Array("http://a/".utf8) + path
            let bytes = Array("GET ".utf8) + target + Array(" HTTP/1.1\r\nHost: a\r\n\r\n".utf8)
            let expected = target.flatMap { byte in
                byte > 0x7F ? Array("%\(String(byte, radix: 16, uppercase: true))".utf8) : [byte]
            }
            let result = try #require(parseRequest(Self.encoded(bytes) ?? bytes))
            #expect(result.error == nil && result.target == text(expected))
            #expect(TargetURI(target)?.normalised == expected)
        }
    }
}
