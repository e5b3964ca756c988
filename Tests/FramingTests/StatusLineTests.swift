import Framing
import Message
import Testing

@Suite("RFC 9112 §4 Status Line")
struct StatusLineTests {
    struct Line: Sendable {
        var status: UInt16
        var reason: String
        var minorVersion: UInt8 = 1
    }
    static let accepted: [Row<Line>] = [
        Row("status and reason", "HTTP/1.1 200 OK\r\n", Line(status: 200, reason: "OK")),
        Row("an empty reason", "HTTP/1.1 200 \r\n", Line(status: 200, reason: "")),
        Row("the second space forgotten", "HTTP/1.1 200\r\n", Line(status: 200, reason: "")),
        Row("a reason with spaces and HTAB", "HTTP/1.1 404 Not \tFound\r\n", Line(status: 404, reason: "Not \tFound")),
        Row("HTTP/1.0", "HTTP/1.0 302 Found\r\n", Line(status: 302, reason: "Found", minorVersion: 0)),
        Row("the lowest status", "HTTP/1.1 100 Continue\r\n", Line(status: 100, reason: "Continue")),
        Row("the highest status that is valid", "HTTP/1.1 599 x\r\n", Line(status: 599, reason: "x")),
        Row("the lowest above the five classes (§15)", "HTTP/1.1 600 x\r\n", Line(status: 600, reason: "x")),
        Row("the highest of three digits", "HTTP/1.1 999 Denied\r\n", Line(status: 999, reason: "Denied")),
    ]
    @Test(arguments: accepted) func `is accepted`(_ row: Row<Line>) throws {
        let result = try #require(parseResponse(row.bytes + [0x0D, 0x0A]))
        #expect(result.error == nil)
        #expect(result.status == row.expect.status)
        #expect(result.reason == row.expect.reason)
        #expect(result.minorVersion == row.expect.minorVersion)
        #expect(result.byteCount == row.bytes.count + 2)
    }

    static let refused: [Row<FramingError>] = [
        Row("SHOUTcast", "ICY 200 OK\r\n", .badStatusLine),
        Row("something else, at once", "<html>", .badStatusLine),
        Row("an empty line in front", "\r\nHTTP/1.1 200 OK\r\n", .badStatusLine),
        Row("a status of two digits", "HTTP/1.1 20 OK\r\n", .badStatus),
        Row("a status of four digits", "HTTP/1.1 2000 OK\r\n", .badStatus),
        Row("a status that is no number", "HTTP/1.1 2x0 OK\r\n", .badStatus),
        Row("a status below 100", "HTTP/1.1 099 OK\r\n", .badStatus),
        Row("no status at all", "HTTP/1.1 000 OK\r\n", .badStatus),
        Row("a status of four digits above 999", "HTTP/1.1 1000 OK\r\n", .badStatus),
        Row("a status with a sign", "HTTP/1.1 +20 OK\r\n", .badStatus),
        Row("no status", "HTTP/1.1\r\nA: 1234567\r\n", .badStatusLine),
        Row("no status, nothing behind", "HTTP/1.1\r\n", .badStatusLine),
        Row("a line cut short", "HTTP\r\n", .badStatusLine),
        Row("two spaces", "HTTP/1.1  200 OK\r\n", .badStatus),
        Row("HTTP/2", "HTTP/2.0 200 OK\r\n", .versionNotSupported),
        Row("version without a minor", "HTTP/2 200 OK\r\n", .badStatusLine),
        Row("version in lower case", "http/1.1 200 OK\r\n", .badStatusLine),
        Row("a NUL in the reason", "HTTP/1.1 200 O\0K\r\n", .badStatusLine),
        Row("a bare LF", "HTTP/1.1 200 OK\n\r\n", .bareLineFeed),
        Row("a bare LF after the status", "HTTP/1.1 200\n", .bareLineFeed),
        Row("a bare CR", "HTTP/1.1 200 OK\rX\r\n", .bareCarriageReturn),
    ]
    @Test(arguments: refused) func `is refused`(_ row: Row<FramingError>) {
        #expect(parseResponse(row.bytes)?.error == row.expect)
        #expect(parseResponse(row.bytes, askedAt: Array(1...row.bytes.count))?.error == row.expect)
    }
}
