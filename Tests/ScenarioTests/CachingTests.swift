import Server
import Testing

@Suite("RFC 9111 Caching")
struct CachingScenarios {
    @Test func `a fresh response is served without the origin, with its Age (§4, §5.1)`() throws {
        try scenario { s in
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", "Age: 10", body: "hello")
            let first = try s.client().get("/a")
            #expect(first.cacheStatus.contains("fwd=uri-miss"))
            #expect(first.cacheStatus.contains("stored"))
            let second = try s.client().get("/a")
            #expect(second.text == "hello")
            #expect(second.cacheStatus.hasPrefix("larder; hit"))
            #expect((Int(second["Age"] ?? "") ?? 0) >= 10)
            try s.expect(.hits, 1)
            try s.expect(.misses, 1)
        }
    }

    @Test func `bytes from the cache are counted once, even if the socket accepts them in pieces`() throws {
        try scenario { s in
            let body = [UInt8](repeating: 0x62, count: 4 << 20)
            s.origin.expects("GET /big").replies(200, ["Cache-Control: max-age=60"], body)
            #expect(try s.client().get("/big").text.utf8.count == body.count)
            #expect(s.count(.bytesFromCache) == 0)
            #expect(try s.client(receiveBuffer: 4096).get("/big").text.utf8.count == body.count)
            try s.expect(.bytesFromCache, UInt64(body.count))
        }
    }

    @Test func `each variant that Vary selects is stored separately (§4.1)`() throws {
        try scenario { s in
            for language in ["de", "en"] {
                s.origin.expects("GET /a", "Accept-Language: \(language)").replies(
                    200, "Cache-Control: max-age=60", "Vary: Accept-Language", body: language)
            }
            let client = try s.client()
            for _ in 0..<2 {
                for language in ["de", "en"] {
                    #expect(try client.get("/a", "Accept-Language: \(language)").text == language)
                }
            }
            try s.expect(.hits, 2)
        }
    }

    @Test func `a response requested before an unsafe request is not stored after it (§4.4)`() throws {
        try scenario { s in
            let written = Gate("the PUT is answered")
            s.origin.expects("GET /a").waits(for: written).replies(200, "Cache-Control: max-age=60", body: "old")
            let reader = try s.client()
            try reader.ask("GET", "/a")
            try s.expect(.originRequests, 1)
            s.origin.expects("PUT /a").replies(204)
            #expect(try s.client().request("PUT", "/a", body: "new").status == 204)
            written.open()
            #expect(try reader.response().text == "old")
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", body: "new")
            #expect(try s.client().get("/a").text == "new")
        }
    }

    @Test func `a stale response is validated; 304 renews it (§4.3)`() throws {
        try scenario { s in
            s.origin.expects("GET /a", "!If-None-Match").replies(
                200, "Cache-Control: max-age=0", "ETag: \"a\"", "X-New: no", body: "hello")
            s.origin.expects("GET /a", "If-None-Match: \"a\"").replies(
                304, "Cache-Control: max-age=60", "ETag: \"a\"", "X-New: yes")
            let client = try s.client()
            try client.get("/a")
            let second = try client.get("/a")
            #expect(second.status == 200)
            #expect(second.text == "hello")
            #expect(second["X-New"] == "yes")
            #expect(second.cacheStatus.contains("fwd=stale; fwd-status=304"))
            #expect(try client.get("/a").cacheStatus.hasPrefix("larder; hit"))
            try s.expect(.freshened, 1)
        }
    }

    @Test func `a stale response is replaced by a 200 (§4.3.3)`() throws {
        try scenario { s in
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=0", "ETag: \"a\"", body: "old")
            s.origin.expects("GET /a", "If-None-Match: \"a\"").replies(
                200, "Cache-Control: max-age=60", "ETag: \"b\"", body: "new")
            let client = try s.client()
            try client.get("/a")
            #expect(try client.get("/a").text == "new")
            #expect(try client.get("/a").text == "new")
        }
    }

    static let own: [(fields: [String], status: Int, body: String, range: String?)] = [
        (["If-None-Match: \"a\""], 304, "", nil), (["If-None-Match: W/\"a\""], 304, "", nil),
        (["If-None-Match: *"], 304, "", nil), (["If-None-Match: \"b\""], 200, "0123456789", nil),
        (["Range: bytes=2-4"], 206, "234", "bytes 2-4/10"), (["Range: bytes=-3"], 206, "789", "bytes 7-9/10"),
        (["Range: bytes=8-"], 206, "89", "bytes 8-9/10"), (["Range: bytes=10-"], 416, "", "bytes */10"),
        (["Range: bytes=2-4", "If-Range: \"a\""], 206, "234", "bytes 2-4/10"),
        (["Range: bytes=2-4", "If-Range: \"b\""], 200, "0123456789", nil),
        (["Range: lines=1-2"], 200, "0123456789", nil),
    ]
    @Test(arguments: own)
    func `304, 206 and 416 come from the store`(_ row: (fields: [String], status: Int, body: String, range: String?))
        throws
    {
        try scenario { s in
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", "ETag: \"a\"", body: "0123456789")
            let client = try s.client()
            try client.get("/a")
            try client.ask("GET", "/a", row.fields)
            let answer = try client.response()
            #expect(answer.status == row.status)
            #expect(answer.text == row.body)
            #expect(answer["Content-Range"] == row.range)
        }
    }

    static let unsafeMethods: [(method: String, status: Int, invalidates: Bool)] = [
        ("POST", 200, true), ("PUT", 204, true), ("DELETE", 301, true), ("POST", 404, false), ("PUT", 500, false),
        ("OPTIONS", 200, false),
    ]
    @Test(arguments: unsafeMethods)
    func `a successful unsafe request invalidates the stored response (§4.4)`(
        _ row: (method: String, status: Int, invalidates: Bool)
    ) throws {
        try scenario { s in
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", body: "old")
            s.origin.expects("\(row.method) /a").replies(row.status)
            if row.invalidates {
                s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", body: "new")
            }
            let client = try s.client()
            try client.get("/a")
            #expect(try client.request(row.method, "/a", body: "x").status == row.status)
            #expect(try client.get("/a").text == (row.invalidates ? "new" : "old"))
        }
    }

    /// What is stored is a minute old, fresh for two: `max-age=120`, `Age: 60`.
    static let directives: [(directive: String, asksOrigin: Bool)] = [
        ("max-age=30", true), ("max-age=90", false), ("min-fresh=100", true), ("min-fresh=10", false),
        ("no-cache", true), ("no-store", false), ("only-if-cached", false),
    ]
    @Test(arguments: directives)
    func `directives of the request are respected (§5.2.1)`(_ row: (directive: String, asksOrigin: Bool)) throws {
        try scenario { s in
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=120", "Age: 60", body: "stored")
            if row.asksOrigin { s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=120", body: "new") }
            let client = try s.client()
            try client.get("/a")
            #expect(try client.get("/a", "Cache-Control: \(row.directive)").text == (row.asksOrigin ? "new" : "stored"))
        }
    }

    @Test func `max-stale accepts a stale response (§5.2.1.2)`() throws {
        try scenario { s in
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=10", "Age: 20", body: "old")
            let client = try s.client()
            try client.get("/a")
            #expect(try client.get("/a", "Cache-Control: max-stale=100").text == "old")
            try s.expect(.staleHits, 1)
        }
    }

    @Test func `only-if-cached gets 504 if nothing is stored (§5.2.1.7)`() throws {
        try scenario { s in
            let answer = try s.client().get("/a", "Cache-Control: only-if-cached")
            #expect(answer.status == 504)
        }
    }

    static let authorised: [(cacheControl: String, isStored: Bool)] = [
        ("max-age=60", false), ("public, max-age=60", true), ("s-maxage=60", true),
        ("must-revalidate, max-age=60", true), ("private, max-age=60", false),
    ]
    @Test(arguments: authorised)
    func `responses to requests with Authorization are shared only if the origin allows it (§3.5)`(
        _ row: (cacheControl: String, isStored: Bool)
    ) throws {
        try scenario { s in
            for _ in 0..<(row.isStored ? 1 : 2) {
                s.origin.expects("GET /a", "Authorization: Basic eDp5").replies(
                    200, "Cache-Control: \(row.cacheControl)", body: "a")
            }
            let client = try s.client()
            for _ in 0..<2 { #expect(try client.get("/a", "Authorization: Basic eDp5").text == "a") }
        }
    }

    @Test func `a stale response is served if the origin fails (RFC 5861 §4)`() throws {
        try scenario { s in
            s.origin.expects("GET /a").replies(
                200, "Cache-Control: max-age=0, stale-if-error=600", "ETag: \"a\"", body: "old")
            s.origin.expects("GET /a", "If-None-Match: \"a\"").replies(503, body: "down")
            let client = try s.client()
            try client.get("/a")
            #expect(try client.get("/a").text == "old")
            try s.expect(.staleHits, 1)
        }
    }

    @Test func `a response with must-revalidate is never served stale (§5.2.2.2)`() throws {
        try scenario { s in
            s.origin.expects("GET /a").replies(
                200, "Cache-Control: max-age=0, must-revalidate", "ETag: \"a\"", body: "old")
            s.origin.expects("GET /a", "If-None-Match: \"a\"").replies(503, body: "down")
            let client = try s.client()
            try client.get("/a")
            #expect(try client.get("/a").status == 503)
        }
    }

    static let truncated = [
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 10\r\n\r\nhalf",
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhalf",
    ]
    @Test(arguments: truncated)
    func `a response that broke off is neither served as complete nor served again (§3.3)`(_ response: String) throws {
        try scenario { s in
            s.origin.expects("GET /a").sends(response).closes()
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", body: "whole")
            let answer = try s.client().get("/a")
            #expect(answer.status == 200)
            #expect(!answer.isWhole, "\(answer)")
            try s.expect(.storingFailed, 1)
            #expect(s.count(.stored) == 0)
            let second = try s.client().get("/a")
            #expect(second.text == "whole")
            #expect(second.cacheStatus.contains("fwd=uri-miss"))
            try s.expect(.stored, 1)
            #expect(try s.client().get("/a").cacheStatus.hasPrefix("larder; hit"))
        }
    }

    @Test func `stale-while-revalidate answers at once and validates in the background (RFC 5861 §3)`() throws {
        try scenario { s in
            let asked = Gate("validation")
            s.origin.expects("GET /a").replies(
                200, "Cache-Control: max-age=1, stale-while-revalidate=600", "Age: 5", "ETag: \"a\"", body: "old")
            s.origin.expects("GET /a", "If-None-Match: \"a\"").opens(asked).replies(
                304, "Cache-Control: max-age=60", "ETag: \"a\"")
            let client = try s.client()
            try client.get("/a")
            #expect(try client.get("/a").text == "old")
            try asked.wait()
            try s.expect(.freshened, 1)
            #expect(try client.get("/a").cacheStatus.hasPrefix("larder; hit"))
        }
    }
}

@Suite("Collapsed requests: one transfer serves all clients")
struct CollapseScenarios {
    @Test func `followers on both workers get the bytes before the origin is done`() throws {
        try scenario { s in
            let rest = Gate("rest of the body")
            s.origin.expects("GET /a").sends(
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 10\r\n\r\nhello"
            ).waits(for: rest).sends("world")
            let clients = try (0..<16).map { _ in try s.client() }
            for client in clients { try client.ask("GET", "/a") }
            for client in clients {
                _ = try client.head()
                #expect(String(decoding: try client.reader.bytes(5), as: UTF8.self) == "hello")
            }
            rest.open()
            for client in clients {
                #expect(String(decoding: try client.reader.bytes(5), as: UTF8.self) == "world")
            }
            #expect(s.origin.requests.count == 1)
            try s.expect(.misses, 1)
        }
    }

    @Test func `the transfer goes on when the first client leaves`() throws {
        try scenario { s in
            let rest = Gate("rest of the body")
            let asked = Gate("request at the origin")
            s.origin.expects("GET /a").opens(asked).sends(
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 10\r\n\r\nhello"
            ).waits(for: rest).sends("world")
            let first = try s.client()
            try first.ask("GET", "/a")
            try asked.wait()
            _ = try first.head()
            let second = try s.client()
            try second.ask("GET", "/a")
            _ = try second.head()
            first.wire.reset()
            try s.expect(.clientConnectionsClosed, 1)
            rest.open()
            #expect(String(decoding: try second.reader.bytes(10), as: UTF8.self) == "helloworld")
        }
    }

    @Test func `if the response cannot be stored, each request asks the origin`() throws {
        try scenario { s in
            let answer = Gate("first answer")
            let asked = Gate("first request")
            s.origin.expects("GET /a").opens(asked).waits(for: answer).replies(
                200, "Cache-Control: no-store", body: "1")
            for _ in 0..<3 { s.origin.expects("GET /a").replies(200, "Cache-Control: no-store", body: "2") }
            let clients = try (0..<4).map { _ in try s.client() }
            try clients[0].ask("GET", "/a")
            try asked.wait()
            for client in clients.dropFirst() { try client.ask("GET", "/a") }
            try s.expect(.requests, 4)
            answer.open()
            #expect(try clients[0].response().text == "1")
            for client in clients.dropFirst() { #expect(try client.response().text == "2") }
        }
    }

    @Test func `a failure of the leader is answered to its followers`() throws {
        try scenario { s in
            let answer = Gate("failure")
            let asked = Gate("request")
            s.origin.expects("GET /a").opens(asked).waits(for: answer).sends("no HTTP at all\r\n\r\n").closes()
            let clients = try (0..<4).map { _ in try s.client() }
            try clients[0].ask("GET", "/a")
            try asked.wait()
            for client in clients.dropFirst() { try client.ask("GET", "/a") }
            try s.expect(.requests, 4)
            answer.open()
            for client in clients { #expect(try client.response().status == 502) }
            #expect(s.origin.requests.count == 1)
        }
    }

    @Test func `requests with different values of a Vary field do not share a response`() throws {
        try scenario { s in
            let answer = Gate("answer")
            let asked = Gate("request")
            s.origin.expects("GET /a", "X-V: 1").opens(asked).waits(for: answer).replies(
                200, "Cache-Control: max-age=60", "Vary: X-V", body: "1")
            s.origin.expects("GET /a", "X-V: 2").replies(200, "Cache-Control: max-age=60", "Vary: X-V", body: "2")
            let one = try s.client()
            try one.ask("GET", "/a", ["X-V: 1"])
            try asked.wait()
            let two = try s.client()
            try two.ask("GET", "/a", ["X-V: 2"])
            try s.expect(.requests, 2)
            answer.open()
            #expect(try one.response().text == "1")
            #expect(try two.response().text == "2")
        }
    }
}
