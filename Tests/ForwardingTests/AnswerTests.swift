import Access
import Authentication
import Caching
import ClientSetup
import Forwarding
import Framing
import JSON
import Message
import Testing
import Transaction

let now = WallTime(secondsSinceEpoch: 784_111_777)

/// A stored response of `length` bytes, and what one request gets of it.
func answer(
    _ request: ReceivedRequest, length: Int? = 10, status: UInt16 = 200, coding: CodingChoice = .asStored,
    addsVary: Bool = false, persists: Bool = true
) throws -> (form: AnswerForm, lines: [String]) {
    let stored = try response(
        "HTTP/1.1 200 OK", "Content-Type: text/plain", "ETag: \"a\"", "Cache-Control: max-age=60",
        "Date: Sun, 06 Nov 1994 08:49:37 GMT")
    let cached = CachedResponse(
        status: status, fields: stored.fields, requestTime: now, responseTime: now, policy: CachePolicy())
    let bytes = request.bytes
    let cache = CacheRequest(method: request.method, fields: request.head.fields, bytes: bytes.span)
    let form = AnswerForm(
        of: cached, stored.fields, to: request, cache, length: length, coding: coding, addsVary: addsVary, now: now,
        boundary: { Array("B".utf8) })
    var out: [UInt8] = []
    form.appendHead(
        of: .init(
            status: status, wire: Array("HTTP/1.1 200 OK\r\nETag: \"a\"\r\nAge: ".utf8), hasLength: false),
        fields: stored.fields, .init(age: Seconds(7), cacheStatus: CacheStatus(.hit), label: []),
        minorVersion: request.head.minorVersion,
        persists: persists, to: &out)
    return (form, text(out.dropLast(4)).split(separator: "\r\n").map(String.init))
}

@Suite("RFC 9110 §14, §15.4.5 The form of a stored answer")
struct AnswerFormTests {
    @Test func `a request without range and conditions gets the stored response unchanged`() throws {
        let (form, lines) = try answer(try request("GET http://h/ HTTP/1.1", "Host: h"))
        #expect(form.status == 200 && form.hasBody && form.framing == .length(10))
        #expect(
            lines == ["HTTP/1.1 200 OK", "ETag: \"a\"", "Age: 7", "Cache-Status: larder; hit", "Content-Length: 10"])
    }

    static let lengths: [(line: String, length: Int?, framing: ForwardedHead.Framing, hasBody: Bool, ends: Bool)] = [
        ("GET http://h/ HTTP/1.1", nil, .chunked, true, false),
        ("GET http://h/ HTTP/1.0", nil, .untilClose, true, true),
        ("HEAD http://h/ HTTP/1.1", 10, .length(10), false, false),
        ("HEAD http://h/ HTTP/1.0", nil, .untilClose, false, false),
        ("GET http://h/ HTTP/1.1", 0, .length(0), false, false),
    ]
    @Test(arguments: lengths) func `the framing follows from the length and the client's version`(
        _ row: (line: String, length: Int?, framing: ForwardedHead.Framing, hasBody: Bool, ends: Bool)
    ) throws {
        let (form, lines) = try answer(try request(row.line, "Host: h"), length: row.length)
        #expect(form.framing == row.framing && form.hasBody == row.hasBody && form.endsWithConnection == row.ends)
        #expect(lines.contains("Connection: close") == row.ends)
    }

    @Test func `§15.4.5: a 304 has no fields that describe the content`() throws {
        let (form, lines) = try answer(try request("GET http://h/ HTTP/1.1", "Host: h", "If-None-Match: \"a\""))
        #expect(form.status == 304 && !form.hasBody)
        #expect(lines.first == "HTTP/1.1 304 Not Modified")
        #expect(lines.contains("ETag: \"a\""))
        #expect(lines.contains("Cache-Control: max-age=60"))
        #expect(!lines.contains { $0.hasPrefix("Content-") })
    }

    @Test func `§14.4: one range is answered with 206 and Content-Range`() throws {
        let (form, lines) = try answer(try request("GET http://h/ HTTP/1.1", "Host: h", "Range: bytes=2-4"))
        #expect(form.status == 206 && form.framing == .length(3))
        #expect(lines.contains("Content-Range: bytes 2-4/10"))
        #expect(lines.contains("Content-Length: 3"))
        #expect(lines.contains("Content-Type: text/plain"))
    }

    @Test func `§15.5.17: an unsatisfiable range is answered with 416`() throws {
        let (form, lines) = try answer(try request("GET http://h/ HTTP/1.1", "Host: h", "Range: bytes=10-"))
        #expect(form.status == 416 && !form.hasBody)
        #expect(lines.contains("Content-Range: bytes */10"))
        #expect(lines.contains("Content-Length: 0"))
        #expect(!lines.contains("Content-Type: text/plain"))
    }

    @Test func `§14.6: several ranges are answered as multipart`() throws {
        let (form, lines) = try answer(try request("GET http://h/ HTTP/1.1", "Host: h", "Range: bytes=0-1,8-9"))
        guard case .ranges(let parts) = form.content else {
            Issue.record("\(form.content)")
            return
        }
        let content = Array("0123456789".utf8)
        let body = parts.parts.reduce(into: [UInt8]()) { $0 += $1.head + content[$1.range] } + parts.closing
        #expect(
            text(body) == """
                --B\r\nContent-Type: text/plain\r\nContent-Range: bytes 0-1/10\r\n\r\n01\r\n\
                --B\r\nContent-Type: text/plain\r\nContent-Range: bytes 8-9/10\r\n\r\n89\r\n--B--\r\n
                """)
        #expect(parts.length == body.count)
        #expect(lines.contains("Content-Type: multipart/byteranges; boundary=B"))
        #expect(lines.contains("Content-Length: \(body.count)"))
        #expect(!lines.contains("Content-Type: text/plain"))
    }

    @Test func `§14.2: a Range is ignored if the coding is changed or the length is unknown`() throws {
        let ranged = try request("GET http://h/ HTTP/1.1", "Host: h", "Range: bytes=0-1")
        #expect(try answer(ranged, length: nil).form.status == 200)
        let (form, lines) = try answer(ranged, length: nil, coding: .gzipped)
        #expect(form.status == 200)
        #expect(lines.contains("Content-Encoding: gzip") && lines.contains("ETag: W/\"a\""))
    }

    @Test func `§12.5.5: Vary is added if another client would get another coding`() throws {
        let (_, lines) = try answer(try request("GET http://h/ HTTP/1.1", "Host: h"), addsVary: true)
        #expect(lines.contains("Vary: Accept-Encoding"))
    }
}

@Suite("RFC 9112 §6.3, RFC 9110 §8.6 The head of a response that is passed on")
struct RelayedHeadTests {
    static let rows: [(request: String, length: BodyLength, framing: ForwardedHead.Framing, end: String)] = [
        ("GET http://h/ HTTP/1.1", .length(3), .length(3), "Content-Length: 3\r\n\r\n"),
        ("GET http://h/ HTTP/1.1", .chunked, .chunked, "Transfer-Encoding: chunked\r\n\r\n"),
        ("GET http://h/ HTTP/1.1", .untilClose, .chunked, "Transfer-Encoding: chunked\r\n\r\n"),
        ("GET http://h/ HTTP/1.0", .chunked, .untilClose, "Connection: close\r\n\r\n"),
        ("GET http://h/ HTTP/1.0", .length(3), .length(3), "Content-Length: 3\r\nConnection: keep-alive\r\n\r\n"),
        // What GET would have been answered with.
        ("HEAD http://h/ HTTP/1.1", .none, .none, "Content-Length: 9\r\n\r\n"),
    ]
    @Test(arguments: rows) func `the framing is chosen for the client`(
        _ row: (request: String, length: BodyLength, framing: ForwardedHead.Framing, end: String)
    ) throws {
        let received = try request(row.request, "Host: h")
        let answer = try response("HTTP/1.1 200 OK", "Date: x", "X: 1", "Content-Length: 9")
        let head = RelayedHead(
            status: 200, length: row.length, to: received.method, minorVersion: received.head.minorVersion,
            reason: .uriMiss, detail: .noStore)
        var bytes: [UInt8] = []
        head.append(answer, persists: true, now: now, to: &bytes)
        #expect(head.framing == row.framing)
        #expect(
            text(bytes) == """
                HTTP/1.1 200 OK\r\nDate: x\r\nX: 1\r\nVia: 1.1 larder\r\n\
                Cache-Status: larder; fwd=uri-miss; fwd-status=200; detail=\(NotStoredReason.noStore.token)\r\n\(row.end)
                """)
    }

    @Test(arguments: ["GET", "HEAD"]) func `a 204 has no Content-Length`(_ method: String) throws {
        let received = try request("\(method) http://h/ HTTP/1.1", "Host: h")
        let head = RelayedHead(
            status: 204, length: .none, to: received.method, minorVersion: 1, reason: .method, detail: nil)
        var bytes: [UInt8] = []
        head.append(try response("HTTP/1.1 204 No Content", "Content-Length: 9"), persists: true, now: now, to: &bytes)
        #expect(head.framing == .none)
        #expect(!text(bytes).contains("Content-Length"))
    }
}

@Suite("RFC 9211 §2 Cache-Status of stored responses")
struct ServiceTests {
    static let rows: [(service: Service, text: String)] = [
        (.hit, "larder; hit; ttl=3"), (.stale, "larder; hit; ttl=3"),
        (.collapsed, "larder; fwd=uri-miss; ttl=3; collapsed"),
        (.part(status: 0), "larder; fwd=partial; ttl=3; stored"),
        (.part(status: 206), "larder; fwd=partial; fwd-status=206; ttl=3; stored"),
        (.revalidated(.stale, notStored: nil), "larder; fwd=stale; fwd-status=304; ttl=3; stored"),
        (
            .revalidated(.request, notStored: .requestNoStore),
            "larder; fwd=request; fwd-status=304; ttl=3; detail=request-no-store"
        ),
        (.miss(.varyMiss, status: 200), "larder; fwd=vary-miss; fwd-status=200; ttl=3; stored"),
        (.staleOnError(.stale, status: 0), "larder; fwd=stale; ttl=3; detail=stale-on-error"),
        (.staleOnError(.stale, status: 503), "larder; fwd=stale; fwd-status=503; ttl=3; detail=stale-on-error"),
    ]
    static let authorities: [(service: Service, isFresh: Bool, authority: Service.Authority)] = [
        (.hit, true, .store), (.shared, true, .store), (.revalidated(.stale, notStored: nil), false, .store),
        (.peer(.uriMiss, status: 200, isHit: true), true, .store),
        (.peer(.uriMiss, status: 200, isHit: false), false, .origin), (.miss(.uriMiss, status: 200), false, .origin),
        (.collapsed, true, .origin), (.collapsed, false, .nobody), (.part(status: 206), true, .origin),
        (.part(status: 206), false, .nobody), (.stale, false, .nobody),
        (.staleOnError(.stale, status: 503), false, .nobody),
    ]
    @Test(arguments: authorities) func `what is stale has nobody's word`(
        _ row: (service: Service, isFresh: Bool, authority: Service.Authority)
    ) {
        #expect(row.service.authority(isFresh: row.isFresh) == row.authority)
    }

    @Test(arguments: rows) func `each way of serving has its own Cache-Status`(_ row: (service: Service, text: String))
    {
        var bytes: [UInt8] = []
        row.service.cacheStatus(ttl: Seconds(3)).append(to: &bytes)
        #expect(text(bytes) == row.text)
    }
}

@Suite("RFC 9209, RFC 9211 §2.2 Errors that Larder makes")
struct ErrorResponseTests {
    func rendered(
        _ refusal: Refusal, accept: String = "*/*", denial: Denial? = nil,
        forwardReason: CacheStatus.ForwardReason? = nil
    ) throws -> String {
        let received = try request("GET http://h/<a> HTTP/1.1", "Host: h", "Accept: \(accept)")
        var out: [UInt8] = []
        ErrorResponse(
            refusal, to: received, requestID: "0123456789abcdef", uri: Array("http://h/<a>".utf8), denial: denial,
            challenges: [Array("Basic realm=\"x\"".utf8)], forwardReason: forwardReason
        ).append(isHead: false, persists: true, date: now, to: &out)
        return text(out)
    }

    @Test(arguments: Refusal.allCases) func `the error for a request that was not forwarded has no fwd`(
        _ refusal: Refusal
    ) throws {
        #expect(try rendered(refusal).contains("\r\nCache-Status: larder; detail=\(refusal.name)\r\n"))
        #expect(
            try rendered(refusal, forwardReason: .uriMiss)
                .contains("\r\nCache-Status: larder; fwd=uri-miss; detail=\(refusal.name)\r\n"))
    }

    @Test(arguments: Refusal.allCases) func `each error names its type, and only 407 has a challenge`(
        _ refusal: Refusal
    )
        throws
    {
        let page = try rendered(refusal)
        #expect(page.hasPrefix("HTTP/1.1 \(refusal.status) "))
        #expect(
            page.contains(
                "\r\nProxy-Status: larder; error=\(refusal.proxyStatusError); details=\"\(refusal.name)\"\r\n"))
        #expect(page.hasSuffix("\(refusal.explanation)\nhttp://h/<a>\nRequest ID: 0123456789abcdef\n"))
        #expect(page.contains("Proxy-Authenticate: ") == (refusal.status == 407))
    }

    @Test func `the error of a denial names the rule`() throws {
        let denial = Denial(rule: 3, reason: .rule, text: "not \"on\" the list")
        let page = try rendered(.accessDenied, denial: denial)
        #expect(page.contains("details=\"not \\\"on\\\" the list\"\r\n"))
        #expect(page.contains("\nrule 3: not \"on\" the list\n"))
    }

    static let denyRows: [(refusal: Refusal, denial: Denial?, field: String?)] = [
        (
            .accessDenied, Denial(rule: 7, reason: .rule, text: "x"),
            "reason=rule; rule=7; hint=\"Ask the administrator of the proxy whether this request can be allowed.\""
        ),
        (
            .tunnelPortForbidden, Denial(reason: .connectPort, text: "x"),
            "reason=connect-port; hint=\"\(DenialReason.connectPort.hint)\""
        ),
        (.tooYoung, nil, "reason=too-young; hint=\"\(Refusal.tooYoung.explanation)\""),
        (.authenticationRequired, nil, nil), (.authenticationBusy, nil, nil), (.nameNotFound, nil, nil),
    ]
    @Test(arguments: denyRows.indices) func `403 has Larder-Deny, and nothing else has`(_ index: Int) throws {
        let row = Self.denyRows[index]
        let page = try rendered(row.refusal, denial: row.denial)
        let line = page.split(separator: "\r\n").first { $0.hasPrefix("Larder-Deny: ") }
        #expect(line.map(String.init) == row.field.map { "Larder-Deny: \($0)" })
        guard let field = row.field else { return }
        #expect(parseStructuredDictionary(field.utf8) != nil, "RFC 9651 §3.2")
    }

    static func shortfall(_ conditions: (inout AccessRule.Conditions) -> Void) throws -> Denial {
        var settings = AccessSettings()
        var allowed = AccessRule.Conditions()
        conditions(&allowed)
        settings.rules = [AccessRule(effect: .allow, conditions: allowed, number: 1)]
        let destination = try #require(DestinationHost("h.example".utf8))
        let asked = AccessRequest(
            client: nil, method: .connect, destination: destination, port: 444, isTunnel: true)
        guard case .deny(let denial) = AccessPolicy(from: settings).decide(asked, address: nil) else {
            throw RequestError()
        }
        return denial
    }
    struct RequestError: Error {}

    @Test func `the nearest rule is in the field and in each form of the page`() throws {
        let denial = try Self.shortfall { $0.ports = [443...443] }
        let sentence = "rule 1 allows this host, but only to port 443"
        let text = try rendered(.accessDenied, denial: denial)
        #expect(text.contains("Larder-Deny: reason=port-not-allowed; nearest=1; hint=\"\(sentence)\"\r\n"))
        #expect(text.contains("no rule allows CONNECT to h.example:444\n\(sentence)\n"))
        let page = try rendered(.accessDenied, accept: "text/html", denial: denial)
        #expect(page.contains("<p>\(sentence)</p>") && page.contains("port-not-allowed<br>"))
        for type in ["application/json", "application/problem+json"] {
            let json = try rendered(.accessDenied, accept: type, denial: denial)
            #expect(json.contains("\r\nContent-Type: \(type)\r\n"))
            #expect(json.contains("{\"status\":403,\"title\":\"Forbidden\",\"error\":\"access-denied\""))
            #expect(json.contains(",\"reason\":\"port-not-allowed\",\"nearest_rule\":1,\"hint\":\"\(sentence)\""))
        }
    }

    @Test func `a refused CONNECT says why in its reason phrase, in one line of bounded length`() throws {
        func phrase(_ reason: String, _ line: String = "CONNECT h:443 HTTP/1.1") throws -> String {
            var out: [UInt8] = []
            ErrorResponse(
                .accessDenied, to: try request(line, "Host: h:443"), requestID: "", uri: [],
                denial: Denial(rule: 1, reason: .rule, text: reason), forwardReason: nil
            ).append(isHead: false, persists: false, date: now, to: &out)
            return String(text(out).prefix { $0 != "\r\n" })
        }
        #expect(try phrase("not on the list") == "HTTP/1.1 403 Forbidden: not on the list")
        #expect(try phrase("a\r\nX: y\u{1B}\u{E9}\u{7F}") == "HTTP/1.1 403 Forbidden: a  X: y ???")
        #expect(try phrase(String(repeating: "x", count: 9999)).utf8.count == 13 + 256)
        #expect(try phrase("no", "GET http://h/ HTTP/1.1") == "HTTP/1.1 403 Forbidden")
    }

    @Test func `what a rule says cannot leave the place where it is shown`() throws {
        // A mark in front of "<" or behind a quote makes one character of both.
        let hostile = "</p><script>'\"&\\\r\nX: y\u{0}\u{600}<b>\"\u{301}"
        let denial = Denial(rule: 1, reason: .rule, text: hostile)
        for accept in ["text/plain", "text/html", "application/json"] {
            let answer = try rendered(.accessDenied, accept: accept, denial: denial)
            let parts = answer.split(separator: "\r\n\r\n", maxSplits: 1)
            #expect(!parts[0].contains("\r\nX: y"))
            let body = parts[1]
            switch accept {
            case "text/html":
                #expect(body.contains("&lt;/p&gt;&lt;script&gt;&#39;&quot;&amp;\\"))
                #expect(
                    body.unicodeScalars.contains("\u{600}".unicodeScalars + "&lt;b&gt;&quot;\u{301}".unicodeScalars))
            case "application/json":
                #expect(body.contains(#""rule 1: \u003c/p>\u003cscript>'\"&\\\r\nX: y\u0000"#))
                #expect(
                    body.unicodeScalars.contains(#"\u0600\u003cb>\""#.unicodeScalars + "\u{301}\"".unicodeScalars))
            default: break
            }
        }
    }

    static let forms: [(accept: String, type: String, uri: String)] = [
        ("*/*", "text/plain; charset=utf-8", "http://h/<a>"),
        ("text/html, */*;q=0.1", "text/html; charset=utf-8", "<code>http://h/&lt;a&gt;</code>"),
        ("text/html;q=0.2, application/json", "application/json", #""uri":"http://h/\u003ca>""#),
        ("image/png", "text/plain; charset=utf-8", "http://h/<a>"),
        ("application/problem+json", "application/problem+json", #""uri":"http://h/\u003ca>""#),
        ("application/json;q=0", "text/plain; charset=utf-8", "http://h/<a>"),
        ("text/html;q=0.3, text/plain;q=0.8", "text/plain; charset=utf-8", "http://h/<a>"),
        ("application/json, text/plain, */*", "application/json", #""uri":"http://h/\u003ca>""#),
    ]
    @Test(arguments: forms) func `the page has the form that the client prefers`(
        _ row: (accept: String, type: String, uri: String)
    )
        throws
    {
        let page = try rendered(.nameNotFound, accept: row.accept)
        #expect(page.contains("\r\nContent-Type: \(row.type)\r\n"))
        #expect(page.contains(row.uri))
    }

    static let idForms: [(accept: String, end: String)] = [
        ("*/*", "\nRequest ID: 0123456789abcdef\n"),
        ("text/html", "<br>Request ID: 0123456789abcdef</footer></html>\n"),
        ("application/json", ",\"request_id\":\"0123456789abcdef\"}\n"),
        ("application/problem+json", ",\"request_id\":\"0123456789abcdef\"}\n"),
    ]
    @Test(arguments: idForms) func `each form of the page ends with the ID of the request, which counts for its length`(
        _ row: (accept: String, end: String)
    ) throws {
        let answer = try rendered(.nameNotFound, accept: row.accept).split(separator: "\r\n\r\n", maxSplits: 1)
        #expect(answer[1].hasSuffix(row.end), "\(answer)")
        #expect(answer[0].contains("\r\nContent-Length: \(answer[1].utf8.count)\r\n"))
        #expect(!answer[0].contains("0123456789abcdef"))
    }

    @Test func `the page for a head that nobody understood has an ID too`() {
        for error in [ErrorResponse(.requestTimeout, requestID: "0f"), ErrorResponse(.badTarget, requestID: "0f")] {
            var out: [UInt8] = []
            error.append(isHead: false, persists: false, date: now, to: &out)
            #expect(text(out).hasSuffix("\nRequest ID: 0f\n"))
        }
    }
}

/// The IDs of some process.
private let ids = RequestIDText(SipHash(key: (1, 2)))

@Suite("The ID of a request")
struct RequestIDTests {
    @Test func `it is the keyed hash of the number, in 16 digits`() {
        let ids = RequestIDText(SipHash(key: (0x0706_0504_0302_0100, 0x0F0E_0D0C_0B0A_0908)))
        // The vector of eight bytes of the reference implementation of SipHash-2-4-128.
        #expect(ids.text(of: RequestID(number: 0x0706_0504_0302_0100)) == "61f55862baa9623b")
    }

    @Test func `no two requests of a process have the same one`() {
        var texts: Set<String> = []
        for worker in [0, 1, 63, 65_535] {
            var id = RequestID(before: worker)
            for _ in 0..<1000 {
                id = id.next
                texts.insert(ids.text(of: id))
            }
        }
        #expect(texts.count == 4000)
        #expect(texts.allSatisfy { $0.utf8.count == 16 && $0.utf8.allSatisfy { hexValue($0) != nil } })
    }

    @Test func `requests in a row, and the same requests of another process, have nothing in common`() {
        let others = RequestIDText(SipHash(key: (1, 3)))
        let row = (1...64).map { ids.text(of: RequestID(number: $0)) }
        #expect(row != row.sorted() && row != row.sorted().reversed())
        #expect(Set(row.map { $0.prefix(8) }).count == 64)
        #expect(Set(row).isDisjoint(with: (1...64).map { others.text(of: RequestID(number: $0)) }))
    }
}

@Suite("RFC 9110 §7.6.2, §7.6.3, §9.3.7, §9.3.8 Answers of Larder's own")
struct LocalAnswerTests {
    enum Kind: Equatable { case none, refusal(Refusal), response(UInt16) }
    static let rows: [(line: String, fields: [String], kind: Kind)] = [
        ("GET http://h/ HTTP/1.1", [], .none), ("GET / HTTP/1.1", [], .refusal(.notAProxyRequest)),
        ("OPTIONS * HTTP/1.1", [], .response(200)), ("CONNECT h:443 HTTP/1.1", [], .none),
        ("CONNECT h:443 HTTP/1.1", ["Content-Length: 0"], .refusal(.malformedRequestBody)),
        ("TRACE http://h/ HTTP/1.1", ["Content-Length: 1"], .refusal(.malformedRequestBody)),
        ("TRACE http://h/ HTTP/1.1", ["Max-Forwards: 0"], .response(200)),
        ("TRACE http://h/ HTTP/1.1", ["Max-Forwards: 1"], .none),
        ("OPTIONS http://h/ HTTP/1.1", ["Max-Forwards: 0"], .response(200)),
        ("GET http://h/ HTTP/1.1", ["Max-Forwards: 0"], .none),
        ("GET http://h/ HTTP/1.1", ["Via: 1.1 larder (id)"], .refusal(.loopDetected)),
        ("GET http://h/ HTTP/1.1", ["Via: 1.1 larder (other)"], .none),
    ]
    @Test(arguments: rows) func `Larder answers requests for the proxy, and forwards the others`(
        _ row: (line: String, fields: [String], kind: Kind)
    )
        throws
    {
        let received = try request(row.line, ["Host: h"] + row.fields)
        let kind: Kind =
            switch LocalAnswer(
                received, hasDestination: true, instance: Instance(Array("(id)".utf8)), pages: Pages())
            {
            case nil: .none
            case .refusal(let refusal): .refusal(refusal)
            case .response(let status, _, _): .response(status)
            case .page(let page): .response(page.status)
            }
        #expect(kind == row.kind)
    }

    @Test func `an invalid host is refused`() throws {
        let received = try request("GET http://h/ HTTP/1.1", "Host: h")
        let answer = LocalAnswer(received, hasDestination: false, instance: Instance([1]), pages: Pages())
        guard case .refusal(.hostInvalid) = answer else {
            Issue.record("it is forwarded")
            return
        }
    }

    @Test func `TRACE returns the request without its secrets`() throws {
        let received = try request(
            "TRACE http://h/ HTTP/1.1", "Host: h", "Max-Forwards: 0", "Cookie: a=b", "Authorization: x", "X: 1")
        let answer = LocalAnswer(received, hasDestination: true, instance: Instance([1]), pages: Pages())
        guard case .response(_, _, let body) = answer else {
            Issue.record("it is not answered")
            return
        }
        #expect(text(body) == "TRACE http://h/ HTTP/1.1\r\nHost: h\r\nMax-Forwards: 0\r\nX: 1\r\n\r\n")
    }
}

@Suite("The access log: one line")
struct AccessLogLineTests {
    @Test func `a line has every member of a request`() {
        var facts = AccessLogLine.Facts()
        facts.startedAt = 784_111_777_042_000
        facts.microseconds = 1500
        facts.user = "a\"b"
        facts.status = 200
        facts.bodyBytes = 12
        facts.outcome = "hit"
        let tunnel = RequestID(number: 3)
        (facts.id, facts.tunnel) = (RequestID(number: 7), tunnel)
        var particulars = AccessLogLine.Particulars()
        particulars.reason = "x"
        particulars.isUnverified = true
        particulars.isBroken = true
        facts.particulars = particulars
        let none: [UInt8] = []
        var line = AccessLogLine(ids)
        var bytes: [UInt8] = []
        let (method, target) = (Array("GET".utf8), Array("http://h/?token=1\u{7F}\\".utf8))
        line.append(facts, method: method.span, origin: none.span, target: target.span, to: &bytes)
        #expect(
            text(bytes) == """
                {"time":"1994-11-06T08:49:37.042Z","id":"\(ids.text(of: facts.id))","tunnel":"\(ids.text(of: tunnel))","client":"unix","user":"a\\"b","method":"GET",\
                "uri":"http://h/?token=***","status":200,"bytes":12,"duration_us":1500,"outcome":"hit",\
                "reason":"x","tls":"unverified","broken":true}

                """)
    }

    /// Each of them makes the line as long as it can be for its input.
    static let longest: [(method: [UInt8], target: [UInt8])] = [
        ([], [UInt8](repeating: 0x7F, count: 70_000)),
        ([UInt8](repeating: 0x01, count: 300), []),
        (Array("GET".utf8), Array("/?".utf8) + [[UInt8]](repeating: Array("&key=".utf8), count: 5000).joined()),
    ]
    @Test(arguments: longest) func `a line has room for whatever a client sends`(
        _ row: (method: [UInt8], target: [UInt8])
    ) {
        var facts = AccessLogLine.Facts()
        (facts.startedAt, facts.microseconds, facts.bodyBytes, facts.status) = (0, .max, .max, .max)
        (facts.id, facts.tunnel) = (RequestID(number: .max), RequestID(number: .max))
        facts.client = IPAddress(v6: .max, low: .max)
        facts.user = String(repeating: "\u{1}", count: 1000)
        var particulars = AccessLogLine.Particulars()
        particulars.reason = String(repeating: "r", count: 600)
        particulars.denial = String(repeating: "d", count: 600)
        particulars.closeReason = String(repeating: "c", count: 600)
        particulars.denialRule = .max
        particulars.redirectedTo = row.target
        (particulars.isUnverified, particulars.isBroken) = (true, true)
        facts.particulars = particulars
        let none: [UInt8] = []
        var line = AccessLogLine(ids)
        var bytes: [UInt8] = []
        line.append(facts, method: row.method.span, origin: none.span, target: row.target.span, to: &bytes)
        #expect(bytes.count > row.target.count && bytes.last == 0x0A && bytes.count { $0 == 0x0A } == 1)
    }

    @Test func `lines of other clients and other seconds have their own names and times`() {
        let none: [UInt8] = []
        var line = AccessLogLine(ids)
        var bytes: [UInt8] = []
        var facts = AccessLogLine.Facts()
        let nothing: [UInt8] = []
        for (client, time) in [("192.0.2.1", 0), ("192.0.2.1", 999_999), ("::1", 1_000_000), (nil, -1)] {
            facts.client = client.flatMap { IPAddress(strict: Array($0.utf8)) }
            facts.startedAt = Int64(time)
            line.append(facts, method: nothing.span, origin: none.span, target: nothing.span, to: &bytes)
        }
        let beginnings = text(bytes).split(separator: "\n").map { $0.prefix { $0 != "," } }
        #expect(
            beginnings == [
                "{\"time\":\"1970-01-01T00:00:00.000Z\"", "{\"time\":\"1970-01-01T00:00:00.999Z\"",
                "{\"time\":\"1970-01-01T00:00:01.000Z\"", "{\"time\":\"1969-12-31T23:59:59.999Z\"",
            ])
        let clients = text(bytes).split(separator: "\n").map { $0.split(separator: "\"")[11] }
        #expect(clients == ["192.0.2.1", "192.0.2.1", "::1", "unix"])
    }

    @Test func `a client cannot forge a line`() {
        let none: [UInt8] = []
        var line = AccessLogLine(ids)
        var bytes: [UInt8] = []
        let (method, target) = ([UInt8](), Array("a\"b\\c\r\n\u{7F}".utf8))
        line.append(AccessLogLine.Facts(), method: method.span, origin: none.span, target: target.span, to: &bytes)
        #expect(text(bytes).contains("\"uri\":\"a\\\"b\\\\c\\u000d\\u000a\\u007f\""))
        #expect(text(bytes).hasPrefix("{\"time\":\"1970-01-01T00:00:00.000Z\""))
        #expect(bytes.count { $0 == 0x0A } == 1)
    }

    @Test(arguments: [
        "é", "\"\u{301}", "\\\u{301}", "\r\n", "\u{9B}31m", "\u{202E}x", "\u{1F600}", "a\",\"user\":\"b", "\u{10FFFF}",
    ])
    func `a program reads the user's name as it is`(_ user: String) throws {
        let none: [UInt8] = []
        var line = AccessLogLine(ids)
        var bytes: [UInt8] = []
        var facts = AccessLogLine.Facts()
        facts.user = user
        line.append(facts, method: none.span, origin: none.span, target: none.span, to: &bytes)
        #expect(try JSONValue(parsing: bytes.dropLast())["user"]?.text.map { Array($0.utf8) } == Array(user.utf8))
        #expect(!bytes.dropLast().contains { $0 < 0x20 } && bytes.last == 0x0A)
        #expect(!text(bytes).unicodeScalars.contains { $0 == "\u{9B}" || $0 == "\u{202E}" })
    }
}

@Suite("RFC 9110 §11.7.3 Proxy-Authentication-Info")
struct AuthenticationReplyTests {
    static let rows: [(reply: AuthenticationReply, line: String)] = [
        (.information(Array("rspauth=\"0\"".utf8)), "Proxy-Authentication-Info: rspauth=\"0\"\r\n"),
        (.challenge(Array("Negotiate AA==".utf8)), "Proxy-Authenticate: Negotiate AA==\r\n"),
    ]
    @Test(arguments: rows) func `the field follows the status line of the final head`(
        _ row: (reply: AuthenticationReply, line: String)
    ) {
        var bytes = Array("HTTP/1.1 103 Early Hints\r\n\r\n".utf8)
        let start = bytes.count
        bytes += Array("HTTP/1.1 200 OK\r\nDate: x\r\n\r\nbody\r\n".utf8)
        row.reply.insert(intoHeadAt: start, of: &bytes)
        #expect(
            text(bytes) == "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\n\(row.line)Date: x\r\n\r\nbody\r\n")
    }
}
