import Server
import Testing

/// Ten bytes, so that offsets can be read off.
private let content = "0123456789"

@Suite("A transfer that breaks off is resumed where it stopped (RFC 9110 §14.2, §13.1.5)")
struct ResumeScenarios {
    private static let cacheable = "Cache-Control: max-age=60\r\nETag: \"a\"\r\n"

    /// How the first answer breaks off after four bytes.
    static let breaks: [(what: String, head: String, body: String)] = [
        ("announced length", "\(cacheable)Content-Length: 10\r\n", "0123"),
        ("chunked", "\(cacheable)Transfer-Encoding: chunked\r\n", "4\r\n0123\r\n"),
        ("chunked, in the middle of a chunk", "\(cacheable)Transfer-Encoding: chunked\r\n", "a\r\n0123"),
        ("not stored", "Cache-Control: no-store\r\nETag: \"a\"\r\nContent-Length: 10\r\n", "0123"),
        (
            "not stored, chunked", "Cache-Control: no-store\r\nETag: \"a\"\r\nTransfer-Encoding: chunked\r\n",
            "4\r\n0123\r\n"
        ),
        (
            "a modification date that is strong",
            "Cache-Control: max-age=60\r\nDate: Fri, 20 Nov 2026 10:00:00 GMT\r\nLast-Modified: Thu, 19 Nov 2026 10:00:00 GMT\r\nContent-Length: 10\r\n",
            "0123"
        ),
    ]

    @Test(arguments: breaks) func `a client does not notice a resumption`(
        how: (what: String, head: String, body: String)
    ) throws {
        try scenario { s in
            let validator =
                how.head.contains("ETag") ? "If-Range: \"a\"" : "If-Range: Thu, 19 Nov 2026 10:00:00 GMT"
            s.origin.expects("GET /a", "!Range").sends("HTTP/1.1 200 OK\r\n\(how.head)\r\n\(how.body)").closes()
            var fields = ["Content-Range: bytes 4-9/10"]
            fields.append(how.head.contains("ETag") ? "ETag: \"a\"" : "Last-Modified: Thu, 19 Nov 2026 10:00:00 GMT")
            s.origin.expects("GET /a", "Range: bytes=4-", validator).replies(206, fields, Array("456789".utf8))
            let answer = try s.client().get("/a")
            #expect(answer.status == 200)
            #expect(answer.text == content)
            #expect(answer.isWhole)
            try s.expect(.resumed, 1)
        }
    }

    @Test func `a transfer is resumed more than once and by several short parts`() throws {
        try scenario { s in
            s.origin.expects("GET /a").sends("HTTP/1.1 200 OK\r\n\(Self.cacheable)Content-Length: 10\r\n\r\n01")
                .resets()
            s.origin.expects("GET /a", "Range: bytes=2-").sends(
                "HTTP/1.1 206 Part\r\nETag: \"a\"\r\nContent-Range: bytes 2-9/10\r\nContent-Length: 8\r\n\r\n23"
            ).closes()
            s.origin.expects("GET /a", "Range: bytes=4-").replies(
                206, "ETag: \"a\"", "Content-Range: bytes 4-6/10", body: "456")
            s.origin.expects("GET /a", "Range: bytes=7-").replies(
                206, "ETag: \"a\"", "Content-Range: bytes 7-9/10", body: "789")
            let whole = try s.client().get("/a")
            #expect(whole.text == content)
            #expect(try s.client().get("/a").cacheStatus.hasPrefix("larder; hit"))
        }
    }

    @Test func `followers do not notice a resumption`() throws {
        try scenario { s in
            let go = Gate("all follow")
            s.origin.expects("GET /a").sends("HTTP/1.1 200 OK\r\n\(Self.cacheable)Content-Length: 10\r\n\r\n0123")
                .waits(for: go).closes()
            s.origin.expects("GET /a", "Range: bytes=4-").replies(
                206, "ETag: \"a\"", "Content-Range: bytes 4-9/10", body: "456789")
            let clients = try (0..<4).map { _ in try s.client() }
            for client in clients { try client.ask("GET", "/a") }
            for client in clients { #expect(try client.head().startLine.contains(" 200 ")) }
            go.open()
            for client in clients {
                let all = try client.reader.bytes(10)
                #expect(String(decoding: all, as: UTF8.self) == content)
            }
        }
    }

    /// What an origin may answer to the question for the rest that is no rest.
    static let refusals: [(what: String, status: Int, fields: [String], body: String)] = [
        ("another representation", 200, ["ETag: \"b\""], "changed"),
        ("a part of another", 206, ["ETag: \"b\"", "Content-Range: bytes 4-9/10"], "456789"),
        ("another length", 206, ["ETag: \"a\"", "Content-Range: bytes 4-19/20"], "4567890123456789"),
        ("another offset", 206, ["ETag: \"a\"", "Content-Range: bytes 0-9/10"], content),
        ("no Content-Range", 206, ["ETag: \"a\""], "456789"),
        ("not satisfiable", 416, ["Content-Range: bytes */4"], ""),
    ]

    @Test(arguments: refusals)
    func `a rest of another representation ends the answer visibly`(
        how: (what: String, status: Int, fields: [String], body: String)
    ) throws {
        try scenario { s in
            s.origin.expects("GET /a").sends("HTTP/1.1 200 OK\r\n\(Self.cacheable)Content-Length: 10\r\n\r\n0123")
                .closes()
            s.origin.expects("GET /a", "Range: bytes=4-").replies(how.status, how.fields, Array(how.body.utf8))
            let answer = try s.client().get("/a")
            #expect(answer.text == "0123")
            #expect(!answer.isWhole)
        }
    }

    static let irresumable: [(what: String, fields: String)] = [
        ("no validator", "Cache-Control: max-age=60\r\n"),
        ("a weak tag", "Cache-Control: max-age=60\r\nETag: W/\"a\"\r\n"),
        ("an origin that takes no ranges", "Cache-Control: max-age=60\r\nETag: \"a\"\r\nAccept-Ranges: none\r\n"),
    ]

    @Test(arguments: irresumable)
    func `without a strong validator a truncated response is neither completed nor stored`(
        how: (what: String, fields: String)
    ) throws {
        try scenario { s in
            s.origin.expects("GET /a").sends("HTTP/1.1 200 OK\r\n\(how.fields)Content-Length: 10\r\n\r\n0123").closes()
            let broken = try s.client().get("/a")
            #expect(!broken.isWhole)
            s.origin.expects("GET /a", "!Range").replies(200, "Cache-Control: max-age=60", body: content)
            let whole = try s.client().get("/a")
            #expect(whole.text == content)
            #expect(s.count(.resumed) == 0)
        }
    }

    @Test func `a response that broke off is kept, and the next request fetches only the rest`() throws {
        try scenario { s in
            s.origin.expects("GET /a").sends("HTTP/1.1 200 OK\r\n\(Self.cacheable)Content-Length: 10\r\n\r\n0123")
                .closes()
            for _ in 0..<4 { s.origin.expects("GET /a", "Range: bytes=4-").closes() }
            let broken = try s.client().get("/a")
            #expect(!broken.isWhole)
            try s.expect(.keptPartial, 1)
            s.origin.expects("GET /a", "Range: bytes=4-9", "If-Range: \"a\"").replies(
                206, "ETag: \"a\"", "Content-Range: bytes 4-9/10", body: "456789")
            let second = try s.client().get("/a")
            #expect(second.text == content)
            #expect(try s.client().get("/a").cacheStatus.hasPrefix("larder; hit"))
        }
    }

    @Test func `the transfer survives its first client, and a break after it`() throws {
        try scenario { s in
            let left = Gate("the client left")
            s.origin.expects("GET /a").sends("HTTP/1.1 200 OK\r\n\(Self.cacheable)Content-Length: 10\r\n\r\n0123")
                .waits(for: left).closes()
            s.origin.expects("GET /a", "Range: bytes=4-").replies(
                206, "ETag: \"a\"", "Content-Range: bytes 4-9/10", body: "456789")
            let client = try s.client()
            try client.ask("GET", "/a")
            _ = try client.reader.head()
            client.wire.reset()
            left.open()
            try s.expect(.stored, 1)
            let whole = try s.client().get("/a")
            #expect(whole.text == content)
        }
    }
}
