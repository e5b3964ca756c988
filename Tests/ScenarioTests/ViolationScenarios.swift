import Framing
import ProgramUnderTest
import Server
import Testing

/// Messages that break one rule of HTTP/1.1, as bytes on a wire.
private struct Offence {
    /// A whole head, up to the empty line or as far as the violation shows. `HOST` stands for an origin that accepts connections.
    var request: String?
    /// The head of a response.
    var response: String?
    /// What follows `Transfer-Encoding: chunked`, in a request and in a response.
    var chunks: String?

    init(request: String? = nil, response: String? = nil) {
        self.request = request
        self.response = response
    }

    /// The violation is in a field: a request and a response break it alike.
    init(field: String) {
        request = "GET http://HOST/ HTTP/1.1\r\nHost: HOST\r\n\(field)\r\n\r\n"
        response = "HTTP/1.1 200 OK\r\n\(field)\r\n\r\n"
    }

    init(chunks: String) { self.chunks = chunks }

    /// The violation is in the target.
    init(method: String = "GET", target: String) { request = "\(method) \(target) HTTP/1.1\r\nHost: h\r\n\r\n" }
}

extension FramingError {
    /// A new violation does not compile until it says who commits it.
    fileprivate var offence: Offence {
        switch self {
        case .badRequestLine: Offence(request: "GET  http://h/ HTTP/1.1\r\nHost: h\r\n\r\n")
        case .badMethod: Offence(method: "G(T", target: "http://h/")
        case .badVersion: Offence(request: "GET http://h/ HTTQ/1.1\r\nHost: h\r\n\r\n")
        case .versionNotSupported:
            Offence(
                request: "GET http://h/ HTTP/3.0\r\nHost: h\r\n\r\n",
                response: "HTTP/3.0 200 OK\r\nContent-Length: 0\r\n\r\n")
        case .badStatusLine: Offence(response: "HTTP/1.1-200 OK\r\n\r\n")
        case .badStatus: Offence(response: "HTTP/1.1 2x0 OK\r\n\r\n")
        case .targetTooLong: Offence(target: "http://h/\(String(repeating: "a", count: 9000))")
        case .badTarget: Offence(target: "http://h/\u{1}")
        case .fragmentInTarget: Offence(target: "http://h/#part")
        case .userinfoInTarget: Offence(target: "http://name:word@h/")
        case .schemeNotSupported: Offence(target: "ftp://h/")
        case .badHostInTarget: Offence(target: "http:///a")
        case .badPort: Offence(target: "http://h:99999/")
        case .formNotForMethod: Offence(target: "h:80")
        case .headTooLarge: Offence(field: "X: \(String(repeating: "a", count: 70_000))")
        case .tooManyFields:
            Offence(field: (0...100).map { "X\($0): a" }.joined(separator: "\r\n"))
        case .bareLineFeed:
            Offence(request: "GET http://h/ HTTP/1.1\nHost: h\r\n\r\n", response: "HTTP/1.1 200 OK\n\r\n")
        case .bareCarriageReturn:
            Offence(request: "GET http://h/ HTTP/1.1\rHost: h\r\n\r\n", response: "HTTP/1.1 200 OK\rX: a\r\n\r\n")
        case .controlInField: Offence(field: "X: a\u{1}b")
        case .obsoleteFolding: Offence(field: "X: a\r\n b")
        case .spaceBeforeColon: Offence(field: "X : a")
        case .badFieldName: Offence(field: "X(: a")
        case .missingHost: Offence(request: "GET http://h/ HTTP/1.1\r\n\r\n")
        case .repeatedHost: Offence(request: "GET http://h/ HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n")
        case .badHost: Offence(request: "GET http://h/ HTTP/1.1\r\nHost: a b\r\n\r\n")
        case .transferEncodingWithContentLength: Offence(field: "Transfer-Encoding: chunked\r\nContent-Length: 1")
        case .transferEncodingInHTTP10:
            Offence(
                request: "POST http://h/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
                response: "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        case .transferCodingUnknown: Offence(field: "Transfer-Encoding: gzip, chunked")
        case .transferCodingNotFinal: Offence(field: "Transfer-Encoding: chunked, chunked")
        case .badContentLength: Offence(field: "Content-Length: +1")
        case .differingContentLengths: Offence(field: "Content-Length: 1\r\nContent-Length: 2")
        case .badChunkSize: Offence(chunks: "no size\r\n")
        case .badChunkExtension: Offence(chunks: "1;(\r\n")
        case .chunkLineTooLong: Offence(chunks: "1;a=\(String(repeating: "b", count: 2000))\r\n")
        case .badChunkEnd: Offence(chunks: "1\r\naXX")
        case .trailersTooLarge:
            Offence(chunks: "0\r\nX: \(String(repeating: "a", count: 20_000))\r\n\r\n")
        }
    }
}

@Suite("Every violation of HTTP/1.1 is provoked")
struct ViolationScenarios {
    @Test(arguments: FramingError.allCases.filter { $0.offence.request != nil })
    func `a request whose head commits it is refused`(_ violation: FramingError) throws {
        let request = try #require(violation.offence.request)
        try scenario { s in
            let client = try s.client()
            try client.send(request.replacing("HOST", with: s.origin.authority))
            let answer = try client.response()
            #expect(answer.status == Int(violation.requestStatus), "\(answer)")
            #expect(
                answer["Proxy-Status"] == "larder; error=http_request_error; details=\"\(violation.reason)\"",
                "\(answer)")
            #expect(answer.cacheStatus == "larder; detail=\(violation.reason)")
            #expect(try s.stat(.refusals, violation.reason) == 1)
            #expect(try s.stat(.peers, "violations") == 1)
            client.wire.finishWriting()
            try s.eventually("the close is counted") { s.closes(.malformedRequest) == 1 }
            let lines = try s.logLines()
            #expect(lines.count == 1)
            let word = "\"outcome\":\"refused\",\"reason\":\"\(violation.reason)\""
            #expect(lines.first?.contains(word) == true, "\(lines)")
        }
    }

    @Test(arguments: FramingError.allCases.filter { $0.offence.response != nil })
    func `a response whose head commits it becomes a 502 with its error type`(_ violation: FramingError) throws {
        let response = try #require(violation.offence.response)
        try scenario { s in
            s.origin.expects("POST /a").sends(response).closes()
            let answer = try s.client().request("POST", "/a", body: "x")
            #expect(answer.status == 502, "\(answer)")
            #expect(
                answer["Proxy-Status"]
                    == "larder; error=\(violation.proxyStatusError); details=\"\(violation.reason)\"", "\(answer)")
            #expect(answer.cacheStatus == "larder; fwd=method; detail=response-invalid")
            #expect(try s.stat(.errors, "http_protocol_error") == 1)
            #expect(try s.stat(.refusals, violation.reason) == 1)
            #expect(try s.stat(.peers, "violations") == 1)
            let lines = try s.logLines()
            let word = "\"outcome\":\"error\",\"reason\":\"\(violation.reason)\""
            #expect(lines.first?.contains(word) == true, "\(lines)")
        }
    }

    @Test(arguments: FramingError.allCases.filter { $0.offence.chunks != nil })
    func `a request whose body commits it is refused`(_ violation: FramingError) throws {
        let chunks = try #require(violation.offence.chunks)
        let origin = try Unanswering.Listener()
        try scenario { s in
            let client = try s.client()
            try client.ask("POST", "http://127.0.0.1:\(origin.port)/", ["Transfer-Encoding: chunked"])
            try client.send(chunks)
            let answer = try client.response()
            #expect(answer.status == 400, "\(answer)")
            #expect(try s.stat(.refusals, "malformed-request-body") == 1)
            #expect(try s.stat(.refusals, violation.reason) == 1)
            #expect(try s.stat(.peers, "violations") == 1)
            client.wire.finishWriting()
            try s.eventually("the close is counted") { s.closes(.malformedBody) == 1 }
        }
    }

    @Test(arguments: FramingError.allCases.filter { $0.offence.chunks != nil })
    func `a response whose body commits it ends too early`(_ violation: FramingError) throws {
        let chunks = try #require(violation.offence.chunks)
        try scenario { s in
            s.origin.expects("GET /a").sends(
                "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nTransfer-Encoding: chunked\r\n\r\n\(chunks)"
            ).closes()
            let client = try s.client()
            let answer = try client.get("/a")
            #expect(answer.status == 502 || !answer.isWhole, "\(answer)")
            #expect(try s.stat(.refusals, violation.reason) == 1)
            #expect(try s.stat(.peers, "violations") == 1)
        }
    }

    @Test(arguments: FramingError.allCases) func `every violation is committed by somebody`(_ violation: FramingError) {
        let offence = violation.offence
        #expect(offence.request != nil || offence.response != nil || offence.chunks != nil)
    }

    /// RFC 9209 §2.3: each error type that a violation has is seen by a client.
    @Test func `a client sees each error type of a violation`() {
        let all = Set(FramingError.allCases.map { "\($0.proxyStatusError)" })
        let seen = FramingError.allCases.filter { $0.offence.response != nil }.map { "\($0.proxyStatusError)" }
        #expect(all == Set(seen))
    }
}
