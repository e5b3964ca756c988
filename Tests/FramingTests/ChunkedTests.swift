import Framing
import Message
import Testing

@Suite("RFC 9112 §7.1 Chunked Transfer Coding")
struct ChunkedTests {
    static let accepted: [Row<String>] = [
        Row("no data", "0\r\n\r\n", ""),
        Row("two chunks", "5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n", "hello world"),
        Row("hexadecimal in both cases", "a\r\n0123456789\r\nB\r\n0123456789x\r\n0\r\n\r\n", "01234567890123456789x"),
        Row("leading zeros", "0005\r\nhello\r\n000\r\n\r\n", "hello"),
        Row("data that looks like framing", "7\r\n0\r\n\r\n\r\n\r\n0\r\n\r\n", "0\r\n\r\n\r\n"),
        Row("an extension", "1;a\r\nx\r\n0;b\r\n\r\n", "x"),
        Row("extensions with values", "1;a=b;c=\"d\\\" ;\"\r\nx\r\n0\r\n\r\n", "x"),
        Row("white space around delimiters (§7.1.1)", "1 ; a = b\t;c\r\nx\r\n0\r\n\r\n", "x"),
        Row("trailers", "1\r\nx\r\n0\r\nA: b\r\nC:d\r\n\r\n", "x|A: b\r\nC: d\r\n"),
    ]
    @Test(arguments: accepted) func `is decoded`(_ row: Row<String>) {
        let next = Array("GET".utf8)
        for pieces in [nil, Array(0...(row.bytes.count + next.count))] {
            let result = decodeChunked(row.bytes + next, pieces: pieces)
            #expect(result.error == nil)
            let trailers = result.trailers.isEmpty ? "" : "|" + text(result.trailers)
            #expect(text(result.body) + trailers == row.expect)
            #expect(result.byteCount == row.bytes.count, "what follows belongs to the next message")
        }
    }

    @Test(arguments: ["7fffffff", "80000001", "ffffffff", "100000001", "1fffffffffffff", "001fffffffffffff"])
    func `a chunk may be as long as any content`(_ size: String) {
        let result = decodeChunked(Array("\(size)\r\nabc".utf8), pieces: nil)
        #expect(result.error == nil && text(result.body) == "abc")
    }

    static let refused: [Row<FramingError>] = [
        Row("no size", "\r\n", .badChunkSize),
        Row("no size but an extension", ";a\r\n", .badChunkSize),
        Row("a sign", "+5\r\nhello\r\n", .badChunkSize),
        Row("a minus", "-5\r\n", .badChunkSize),
        Row("0x", "0x5\r\nhello\r\n", .badChunkSize),
        Row("a space in front", " 5\r\nhello\r\n", .badChunkSize),
        Row("a letter that is no digit", "g\r\n", .badChunkSize),
        Row("an underscore", "1_0\r\n", .badChunkSize),
        Row("seventeen digits", "00000000000000005\r\n", .badChunkSize),
        Row("2^53", "20000000000000\r\n", .badChunkSize),
        Row("2^53, behind zeros", "0020000000000000\r\n", .badChunkSize),
        Row("2^63 − 1", "7fffffffffffffff\r\n", .badChunkSize),
        Row("2^63", "8000000000000000\r\n", .badChunkSize),
        Row("2^64 − 1", "ffffffffffffffff\r\n", .badChunkSize),
        Row("2^64", "10000000000000000\r\n", .badChunkSize),
        Row("a bare LF after the size", "5\nhello\r\n", .bareLineFeed),
        Row("a bare CR after the size", "5\rhello\r\n", .bareCarriageReturn),
        Row("a space after the size", "5 \r\nhello\r\n", .badChunkExtension),
        Row("an extension without a name", "5;\r\nhello\r\n", .badChunkExtension),
        Row("an extension without a value", "5;a=\r\nhello\r\n", .badChunkExtension),
        Row("two names", "5;a b\r\nhello\r\n", .badChunkExtension),
        Row("two values", "5;a=b=c\r\nhello\r\n", .badChunkExtension),
        Row("bytes behind a quoted value", "5;a=\"b\"c\r\nhello\r\n", .badChunkExtension),
        Row("a quoted value that does not end", "5;a=\"b\r\nhello\r\n", .badChunkExtension),
        Row("a NUL in an extension", "5;a\0\r\n", .badChunkExtension),
        Row("a bare LF in an extension", "5;a\n", .bareLineFeed),
        Row("a bare LF in a quoted value", "5;a=\"\n\"\r\n", .badChunkExtension),
        Row("data longer than its size", "5\r\nhello!\r\n", .badChunkEnd),
        Row("data followed by a bare LF", "5\r\nhello\n", .badChunkEnd),
        Row("data followed by CR and more", "5\r\nhello\rX", .badChunkEnd),
        Row("a bare LF at the end", "0\r\n\n", .bareLineFeed),
        Row("a bare CR at the end", "0\r\n\rX", .bareCarriageReturn),
        Row("a folded trailer", "0\r\nA: b\r\n c\r\n", .obsoleteFolding),
        Row("a trailer without a colon", "0\r\nA\r\n", .badFieldName),
        Row("a trailer with a NUL", "0\r\nA: \0\r\n", .controlInField),
        Row("a trailer with a space before the colon", "0\r\nA : b\r\n", .spaceBeforeColon),
    ]
    @Test(arguments: refused) func `is refused`(_ row: Row<FramingError>) {
        #expect(decodeChunked(row.bytes).error == row.expect)
        #expect(decodeChunked(row.bytes, pieces: Array(0...row.bytes.count)).error == row.expect)
    }

    @Test func `bounds hold to the byte`() {
        var limits = Limits()
        (limits.chunkLineBytesMax, limits.trailerBytesMax, limits.fieldCountMax) = (6, 12, 2)
        func error(_ input: String) -> FramingError? { decodeChunked(Array(input.utf8), limits: limits).error }
        #expect(error("0;ab\r\n\r\n") == nil)
        #expect(error("0;abc\r\n\r\n") == .chunkLineTooLong)
        #expect(error("0\r\nA:1\r\nB: 222\r\n\r\n") == .trailersTooLarge)
        #expect(error("0\r\nA:\r\nB:\r\nC:\r\n\r\n") == .tooManyFields)
        #expect(error("0\r\nA: 1234567\r\n\r\n") == nil)
    }

    @Test func `a body that has not ended says so`() {
        for input in ["", "5", "5\r\nhel", "5\r\nhello\r\n", "0\r\n", "0\r\nA: b\r\n", "0\r\n\r"] {
            let result = decodeChunked(Array(input.utf8))
            #expect(result.byteCount == nil && result.error == nil)
        }
    }

    @Test(arguments: [1, 9, 10, 15, 16, 255, 256, 4095, 4096, 65_536, Int.max])
    func `a chunk header is the size in hexadecimal`(_ count: Int) {
        var bytes: [UInt8] = []
        appendChunkHeader(count, to: &bytes)
        #expect(text(bytes) == String(count, radix: 16) + "\r\n")
    }

    @Test(arguments: 0..<40) func `encode then decode is identity, however it is split`(_ seed: Int) {
        var random = SeededGenerator(seed: seed)
        var body: [UInt8] = []
        var encoded: [UInt8] = []
        for _ in 0..<Int.random(in: 0...5, using: &random) {
            let chunk = (0..<Int.random(in: 1...600, using: &random)).map { _ in
                UInt8.random(in: 0...255, using: &random)
            }
            body += chunk
            appendChunkHeader(chunk.count, to: &encoded)
            encoded += chunk + [0x0D, 0x0A]
        }
        var trailers = Fields()
        for index in 0..<Int.random(in: 0...3, using: &random) { trailers.append(.via, "value \(index)") }
        appendLastChunk(trailers: trailers, to: &encoded)
        var sent: [UInt8] = []
        appendFieldLines(trailers, to: &sent)
        let expected = ChunkedResult(body: body, trailers: sent, byteCount: encoded.count)
        #expect(decodeChunked(encoded) == expected)
        let pieces = (0..<8).map { _ in Int.random(in: 0...encoded.count, using: &random) }.sorted() + [encoded.count]
        #expect(decodeChunked(encoded, pieces: pieces) == expected)
    }
}
