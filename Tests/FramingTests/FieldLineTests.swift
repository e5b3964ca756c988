import Framing
import Message
import Testing

@Suite("RFC 9112 §5 Field Syntax")
struct FieldLineTests {
    static let refused: [Row<FramingError>] = [
        Row("obs-fold (§5.2)", "A: b\r\n c\r\n", .obsoleteFolding),
        Row("obs-fold with HTAB", "A: b\r\n\tc\r\n", .obsoleteFolding),
        Row("white space before the first field (§2.2)", " A: b\r\n", .obsoleteFolding),
        Row("a space before the colon (§5.1)", "A : b\r\n", .spaceBeforeColon),
        Row("HTAB before the colon", "A\t: b\r\n", .spaceBeforeColon),
        Row("no name", ": b\r\n", .badFieldName),
        Row("no colon", "A\r\n", .badFieldName),
        Row("a name that is no token", "A(: b\r\n", .badFieldName),
        Row("a name beyond ASCII", "\u{E4}: b\r\n", .badFieldName),
        Row("a NUL in a name", "A\0: b\r\n", .badFieldName),
        Row("a NUL in a value", "A: b\0c\r\n", .controlInField),
        Row("another control in a value", "A: b\u{1B}c\r\n", .controlInField),
        Row("DEL in a value", "A: b\u{7F}\r\n", .controlInField),
        Row("a bare CR in a value", "A: b\rc\r\n", .bareCarriageReturn),
        Row("CR CR LF", "A: b\r\r\n", .bareCarriageReturn),
        Row("a bare LF at the end of a line", "A: b\nC: d\r\n", .bareLineFeed),
        Row("a bare LF for the empty line", "A: b\r\n\n", .bareLineFeed),
        Row("a bare CR for the empty line", "A: b\r\n\rX: y\r\n", .bareCarriageReturn),
    ]
    @Test(arguments: refused) func `is refused`(_ row: Row<FramingError>) {
        let request = Array("GET / HTTP/1.1\r\nHost: a\r\n".utf8) + row.bytes + [0x0D, 0x0A]
        let response = Array("HTTP/1.1 200 OK\r\nDate: x\r\n".utf8) + row.bytes + [0x0D, 0x0A]
        #expect(parseRequest(request)?.error == row.expect)
        #expect(parseResponse(response)?.error == row.expect)
        #expect(parseRequest(request, askedAt: Array(1...request.count))?.error == row.expect)
        // Behind vectors of good bytes the same.
        let long = Array("GET / HTTP/1.1\r\nHost: a\r\nLong: \(String(repeating: "x", count: 100))\r\n".utf8)
        #expect(parseRequest(long + row.bytes + [0x0D, 0x0A])?.error == row.expect)
    }

    static let accepted: [Row<String>] = [
        Row("white space around a value is not part of it", "A: \t b c\t \r\n", "b c"),
        Row("no white space", "A:b\r\n", "b"),
        Row("an empty value", "A:\r\n", ""),
        Row("nothing but white space", "A: \t\r\n", ""),
        Row("HTAB within", "A: b\tc\r\n", "b\tc"),
        Row("HTAB behind sixteen bytes", "A: 0123456789abcdefg\th\r\n", "0123456789abcdefg\th"),
        Row("colons within", "A: b:c\r\n", "b:c"),
        Row("all tchars in a name", "!#$%&'*+-.^_`|~019azAZ: b\r\n", "b"),
        Row("obs-text", "A: \u{80}\u{FF}\r\n", "\u{80}\u{FF}"),
    ]
    @Test(arguments: accepted) func `is accepted`(_ row: Row<String>) throws {
        let bytes = Array("GET / HTTP/1.1\r\nHost: a\r\n".utf8) + row.bytes + [0x0D, 0x0A]
        let result = try #require(parseRequest(bytes))
        #expect(result.error == nil)
        let line = try #require(result.fields.lines.last)
        #expect(Array(bytes[line.valueRange]) == row.expect.unicodeScalars.map { UInt8($0.value) })
    }

    @Test func `order, repetition and spelling are kept`() throws {
        let bytes = Array("GET / HTTP/1.1\r\nhOsT: a\r\nX-b: 1\r\nAccept: 2\r\nx-B: 3\r\n\r\n".utf8)
        let result = try #require(parseRequest(bytes))
        #expect(result.fields.lines.map { text(bytes[$0.nameRange]) } == ["hOsT", "X-b", "Accept", "x-B"])
        #expect(result.fields.lines.map(\.name) == [.host, .other, .accept, .other])
        #expect(result.fields.present == [.host, .other, .accept])
    }

    @Test func `every value byte is accepted or refused as the grammar says`() {
        for byte in UInt8.min...UInt8.max {
            for padding in [0, 3, 20] {
                let filler = [UInt8](repeating: 0x78, count: padding)
                let request =
                    Array("GET / HTTP/1.1\r\nHost: a\r\nA: x".utf8) + filler + [byte] + filler + Array("x\r\n\r\n".utf8)
                #expect((parseRequest(request)?.error == nil) == isFieldContent(byte), "byte \(byte)")
            }
        }
    }
}
