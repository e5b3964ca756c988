import Testing

@Suite("Requests with Authorization, where a rule says whom the responses are for")
struct CredentialScenarios {
    private static let (alice, bob) = ("Authorization: Bearer alice", "Authorization: Bearer bob")

    @Test func `public: one response for all, and the credentials go to the origin`() throws {
        try scenario(cache: "rules: [ { authorization: public } ]") { s in
            s.origin.expects("GET /a", Self.alice).replies(200, "Cache-Control: max-age=60", body: "body")
            let client = try s.client()
            try client.get("/a", Self.alice)
            for fields in [[Self.alice], [Self.bob], []] {
                let answer = try client.get("/a", fields: fields)
                #expect(answer.cacheStatus.hasPrefix("larder; hit") && answer.text == "body")
            }
        }
    }

    @Test func `public does not outlive its rule`() throws {
        try scenario(cache: "rules: [ { authorization: public } ]") { s in
            s.origin.expects("GET /a", Self.alice).replies(200, "Cache-Control: max-age=60", body: "alice's")
            let client = try s.client()
            try client.get("/a", Self.alice)
            try s.adopt(cache: "rules: []")
            s.origin.expects("GET /a", Self.bob).replies(200, "Cache-Control: max-age=60", body: "bob's")
            #expect(try client.get("/a", Self.bob).text == "bob's")
        }
    }

    @Test func `per-credential: each has responses of its own`() throws {
        try scenario(cache: "rules: [ { authorization: per-credential } ]") { s in
            let client = try s.client()
            for (name, fields) in [("alice", [Self.alice]), ("bob", [Self.bob]), ("nobody", [])] {
                s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", body: name)
                #expect(try client.get("/a", fields: fields).text == name)
            }
            for (name, fields) in [("alice", [Self.alice]), ("bob", [Self.bob]), ("nobody", [])] {
                let answer = try client.get("/a", fields: fields)
                #expect(answer.cacheStatus.hasPrefix("larder; hit") && answer.text == name)
            }
        }
    }

    @Test func `validate: nobody gets the body before the origin confirmed it to them`() throws {
        try scenario(cache: "rules: [ { authorization: validate } ]") { s in
            let client = try s.client()
            s.origin.expects("GET /a", Self.alice).replies(
                200, "Cache-Control: max-age=60", "ETag: \"1\"", body: "secret")
            #expect(try client.get("/a", Self.alice).text == "secret")
            s.origin.expects("GET /a", Self.bob, "If-None-Match: \"1\"").replies(
                403, "Cache-Control: max-age=60", body: "no")
            #expect(try client.get("/a", Self.bob).text == "no")
            s.origin.expects("GET /a", "!Authorization", "If-None-Match: \"1\"").replies(401, body: "who?")
            #expect(try client.get("/a").text == "who?")
            for fields in [[Self.alice], [Self.bob]] {
                s.origin.expects("GET /a", fields[0], "If-None-Match: \"1\"").replies(304, "ETag: \"1\"")
                let answer = try client.get("/a", fields: fields)
                #expect(answer.status == 200 && answer.text == "secret")
            }
        }
    }

    @Test func `validate: an origin that fails proves nothing`() throws {
        try scenario(cache: "rules: [ { authorization: validate, policy: [ stale-on-error ] } ]") { s in
            let client = try s.client()
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", "ETag: \"1\"", body: "secret")
            try client.get("/a", Self.alice)
            s.origin.expects("GET /a").replies(503, body: "later")
            #expect(try client.get("/a", Self.bob).text == "later")
            #expect(try client.get("/a", Self.bob, "Cache-Control: only-if-cached").status == 504)
        }
    }
}

extension ScriptedClient {
    fileprivate func get(_ target: String, fields: [String]) throws -> SeenMessage {
        try ask("GET", target, fields)
        return try response()
    }
}

@Suite("Cookies that are not stored")
struct DroppedCookieScenarios {
    @Test func `the client whose request brought them gets them, and nobody else does`() throws {
        try scenario(cache: "rules: [ { drop_cookies: [ cdn ] } ]") { s in
            let client = try s.client()
            s.origin.expects("GET /a").replies(
                200, "Cache-Control: public, max-age=0", "ETag: \"1\"", "Set-Cookie: cdn=1; Path=/", body: "body")
            #expect(try client.get("/a")["Set-Cookie"] == "cdn=1; Path=/")
            s.origin.expects("GET /a").replies(
                304, "ETag: \"1\"", "Set-Cookie: cdn=2", "Cache-Control: public, max-age=60")
            #expect(try client.get("/a")["Set-Cookie"] == "cdn=2")
            let hit = try client.get("/a")
            #expect(hit.cacheStatus.hasPrefix("larder; hit") && hit["Set-Cookie"] == nil && hit.text == "body")
        }
    }

    @Test func `other cookies are treated as ever`() throws {
        try scenario(cache: "rules: [ { drop_cookies: [ cdn ] } ]") { s in
            let client = try s.client()
            for _ in 0..<2 {
                s.origin.expects("GET /a").replies(
                    200, "Cache-Control: max-age=60", "Set-Cookie: cdn=1", "Set-Cookie: own=1")
                #expect(try !client.get("/a").cacheStatus.contains("stored"))
            }
            s.origin.expects("GET /b").replies(
                200, "Cache-Control: public, max-age=60", "Set-Cookie: own=1", "Set-Cookie: cdn=1")
            try client.get("/b")
            #expect(try client.get("/b")["Set-Cookie"] == "own=1")
        }
    }
}
