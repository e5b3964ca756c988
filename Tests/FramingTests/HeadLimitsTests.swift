import Framing
import Message
import Testing

@Suite("Bounds of a head (RFC 9110 §4.1, §5.4)")
struct HeadLimitsTests {
    static func limits(head: Int = 64 << 10, fields: Int = 100, target: Int = 8 << 10) -> Limits {
        var limits = Limits()
        (limits.headBytesMax, limits.fieldCountMax, limits.targetBytesMax) = (head, fields, target)
        return limits
    }

    /// Whole and byte by byte.
    static func errors(_ input: String, _ limits: Limits) -> [FramingError?] {
        let bytes = Array(input.utf8)
        return [nil, Array(1...bytes.count)].map { parseRequest(bytes, askedAt: $0, limits: limits)?.error }
    }

    @Test func `a head of the largest size is accepted, and one byte more is refused with 431`() {
        let request = "GET / HTTP/1.1\r\nHost: a\r\nLong: \(String(repeating: "x", count: 200))\r\n\r\n"
        #expect(Self.errors(request, Self.limits(head: request.utf8.count)) == [nil, nil])
        #expect(Self.errors(request, Self.limits(head: request.utf8.count - 1)) == [.headTooLarge, .headTooLarge])
        #expect(FramingError.headTooLarge.requestStatus == 431)
    }

    @Test func `a head that cannot end within its bounds is refused before it ends`() {
        let start = "GET / HTTP/1.1\r\nHost: a\r\nLong: "
        let request = start + String(repeating: "x", count: 100 - start.utf8.count)
        #expect(Self.errors(request, Self.limits(head: 101)) == [nil, nil])
        #expect(Self.errors(request, Self.limits(head: 100)) == [.headTooLarge, .headTooLarge])
    }

    @Test func `the largest number of fields is accepted, and one more is refused with 431`() {
        let request = "GET / HTTP/1.1\r\nHost: a\r\nA: b\r\nC: d\r\n\r\n"
        #expect(Self.errors(request, Self.limits(fields: 3)) == [nil, nil])
        #expect(Self.errors(request, Self.limits(fields: 2)) == [.tooManyFields, .tooManyFields])
        #expect(FramingError.tooManyFields.requestStatus == 431)
    }

    @Test func `a target of the largest length is accepted, and one byte more is refused with 414`() {
        let request = "GET /\(String(repeating: "x", count: 99)) HTTP/1.1\r\nHost: a\r\n\r\n"
        #expect(Self.errors(request, Self.limits(target: 100)) == [nil, nil])
        #expect(Self.errors(request, Self.limits(target: 99)) == [.targetTooLong, .targetTooLong])
        #expect(FramingError.targetTooLong.requestStatus == 414)
    }

    @Test func `a request line without an end is refused with 414`() {
        let request = "GET /\(String(repeating: "x", count: 1000))"
        #expect(Self.errors(request, Self.limits(target: 500)) == [.targetTooLong, .targetTooLong])
    }

    @Test func `a response head that is too large has its error type of RFC 9209`() {
        let response = Array("HTTP/1.1 200 OK\r\nA: b\r\n\r\n".utf8)
        let error = parseResponse(response, limits: Self.limits(head: response.count - 1))?.error
        #expect(error == .headTooLarge)
        #expect(error?.proxyStatusError.description == "http_response_header_section_size")
    }

    @Test func `a head that arrives byte by byte costs linear time`() throws {
        let request = Array("GET / HTTP/1.1\r\nHost: a\r\nLong: \(String(repeating: "x", count: 60_000))\r\n\r\n".utf8)
        var head = RequestHead()
        var progress = HeadProgress()
        // Quadratic time would be two thousand million bytes here.
        for count in 1..<request.count {
            let isWhole = try parseRequestHead(
                request.span.extracting(0..<count), into: &head, progress: &progress, limits: Limits())
            #expect(!isWhole)
        }
        #expect(try parseRequestHead(request.span, into: &head, progress: &progress, limits: Limits()))
    }

    @Test func `each error has its own name and a status`() {
        #expect(Set(FramingError.allCases.map(\.reason)).count == FramingError.allCases.count)
        let statuses = Dictionary(grouping: FramingError.allCases, by: \.requestStatus)
        #expect(Set(statuses.keys) == [400, 414, 431, 501, 505])
        #expect(statuses[501] == [.transferCodingUnknown])
        #expect(statuses[505] == [.versionNotSupported])
        #expect(FramingError.transferCodingUnknown.proxyStatusError.description == "http_response_transfer_coding")
        #expect(FramingError.badStatusLine.proxyStatusError.description == "http_protocol_error")
    }
}
