import Passwords
import Server
import Settings
import Testing

private func bytes(_ count: Int) -> [UInt8] { (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) } }

@Suite("Regressions: caching")
struct CachingRegressions {
    static let framings = [
        "Transfer-Encoding: chunked\r\n\r\n6\r\n456789\r\n40\r\n", "\r\n456789",
    ]

    /// What else the rest brings would be read as the answer to the client's next request, of whatever host.
    @Test(arguments: framings) func `a rest that is longer than announced does not reach the client`(_ framing: String)
        throws
    {
        try scenario { s in
            s.origin.expects("GET /a", "!Range").sends(
                "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nETag: \"a\"\r\nContent-Length: 10\r\n\r\n0123"
            ).closes()
            let evil = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nX-Padding: 0123456\r\n\r\nevil"
            s.origin.expects("GET /a", "Range: bytes=4-").sends(
                "HTTP/1.1 206 Part\r\nETag: \"a\"\r\nContent-Range: bytes 4-9/10\r\n\(framing)\(evil)\r\n0\r\n\r\n"
            ).closes()
            s.origin.expects("GET /b").replies(200, body: "good")
            let client = try s.client()
            let first = try client.get("/a")
            #expect(!first.isWhole || first.text == "0123456789")
            var answer = ""
            do { answer = try client.get("/b").text } catch {
                // It may close the connection as well.
                answer = try s.client().get("/b").text
            }
            #expect(answer == "good")
        }
    }

    @Test func `a rest that is longer than announced is not stored as complete`() throws {
        try scenario { s in
            s.origin.expects("GET /a", "!Range").sends(
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nETag: \"a\"\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n0123\r\n"
            ).closes()
            s.origin.expects("GET /a", "Range: bytes=4-").sends(
                "HTTP/1.1 206 Part\r\nETag: \"a\"\r\nContent-Range: bytes 4-9/10\r\nTransfer-Encoding: chunked\r\n\r\n6\r\n456789\r\n4\r\nevil\r\n0\r\n\r\n"
            )
            let first = try s.client().get("/a")
            #expect(!first.isWhole || first.text == "0123456789")
            s.origin.expects("GET /a").replies(200, body: "0123456789")
            #expect(try s.client().get("/a").text == "0123456789")
        }
    }

    @Test func `a part of a whole of another length fills no hole`() throws {
        try scenario { s in
            let client = try s.client()
            s.origin.expects("GET /a", "Range: bytes=0-3").replies(
                206, ["Cache-Control: max-age=60", "ETag: \"a\"", "Content-Range: bytes 0-3/10"], Array("0123".utf8))
            try client.get("/a", "Range: bytes=0-3")
            s.origin.expects("GET /a", "Range: bytes=4-9").replies(
                206, ["ETag: \"a\"", "Content-Range: bytes 4-9/20"], Array("xxxxxx".utf8))
            // That fits nothing: the client's own question goes out.
            s.origin.expects("GET /a", "Range: bytes=4-9", "!If-Range").replies(
                206, ["ETag: \"a\"", "Content-Range: bytes 4-9/20"], Array("xxxxxx".utf8))
            let answer = try client.get("/a", "Range: bytes=4-9")
            #expect(answer["Content-Range"] == "bytes 4-9/20")
        }
    }

    @Test func `single bytes of an object that is too long to store are always answered`() throws {
        try scenario(cache: "object_size_max: 1MiB") { s in
            let client = try s.client()
            for number in 0..<40 {
                let start = number * 70_000
                s.origin.expects("GET /a", "Range: bytes=\(start)-\(start)").replies(
                    206,
                    ["Cache-Control: max-age=60", "ETag: \"a\"", "Content-Range: bytes \(start)-\(start)/4000000"],
                    [0x78])
                let answer = try client.get("/a", "Range: bytes=\(start)-\(start)")
                #expect(answer.isWhole && answer.text == "x", "\(number)")
            }
        }
    }

    @Test func `a part that memory has no room for is passed on`() throws {
        try scenario(cache: "memory: 1MiB\nobject_size_max: 1GiB") { s in
            let part = bytes(8 << 20)
            s.origin.expects("GET /a", "Range: bytes=0-8388607").replies(
                206, ["Cache-Control: max-age=60", "ETag: \"a\"", "Content-Range: bytes 0-8388607/100000000"], part)
            let answer = try s.client().get("/a", "Range: bytes=0-8388607")
            let isSame = answer.body == part
            #expect(answer.isWhole && isSame)
        }
    }

    @Test func `a part that is shorter than requested announces no more than the store keeps`() throws {
        try scenario(cache: "object_size_max: 1MiB") { s in
            let all = bytes(4 << 20)
            s.origin.expects("GET /a").replies(
                206, ["Cache-Control: max-age=60", "ETag: \"a\"", "Content-Range: bytes 0-65535/\(all.count)"],
                Array(all[..<65536]))
            let answer = try s.client().get("/a", "Range: bytes=0-")
            let isWhole = answer.isWhole
            #expect(isWhole)
            #expect(answer["Content-Range"] == "bytes 0-65535/\(all.count)")
        }
    }

    @Test func `a range does not hide that the target was changed`() throws {
        try scenario { s in
            let client = try s.client()
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", body: "old")
            try client.get("/a")
            s.origin.expects("POST /a").readsBody().replies(206, "Content-Range: bytes 0-1/3", body: "ok")
            try client.request("POST", "/a", "Range: bytes=0-1", body: "x")
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", body: "new")
            #expect(try client.get("/a").text == "new")
        }
    }

    @Test func `an authenticated request does not get the response that another one is waiting for`() throws {
        try scenario { s in
            let (asked, answer) = (Gate("asked"), Gate("answer"))
            s.origin.expects("GET /a", "!Authorization").opens(asked).waits(for: answer).replies(
                200, "Cache-Control: max-age=60", body: "for anybody")
            s.origin.expects("GET /a", "Authorization: Basic eDp5").replies(
                200, "Cache-Control: max-age=60", body: "for x")
            let (one, two) = (try s.client(), try s.client())
            try one.ask("GET", "/a")
            try asked.wait()
            try two.ask("GET", "/a", ["Authorization: Basic eDp5"])
            try s.expect(.requests, 2)
            answer.open()
            #expect(try one.response().text == "for anybody")
            #expect(try two.response().text == "for x")
        }
    }

    @Test func `a request that accepts no stale response does not get one by following`() throws {
        try scenario { s in
            let (asked, answer) = (Gate("asked"), Gate("answer"))
            let one = try s.client()
            s.origin.expects("GET /a").replies(
                200, "Cache-Control: max-age=1, stale-if-error=600", "Age: 5", "ETag: \"a\"", body: "stale")
            try one.get("/a")
            s.origin.expects("GET /a", "If-None-Match").opens(asked).waits(for: answer).replies(503, body: "sorry")
            s.origin.expects("GET /a").replies(503, body: "sorry")
            let two = try s.client()
            try one.ask("GET", "/a")
            try asked.wait()
            try two.ask("GET", "/a", ["Cache-Control: no-cache"])
            try s.expect(.requests, 3)
            answer.open()
            #expect(try one.response().text == "stale")
            #expect(try two.response().text == "sorry")
        }
    }

    private static func readUsers(_ configuration: inout Configuration, _ files: Scenario.Files, _ cache: String) throws
    {
        configuration.access.authentication.basic.usersFile = try files.write(
            "users", "alice:\(try hash(password: Array("a".utf8)))\n")
        try configuration.read(cache: cache, files)
    }
    private static let alice = "Proxy-Authorization: Basic YWxpY2U6YQ=="

    @Test func `the key is that of the rule for the user, even if that rule has no key`() throws {
        try scenario({
            try Self.readUsers(
                &$0, $1, "rules: [ { match: { user: alice }, ttl: 60s }, { key: { drop: \"*\" }, ttl: 60s } ]")
        }) { s in
            let client = try s.client()
            for query in ["x=1", "x=2"] {
                s.origin.expects("GET /a?\(query)").replies(200, body: query)
                #expect(try client.get("/a?\(query)", Self.alice).text == query)
            }
        }
    }

    @Test func `a reload during authentication does not affect the request`() throws {
        let rules = """
            zones: [ { name: one, memory: 8MiB }, { name: two, memory: 8MiB } ]
            rules: [ { match: { user: alice }, zone: two } ]
            """
        try scenario({ try Self.readUsers(&$0, $1, rules) }) { s in
            s.origin.expects("GET /a").replies(200, body: "body")
            let client = try s.client()
            try client.ask("GET", "/a", [Self.alice])
            try s.expect(.authenticationChecks, 1)
            try s.adopt { try Self.readUsers(&$0, $1, "rules: [ { match: { user: alice }, ttl: 60s } ]") }
            #expect(try client.response().text == "body")
        }
    }

    @Test func `a cookie in a 304 goes only to the client that it was sent to`() throws {
        try scenario { s in
            s.origin.expects("GET /a").replies(
                200, "Cache-Control: max-age=10", "Age: 60", "ETag: \"a\"", body: "body")
            try s.client().get("/a")
            s.origin.expects("GET /a", "If-None-Match: \"a\"").replies(
                304, "Cache-Control: max-age=60", "ETag: \"a\"", "Set-Cookie: id=one")
            #expect(try s.client().get("/a")["Set-Cookie"] == "id=one")
            let other = try s.client().get("/a")
            #expect(other.cacheStatus.hasPrefix("larder; hit"))
            #expect(other["Set-Cookie"] == nil)
        }
    }

    @Test(arguments: ["private, max-age=60", "no-store"])
    func `a response that a 304 forbids to store is not kept`(_ control: String) throws {
        try scenario { s in
            s.origin.expects("GET /a").replies(
                200, "Cache-Control: max-age=10", "Age: 60", "ETag: \"a\"", body: "body")
            try s.client().get("/a")
            s.origin.expects("GET /a", "If-None-Match: \"a\"").replies(
                304, "Cache-Control: \(control)", "ETag: \"a\"", "X-For: one")
            #expect(try s.client().get("/a").text == "body")
            s.origin.expects("GET /a", "!If-None-Match").replies(200, "X-For: two", body: "other")
            #expect(try s.client().get("/a")["X-For"] == "two")
        }
    }

    @Test func `the response to an authenticated HEAD does not update the shared response`() throws {
        try scenario { s in
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", "ETag: \"a\"", body: "body")
            try s.client().get("/a")
            s.origin.expects("HEAD /a", "Authorization: Basic eDp5").replies(
                200, "Cache-Control: max-age=60", "ETag: \"a\"", "Content-Length: 4", "X-For: x")
            try s.client().request("HEAD", "/a", "Authorization: Basic eDp5")
            #expect(try s.client().get("/a")["X-For"] == nil)
        }
    }

    @Test func `ranges in any order delay no other reader when memory is short`() throws {
        try scenario(cache: "memory: 1MiB\nobject_size_max: 1GiB") { s in
            let all = bytes(8 << 20)
            let go = Gate("both ask")
            s.origin.expects("GET /a", "!Range").sends(
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nETag: \"a\"\r\nContent-Length: \(all.count)\r\n\r\n"
            ).waits(for: go).sends(all)
            let (one, two) = (try s.client(), try s.client())
            try one.ask("GET", "/a")
            _ = try one.head()
            try two.ask("GET", "/a", ["Range: bytes=4000000-4000009,0-9"])
            _ = try two.head()
            go.open()
            let body = try one.reader.bytes(all.count)
            let isSame = body == all
            #expect(isSame)
        }
    }
}
