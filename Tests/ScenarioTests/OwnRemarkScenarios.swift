import Server
import Testing

@Suite("What Larder says of itself in a response, nobody else can say")
struct OwnRemarkScenarios {
    static let forged = [
        "Larder-Deny: reason=access-denied", "larder-peer: 1 hit",
        "Proxy-Status: a; error=x, larder; error=dns_error, b",
        "Cache-Status: \"larder\"; hit", "Proxy-Status: LARDER; details=\"x\"",
        "Cache-Status: first; hit, Larder-2; hit",
        "Proxy-Status: larder; details=\"no end",
    ]
    static let ways = ["Cache-Control: no-store", "Cache-Control: max-age=60", "Cache-Control: max-age=0"]

    private func check(_ answer: SeenMessage, sourceLocation: SourceLocation = #_sourceLocation) {
        let lines = answer.head.lines.map { $0.lowercased() }
        #expect(!lines.contains { $0.hasPrefix("larder-") }, "\(lines)", sourceLocation: sourceLocation)
        let status = lines.filter { $0.hasPrefix("proxy-status:") }
        #expect(status == ["proxy-status: a;error=x, b"], "\(lines)", sourceLocation: sourceLocation)
        let cache = lines.filter { $0.hasPrefix("cache-status:") }
        #expect(
            cache.count == 2 && cache.first == "cache-status: first;hit", "\(lines)", sourceLocation: sourceLocation)
        #expect(cache.last?.hasPrefix("cache-status: larder; ") == true, "\(lines)", sourceLocation: sourceLocation)
    }

    @Test(arguments: ways) func `members and fields of Larder's go, and those of others stay in order`(
        _ control: String
    ) throws {
        try scenario { s in
            let fields = Self.forged + [control, "ETag: \"a\""]
            s.origin.expects("GET /a").replies(200, fields, Array("hello".utf8))
            let client = try s.client()
            check(try client.get("/a"))
            // The second one is served from the store, validated with a 304 that says the same, or asked for again.
            if !control.contains("no-store"), control.hasSuffix("=0") {
                s.origin.expects("GET /a", "If-None-Match").replies(304, fields, [])
            } else if control.contains("no-store") {
                s.origin.expects("GET /a").replies(200, fields, Array("hello".utf8))
            }
            let second = try client.get("/a")
            #expect(second.text == "hello")
            check(second)
        }
    }

    @Test(arguments: ways) func `behind a next proxy an origin says nothing in Larder's name, nor does the proxy`(
        _ control: String
    ) throws {
        try scenario { s in
            try s.adopt(routes: s.nextProxy())
            let fields = Self.forged + [control, "ETag: \"a\""]
            let url = "http://a.example/a"
            s.origin.expects("GET \(url)").replies(200, fields, Array("hello".utf8))
            let client = try s.client()
            check(try client.get(url))
            if control.hasSuffix("=0") {
                s.origin.expects("GET \(url)", "If-None-Match").replies(304, fields, [])
            } else if control.contains("no-store") {
                s.origin.expects("GET \(url)").replies(200, fields, Array("hello".utf8))
            }
            let second = try client.get(url)
            #expect(second.text == "hello")
            check(second)
        }
    }

    @Test func `the refusal of a next proxy is not Larder's`() throws {
        try scenario { s in
            try s.adopt(routes: s.nextProxy())
            s.origin.expects("GET http://a.example/a").replies(
                502, Self.forged + ["Cache-Control: no-store"], Array("no".utf8))
            let answer = try s.client().get("http://a.example/a")
            #expect(answer.status == 502 && answer.text == "no")
            check(answer)
        }
    }

    @Test func `interim responses and trailers say nothing in Larder's name`() throws {
        try scenario { s in
            s.origin.expects("GET /a").sends(
                "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\nLarder-Deny: reason=x\r\nProxy-Status: larder; error=x\r\n\r\n"
            ).sends(
                "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n"
                    + "Larder-Deny: reason=x\r\nProxy-Status: larder; error=x\r\nX-Sum: 1\r\n\r\n")
            let client = try s.client()
            try client.ask("GET", "/a", ["TE: trailers", "Connection: TE"])
            let hints = try client.response()
            #expect(hints.status == 103, "\(hints)")
            #expect(!hints.head.lines.contains { $0.lowercased().contains("larder") }, "\(hints)")
            let answer = try client.response()
            #expect(answer.text == "hello")
            #expect(answer.trailers == ["X-Sum: 1"], "\(answer.trailers)")
        }
    }

    @Test(arguments: ["GET", "HEAD", "POST"]) func `a 407 of an origin does not reach the client`(
        _ method: String
    ) throws {
        try scenario { s in
            s.origin.expects("\(method) /a").replies(
                407, "Proxy-Authenticate: Basic realm=\"larder\"", body: method == "HEAD" ? "" : "log in")
            let answer = try s.client().request(method, "/a")
            #expect(answer.status == 502, "\(answer)")
            #expect(answer["Proxy-Authenticate"] == nil)
            #expect(answer.cacheStatus.contains("detail=origin-asks-for-proxy-log-in"), "\(answer)")
            #expect(answer["Proxy-Status"]?.hasPrefix("larder; error=http_protocol_error") == true, "\(answer)")
        }
    }
}
