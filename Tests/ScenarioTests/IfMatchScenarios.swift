import Testing

@Suite("If-Match on a GET, where a rule lets a stored response answer it (RFC 9110 §13.1.1, RFC 9111 §4.3.2)")
struct IfMatchScenarios {
    private static let rule = "rules: [ { if_match: stored } ]"

    private static func stored(_ s: Scenario, _ lines: String = "Cache-Control: max-age=60", tag: String = "\"1\"")
        throws
        -> ScriptedClient
    {
        let client = try s.client()
        s.origin.expects("GET /a").replies(200, lines, "ETag: \(tag)", body: "0123456789")
        try client.get("/a")
        return client
    }

    @Test func `a fresh response with the tag answers it, whole and in parts`() throws {
        try scenario(cache: Self.rule) { s in
            let client = try Self.stored(s)
            let whole = try client.get("/a", "If-Match: \"0\", \"1\"")
            #expect(whole.cacheStatus.hasPrefix("larder; hit") && whole.text == "0123456789")
            let part = try client.get("/a", "If-Match: \"1\"", "Range: bytes=2-4")
            #expect(part.status == 206 && part.text == "234" && part.cacheStatus.hasPrefix("larder; hit"))
        }
    }

    static let others: [(stored: String, tag: String, asks: String)] = [
        ("Cache-Control: max-age=60", "\"1\"", "\"2\""), ("Cache-Control: max-age=60", "\"1\"", "W/\"1\""),
        ("Cache-Control: max-age=60", "W/\"1\"", "\"1\""), ("Cache-Control: max-age=60", "\"1\"", "*"),
        ("Cache-Control: max-age=60", "\"1\"", "1"), ("Cache-Control: max-age=0", "\"1\"", "\"1\""),
        ("Cache-Control: no-cache", "\"1\"", "\"1\""),
    ]
    @Test(arguments: others) func `anything else is for the origin, with the client's own field`(
        _ row: (stored: String, tag: String, asks: String)
    ) throws {
        try scenario(cache: Self.rule) { s in
            let client = try Self.stored(s, row.stored, tag: row.tag)
            s.origin.expects("GET /a", "If-Match: \(row.asks)", "!If-None-Match").replies(412, body: "no")
            #expect(try client.get("/a", "If-Match: \(row.asks)").status == 412)
        }
    }

    @Test func `an origin that fails is not replaced by what does not match`() throws {
        try scenario(cache: "rules: [ { if_match: stored, policy: stale-on-error } ]") { s in
            let client = try Self.stored(s, "Cache-Control: max-age=0, stale-if-error=60")
            s.origin.expects("GET /a", "If-Match: \"2\"").replies(503, body: "later")
            #expect(try client.get("/a", "If-Match: \"2\"").text == "later")
        }
    }

    @Test func `without the rule every one is`() throws {
        try scenario { s in
            let client = try Self.stored(s)
            s.origin.expects("GET /a", "If-Match: \"1\"").replies(200, body: "new")
            #expect(try client.get("/a", "If-Match: \"1\"").text == "new")
        }
    }

    @Test func `parts that the origin sent to it are stored, and answer the next one`() throws {
        try scenario(cache: Self.rule) { s in
            let client = try s.client()
            s.origin.expects("GET /a", "If-Match: \"1\"", "Range: bytes=0-4").replies(
                206, "Cache-Control: max-age=60", "ETag: \"1\"", "Content-Range: bytes 0-4/10", body: "01234")
            #expect(try client.get("/a", "If-Match: \"1\"", "Range: bytes=0-4").text == "01234")
            let again = try client.get("/a", "If-Match: \"1\"", "Range: bytes=1-3")
            #expect(again.status == 206 && again.text == "123" && again.cacheStatus.hasPrefix("larder; hit"))
        }
    }
}
