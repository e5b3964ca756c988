import Framing
import Message
import Testing

@Suite("The framing of a request's body is decoded (RFC 9112 §6)")
struct RequestBodyDecoderTests {
    struct Row: Sendable {
        let length: BodyLength
        let bytes: String
        let content: String
        /// What stands behind the body.
        let rest: String
    }

    static let rows = [
        Row(length: .none, bytes: "GET ", content: "", rest: "GET "),
        Row(length: .length(0), bytes: "GET ", content: "", rest: "GET "),
        Row(length: .length(5), bytes: "helloGET ", content: "hello", rest: "GET "),
        Row(length: .chunked, bytes: "2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\nGET ", content: "hello", rest: "GET "),
        Row(length: .chunked, bytes: "0\r\nA: b\r\n\r\nGET ", content: "", rest: "GET "),
    ]

    @Test(arguments: rows) func `the content is the same however the body is split`(_ row: Row) throws {
        let bytes = Array(row.bytes.utf8)
        for size in 1...bytes.count {
            var decoder = RequestBodyDecoder(row.length, limits: Limits())
            var (content, position) = ([UInt8](), 0)
            while !decoder.isWhole {
                let piece = Array(bytes[position..<min(position + size, bytes.count)])
                let used = try decoder.decode(piece.span, into: &content)
                #expect(used == piece.count || decoder.isWhole)
                position += used
            }
            #expect(String(decoding: content, as: UTF8.self) == row.content)
            #expect(String(decoding: bytes[position...], as: UTF8.self) == row.rest)
        }
    }

    @Test func `trailers are available when the body is complete`() throws {
        var decoder = RequestBodyDecoder(.chunked, limits: Limits())
        var content: [UInt8] = []
        _ = try decoder.decode(Array("1\r\na\r\n0\r\nA: b\r\n".utf8).span, into: &content)
        #expect(decoder.trailers == nil)
        _ = try decoder.decode(Array("\r\n".utf8).span, into: &content)
        #expect(decoder.trailers?.lines.count == 1)
    }

    @Test func `bytes before a violation are content`() {
        var decoder = RequestBodyDecoder(.chunked, limits: Limits())
        var content: [UInt8] = []
        #expect(throws: FramingError.self) {
            try decoder.decode(Array("2\r\nhe\r\nzz\r\n".utf8).span, into: &content)
        }
        #expect(content == Array("he".utf8))
        #expect(!decoder.isWhole)
    }
}
