import Message
import Origins
import Rules
import Server
import Testing

/// Where a response reaches another client than the one whose request brought it, the origin has said that it may.
@Suite("RFC 9111 §4: an answer to one client is another's only if it may be reused for it")
struct OthersAnswerScenarios {
    static let notReusable = [
        "Cache-Control: no-cache", "Cache-Control: max-age=0, must-revalidate", "Cache-Control: max-age=0",
        "X-Else: none",
    ]

    @Test(arguments: notReusable)
    func `those who wait for what must not be reused without asking ask with their own fields, all at once`(
        _ line: String
    ) throws {
        try scenario { s in
            let (asked, answer, end) = (Gate("asked"), Gate("answer"), Gate("end"))
            s.origin.expects("GET /a", "Cookie: ann", "!If-None-Match").opens(asked).waits(for: answer).replies(
                200, [line, "ETag: \"ann\""], Array("page of ann".utf8))
            let others = (0..<2).map { Gate("follower \($0)") }
            for (number, other) in others.enumerated() {
                s.origin.expects("GET /a", "If-None-Match: \"ann\"").opens(other).waits(for: end).replies(
                    200, [line, "ETag: \"\(number)\""], Array("page \(number)".utf8))
            }
            let clients = try (0..<3).map { _ in try s.client() }
            try clients[0].ask("GET", "/a", ["Cookie: ann"])
            try asked.wait()
            for (client, name) in zip(clients.dropFirst(), ["bob", "cid"]) {
                try client.ask("GET", "/a", ["Cookie: \(name)"])
            }
            try s.expect(.requests, 3)
            answer.open()
            for other in others { try other.wait() }
            end.open()
            #expect(try clients[0].response().text == "page of ann")
            #expect(try Set(clients.dropFirst().map { try $0.response().text }) == ["page 0", "page 1"])
            #expect(Set(s.origin.requests.compactMap { $0["Cookie"] }) == ["ann", "bob", "cid"])
        }
    }

    @Test func `to a follower that asks on its own, the origin can say that the leader's response is its own, too`()
        throws
    {
        try scenario { s in
            let (asked, answer) = (Gate("asked"), Gate("answer"))
            s.origin.expects("GET /a").opens(asked).waits(for: answer).replies(
                200, ["Cache-Control: no-cache", "ETag: \"1\""], Array("one".utf8))
            s.origin.expects("GET /a", "If-None-Match: \"1\"").replies(304, "ETag: \"1\"")
            let clients = try (0..<2).map { _ in try s.client() }
            try clients[0].ask("GET", "/a")
            try asked.wait()
            try clients[1].ask("GET", "/a")
            try s.expect(.requests, 2)
            answer.open()
            #expect(try clients.map { try $0.response().text } == ["one", "one"])
        }
    }

    @Test func `who waits for a validation that leaves the response stale validates with its own fields`() throws {
        try scenario { s in
            let (asked, answer) = (Gate("asked"), Gate("answer"))
            s.origin.expects("GET /a", "Cookie: ann").replies(
                200, ["Cache-Control: max-age=0", "ETag: \"ann\""], Array("page of ann".utf8))
            let clients = try (0..<2).map { _ in try s.client() }
            try clients[0].get("/a", "Cookie: ann")
            // For a while after a response of one client, nobody waits. Another key, which is not known for that:
            s.origin.expects("GET /b", "Cookie: ann").replies(
                200, ["Cache-Control: max-age=60, stale-while-revalidate=1", "ETag: \"ann\""], Array("page of ann".utf8)
            )
            try clients[0].get("/b", "Cookie: ann")
            s.origin.expects("GET /b", "Cookie: ann", "If-None-Match: \"ann\"").opens(asked).waits(for: answer).replies(
                304, "ETag: \"ann\"", "Cache-Control: no-cache")
            s.origin.expects("GET /b", "Cookie: bob", "If-None-Match: \"ann\"").replies(
                200, ["Cache-Control: no-cache", "ETag: \"bob\""], Array("page of bob".utf8))
            try clients[0].ask("GET", "/b", ["Cookie: ann", "Cache-Control: max-age=0"])
            try asked.wait()
            try clients[1].ask("GET", "/b", ["Cookie: bob", "Cache-Control: min-fresh=3600"])
            try s.expect(.requests, 4)
            answer.open()
            #expect(try clients.map { try $0.response().text } == ["page of ann", "page of bob"])
        }
    }

    @Test func `a key whose response was for one client is not collapsed for a while`() throws {
        try scenario { s in
            s.origin.expects("GET /a").replies(200, "Cache-Control: private", body: "first")
            let clients = try (0..<3).map { _ in try s.client() }
            try clients[0].get("/a")
            let gates = (0..<3).map { Gate("request \($0)") }
            let end = Gate("end")
            for gate in gates {
                s.origin.expects("GET /a").opens(gate).waits(for: end).replies(
                    200, "Cache-Control: private", body: "own")
            }
            for client in clients { try client.ask("GET", "/a") }
            // All are asked before any is answered.
            for gate in gates { try gate.wait() }
            end.open()
            for client in clients { #expect(try client.response().text == "own") }
        }
    }

    @Test(arguments: ["no-cache", "max-age=0"]) func `a request for news does not join a fetch that began before it`(
        _ directive: String
    ) throws {
        try scenario { s in
            let (asked, answer) = (Gate("asked"), Gate("answer"))
            s.origin.expects("GET /a").opens(asked).waits(for: answer).replies(
                200, "Cache-Control: max-age=60", body: "before")
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", body: "news")
            let clients = try (0..<2).map { _ in try s.client() }
            try clients[0].ask("GET", "/a")
            try asked.wait()
            #expect(try clients[1].get("/a", "Cache-Control: \(directive)").text == "news")
            answer.open()
            #expect(try clients[0].response().text == "before")
        }
    }

    static let neverFresh: [(lines: [String], standsIn: Bool)] = [
        (["ETag: \"1\""], false), (["ETag: \"1\"", "Cache-Control: max-age=0"], false),
        (["ETag: \"1\"", "Cache-Control: max-age=0, stale-if-error=60"], true),
        (["ETag: \"1\"", "Cache-Control: max-age=1", "Age: 9"], true),
    ]

    @Test(arguments: neverFresh) func `what was never fresh stands in for a failing origin only if the origin says so`(
        _ row: (lines: [String], standsIn: Bool)
    ) throws {
        try scenario { s in
            s.origin.expects("GET /a", "Cookie: ann").replies(200, row.lines, Array("page of ann".utf8))
            s.origin.expects("GET /a", "Cookie: bob").replies(503, body: "later")
            let client = try s.client()
            try client.get("/a", "Cookie: ann")
            let answer = try client.get("/a", "Cookie: bob")
            #expect(answer.text == (row.standsIn ? "page of ann" : "later"))
        }
    }

    // MARK: for whom a renewed response is

    @Test func `a 304 that takes public back takes the answer to credentials out of the store (§3.5)`() throws {
        try scenario { s in
            s.origin.expects("GET /a", "Authorization: Basic x").replies(
                200, ["Cache-Control: public, max-age=0", "ETag: \"1\""], Array("secret".utf8))
            s.origin.expects("GET /a", "Authorization: Basic x", "If-None-Match: \"1\"").replies(
                304, "Cache-Control: max-age=60", "ETag: \"1\"")
            s.origin.expects("GET /a", "!Authorization", "!If-None-Match").replies(401, body: "who are you")
            let client = try s.client()
            for _ in 0..<2 { #expect(try client.get("/a", "Authorization: Basic x").text == "secret") }
            #expect(try client.get("/a").text == "who are you")
        }
    }

    static let otherSelection: [(update: String, first: String, second: String)] = [
        ("Vary: Accept-Language", "Accept-Language: de", "Accept-Language: fr"),
        ("Vary: *", "Accept-Language: de", "Accept-Language: de"),
    ]

    @Test(arguments: otherSelection) func `a 304 with another Vary changes who selects the stored response (§4.1)`(
        _ row: (update: String, first: String, second: String)
    ) throws {
        try scenario { s in
            s.origin.expects("GET /a").replies(200, ["Cache-Control: max-age=0", "ETag: \"1\""], Array("de".utf8))
            s.origin.expects("GET /a", "If-None-Match: \"1\"").replies(
                304, "Cache-Control: max-age=60", "ETag: \"1\"", row.update)
            let client = try s.client()
            for _ in 0..<2 { #expect(try client.get("/a", row.first).text == "de") }
            s.origin.expects("GET /a", row.second).replies(200, ["Cache-Control: max-age=60"], Array("other".utf8))
            #expect(try client.get("/a", row.second).text == "other")
        }
    }

    @Test func `after a 304 with another Vary, who selects as the validated request did gets a hit`() throws {
        try scenario { s in
            s.origin.expects("GET /a").replies(200, ["Cache-Control: max-age=0", "ETag: \"1\""], Array("de".utf8))
            s.origin.expects("GET /a", "If-None-Match: \"1\"").replies(
                304, "Cache-Control: max-age=60", "ETag: \"1\"", "Vary: Accept-Language")
            let client = try s.client()
            for _ in 0..<3 { #expect(try client.get("/a", "Accept-Language: de").text == "de") }
        }
    }

    @Test func `a response for the page of one site is not confirmed for that of another`() throws {
        try scenario { s in
            for site in ["http://a.test", "http://b.test"] {
                s.origin.expects("GET /a", "Origin: \(site)", "!If-None-Match").replies(
                    200,
                    [
                        "Cache-Control: max-age=60", "ETag: \"1\"", "Vary: Origin",
                        "Access-Control-Allow-Origin: \(site)",
                    ],
                    Array("font".utf8))
            }
            let client = try s.client()
            for _ in 0..<2 {
                for site in ["http://a.test", "http://b.test"] {
                    let answer = try client.get("/a", "Origin: \(site)")
                    #expect(answer.head.all("Access-Control-Allow-Origin") == [site])
                }
            }
        }
    }

    @Test
    func `a field that Connection names selects no variant, because the origin does not get it (RFC 9110 §7.6.1)`()
        throws
    {
        try scenario { s in
            let fresh = ["Cache-Control: max-age=60", "Vary: Accept-Language"]
            s.origin.expects("GET /a", "!Accept-Language").replies(200, fresh, Array("default".utf8))
            s.origin.expects("GET /a", "Accept-Language: de").replies(200, fresh, Array("de".utf8))
            let client = try s.client()
            let hidden = ["Accept-Language: de", "Connection: accept-language"]
            try client.ask("GET", "/a", hidden)
            #expect(try client.response().text == "default")
            #expect(try client.get("/a", "Accept-Language: de").text == "de")
            #expect(try client.get("/a").text == "default")
            try client.ask("GET", "/a", hidden)
            #expect(try client.response().text == "default")
        }
    }

    @Test func `what a rule changes in the fields selects, and not what the client sent`() throws {
        let rule = OriginRule(
            RuleConditions(), fields: [FieldChange(.set, Array("Accept-Language".utf8), Array("en".utf8))], number: 1)
        try scenario({ configuration, _ in configuration.origins = [rule] }) { s in
            s.origin.expects("GET /a", "Accept-Language: en").replies(
                200, ["Cache-Control: max-age=60", "Vary: Accept-Language"], Array("en".utf8))
            let client = try s.client()
            #expect(try client.get("/a", "Accept-Language: de").text == "en")
            #expect(try client.get("/a", "Accept-Language: fr").text == "en")
            #expect(try client.get("/a").text == "en")
        }
    }

    @Test(arguments: ["TE", "Proxy-Foo", "Connection"]) func `a field that is never forwarded selects nothing`(
        _ name: String
    ) throws {
        try scenario { s in
            s.origin.expects("GET /a").replies(200, ["Cache-Control: max-age=60", "Vary: \(name)"], Array("one".utf8))
            let client = try s.client()
            #expect(try client.get("/a", "\(name): trailers").text == "one")
            #expect(try client.get("/a").text == "one")
        }
    }

    // MARK: what an update may do to a stored head

    @Test func `a 304 does not make a weak tag strong, so parts of two codings are not combined (RFC 9110 §8.8.1)`()
        throws
    {
        try scenario { s in
            s.origin.expects("GET /a").replies(
                200, ["Cache-Control: max-age=0", "ETag: W/\"1\""], Array("0123456789".utf8))
            s.origin.expects("GET /a", "If-None-Match: W/\"1\"").replies(
                304, "ETag: \"1\"", "Cache-Control: max-age=60")
            let client = try s.client()
            try client.get("/a")
            #expect(try client.get("/a").head.all("ETag") == ["W/\"1\""])
            let answer = try client.get("/a", "Range: bytes=0-3", "If-Range: \"1\"")
            #expect(answer.status == 200 && answer.text == "0123456789")
        }
    }

    @Test func `a Via in a 304 does not take Larder out of the stored one (RFC 9110 §7.6.3)`() throws {
        try scenario { s in
            s.origin.expects("GET /a").replies(
                200, ["Cache-Control: max-age=0", "ETag: \"1\"", "Via: 1.1 front"], Array("one".utf8))
            s.origin.expects("GET /a", "If-None-Match: \"1\"").replies(
                304, "ETag: \"1\"", "Cache-Control: max-age=60", "Via: 1.1 other")
            let client = try s.client()
            #expect(try client.get("/a").head.all("Via") == ["1.1 front", "1.1 larder"])
            for _ in 0..<2 { #expect(try client.get("/a").head.all("Via") == ["1.1 other", "1.1 larder"]) }
        }
    }

    @Test func `validations add fields up to the limits of a head, and then the response is fetched anew`() throws {
        try scenario({ configuration, _ in configuration.limits.fieldCountMax = 20 }) { s in
            let fresh = ["Cache-Control: max-age=0", "ETag: \"1\""]
            s.origin.expects("GET /a").replies(200, fresh, Array("one".utf8))
            let client = try s.client()
            try client.get("/a")
            for round in 0..<2 {
                s.origin.expects("GET /a", "If-None-Match: \"1\"").replies(
                    304, fresh + (0..<12).map { "X-\(round)-\($0): v" }, [])
            }
            #expect(try client.get("/a").head.lines.filter { $0.hasPrefix("X-0") }.count == 12)
            // The second update would make it too large: it is not taken.
            let answer = try client.get("/a")
            #expect(answer.text == "one" && !answer.head.lines.contains { $0.hasPrefix("X-1") })
            s.origin.expects("GET /a", "!If-None-Match").replies(200, fresh, Array("two".utf8))
            #expect(try client.get("/a").text == "two")
        }
    }
}
