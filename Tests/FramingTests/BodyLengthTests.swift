import Framing
import Message
import Testing

@Suite("RFC 9112 §6.3 Message Body Length")
struct BodyLengthTests {
    enum Outcome: Sendable, Equatable {
        case length(BodyLength)
        case error(FramingError)
    }

    static func request(_ fields: String, version: String = "1.1") -> Outcome {
        let bytes = Array("POST / HTTP/\(version)\r\nHost: a\r\n\(fields)\r\n".utf8)
        var head = RequestHead()
        var progress = HeadProgress()
        do throws(FramingError) {
            guard try parseRequestHead(bytes.span, into: &head, progress: &progress, limits: Limits()) else {
                return .error(.badRequestLine)
            }
            return .length(try requestBodyLength(head, bytes: bytes.span))
        } catch { return .error(error) }
    }

    static func response(_ status: Int, _ fields: String, to method: Method, version: String = "1.1") -> Outcome {
        let bytes = Array("HTTP/\(version) \(status) x\r\n\(fields)\r\n".utf8)
        var head = ResponseHead()
        var progress = HeadProgress()
        do throws(FramingError) {
            guard try parseResponseHead(bytes.span, into: &head, progress: &progress, limits: Limits()) else {
                return .error(.badStatusLine)
            }
            return .length(try responseBodyLength(head, to: method, bytes: bytes.span))
        } catch { return .error(error) }
    }

    static let both: [Row<Outcome>] = [
        Row("chunked", "Transfer-Encoding: chunked\r\n", .length(.chunked)),
        Row("chunked in any case", "tRANSFER-encoding: ChUnKeD\r\n", .length(.chunked)),
        Row("chunked among empty elements", "Transfer-Encoding: , chunked ,\r\n", .length(.chunked)),
        Row("a length", "Content-Length: 5\r\n", .length(.length(5))),
        Row("no bytes", "Content-Length: 0\r\n", .length(.length(0))),
        Row("leading zeros", "Content-Length: 0005\r\n", .length(.length(5))),
        Row("as many zeros as fit", "Content-Length: 000000000000000000000000000005\r\n", .length(.length(5))),
        Row("2³¹ − 1", "Content-Length: 2147483647\r\n", .length(.length(1 << 31 - 1))),
        Row("2³¹ + 1", "Content-Length: 2147483649\r\n", .length(.length(1 << 31 + 1))),
        Row("2³² − 1", "Content-Length: 4294967295\r\n", .length(.length(1 << 32 - 1))),
        Row("2³² + 1", "Content-Length: 4294967297\r\n", .length(.length(1 << 32 + 1))),
        Row("fifteen digits", "Content-Length: 999999999999999\r\n", .length(.length(999_999_999_999_999))),
        Row("sixteen digits", "Content-Length: 1000000000000000\r\n", .length(.length(1_000_000_000_000_000))),
        Row("the greatest length", "Content-Length: 9007199254740991\r\n", .length(.length(1 << 53 - 1))),
        Row("one more", "Content-Length: 9007199254740992\r\n", .error(.badContentLength)),
        Row("one more, in a list", "Content-Length: 5, 9007199254740992\r\n", .error(.badContentLength)),
        Row("2⁶³ − 1", "Content-Length: 9223372036854775807\r\n", .error(.badContentLength)),
        Row("2⁶³", "Content-Length: 9223372036854775808\r\n", .error(.badContentLength)),
        Row("2⁶⁴ − 1", "Content-Length: 18446744073709551615\r\n", .error(.badContentLength)),
        Row("2⁶⁴", "Content-Length: 18446744073709551616\r\n", .error(.badContentLength)),
        Row("thirty digits", "Content-Length: 999999999999999999999999999999\r\n", .error(.badContentLength)),
        Row("an exponent", "Content-Length: 1e3\r\n", .error(.badContentLength)),
        Row("equal repeats are one", "Content-Length: 5\r\nContent-Length: 5\r\n", .length(.length(5))),
        Row("equal members are one", "Content-Length: 5, 5\r\n", .length(.length(5))),
        Row("differing repeats", "Content-Length: 5\r\nContent-Length: 6\r\n", .error(.differingContentLengths)),
        Row("differing members", "Content-Length: 5, 6\r\n", .error(.differingContentLengths)),
        Row("a sign", "Content-Length: +5\r\n", .error(.badContentLength)),
        Row("a minus", "Content-Length: -5\r\n", .error(.badContentLength)),
        Row("hexadecimal", "Content-Length: 0x5\r\n", .error(.badContentLength)),
        Row("a fraction", "Content-Length: 5.0\r\n", .error(.badContentLength)),
        Row("a space within", "Content-Length: 5 5\r\n", .error(.badContentLength)),
        Row("nothing", "Content-Length:\r\n", .error(.badContentLength)),
        Row("an empty member", "Content-Length: 5,\r\n", .error(.badContentLength)),
        Row(
            "both (rule 3)", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
            .error(.transferEncodingWithContentLength)),
        Row(
            "both, even where the length is zero", "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n",
            .error(.transferEncodingWithContentLength)),
        Row("chunked twice", "Transfer-Encoding: chunked, chunked\r\n", .error(.transferCodingNotFinal)),
        Row(
            "chunked twice in two lines", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            .error(.transferCodingNotFinal)),
        Row("chunked not last", "Transfer-Encoding: chunked, gzip\r\n", .error(.transferCodingNotFinal)),
        Row(
            "chunked not last, in two lines", "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
            .error(.transferCodingNotFinal)),
        Row("an empty field", "Transfer-Encoding:\r\n", .error(.transferCodingNotFinal)),
        Row("another coding", "Transfer-Encoding: gzip\r\n", .error(.transferCodingUnknown)),
        Row("another coding below", "Transfer-Encoding: gzip, chunked\r\n", .error(.transferCodingUnknown)),
        Row("a coding nobody knows", "Transfer-Encoding: xchunked\r\n", .error(.transferCodingUnknown)),
        Row("chunked with a parameter", "Transfer-Encoding: chunked;a=b\r\n", .error(.transferCodingUnknown)),
        Row("chunked in quotes", "Transfer-Encoding: \"chunked\"\r\n", .error(.transferCodingUnknown)),
        Row("chunked behind a vertical tab", "Transfer-Encoding: \u{0B}chunked\r\n", .error(.controlInField)),
        Row("chunked behind obs-text", "Transfer-Encoding: \u{A0}chunked\r\n", .error(.transferCodingUnknown)),
    ]
    @Test(arguments: both) func `is the same for requests and responses`(_ row: Row<Outcome>) {
        #expect(Self.request(row.input) == row.expect)
        #expect(Self.response(200, row.input, to: .get) == row.expect)
    }

    @Test func `a request without length fields has no body`() { #expect(Self.request("") == .length(.none)) }

    @Test func `a response without length fields lasts until the origin closes`() {
        #expect(Self.response(200, "", to: .get) == .length(.untilClose))
        #expect(Self.response(200, "Connection: close\r\n", to: .get, version: "1.0") == .length(.untilClose))
    }

    @Test func `Transfer-Encoding is refused in HTTP 1.0`() {
        #expect(Self.request("Transfer-Encoding: chunked\r\n", version: "1.0") == .error(.transferEncodingInHTTP10))
        #expect(
            Self.response(200, "Transfer-Encoding: chunked\r\n", to: .get, version: "1.0")
                == .error(.transferEncodingInHTTP10))
    }

    @Test(arguments: [100, 103, 199, 204, 304]) func `these never have a body (rule 1)`(_ status: Int) {
        for fields in ["", "Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n"] {
            #expect(Self.response(status, fields, to: .get) == .length(.none))
        }
    }

    @Test func `the response to HEAD has no body, but its Content-Length must be valid`() {
        #expect(Self.response(200, "Content-Length: 5\r\n", to: .head) == .length(.none))
        #expect(Self.response(200, "Transfer-Encoding: chunked\r\n", to: .head) == .length(.none))
        #expect(Self.response(200, "Content-Length: x\r\n", to: .head) == .error(.badContentLength))
    }

    @Test func `a successful CONNECT is a tunnel, whatever its fields say (rule 2)`() {
        #expect(Self.response(200, "Content-Length: 5\r\n", to: .connect) == .length(.tunnel))
        #expect(Self.response(299, "Transfer-Encoding: chunked\r\n", to: .connect) == .length(.tunnel))
        #expect(Self.response(407, "Content-Length: 5\r\n", to: .connect) == .length(.length(5)))
        #expect(Self.response(101, "", to: .get) == .length(.tunnel))
    }
}

@Suite("RFC 9112 §9.3 Persistence, RFC 9110 §7.6.1 Connection")
struct ConnectionOptionsTests {
    static func options(_ fields: String) throws -> ConnectionOptions {
        let bytes = Array("GET / HTTP/1.1\r\nHost: a\r\n\(fields)\r\n".utf8)
        var head = RequestHead()
        var progress = HeadProgress()
        _ = try parseRequestHead(bytes.span, into: &head, progress: &progress, limits: Limits())
        return ConnectionOptions(head.fields, bytes: bytes.span)
    }

    @Test func `options are read from all lines in any case`() throws {
        let options = try Self.options("Connection: CLOSE, X-a\r\nconnection: keep-alive,,Upgrade , x-B\r\n")
        #expect(options.close && options.keepAlive && options.upgrade)
        #expect(options.names.map { text($0) } == ["x-a", "x-b"])
        #expect(options.isNamed("X-A".utf8))
        #expect(!options.isNamed("X-C".utf8))
    }

    static let persistence: [(String, UInt8, Bool)] = [
        ("", 1, true), ("", 0, false), ("Connection: close\r\n", 1, false), ("Connection: keep-alive\r\n", 0, true),
        ("Connection: keep-alive, close\r\n", 0, false), ("Proxy-Connection: close\r\n", 1, false),
        ("Proxy-Connection: keep-alive\r\n", 0, false), ("Connection: closed\r\n", 1, true),
    ]
    @Test(arguments: persistence)
    func `a connection persists`(_ fields: String, _ minorVersion: UInt8, _ expected: Bool) throws {
        #expect(persists(minorVersion: minorVersion, try Self.options(fields)) == expected)
    }

    @Test func `hop-by-hop fields`() {
        let names = FieldName.allCases.filter(isHopByHop)
        #expect(
            names.map { text(bytes(of: $0.text)) } == [
                "Connection", "HTTP2-Settings", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authentication-Info",
                "Proxy-Authorization", "Proxy-Connection", "TE", "Transfer-Encoding", "Upgrade",
            ])
    }
}

@Suite("Keep-Alive (RFC 2068 §19.7.1)")
struct KeepAliveTests {
    static let rows: [(value: String?, seconds: Int64?)] = [
        (nil, nil), ("timeout=5", 5), ("timeout=5, max=100", 5), ("max=100,timeout=15", 15), ("Timeout=7", 7),
        ("timeout=", nil), ("timeout=-1", nil), ("timeout=5s", nil), ("max=3", nil), ("", nil),
        ("timeout=99999999999999999999", 1 << 31),
    ]

    @Test(arguments: rows) func `the timeout of Keep-Alive is read`(
        _ row: (value: String?, seconds: Int64?)
    ) {
        var fields = Fields()
        if let value = row.value { fields.append(.keepAlive, value) }
        #expect(keepAliveTimeout(fields)?.count == row.seconds)
    }
}
