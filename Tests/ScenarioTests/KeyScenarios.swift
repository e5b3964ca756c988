import Message
import Server
import Testing

@Suite("Cache keys made by rules")
struct KeyScenarios {
    @Test func `the key of a stored response takes as much memory as it is long`() throws {
        try scenario { s in
            let clients = try (0..<8).map { _ in try s.client() }
            for number in 0..<4000 {
                s.origin.expects("GET /\(number)").replies(200, "Cache-Control: max-age=60", body: "a")
            }
            for round in 0..<500 {
                for (index, client) in clients.enumerated() { try client.ask("GET", "/\(round * 8 + index)", []) }
                for client in clients { #expect(try client.response().status == 200) }
            }
            var longest = 0
            s.tier.memory.forEach { longest = max(longest, $0.keyBytes.capacity - $0.keyBytes.count) }
            #expect(longest < 48)
        }
    }

    /// Two spellings: the first is asked for, then the second. One that shares costs the origin nothing.
    static let rows: [(key: String, first: String, second: String, isShared: Bool)] = [
        ("{ drop: [ \"utm_*\", fbclid ] }", "/a?id=1&utm_source=x", "/a?fbclid=2&id=1", true),
        ("{ drop: [ \"utm_*\" ] }", "/a?utm_source=x", "/a", true), ("{ drop: \"*\" }", "/a?x=1&y=2", "/a?z", true),
        ("{ drop: fbclid }", "/a?fb%63lid=1", "/a", false), ("{ drop: [ \"utm_*\" ] }", "/a?id=1", "/a?id=2", false),
        ("{ drop: x }", "/a?id=1&x", "/a?x=1&id=1&x=2", true), ("{ drop: x }", "/a?X=1", "/a", false),
        ("{ keep: [ id, page ] }", "/a?id=1&session=9&page=2", "/a?id=1&page=2", true),
        ("{ keep: id }", "/a?id=1", "/a?id=2", false), ("{ keep: id }", "/a?page=1", "/a", true),
        ("{ sort: yes }", "/a?b=2&a=1", "/a?a=1&b=2", true), ("{ sort: yes }", "/a?a=1&a=2", "/a?a=2&a=1", false),
        ("{ drop: \"utm_*\", sort: yes }", "/a?b=2&utm_x=1&a=1", "/a?a=1&b=2", true),
        ("{ sort: yes }", "/a?b&a", "/a?a&b&", false),
    ]

    @Test(arguments: rows)
    func `spellings that a key rule folds share one stored response`(
        _ row: (key: String, first: String, second: String, isShared: Bool)
    ) throws {
        try scenario(cache: "rules: [ { match: { path: /a }, key: \(row.key) } ]") { s in
            s.origin.expects("GET \(row.first)").replies(200, "Cache-Control: max-age=60", body: "one")
            if !row.isShared {
                s.origin.expects("GET \(row.second)").replies(200, "Cache-Control: max-age=60", body: "two")
            }
            let client = try s.client()
            try client.get(row.first)
            #expect(try client.get(row.second).text == (row.isShared ? "one" : "two"))
            #expect(try client.get(row.first).text == "one")
        }
    }

    @Test func `requests for two folded spellings at once share one request`() throws {
        try scenario(cache: "rules: [ { key: { drop: \"utm_*\" } } ]") { s in
            let (asked, answer) = (Gate("asked"), Gate("answer"))
            s.origin.expects("GET /a?utm_x=1").opens(asked).waits(for: answer).replies(
                200, "Cache-Control: max-age=60", body: "one")
            let clients = try (0..<3).map { _ in try s.client() }
            try clients[0].ask("GET", "/a?utm_x=1")
            try asked.wait()
            try clients[1].ask("GET", "/a?utm_x=2")
            try clients[2].ask("GET", "/a")
            try s.expect(.requests, 3)
            answer.open()
            for client in clients { #expect(try client.response().text == "one") }
        }
    }

    private static let folded = """
        rules: [ { match: { host: [ 127.0.0.1, localhost ] }, key: { host: mirror.example.org, drop: token } } ]
        """

    @Test func `folded hosts share a stored response, and each is asked by its own name and URI`() throws {
        try scenario(cache: Self.folded) { s in
            let client = try s.client()
            let other = "http://localhost:\(s.origin.port)"
            s.origin.expects("GET /a?token=1", "Host: localhost:\(s.origin.port)").replies(
                200, "Cache-Control: max-age=10", "Age: 60", "ETag: \"a\"", body: "one")
            try client.get("\(other)/a?token=1")
            s.origin.expects("GET /a?token=2", "Host: \(s.origin.authority)", "If-None-Match: \"a\"").replies(
                304, "Cache-Control: max-age=60", "ETag: \"a\"")
            #expect(try client.get("/a?token=2").text == "one")
            #expect(try client.get("\(other)/a").cacheStatus.hasPrefix("larder; hit"))
        }
    }

    /// Unsafe requests to one of the folded hosts, and whether they invalidate the response that is stored for all of them.
    static let unsafe: [(method: String, target: String, fields: [String], invalidates: Bool)] = [
        ("PUT", "/a", [], true), ("DELETE", "/a?token=3", [], true), ("PUT", "/b", [], false),
        ("POST", "/b", ["Location: /a"], true), ("POST", "/b", ["Content-Location: /a?token=9"], true),
        ("POST", "/b", ["Location: http://mirror.example.org/a"], false),
    ]

    @Test(arguments: unsafe) func `unsafe requests invalidate under the folded key (RFC 9111 §4.4)`(
        _ row: (method: String, target: String, fields: [String], invalidates: Bool)
    ) throws {
        try scenario(cache: Self.folded) { s in
            let client = try s.client()
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", body: "old")
            try client.get("http://localhost:\(s.origin.port)/a")
            s.origin.expects("\(row.method) \(row.target)").replies(200, row.fields, [])
            try client.request(row.method, row.target, body: "x")
            if row.invalidates { s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", body: "new") }
            #expect(try client.get("http://localhost:\(s.origin.port)/a").text == (row.invalidates ? "new" : "old"))
        }
    }

    @Test func `a resumed and a partial answer ask for the client's own URI too`() throws {
        try scenario(cache: "rules: [ { key: { drop: \"utm_*\" } } ]") { s in
            s.origin.expects("GET /a?utm_x=1").sends(
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nETag: \"a\"\r\nContent-Length: 10\r\n\r\n0123"
            ).closes()
            s.origin.expects("GET /a?utm_x=1", "Range: bytes=4-").replies(
                206, "ETag: \"a\"", "Content-Range: bytes 4-9/10", body: "456789")
            let client = try s.client()
            #expect(try client.get("/a?utm_x=1").text == "0123456789")
            #expect(try client.get("/a?utm_x=2", "Range: bytes=8-").text == "89")
        }
    }

    @Test func `a purge of a URL uses the key that a GET of it has`() throws {
        try scenario(cache: "rules: [ { key: { drop: [ '*' ] } } ]") { s in
            let uri = try #require(TargetURI(s.origin.url("/a?x=2").utf8))
            #expect(s.proxy.snapshot.keys(toGet: uri) == ["/a?x=2", "/a"].map { Array(s.origin.url($0).utf8) })
        }
    }
}
