import Access
import EventLoop
import Foundation
import Message
import Passwords
import Routing
import Origins
import Rules
import Server
import Settings
import Testing

/// An origin that redirects, another origin, and a rule for the first one: `redirects: { max: … }`.
private func detour(
    max countMax: Int = 5, everywhere: Bool = true, cache: String? = nil,
    _ configure: (inout Configuration, Scenario.Files) throws -> Void = { _, _ in },
    sourceLocation: SourceLocation = #_sourceLocation, _ play: (Scenario, ScriptedOrigin) throws -> Void
) throws {
    let other = try ScriptedOrigin()
    defer { other.end() }
    try scenario(
        { configuration, files in
            var conditions = RuleConditions()
            if !everywhere { conditions.ports = [files.origin.port...files.origin.port] }
            configuration.origins = [OriginRule(conditions, redirectsMax: countMax, number: 1)]
            if let cache { try configuration.read(cache: cache, files) }
            try configure(&configuration, files)
        }, sourceLocation: sourceLocation
    ) { s in
        try play(s, other)
        for problem in other.problems() { Issue.record("other: \(problem)", sourceLocation: sourceLocation) }
    }
}

private let followedOnce = "larder; details=\"redirects followed: 1\""

@Suite("origins: redirects that Larder follows")
struct RedirectScenarios {
    // MARK: the answer

    @Test func `without a rule the client gets the redirect`() throws {
        try scenario { s in
            s.origin.expects("GET /a").replies(302, "Location: /b")
            let answer = try s.client().get("/a")
            #expect(answer.status == 302 && answer["Location"] == "/b" && answer["Proxy-Status"] == nil)
            #expect(s.count(.redirectsFollowed) == 0)
        }
    }

    @Test(arguments: [301, 302, 303, 307, 308]) func `the client gets what the redirect leads to`(_ status: Int) throws
    {
        try detour { s, other in
            s.origin.expects("GET /a", "X-Own: 1").replies(
                status, "Location: \(other.url("/b?c=d#e"))", "Set-Cookie: a=b", body: "moved")
            other.expects("GET /b?c=d", "X-Own: 1", "Host: \(other.authority)").replies(
                200, "ETag: \"b\"", "Content-Type: text/plain", "Set-Cookie: b=c", body: "there")
            let answer = try s.client().get("/a", "X-Own: 1")
            #expect(answer.status == 200 && answer.text == "there" && answer["ETag"] == "\"b\"")
            #expect(answer["Location"] == nil && answer["Set-Cookie"] == nil && answer["Content-Location"] == nil)
            // Redirects change earlier than what they lead to.
            #expect(answer["Cache-Control"] == "no-cache")
            #expect(answer["Proxy-Status"] == followedOnce)
            #expect(answer.cacheStatus.hasPrefix("larder; fwd=uri-miss"))
            try s.expect(.redirectsFollowed, 1)
            #expect(try s.stat(.origins, "redirects_followed") == 1)
            #expect(s.count(.requests) == 1)
            let lines = try s.logLines()
            #expect(lines.count == 1)
            #expect(lines[0].contains("\"uri\":\"\(s.origin.url("/a"))\",\"status\":200"), "\(lines)")
            #expect(lines[0].contains("\"redirected_to\":\"\(other.url("/b?c=d"))\""), "\(lines)")
        }
    }

    @Test(arguments: [300, 304, 305, 306]) func `other statuses are no redirects`(_ status: Int) throws {
        try detour { s, other in
            s.origin.expects("GET /a").replies(status, "Location: \(other.url("/b"))")
            let answer = try s.client().get("/a")
            #expect(answer.status == status)
        }
    }

    @Test func `HEAD stays HEAD`() throws {
        try detour { s, other in
            s.origin.expects("HEAD /a").replies(303, "Location: \(other.url("/b"))", "Content-Length: 5")
            other.expects("HEAD /b").replies(200, "Content-Length: 1000")
            let answer = try s.client().request("HEAD", "/a")
            #expect(answer.status == 200 && answer["Content-Length"] == "1000")
        }
    }

    @Test func `a short redirect leaves its connection to the next request`() throws {
        try detour { s, _ in
            for (path, next) in [("/a", "b"), ("/b", "../c"), ("/c", "?d")] {
                s.origin.expects("GET \(path)").replies(302, "Location: \(next)", body: "see \(next)")
            }
            s.origin.expects("GET /c?d").replies(200, body: "there")
            let answer = try s.client().get("/a")
            #expect(answer.text == "there")
            #expect(answer["Proxy-Status"] == "larder; details=\"redirects followed: 3\"")
            #expect(s.origin.connectionCount == 1)
        }
    }

    @Test func `a redirect with a body without end is left at once`() throws {
        try detour { s, other in
            let gone = Gate("the origin was left")
            s.origin.expects("GET /a").sends(
                "HTTP/1.1 302 Found\r\nLocation: \(other.url("/b"))\r\nTransfer-Encoding: chunked\r\n\r\n"
            ).streams("5\r\nmoved\r\n", untilGone: gone)
            other.expects("GET /b").replies(200, body: "there")
            let answer = try s.client().get("/a")
            #expect(answer.text == "there")
            try gone.wait()
        }
    }

    @Test func `interim responses of each origin reach the client before the answer`() throws {
        try detour { s, other in
            s.origin.expects("GET /a").sends("HTTP/1.1 103 Early Hints\r\nLink: </1>\r\n\r\n").replies(
                302, "Location: \(other.url("/b"))")
            other.expects("GET /b").sends("HTTP/1.1 103 Early Hints\r\nLink: </2>\r\n\r\n").replies(200, body: "there")
            let client = try s.client()
            try client.ask("GET", "/a")
            #expect(try client.response()["Link"] == "</1>")
            #expect(try client.response()["Link"] == "</2>")
            #expect(try client.response().text == "there")
        }
    }

    @Test func `a client of HTTP 1_0 is served, and so is the request behind`() throws {
        try detour { s, other in
            s.origin.expects("GET /a").replies(302, "Location: \(other.url("/b"))")
            other.expects("GET /b").sends(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nthere\r\n0\r\n\r\n")
            let old = try s.client()
            try old.ask("GET", "/a", version: "1.0")
            #expect(try old.response().text == "there")
            try old.expectClosed()
            s.origin.expects("GET /c").replies(302, "Location: \(other.url("/d"))")
            other.expects("GET /d").replies(200, body: "first")
            s.origin.expects("GET /e").replies(200, body: "second")
            let client = try s.client()
            try client.ask("GET", "/c")
            try client.ask("GET", "/e")
            #expect(try client.response().text == "first")
            #expect(try client.response().text == "second")
        }
    }

    @Test func `a client that leaves between two requests leaves nothing behind`() throws {
        try detour { s, other in
            let (asked, answer) = (Gate("asked"), Gate("answer"))
            s.origin.expects("GET /a").replies(302, "Location: \(other.url("/b"))")
            other.expects("GET /b").opens(asked).waits(for: answer)
            do {
                let client = try s.client()
                try client.ask("GET", "/a")
                try asked.wait()
                client.wire.reset()
            }
            try s.eventually("the fetch has ended") { s.proxy.transfers().isEmpty }
            answer.open()
        }
    }

    // MARK: the store

    @Test func `each response is stored under its own address, and may be a hit there`() throws {
        try detour { s, other in
            s.origin.expects("GET /a").replies(301, "Location: \(other.url("/b"))", "Cache-Control: max-age=60")
            other.expects("GET /b").replies(200, "Cache-Control: max-age=60", body: "there")
            let client = try s.client()
            #expect(try client.get("/a").text == "there")
            let second = try client.get("/a")
            #expect(second.text == "there" && second.cacheStatus.hasPrefix("larder; hit"), "\(second)")
            #expect(second["Cache-Control"] == "max-age=60, no-cache" && second["Proxy-Status"] == followedOnce)
            #expect(Int(second["Age"] ?? "") != nil)
            // Who asks for it gets it as it is.
            let direct = try client.get(other.url("/b"))
            #expect(direct.cacheStatus.hasPrefix("larder; hit"))
            #expect(direct["Cache-Control"] == "max-age=60" && direct["Proxy-Status"] == nil)
            // And a rule that no longer holds follows nothing that is stored.
            try s.adopt { _, _ in }
            let plain = try client.get("/a")
            #expect(plain.status == 301 && plain.cacheStatus.hasPrefix("larder; hit"))
        }
    }

    @Test func `a stored redirect on the disk, or large, is followed like any other`() throws {
        try detour(
            cache: "disk: { path: DIRECTORY/disk, size: 200MiB, sync: 100ms }",
            { _, _ in }
        ) { s, other in
            let long = [UInt8](repeating: 0x78, count: 3 << 20)
            s.origin.expects("GET /a").replies(
                301, ["Location: \(other.url("/b"))", "Cache-Control: max-age=60"], long)
            for _ in 0..<3 { other.expects("GET /b").replies(200, "Cache-Control: no-store", body: "there") }
            let client = try s.client()
            #expect(try client.get("/a").text == "there")
            #expect(try client.get("/a").text == "there")
            try s.eventually("the redirect is stored") { s.count(.stored) + s.count(.partsStored) > 0 }
            try s.leaveToDisk()
            #expect(try client.get("/a").text == "there")
        }
    }

    @Test func `parts and conditions are those of the final representation`() throws {
        try detour { s, other in
            s.origin.expects("GET /a", "Range: bytes=2-4", "If-None-Match: \"x\"", "If-Modified-Since").replies(
                302, "Location: \(other.url("/b"))", "ETag: \"x\"", "Cache-Control: max-age=60", body: "moved away")
            other.expects("GET /b", "Range: bytes=2-4", "If-None-Match: \"x\"", "!If-Modified-Since").replies(
                200, "ETag: \"b\"", "Cache-Control: max-age=60", body: "0123456789")
            let client = try s.client()
            let date = "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT"
            let first = try client.get("/a", "Range: bytes=2-4", "If-None-Match: \"x\"", date)
            #expect(first.status == 206 && first.text == "234" && first["ETag"] == "\"b\"")
            // The stored redirect has the tag, and the client must not take it for what it has.
            let second = try client.get("/a", "If-None-Match: \"x\"", date)
            #expect(second.status == 200 && second.text == "0123456789")
            let third = try client.get("/a", "If-None-Match: \"b\"")
            #expect(third.status == 304 && third["ETag"] == "\"b\"")
            let fourth = try client.get("/a", "Range: bytes=20-")
            #expect(fourth.status == 416)
        }
    }

    @Test func `only-if-cached follows a stored redirect to what is stored, and no further`() throws {
        try detour { s, other in
            s.origin.expects("GET /a").replies(301, "Location: \(other.url("/b"))", "Cache-Control: max-age=60")
            other.expects("GET /b").replies(200, "Cache-Control: no-store", body: "there")
            let client = try s.client()
            #expect(try client.get("/a").text == "there")
            let missing = try client.get("/a", "Cache-Control: only-if-cached")
            #expect(missing.status == 504 && missing.cacheStatus.contains("only-if-cached"))
            other.expects("GET /b").replies(200, "Cache-Control: max-age=60", body: "stored")
            #expect(try client.get("/a").text == "stored")
            #expect(try client.get("/a", "Cache-Control: only-if-cached").text == "stored")
        }
    }

    @Test func `a stale redirect is followed while it is validated, and when its origin fails`() throws {
        try detour { s, other in
            s.origin.expects("GET /a").replies(
                301, "Location: \(other.url("/b"))", "Cache-Control: max-age=0, stale-if-error=60", "ETag: \"1\"")
            for text in ["1", "2", "3"] { other.expects("GET /b").replies(200, body: text) }
            let client = try s.client()
            #expect(try client.get("/a").text == "1")
            s.origin.expects("GET /a", "If-None-Match: \"1\"").replies(304, "ETag: \"1\"")
            #expect(try client.get("/a").text == "2")
            s.origin.expects("GET /a", "If-None-Match: \"1\"").replies(503)
            #expect(try client.get("/a").text == "3")
        }
    }

    @Test func `requests for one redirect wait for one answer, on each of its stations`() throws {
        try detour { s, other in
            let (asked, answer) = (Gate("asked"), Gate("answer"))
            let (askedOther, answerOther) = (Gate("asked the other"), Gate("answer of the other"))
            s.origin.expects("GET /a").opens(asked).waits(for: answer).replies(
                301, "Location: \(other.url("/b"))", "Cache-Control: max-age=60", body: "moved")
            other.expects("GET /b").opens(askedOther).waits(for: answerOther).replies(
                200, "Cache-Control: max-age=60", body: "there")
            let clients = try (0..<8).map { _ in try s.client() }
            try clients[0].ask("GET", "/a")
            try asked.wait()
            for client in clients.dropFirst() { try client.ask("GET", "/a") }
            try s.expect(.requests, 8)
            answer.open()
            try askedOther.wait()
            try s.expect(.redirectsFollowed, 8)
            answerOther.open()
            for client in clients { #expect(try client.response().text == "there") }
        }
    }

    @Test func `each station has its own zone and rules`() throws {
        try detour(
            cache: """
                zones: [ { name: files, memory: 8MiB } ]
                rules: [ { match: { path: "/b" }, zone: files, ttl: 60s } ]
                """
        ) { s, other in
            s.origin.expects("GET /a").replies(302, "Location: \(other.url("/b"))")
            other.expects("GET /b").replies(200, body: "there")
            let client = try s.client()
            #expect(try client.get("/a").text == "there")
            s.origin.expects("GET /a").replies(302, "Location: \(other.url("/b"))")
            let second = try client.get("/a")
            #expect(second.cacheStatus.hasPrefix("larder; hit") && second.cacheStatus.hasSuffix("; zone=files"))
        }
    }

    @Test func `each station has its own route`() throws {
        try detour { s, other in
            // The other origin is a next proxy for one name.
            try s.adopt { configuration, _ in
                var far = RuleConditions()
                far.hosts = [try #require(HostPattern("far.example"))]
                configuration.routes = [RouteRule(far, via: [s.nextProxy(port: other.port)], number: 1)]
                configuration.origins = [OriginRule(RuleConditions(), redirectsMax: 5, number: 1)]
            }
            s.origin.expects("GET /a").replies(302, "Location: http://far.example/b")
            other.expects("GET http://far.example/b", "Host: far.example").replies(
                302, "Location: \(s.origin.url("/c"))")
            s.origin.expects("GET /c").replies(200, body: "back")
            let answer = try s.client().get("/a")
            #expect(answer.text == "back", "\(answer)")
        }
    }

    @Test func `a response that breaks off is resumed where the redirects led`() throws {
        try detour { s, other in
            s.origin.expects("GET /a").replies(302, "Location: \(other.url("/b"))")
            other.expects("GET /b").sends(
                "HTTP/1.1 200 OK\r\nETag: \"b\"\r\nCache-Control: max-age=60\r\nContent-Length: 10\r\n\r\n0123"
            ).closes()
            other.expects("GET /b", "Range: bytes=4-").replies(
                206, "ETag: \"b\"", "Content-Range: bytes 4-9/10", body: "456789")
            let answer = try s.client().get("/a")
            #expect(answer.text == "0123456789" && answer.isWhole)
        }
    }

    // MARK: a redirect to what was proven

    @Test func `a redirect to a signed address is a proof when Larder follows it, too`() throws {
        let rules = "rules: [ { match: { host: 127.0.0.1 }, key: { signature: [ token ] } } ]"
        try detour(cache: rules) { s, _ in
            let (alice, bob) = (try s.client(from: 0x7F00_0001), try s.client(from: 0x7F00_0002))
            s.origin.expects("GET /file").replies(302, "Location: /o?token=1")
            s.origin.expects("GET /o?token=1").replies(200, "Cache-Control: max-age=60", "ETag: \"1\"", body: "secret")
            #expect(try alice.get("/file").text == "secret")
            s.origin.expects("GET /file").replies(302, "Location: /o?token=2")
            let second = try bob.get("/file")
            #expect(second.text == "secret" && second.cacheStatus.hasPrefix("larder; hit"))
            #expect(second["Content-Location"] == nil)
            s.origin.expects("GET /o?token=3", "If-None-Match: \"1\"").replies(403, body: "no")
            #expect(try bob.get("/o?token=3").text == "no")
            let lines = try s.logLines()
            #expect(lines.contains { $0.contains("\"redirected_to\":\"\(s.origin.url("/o?token=***"))\"") }, "\(lines)")
        }
    }

    // MARK: what is passed on

    @Test func `the rule of the origin that redirects decides, and a relative Location becomes absolute`() throws {
        try detour(everywhere: false) { s, other in
            s.origin.expects("GET /a").replies(302, "Location: \(other.url("/x/b"))")
            other.expects("GET /x/b").replies(302, "Location: ../c?d#e", "Cache-Control: max-age=60", body: "on")
            let client = try s.client()
            let answer = try client.get("/a")
            #expect(answer.status == 302 && answer["Location"] == other.url("/c?d#e"), "\(answer)")
            #expect(answer["Proxy-Status"] == followedOnce)
            s.origin.expects("GET /a").replies(302, "Location: \(other.url("/x/b"))")
            let hit = try client.get("/a")
            #expect(hit.status == 302 && hit["Location"] == other.url("/c?d#e") && hit.text == "on", "\(hit)")
            // As the origin sent it, for who asked that origin.
            #expect(try client.get(other.url("/x/b"))["Location"] == "../c?d#e")
        }
    }

    static let passed: [(what: String, lines: [String])] = [
        ("none", []), ("two", ["Location: /b", "Location: /c"]), ("file", ["Location: file:///etc/passwd"]),
        ("ftp", ["Location: ftp://127.0.0.1/x"]), ("unix", ["Location: unix:/run/larder.sock"]),
        ("userinfo", ["Location: http://u:p@127.0.0.1/"]), ("space", ["Location: /a b"]),
        ("a host beyond ASCII", ["Location: http://\u{fc}/"]),
        ("10 KiB", ["Location: /" + String(repeating: "x", count: 10 << 10)]),
        ("no port", ["Location: http://127.0.0.1:0/"]),
    ]
    @Test(arguments: passed) func `what cannot be followed is passed on as it is`(
        _ row: (what: String, lines: [String])
    )
        throws
    {
        try detour { s, _ in
            s.origin.expects("GET /a").replies(302, row.lines, Array("moved".utf8))
            let answer = try s.client().get("/a")
            #expect(answer.status == 302 && answer.text == "moved", "\(row.what)")
            #expect(answer.head.lines.filter { $0.hasPrefix("Location:") } == row.lines)
            #expect(s.count(.redirectsFollowed) == 0)
        }
    }

    @Test func `line ends in Location end the field, and a CR alone ends the message`() throws {
        try detour { s, other in
            s.origin.expects("GET /a").sends(
                "HTTP/1.1 302 Found\r\nLocation: \(other.url("/b"))\r\nX-Forged: 1\r\nContent-Length: 0\r\n\r\n")
            other.expects("GET /b", "!X-Forged").replies(200, body: "there")
            let first = try s.client().get("/a")
            #expect(first.text == "there")
            s.origin.expects("GET /c").sends(
                "HTTP/1.1 302 Found\r\nLocation: \(other.url("/d"))\rX-Forged: 1\r\nContent-Length: 0\r\n\r\n"
            ).closes()
            let second = try s.client().get("/c")
            #expect(second.status == 502)
            s.origin.expects("GET /e").replies(302, "Location: \(other.url("/f%0d%0aX-Forged:%201"))")
            other.expects("GET /f%0d%0aX-Forged:%201", "!X-Forged").replies(200, body: "escaped")
            let third = try s.client().get("/e")
            #expect(third.text == "escaped")
        }
    }

    @Test func `https never leads to http`() throws {
        let certificate = try MadeCertificate(for: "IP:127.0.0.1")
        try detour({ configuration, files in
            configuration.tls.caFile = try files.write("ca.pem", certificate.certificate)
        }) { s, other in
            let location = other.url("/b")
            let secure = try TLSOrigin(
                certificate, .answers("HTTP/1.1 302 Found\r\nLocation: \(location)\r\nContent-Length: 0\r\n\r\n"))
            defer { secure.end() }
            let answer = try s.client().get(secure.url("/a"))
            #expect(answer.status == 302 && answer["Location"] == location)
            // From http it leads there, and the answer is the client's.
            s.origin.expects("GET /a").replies(302, "Location: \(secure.url("/a"))")
            let second = try s.client().get("/a", "Authorization: Basic eDp5")
            #expect(second.status == 302 && second["Location"] == location && second["Proxy-Status"] == followedOnce)
            #expect(secure.heads.count == 2 && !secure.heads[1].contains("Authorization"))
        }
    }

    // MARK: methods and content

    @Test func `after POST the answer is asked for with GET, without the content and its fields`() throws {
        for status in [301, 302, 303] {
            try detour { s, other in
                s.origin.expects("POST /a", "Content-Type: text/plain").readsBody().replies(
                    status, "Location: \(other.url("/b"))")
                other.expects(
                    "GET /b", "!Content-Type", "!Content-Length", "!Transfer-Encoding", "!If-Match", "X-Own: 1"
                ).replies(200, body: "done")
                s.origin.expects("GET /next").replies(200, body: "next")
                let client = try s.client()
                let answer = try client.request(
                    "POST", "/a", "Content-Type: text/plain", "X-Own: 1", "If-Match: \"a\"", body: "form")
                #expect(answer.text == "done" && s.origin.requests[0].message.text == "form")
                // The whole request was read, so the connection goes on.
                #expect(try client.get("/next").text == "next")
            }
        }
    }

    @Test func `content is not sent twice, and a redirect amid it is the client's`() throws {
        try detour { s, _ in
            s.origin.expects("PUT /a").readsBody().replies(307, "Location: /b")
            let put = try s.client().request("PUT", "/a", body: "x")
            #expect(put.status == 307)
            s.origin.expects("POST /c").sends(
                "HTTP/1.1 303 See Other\r\nLocation: /d\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            ).readsBody()
            let client = try s.client()
            try client.send(
                "POST \(s.origin.url("/c")) HTTP/1.1\r\nHost: \(s.origin.authority)\r\nContent-Length: 10\r\n\r\n01234")
            let answer = try client.response()
            #expect(answer.status == 303 && answer["Location"] == "/d")
            client.wire.reset()
        }
    }

    @Test func `a client that waits for 100 has sent nothing, and gets the redirect`() throws {
        try detour { s, _ in
            s.origin.expects("POST /a", "Expect: 100-continue").sends(
                "HTTP/1.1 303 See Other\r\nLocation: /d\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            ).readsBody()
            let client = try s.client()
            try client.send(
                "POST \(s.origin.url("/a")) HTTP/1.1\r\nHost: \(s.origin.authority)\r\nContent-Length: 10\r\n"
                    + "Expect: 100-continue\r\n\r\n")
            #expect(try client.response().status == 303)
        }
    }

    @Test func `a request that is not safe stays with the origin that the client named`() throws {
        try detour { s, other in
            s.origin.expects("DELETE /a").replies(308, "Location: \(other.url("/b"))")
            let answer = try s.client().request("DELETE", "/a")
            #expect(answer.status == 308 && other.requests.isEmpty)
            s.origin.expects("DELETE /c").replies(308, "Location: /d")
            s.origin.expects("DELETE /d").replies(204)
            let moved = try s.client().request("DELETE", "/c")
            #expect(moved.status == 204)
            // A field makes the origin take this GET for a DELETE.
            s.origin.expects("GET /e").replies(302, "Location: \(other.url("/b"))")
            let overriding = try s.client().get("/e", "X-HTTP-Method-Override: DELETE")
            #expect(overriding.status == 302)
        }
    }

    @Test func `WebSocket is not redirected`() throws {
        try detour { s, other in
            s.origin.expects("GET /a", "Upgrade: websocket").replies(302, "Location: \(other.url("/b"))")
            let answer = try s.client().get(
                "/a", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
                "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==")
            #expect(answer.status == 302)
        }
    }

    // MARK: a log-in with NTLM or Negotiate

    private static func oneWorker(_ configuration: inout Configuration, _ files: Scenario.Files) {
        configuration.workers = .count(1)
    }

    @Test func `within its origin a redirect stays on the connection that is logged in`() throws {
        try detour(Self.oneWorker) { s, _ in
            let client = try s.client()
            s.origin.expects("GET /a", "Authorization: NTLM bmVn").replies(401, "WWW-Authenticate: NTLM Y2hh")
            s.origin.expects("GET /a", "Authorization: NTLM YXV0").replies(302, "Location: /b", body: "moved")
            s.origin.expects("GET /b", "Authorization: NTLM YXV0").replies(
                200, "Cache-Control: public, max-age=60", body: "the client's")
            #expect(try client.get("/a", "Authorization: NTLM bmVn").status == 401)
            #expect(try client.get("/a", "Authorization: NTLM YXV0").text == "the client's")
            s.origin.expects("GET /c", "!Authorization").replies(301, "Location: /d", "Cache-Control: max-age=60")
            s.origin.expects("GET /d", "!Authorization").replies(200, "Cache-Control: max-age=60", body: "as well")
            #expect(try client.get("/c").text == "as well")
            #expect(s.origin.requests.map(\.connection) == [1, 1, 1, 1, 1])
            // None of it is for others.
            for path in ["/b", "/c", "/d"] {
                s.origin.expects("GET \(path)").replies(200, "Cache-Control: no-store", body: "everybody's")
                #expect(try s.client().get(path).text == "everybody's")
            }
            #expect(s.origin.requests.map(\.connection) == [1, 1, 1, 1, 1, 2, 2, 2])
        }
    }

    @Test func `behind another origin nothing is logged in any more, neither there nor back here`() throws {
        try detour(Self.oneWorker) { s, other in
            let client = try s.client()
            for origin in [s.origin, other] {
                origin.expects("GET /in", "Authorization: NTLM YXV0").replies(200, "Cache-Control: no-store")
                try client.get(origin.url("/in"), "Authorization: NTLM YXV0")
            }
            s.origin.expects("GET /a", "Authorization: NTLM YXV0").replies(302, "Location: \(other.url("/b"))")
            other.expects("GET /b", "!Authorization").replies(302, "Location: \(s.origin.url("/c"))")
            s.origin.expects("GET /c", "!Authorization").replies(200, "Cache-Control: max-age=60", body: "everybody's")
            #expect(try client.get("/a", "Authorization: NTLM YXV0").text == "everybody's")
            #expect(s.origin.requests.map(\.connection) == [1, 1, 2])
            #expect(other.requests.map(\.connection) == [1, 2])
            #expect(try s.client().get("/c").cacheStatus.hasPrefix("larder; hit"))
        }
    }

    // MARK: loops

    @Test func `a loop of one and of three ends with the request that would close it`() throws {
        try detour { s, other in
            s.origin.expects("GET /a").replies(302, "Location: /a#again", "Set-Cookie: a=b")
            let one = try s.client().get("/a")
            #expect(one.status == 502 && one.cacheStatus.contains("detail=redirect-loop"), "\(one)")
            s.origin.expects("GET /1").replies(302, "Location: \(other.url("/2"))")
            other.expects("GET /2").replies(302, "Location: /3")
            other.expects("GET /3").replies(302, "Location: \(s.origin.url("/1"))")
            let three = try s.client().get("/1")
            #expect(three.status == 502 && three.cacheStatus.contains("detail=redirect-loop"))
            #expect(three.text.contains(s.origin.url("/1")) && !three.text.contains("/3"), "\(three.text)")
            #expect(try s.stat(.errors, "http_protocol_error") == 2)
        }
    }

    @Test func `a stored loop is one as well`() throws {
        try detour { s, _ in
            s.origin.expects("GET /a").replies(301, "Location: /b", "Cache-Control: max-age=60")
            s.origin.expects("GET /b").replies(301, "Location: /a", "Cache-Control: max-age=60")
            let client = try s.client()
            for _ in 0..<3 { #expect(try client.get("/a").status == 502) }
        }
    }

    @Test func `more redirects than the rule allows end with the one too many`() throws {
        try detour(max: 2) { s, _ in
            for number in 1...3 { s.origin.expects("GET /\(number)").replies(302, "Location: /\(number + 1)") }
            let answer = try s.client().get("/1")
            #expect(answer.status == 502 && answer.cacheStatus.contains("detail=too-many-redirects"))
        }
    }
}

@Suite("Redirects that Larder follows lead nowhere that the client may not go")
struct RedirectSafetyScenarios {
    /// Only the port of the first origin is open on this machine.
    private static func closed(_ configuration: inout Configuration, _ files: Scenario.Files) {
        configuration.access.privateDestinations = .deny
        configuration.access.writtenDefault = .allow
        var conditions = RuleConditions()
        conditions.addresses = [AddressRange("127.0.0.1")!]
        conditions.ports = [files.origin.port...files.origin.port]
        configuration.access.rules = [AccessRule(effect: .allow, conditions: conditions, number: 1)]
    }

    static let ways = ["127.0.0.1", "localhost", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]", "127.1", "2130706433"]
    @Test(arguments: ways) func `a redirect to this machine is refused with the reason`(_ host: String) throws {
        try detour(Self.closed) { s, other in
            s.origin.expects("GET /a").replies(302, "Location: http://\(host):\(other.port)/x?signature=1")
            let answer = try s.client().get("/a")
            #expect(answer.status == 403, "\(answer)")
            #expect(answer["Proxy-Status"]?.contains("error=destination_ip_prohibited") == true, "\(answer)")
            #expect(answer["Proxy-Status"]?.contains("not a public address") == true, "\(answer)")
            // The page names the origin, and neither path nor query.
            #expect(answer.text.contains(s.origin.url("/a")) && answer.text.contains("redirected to"), "\(answer.text)")
            #expect(!answer.text.contains("signature"))
            #expect(other.connectionCount == 0)
        }
    }

    @Test func `the metadata service of clouds is not reached, although private destinations are open`() throws {
        try detour { s, _ in
            s.origin.expects("GET /a").replies(302, "Location: http://169.254.169.254/latest/meta-data/")
            let answer = try s.client().get("/a")
            #expect(answer.status == 403)
            #expect(answer["Proxy-Status"]?.contains("error=destination_ip_prohibited") == true, "\(answer)")
        }
    }

    @Test(arguments: ["127.0.0.1", "0.0.0.0", "[::ffff:127.0.0.1]", "localhost"])
    func `the admin server is not reached`(_ host: String) throws {
        try detour { s, other in
            s.proxy.shared.setAdminAddresses([SocketAddress(v4: 0x7F00_0001, port: other.port)])
            s.origin.expects("GET /a").replies(302, "Location: http://\(host):\(other.port)/stats")
            let answer = try s.client().get("/a")
            #expect(answer.status == 403 && other.connectionCount == 0, "\(answer)")
        }
    }

    @Test func `Larder itself is not reached`() throws {
        try detour { s, _ in
            s.origin.expects("GET /a").replies(302, "Location: http://127.0.0.1:\(s.proxy.addresses[0].port)/stats")
            let answer = try s.client().get("/a")
            #expect(answer.status == 403 && answer["Larder-Deny"]?.contains("own-listener") == true, "\(answer)")
        }
    }

    @Test func `access rules hold for each station`() throws {
        try detour({ configuration, files in
            var conditions = RuleConditions()
            conditions.paths = [try #require(PathPattern("/secret/*"))]
            configuration.access.writtenDefault = .allow
            configuration.access.rules = [
                AccessRule(effect: .deny(reason: "keep out"), conditions: conditions, number: 1)
            ]
        }) { s, other in
            for location in ["/secret/x", "/x/../secret/x", "/%73ecret/x"] {
                s.origin.expects("GET /a").replies(302, "Location: \(other.url(location))")
                let answer = try s.client().get("/a")
                #expect(answer.status == 403 && answer.text.contains("keep out"), "\(answer)")
            }
            #expect(other.connectionCount == 0)
            #expect(try s.stat(.refusals, "access-denied") == 3)
        }
    }

    @Test func `rules for users hold for the user who asked, and the password goes nowhere`() throws {
        try detour({ configuration, files in
            configuration.access.authentication.basic.usersFile = try files.write(
                "users", "ann:\(try hash(password: Array("secret".utf8)))\n")
            var conditions = RuleConditions()
            conditions.users = ["bob"]
            conditions.paths = [try #require(PathPattern("/bob"))]
            var open = RuleConditions()
            open.paths = [try #require(PathPattern("/a")), try #require(PathPattern("/all"))]
            configuration.access.rules = [
                AccessRule(effect: .allow, conditions: conditions, number: 1),
                AccessRule(effect: .allow, conditions: open, number: 2),
            ]
        }) { s, other in
            let own = "Proxy-Authorization: Basic " + Data("ann:secret".utf8).base64EncodedString()
            let client = try s.client()
            s.origin.expects("GET /a").replies(302, "Location: \(other.url("/all"))")
            other.expects("GET /all", "!Proxy-Authorization").replies(200, body: "for all")
            let first = try client.get("/a", own)
            #expect(first.text == "for all", "\(first)")
            s.origin.expects("GET /a").replies(302, "Location: \(other.url("/bob"))")
            #expect(try client.get("/a", own).status == 403)
            let lines = try s.logLines()
            #expect(lines.allSatisfy { $0.contains("\"user\":\"ann\"") }, "\(lines)")
        }
    }

    // MARK: credentials

    @Test func `credentials of the client stay with the origin that it sent them to`() throws {
        try detour { s, other in
            let own = ["Authorization: Basic eDp5", "Cookie: a=b"]
            s.origin.expects("GET /a", own[0], own[1]).replies(302, "Location: /b")
            s.origin.expects("GET /b", own[0], own[1]).replies(302, "Location: \(other.url("/c"))")
            other.expects("GET /c", "!Authorization", "!Cookie", "!Proxy-Authorization", "Referer: http://r/").replies(
                302, "Location: \(s.origin.url("/d"))")
            // What was left behind does not come back.
            s.origin.expects("GET /d", "!Authorization", "!Cookie").replies(200, body: "there")
            let answer = try s.client().get("/a", own[0], own[1], "Proxy-X: 1", "Referer: http://r/")
            #expect(answer.text == "there")
        }
    }

    @Test func `fields that a rule adds are added where the rule holds`() throws {
        try detour({ configuration, files in
            var conditions = RuleConditions()
            conditions.ports = [files.origin.port...files.origin.port]
            configuration.origins = [
                OriginRule(
                    conditions, fields: [FieldChange(.set, Array("X-Token".utf8), Array("t".utf8))], redirectsMax: 5,
                    number: 1)
            ]
        }) { s, other in
            s.origin.expects("GET /a", "X-Token: t").replies(302, "Location: \(other.url("/b"))")
            other.expects("GET /b", "!X-Token").replies(200, body: "there")
            let answer = try s.client().get("/a")
            #expect(answer.text == "there")
        }
    }

    @Test func `Larder's own credentials are those of each station, and what they fetch is stored for them`() throws {
        try detour { s, other in
            try s.adopt(
                credentials: s.credential("first", isUnasked: true) { $0.ports = [s.origin.port...s.origin.port] },
                also: { $0.origins = [OriginRule(RuleConditions(), redirectsMax: 5, number: 1)] })
            s.origin.expects("GET /a", "Authorization: Basic bWU6c2VzYW1l").replies(
                302, "Location: \(other.url("/b"))", "Cache-Control: max-age=60")
            other.expects("GET /b", "!Authorization").replies(200, "Cache-Control: max-age=60", body: "there")
            let client = try s.client()
            #expect(try client.get("/a").text == "there")
            #expect(try client.get("/a").cacheStatus.hasPrefix("larder; hit"))
            #expect(try client.get(other.url("/b")).cacheStatus.hasPrefix("larder; hit"))
        }
    }

    @Test func `a placeholder stays where it is replaced`() throws {
        try detour { s, other in
            let text = try s.placeholder {
                $0.fields = ["X-Api-Key"]
            } limit: {
                $0.ports = [s.origin.port...s.origin.port]
            }
            try s.adopt { configuration, _ in
                configuration.credentials = s.proxy.snapshot.configuration.credentials
                configuration.origins = [OriginRule(RuleConditions(), redirectsMax: 5, number: 1)]
            }
            s.origin.expects("GET /a", "X-Api-Key").replies(302, "Location: /b")
            s.origin.expects("GET /b", "X-Api-Key").replies(302, "Location: \(other.url("/c"))")
            other.expects("GET /c", "!X-Api-Key").replies(200, body: "there")
            let answer = try s.client().get("/a", "X-Api-Key: \(text)")
            #expect(answer.text == "there", "\(answer)")
            let sent = s.origin.requests.map { $0["X-Api-Key"] ?? "" }
            #expect(sent.count == 2 && sent.allSatisfy { $0.hasPrefix("ghp_R3al") }, "\(sent)")
            // In the target, it goes to nobody else.
            s.origin.expects("GET /d").replies(302, "Location: \(other.url("/e?key=\(text)"))")
            let misplaced = try s.client().get("/d")
            #expect(misplaced.status == 403)
        }
    }

    @Test func `a browser gets the redirect: it would take the answer for one of the origin that it asked`() throws {
        try detour { s, other in
            s.origin.expects("GET /a").replies(302, "Location: \(other.url("/b"))")
            let answer = try s.client().get("/a", "sec-fetch-mode: navigate")
            #expect(answer.status == 302)
        }
    }

    @Test func `cookies and policies of another origin do not become those of the first`() throws {
        try detour { s, other in
            let own = ["Set-Cookie: a=b", "Strict-Transport-Security: max-age=9", "Cache-Control: max-age=60"]
            for _ in 0..<3 { s.origin.expects("GET /a").replies(302, "Location: \(other.url("/b"))") }
            other.expects("GET /b").replies(200, own, Array("there".utf8))
            // Without a cookie it is stored.
            other.expects("GET /b").replies(200, Array(own.dropFirst()), Array("there".utf8))
            let client = try s.client()
            for _ in 0..<3 {
                let answer = try client.get("/a")
                #expect(answer.text == "there" && answer["Set-Cookie"] == nil)
                #expect(answer["Strict-Transport-Security"] == nil)
            }
            s.origin.expects("GET /c").replies(302, "Location: /d")
            s.origin.expects("GET /d").replies(200, own, Array("there".utf8))
            #expect(try client.get("/c")["Set-Cookie"] == "a=b")
        }
    }

    // MARK: opened tunnels

    @Test func `a redirect leads out of an opened tunnel, under the same rules`() throws {
        let certificate = try MadeCertificate(for: "IP:127.0.0.1")
        try detour({ configuration, files in
            try files.intercept("127.0.0.1", in: &configuration)
            configuration.tls.caFile = try files.write("ca.pem", certificate.certificate)
            var conditions = RuleConditions()
            conditions.paths = [try #require(PathPattern("/secret"))]
            configuration.access.writtenDefault = .allow
            configuration.access.rules = [AccessRule(effect: .deny(reason: nil), conditions: conditions, number: 1)]
        }) { s, other in
            let target = try TLSOrigin(
                certificate, .answers("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 5\r\n\r\nthere"))
            defer { target.end() }
            let first = try TLSOrigin(
                certificate,
                .answers("HTTP/1.1 302 Found\r\nLocation: \(target.url("/b"))\r\nContent-Length: 0\r\n\r\n"))
            defer { first.end() }
            let authority = "127.0.0.1:\(first.port)"
            let client = try s.secureTunnel(to: authority)
            for _ in 0..<2 {
                let answer = try client.getInside("/a", host: authority, "Authorization: Bearer x")
                #expect(answer.status == 200 && answer.text == "there", "\(answer)")
            }
            #expect(target.heads.count == 1 && !target.heads[0].contains("Authorization"))
            let other = try TLSOrigin(
                certificate,
                .answers("HTTP/1.1 302 Found\r\nLocation: \(target.url("/secret"))\r\nContent-Length: 0\r\n\r\n"))
            defer { other.end() }
            let forbidden = try s.secureTunnel(to: "127.0.0.1:\(other.port)")
            #expect(try forbidden.getInside("/a", host: "127.0.0.1:\(other.port)").status == 403)
        }
    }
}
