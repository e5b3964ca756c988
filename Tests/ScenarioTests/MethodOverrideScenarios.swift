import Server
import Testing

@Suite("A request that overrides its method bypasses the cache")
struct MethodOverrideScenarios {
    static let names = ["X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"]

    @Test(arguments: names) func `the response to an overridden method is not stored`(_ name: String) throws {
        try scenario { s in
            s.origin.expects("GET /a", "\(name): DELETE").replies(404, "Cache-Control: max-age=60", body: "no")
            s.origin.expects("GET /a", "!\(name)").replies(200, "Cache-Control: max-age=60", body: "hello")
            let client = try s.client()
            let overridden = try client.get("/a", "\(name): DELETE")
            #expect(overridden.status == 404)
            #expect(overridden.cacheStatus == "larder; fwd=method; fwd-status=404; detail=method-override")
            #expect(try client.get("/a").text == "hello")
            #expect(try client.get("/a").cacheStatus.hasPrefix("larder; hit"))
        }
    }

    @Test(arguments: names)
    func `an overridden method is not answered from the store, and invalidates it on success (RFC 9111 §4.4)`(
        _ name: String
    ) throws {
        try scenario { s in
            let client = try s.client()
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", "ETag: \"a\"", body: "hello")
            try client.get("/a")
            s.origin.expects("GET /a", "\(name): PATCH", "!If-None-Match").replies(409, body: "conflict")
            #expect(try client.get("/a", "\(name): PATCH").text == "conflict")
            #expect(try client.get("/a").cacheStatus.hasPrefix("larder; hit"))
            s.origin.expects("HEAD /a", "\(name): PATCH").replies(204)
            #expect(try client.request("HEAD", "/a", "\(name): PATCH").status == 204)
            s.origin.expects("GET /a", "!\(name)").replies(200, "Cache-Control: max-age=60", body: "changed")
            #expect(try client.get("/a").text == "changed")
        }
    }

    @Test func `a request with an overridden method neither leads nor follows a transfer`() throws {
        try scenario { s in
            let (asked, answer) = (Gate("asked"), Gate("answer"))
            s.origin.expects("GET /a", "X-HTTP-Method: PUT").opens(asked).waits(for: answer).replies(
                200, "Cache-Control: max-age=60", body: "put")
            s.origin.expects("GET /a", "!X-HTTP-Method").replies(200, "Cache-Control: max-age=60", body: "got")
            let (first, second) = (try s.client(), try s.client())
            try first.ask("GET", "/a", ["X-HTTP-Method: PUT"])
            try asked.wait()
            #expect(try second.get("/a").text == "got")
            answer.open()
            #expect(try first.response().text == "put")
        }
        try scenario { s in
            let (asked, answer) = (Gate("asked"), Gate("answer"))
            s.origin.expects("GET /a", "!X-HTTP-Method").opens(asked).waits(for: answer).replies(
                200, "Cache-Control: max-age=60", body: "got")
            s.origin.expects("GET /a", "X-HTTP-Method: PUT").replies(200, "Cache-Control: max-age=60", body: "put")
            let (first, second) = (try s.client(), try s.client())
            try first.ask("GET", "/a")
            try asked.wait()
            #expect(try second.get("/a", "X-HTTP-Method: PUT").text == "put")
            answer.open()
            #expect(try first.response().text == "got")
        }
    }

    @Test func `an overridden method with only-if-cached gets 504`() throws {
        try scenario { s in
            let client = try s.client()
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", body: "hello")
            try client.get("/a")
            let answer = try client.get("/a", "X-HTTP-Method: PUT", "Cache-Control: only-if-cached")
            #expect(answer.status == 504)
        }
    }

    /// What the origin made of it may not be idempotent (RFC 9110 §9.2.2).
    @Test func `a request with an overridden method is never sent twice`() throws {
        try scenario { s in
            s.origin.expects("GET /a").sends("HTTP/1.1 200 OK\r\nETag: \"a\"\r\nContent-Length: 10\r\n\r\n0123")
                .closes()
            let answer = try s.client().get("/a", "X-HTTP-Method: POST")
            #expect(!answer.isWhole)
            try s.expect(.resumed, 0)
        }
    }
}
