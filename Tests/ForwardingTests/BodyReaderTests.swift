import Forwarding
import Framing
import Message
import Testing

@Suite("RFC 9112 §6.3 Reading content by its framing")
struct BodyReaderTests {
    struct Row: Sendable {
        let length: BodyLength
        let bytes: String
        let content: String
        /// Nil where the body is not over.
        let leftover: Int?
    }
    static let rows = [
        Row(length: .none, bytes: "", content: "", leftover: 0),
        Row(length: .none, bytes: "HTTP", content: "", leftover: 4),
        Row(length: .tunnel, bytes: "x", content: "", leftover: 1),
        Row(length: .length(0), bytes: "x", content: "", leftover: 1),
        Row(length: .length(5), bytes: "hello", content: "hello", leftover: 0),
        Row(length: .length(5), bytes: "hello!!", content: "hello", leftover: 2),
        Row(length: .length(5), bytes: "hel", content: "hel", leftover: nil),
        Row(length: .length(.max), bytes: "hel", content: "hel", leftover: nil),
        Row(length: .untilClose, bytes: "hello", content: "hello", leftover: nil),
        Row(length: .chunked, bytes: "5\r\nhello\r\n0\r\n\r\n", content: "hello", leftover: 0),
        Row(length: .chunked, bytes: "2;a=b\r\nhe\r\n3\r\nllo\r\n0\r\nX: 1\r\n\r\nGET", content: "hello", leftover: 3),
        Row(length: .chunked, bytes: "5\r\nhello\r\n0\r\n", content: "hello", leftover: nil),
    ]

    @Test(arguments: rows) func `content and end are the same however the bytes are split`(_ row: Row) throws {
        let bytes = Array(row.bytes.utf8)
        for size in 1...max(1, bytes.count) { try expect(row, bytes, inPiecesOf: size) }
        for cut in 0...bytes.count { try expect(row, pieces: [Array(bytes[..<cut]), Array(bytes[cut...])]) }
    }

    private func expect(_ row: Row, _ bytes: [UInt8], inPiecesOf size: Int) throws {
        try expect(
            row,
            pieces: stride(from: 0, to: bytes.count, by: size).map { Array(bytes[$0..<min($0 + size, bytes.count)]) })
    }

    private func expect(_ row: Row, pieces: [[UInt8]]) throws {
        var reader = BodyReader(row.length, limits: Limits())
        var content: [UInt8] = []
        var behind = 0
        for piece in pieces {
            var offset = 0
            reading: while true {
                switch try reader.next(in: piece.span, from: &offset) {
                case .data(let range): content += piece[range]
                case .more: break reading
                case .end:
                    behind += piece.count - offset
                    break reading
                }
            }
        }
        #expect(text(content) == row.content)
        #expect(reader.isComplete == (row.leftover != nil))
        if let leftover = row.leftover { #expect(behind == leftover) }
    }

    static let closings: [(length: BodyLength, bytes: String, ending: BodyReader.Ending)] = [
        (.none, "", .complete), (.length(2), "ab", .complete), (.length(2), "a", .cutShort),
        (.untilClose, "", .complete), (.untilClose, "ab", .complete), (.chunked, "1\r\na\r\n0\r\n\r\n", .complete),
        (.chunked, "1\r\na\r\n", .cutShort), (.chunked, "", .cutShort),
    ]
    @Test(arguments: closings) func `RFC 9112 §8: a body whose connection closes too early is incomplete`(
        _ row: (length: BodyLength, bytes: String, ending: BodyReader.Ending)
    ) throws {
        var reader = BodyReader(row.length, limits: Limits())
        let bytes = Array(row.bytes.utf8)
        var offset = 0
        while case .data = try reader.next(in: bytes.span, from: &offset) {}
        #expect(reader.closed() == row.ending)
    }

    @Test func `content is read directly only as far as the framing allows`() throws {
        var reader = BodyReader(.length(10), limits: Limits())
        #expect(reader.readableDirectly == 10)
        reader.passed(4)
        #expect(reader.readableDirectly == 6)
        #expect(reader.missing == 6)
        reader.passed(6)
        #expect(reader.isComplete == true)
        #expect(reader.readableDirectly == 0)
        let ofChunks = BodyReader(.chunked, limits: Limits())
        #expect(ofChunks.readableDirectly == 0)
        let untilClose = BodyReader(.untilClose, limits: Limits())
        #expect(untilClose.readableDirectly == .max)
        #expect(untilClose.missing == nil)
    }

    @Test func `trailers are available at the end of the body`() throws {
        var reader = BodyReader(.chunked, limits: Limits())
        let bytes = Array("0\r\nX: 1\r\n\r\n".utf8)
        var offset = 0
        #expect(reader.trailers == nil)
        #expect(try reader.next(in: bytes.span, from: &offset) == .end)
        #expect(offset == bytes.count)
        #expect(reader.trailers?.lines.count == 1)
    }

    @Test func `RFC 9112 §7.1: malformed chunks are an error`() {
        var reader = BodyReader(.chunked, limits: Limits())
        let bytes = Array("zz\r\n".utf8)
        var offset = 0
        #expect(throws: FramingError.self) { try reader.next(in: bytes.span, from: &offset) }
    }
}

@Suite("RFC 9110 §6.5 Trailer fields")
struct TrailerTests {
    static let rows: [(line: String, isForwarded: Bool)] = [
        ("X-Sum: 1", true), ("Content-Digest: x", true), ("Server-Timing: x", true), ("Content-Length: 1", false),
        ("content-foo: 1", false), ("Authorization: x", false), ("Set-Cookie: a=b", false), ("Proxy-X: 1", false),
        ("ETag: \"a\"", false), ("Cache-Control: max-age=9", false), ("X-Api-Key: x", false),
        ("Private-Token: x", false), ("Signature: x=:YQ==:", true),
        ("X-Body-Signature: x", true), ("X-Session-Token: x", false),
    ]
    @Test(arguments: rows) func `trailers that could change how the message is understood are dropped`(
        _ row: (line: String, isForwarded: Bool)
    ) throws {
        let kept = ForwardedHead.trailers(try response("HTTP/1.1 200 OK", row.line).fields)
        #expect((kept != nil) == row.isForwarded)
    }
    @Test func `no trailers are left if all are dropped`() { #expect(ForwardedHead.trailers(nil) == nil) }
}
