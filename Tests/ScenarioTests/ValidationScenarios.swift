import Server
import Testing

@Suite("RFC 9111 §4.3.4, §4.3.5 Freshening by 304 and HEAD")
struct FresheningScenarios {
    // MARK: HEAD

    /// The stored response, the later response to a HEAD, and what happens to the stored response to GET.
    static let heads: [(what: String, fields: [String], later: Later)] = [
        ("the same: renewed", ["ETag: \"a\"", "Cache-Control: max-age=60", "X-New: yes", "Content-Length: 5"], .fresh),
        ("the same, without a length", ["ETag: \"a\"", "Cache-Control: max-age=60", "X-New: yes"], .fresh),
        ("another tag: stale", ["ETag: \"b\"", "Cache-Control: max-age=60", "Content-Length: 5"], .validated),
        ("another length: stale", ["ETag: \"a\"", "Cache-Control: max-age=60", "Content-Length: 6"], .validated),
        (
            "another modification date: stale",
            ["ETag: \"a\"", "Last-Modified: Fri, 20 Nov 2026 10:00:01 GMT", "Cache-Control: max-age=60"], .validated
        ),
    ]

    enum Later { case fresh, validated }

    @Test(arguments: heads)
    func `the response to a HEAD updates the stored response to GET (§4.3.5)`(
        _ row: (what: String, fields: [String], later: Later)
    ) throws {
        try scenario { s in
            let client = try s.client()
            s.origin.expects("GET /a").replies(
                200, "ETag: \"a\"", "Last-Modified: Fri, 20 Nov 2026 10:00:00 GMT", "Cache-Control: max-age=10",
                "Age: 5",
                "X-New: no", body: "hello")
            try client.get("/a")
            // Asked of the origin although something is stored.
            s.origin.expects("HEAD /a").sends(
                "HTTP/1.1 200 OK\r\n" + row.fields.map { "\($0)\r\n" }.joined() + "\r\n")
            try client.request("HEAD", "/a", "Cache-Control: no-cache")
            if row.later == .validated {
                s.origin.expects("GET /a", "If-None-Match: \"a\"").replies(
                    200, "Cache-Control: max-age=60", body: "other")
            }
            let answer = try client.get("/a")
            #expect(answer.text == (row.later == .fresh ? "hello" : "other"))
            if row.later == .fresh {
                #expect(answer["X-New"] == "yes")
                #expect(answer["Content-Length"] == "5")
                #expect(answer["Age"].flatMap { Int($0) } ?? 9 < 5)
            }
        }
    }

    @Test(arguments: [404, 500, 503]) func `a HEAD that fails does not update the stored response`(_ status: Int) throws
    {
        try scenario { s in
            let client = try s.client()
            s.origin.expects("GET /a").replies(200, "ETag: \"a\"", "Cache-Control: max-age=60", body: "hello")
            try client.get("/a")
            s.origin.expects("HEAD /a").sends("HTTP/1.1 \(status) No\r\nContent-Length: 9\r\n\r\n")
            try client.request("HEAD", "/a", "Cache-Control: no-cache")
            #expect(try client.get("/a").text == "hello")
        }
    }

    @Test func `a HEAD is answered from the stored response to GET, not the other way round (§4)`() throws {
        try scenario { s in
            let client = try s.client()
            s.origin.expects("HEAD /a").sends(
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 5\r\n\r\n")
            try client.request("HEAD", "/a")
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", body: "hello")
            try client.get("/a")
            let head = try client.request("HEAD", "/a")
            #expect(head.cacheStatus.hasPrefix("larder; hit"))
            #expect(head["Content-Length"] == "5")
        }
    }

    // MARK: 304 among variants

    private func withLanguages(_ play: (Scenario, ScriptedClient) throws -> Void) throws {
        try scenario { s in
            let client = try s.client()
            for language in ["de", "en"] {
                s.origin.expects("GET /a", "Accept-Language: \(language)").replies(
                    200, "Cache-Control: max-age=60", "Vary: Accept-Language", "ETag: \"\(language)\"", body: language)
                try client.get("/a", "Accept-Language: \(language)")
            }
            try play(s, client)
        }
    }

    /// The tags of the variants, in whichever order, and the one the origin picks for a third language.
    @Test(arguments: ["de", "en"]) func `a 304 selects among the variants (§4.3.4)`(_ chosen: String) throws {
        try withLanguages { s, client in
            s.origin.expects("GET /a", "Accept-Language: fr", "If-None-Match").replies(
                304, "ETag: \"\(chosen)\"", "Cache-Control: max-age=60", "Vary: Accept-Language")
            #expect(try client.get("/a", "Accept-Language: fr").text == chosen)
            let sent = s.origin.requests.last?["If-None-Match"] ?? ""
            #expect(sent.contains("\"de\"") && sent.contains("\"en\""), "\(sent)")
            let again = try client.get("/a", "Accept-Language: fr")
            #expect(again.cacheStatus.hasPrefix("larder; hit"))
            #expect(again.text == chosen)
            // The others are what they were.
            for language in ["de", "en"] {
                let answer = try client.get("/a", "Accept-Language: \(language)")
                #expect(answer.text == language)
                #expect(answer.cacheStatus.hasPrefix("larder; hit"))
            }
        }
    }

    @Test func `after a 304 for none of the variants the origin is asked without conditions`() throws {
        try withLanguages { s, client in
            s.origin.expects("GET /a", "Accept-Language: fr", "If-None-Match").replies(304, "ETag: \"nl\"")
            s.origin.expects("GET /a", "Accept-Language: fr", "!If-None-Match").replies(
                200, "Cache-Control: max-age=60", "Vary: Accept-Language", "ETag: \"fr\"", body: "fr")
            let french = try client.get("/a", "Accept-Language: fr")
            #expect(french.text == "fr")
            #expect(try client.get("/a", "Accept-Language: de").text == "de")
        }
    }

    /// A stored response that is stale at once, and the way to a 304 that confirms another.
    static let superseded: [(cacheControl: String, request: String, status: Int)] = [
        ("max-age=9\r\nAge: 10", "X-A: 1", 200),
        ("max-age=0, stale-if-error=60", "X-A: 1", 200),
        // It was never fresh, so it may be for one client.
        ("max-age=0", "X-A: 1", 503),
        ("max-age=0, must-revalidate", "X-A: 1", 503),
        ("max-age=0", "Cache-Control: no-cache", 503),
        // Fresh by its own lifetime, but the origin has said that another is current.
        ("max-age=60", "Cache-Control: max-age=0, stale-if-error=60", 200),
        ("max-age=60, must-revalidate", "Cache-Control: max-age=0, stale-if-error=60", 503),
    ]

    @Test(arguments: superseded)
    func `a response that a 304 does not confirm is stale and is served if the origin then fails (§4.2.4, §4.3.4)`(
        _ row: (cacheControl: String, request: String, status: Int)
    ) throws {
        try scenario { s in
            let client = try s.client()
            s.origin.expects("GET /a").replies(
                200, "Cache-Control: \(row.cacheControl)", "ETag: \"a\"", body: "stored")
            try client.get("/a")
            s.origin.expects("GET /a", "If-None-Match: \"a\"").replies(304, "ETag: \"b\"")
            s.origin.expects("GET /a", "!If-None-Match").replies(503, body: "failed")
            let answer = try client.get("/a", row.request)
            #expect(answer.status == row.status)
            #expect(answer.text == (row.status == 200 ? "stored" : "failed"))
            // It is still there, and asked about again, however fresh it would be.
            s.origin.expects("GET /a", "If-None-Match: \"a\"").replies(
                200, "Cache-Control: max-age=60", "ETag: \"b\"", body: "new")
            #expect(try client.get("/a").text == "new")
            #expect(try client.get("/a").cacheStatus.hasPrefix("larder; hit"))
        }
    }

    /// A body of unknown length outgrows memory while its response is being validated.
    @Test(arguments: [false, true])
    func `if the response that a 304 confirms has left the store, the origin is asked without conditions`(
        hasEnded: Bool
    ) throws {
        try scenario(cache: "memory: 1MiB") { s in
            let rest = String(repeating: "r", count: 4 << 20)
            let goOn = Gate("the validation is under way")
            let end = Gate("the transfer may end")
            let confirm = Gate("the body has left the store")
            s.origin.expects("GET /a").sends(
                "HTTP/1.1 200 OK\r\nETag: \"a\"\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n"
                    + "4\r\nabcd\r\n"
            ).waits(for: goOn).sends("400000\r\n\(rest)\r\n").waits(for: end).sends("0\r\n\r\n")
            let first = try s.client()
            try first.ask("GET", "/a")
            var whole = SeenMessage(head: try first.head())
            let second = try s.client()
            s.origin.expects("GET /a", "If-None-Match: \"a\"").waits(for: confirm).replies(
                304, "ETag: \"a\"", "Cache-Control: max-age=60")
            s.origin.expects("GET /a", "!If-None-Match").replies(200, "Cache-Control: max-age=60", body: "whole")
            try second.ask("GET", "/a", ["Cache-Control: max-age=0"])
            try s.eventually("the validation is under way") { s.origin.requests.count == 2 }
            goOn.open()
            if hasEnded {
                end.open()
                try first.reader.body(of: &whole, untilClose: false)
                #expect(whole.text == "abcd" + rest)
            } else {
                _ = try first.reader.bytes(4 << 20)
            }
            confirm.open()
            let answer = try second.response()
            #expect(answer.status == 200)
            #expect(answer.text == "whole")
            end.open()
        }
    }

    @Test func `a third variant is stored beside the others`() throws {
        try withLanguages { s, client in
            s.origin.expects("GET /a", "Accept-Language: fr", "If-None-Match").replies(
                200, "Cache-Control: max-age=60", "Vary: Accept-Language", "ETag: \"fr\"", body: "fr")
            for _ in 0..<2 {
                for language in ["fr", "de", "en"] {
                    let answer = try client.get("/a", "Accept-Language: \(language)")
                    #expect(answer.text == language)
                }
            }
        }
    }

    @Test func `the client's condition is answered even if it was replaced by validators of stored responses (§4.3.2)`()
        throws
    {
        try withLanguages { s, client in
            s.origin.expects("GET /a", "Accept-Language: fr", "If-None-Match").replies(
                200, "Cache-Control: max-age=60", "Vary: Accept-Language", "ETag: \"fr\"", body: "fr")
            let answer = try client.get("/a", "Accept-Language: fr", "If-None-Match: \"fr\"")
            #expect(answer.status == 304)
            #expect(answer["ETag"] == "\"fr\"")
            #expect(try client.get("/a", "Accept-Language: fr").text == "fr")
        }
    }

    @Test func `a 304 updates all fields but the length, the hop-by-hop fields and those of the coding (§3.2)`() throws
    {
        try scenario { s in
            let client = try s.client()
            s.origin.expects("GET /a").replies(
                200, "Cache-Control: max-age=0", "ETag: \"a\"", "X-A: 1", "X-A: 2", "X-Kept: kept",
                "Content-Type: text/plain",
                body: "hello")
            try client.get("/a")
            s.origin.expects("GET /a", "If-None-Match: \"a\"").replies(
                304, "Cache-Control: max-age=60", "ETag: \"a\"", "X-A: 3", "X-New: new", "Content-Length: 999",
                "Keep-Alive: timeout=9", "Connection: X-Hop", "X-Hop: hop")
            try client.get("/a")
            let answer = try client.get("/a")
            #expect(answer.cacheStatus.hasPrefix("larder; hit"))
            #expect(answer.head.all("X-A") == ["3"])
            #expect(answer["X-Kept"] == "kept")
            #expect(answer["X-New"] == "new")
            #expect(answer["Content-Length"] == "5")
            #expect(answer["X-Hop"] == nil)
            #expect(answer["Keep-Alive"] == nil)
            #expect(answer.text == "hello")
        }
    }
}

@Suite("RFC 9111 §4.4, RFC 9110 §9.3.3 Unsafe methods and POST")
struct UnsafeMethodScenarios {
    /// What a request to /other answers, and whether that invalidates /a.
    static let rows: [(method: String, target: String, status: Int, fields: [String], invalidates: Bool)] = [
        ("FROBNICATE", "/a", 200, [], true), ("PATCH", "/a", 204, [], true), ("PROPFIND", "/a", 207, [], true),
        ("FROBNICATE", "/a", 404, [], false), ("TRACE", "/a", 200, [], false), ("get", "/a", 200, [], true),
        ("POST", "/other", 201, ["Location: /a"], true), ("POST", "/other", 303, ["Location: a"], true),
        ("POST", "/other", 201, ["Location: //127.0.0.1:ORIGIN/a"], true),
        ("POST", "/other", 200, ["Content-Location: http://127.0.0.1:ORIGIN/a"], true),
        ("POST", "/other", 200, ["Content-Location: x/../a"], true),
        ("POST", "/other", 500, ["Location: /a"], false), ("POST", "/other", 201, ["Location: /a?x"], false),
        ("POST", "/other", 201, ["Location: http://127.0.0.1/a"], false),
        ("POST", "/other", 201, ["Location: https://127.0.0.1:ORIGIN/a"], false),
        ("POST", "/other", 201, ["Content-Location: http://localhost:ORIGIN/a"], false),
        ("POST", "/other", 201, ["Location: http://[nonsense/a"], false),
        ("GET", "/other", 200, ["Location: /a", "Cache-Control: no-store"], false),
    ]

    @Test(arguments: rows) func `an unsafe request invalidates the URIs that it names of the same origin alone`(
        _ row: (method: String, target: String, status: Int, fields: [String], invalidates: Bool)
    ) throws {
        try scenario { s in
            let client = try s.client()
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", body: "old")
            try client.get("/a")
            let fields = row.fields.map { $0.replacing("ORIGIN", with: "\(s.origin.port)") }
            s.origin.expects("\(row.method) \(row.target)").replies(row.status, fields, [])
            #expect(try client.request(row.method, row.target).status == row.status)
            if row.invalidates { s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", body: "new") }
            #expect(try client.get("/a").text == (row.invalidates ? "new" : "old"))
        }
    }

    @Test func `all variants are invalidated`() throws {
        try scenario { s in
            let client = try s.client()
            for round in ["old", "new"] {
                for language in ["de", "en"] {
                    s.origin.expects("GET /a", "Accept-Language: \(language)").replies(
                        200, "Cache-Control: max-age=60", "Vary: Accept-Language", body: round + language)
                }
            }
            for language in ["de", "en"] { try client.get("/a", "Accept-Language: \(language)") }
            s.origin.expects("PUT /a").replies(204)
            try client.request("PUT", "/a", body: "x")
            for language in ["de", "en"] {
                #expect(try client.get("/a", "Accept-Language: \(language)").text == "new" + language)
            }
        }
    }

    /// What a POST of /a answers, and whether a later GET is answered with it.
    static let posts: [(what: String, status: Int, fields: [String], isStored: Bool)] = [
        ("with a lifetime and its own URI", 200, ["Cache-Control: max-age=60", "Content-Location: /a"], true),
        ("a relative reference", 200, ["Cache-Control: max-age=60", "Content-Location: a"], true),
        ("no Content-Location", 200, ["Cache-Control: max-age=60"], false),
        ("another URI", 200, ["Cache-Control: max-age=60", "Content-Location: /b"], false),
        ("no lifetime", 200, ["Content-Location: /a", "Last-Modified: Fri, 20 Nov 2020 10:00:00 GMT"], false),
        ("created", 201, ["Cache-Control: max-age=60", "Content-Location: /a"], false),
        ("no-store", 200, ["Cache-Control: no-store, max-age=60", "Content-Location: /a"], false),
    ]

    @Test(arguments: posts) func `the response to a POST may answer a GET (RFC 9110 §9.3.3)`(
        _ row: (what: String, status: Int, fields: [String], isStored: Bool)
    ) throws {
        try scenario { s in
            let client = try s.client()
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", body: "old")
            try client.get("/a")
            s.origin.expects("POST /a").replies(row.status, row.fields, Array("posted".utf8))
            let posted = try client.request("POST", "/a", body: "x")
            #expect(posted.text == "posted")
            #expect(posted.cacheStatus.contains("; stored") == row.isStored, "\(posted.cacheStatus)")
            if !row.isStored { s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", body: "got") }
            #expect(try client.get("/a").text == (row.isStored ? "posted" : "got"))
            // A POST itself is never answered from the store.
            s.origin.expects("POST /a").replies(200, body: "again")
            #expect(try client.request("POST", "/a", body: "x").text == "again")
        }
    }
}
