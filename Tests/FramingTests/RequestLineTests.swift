import Framing
import Message
import Testing

@Suite("RFC 9112 §3 Request Line")
struct RequestLineTests {
    static let refused: [Row<FramingError>] = [
        Row("HTTP/0.9 is not spoken", "GET /\r\n", .badRequestLine),
        Row("two spaces after the method", "GET  / HTTP/1.1\r\n", .badRequestLine),
        Row("two spaces after the target", "GET /  HTTP/1.1\r\n", .badVersion),
        Row("a space within the target", "GET /a b HTTP/1.1\r\n", .badVersion),
        Row("HTAB for a space", "GET\t/ HTTP/1.1\r\n", .badMethod),
        Row("a method that is no token", "G(T / HTTP/1.1\r\n", .badMethod),
        Row("no method", " / HTTP/1.1\r\n", .badRequestLine),
        Row("a NUL in the target", "GET /\0 HTTP/1.1\r\n", .badTarget),
        Row("DEL in the target", "GET /\u{7F} HTTP/1.1\r\n", .badTarget),
        Row("more than ASCII in the target", "GET /\u{E4} HTTP/1.1\r\n", .badTarget),
        Row("HTAB in the target", "GET /\ta HTTP/1.1\r\n", .badTarget),
        Row("a fragment", "GET /#top HTTP/1.1\r\n", .fragmentInTarget),
        Row("a bare LF at the end", "GET / HTTP/1.1\nHost: a\r\n\r\n", .bareLineFeed),
        Row("a bare LF at the end, nothing behind", "GET / HTTP/1.1\n", .bareLineFeed),
        Row("a bare LF after the target", "GET /\n", .bareLineFeed),
        Row("a bare CR at the end", "GET / HTTP/1.1\rX\r\n", .bareCarriageReturn),
        Row("version in lower case", "GET / http/1.1\r\n", .badVersion),
        Row("version without a minor", "GET / HTTP/1\r\nHost: a\r\n", .badVersion),
        Row("version 1.10", "GET / HTTP/1.10\r\n", .badVersion),
        Row("version 1.2", "GET / HTTP/1.2\r\n", .versionNotSupported),
        Row("version 2.0", "GET / HTTP/2.0\r\n", .versionNotSupported),
        Row("the HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", .versionNotSupported),
        Row("version 0.9", "GET / HTTP/0.9\r\n", .versionNotSupported),
        Row("a TLS ClientHello, at once", "\u{16}\u{03}\u{01}\u{02}\0", .badRequestLine),
        Row("a SOCKS greeting, at once", "\u{05}\u{01}\0", .badRequestLine),
        Row("a bare LF in front", "\nGET / HTTP/1.1\r\n", .bareLineFeed),
        Row("a bare CR in front", "\rGET / HTTP/1.1\r\n", .bareCarriageReturn),
        Row("too many empty lines in front", "\r\n\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\n", .badRequestLine),
    ]
    @Test(arguments: refused) func `is refused`(_ row: Row<FramingError>) {
        #expect(parseRequest(row.bytes)?.error == row.expect)
        #expect(parseRequest(row.bytes, askedAt: Array(1...row.bytes.count))?.error == row.expect)
    }

    static let accepted: [Row<Method>] = [
        Row("GET", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", .get),
        Row("a method we do not know", "PROPFIND / HTTP/1.1\r\nHost: a\r\n\r\n", .other),
        Row("methods are case-sensitive", "get / HTTP/1.1\r\nHost: a\r\n\r\n", .other),
        Row("a method of all tchars", "!#$%&'*+-.^_`|~0Az / HTTP/1.1\r\nHost: a\r\n\r\n", .other),
        Row("HTTP/1.0 without Host", "HEAD / HTTP/1.0\r\n\r\n", .head),
        Row("a few empty lines in front (§2.2)", "\r\n\r\nPOST / HTTP/1.1\r\nHost: a\r\n\r\n", .post),
        Row("characters that browsers send", "PUT /{a}|\"<>^`\\[] HTTP/1.1\r\nHost: a\r\n\r\n", .put),
    ]
    @Test(arguments: accepted) func `is accepted`(_ row: Row<Method>) throws {
        let result = try #require(parseRequest(row.bytes))
        #expect(result.error == nil)
        #expect(Method(token: result.method.utf8) == row.expect)
        #expect(result.byteCount == row.bytes.count)
    }

    @Test(arguments: Method.allCases.filter { $0 != .other && $0 != .connect && $0 != .options })
    func `every method is known by its token`(_ method: Method) throws {
        let request = bytes(of: method.text) + Array(" / HTTP/1.1\r\nHost: a\r\n\r\n".utf8)
        var head = RequestHead()
        var progress = HeadProgress()
        _ = try parseRequestHead(request.span, into: &head, progress: &progress, limits: Limits())
        #expect(head.method == method)
    }
}
