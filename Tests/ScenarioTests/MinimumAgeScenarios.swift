import Foundation
import Testing

@Suite("The minimum age of files")
struct MinimumAgeScenarios {
    static func rule(_ age: String = "3d", more: String = "") -> String {
        "rules: [ { match: { path: [ \"/@{scope}/{package}/{file}\", \"/{package}/{file}\" ] }, ttl: 1h, release: file, min_age: { age: \(age)\(more) } } ]"
    }

    /// A date of HTTP, so many seconds from now.
    static func date(_ seconds: TimeInterval) -> String {
        let format = DateFormatter()
        format.locale = Locale(identifier: "en_US_POSIX")
        format.timeZone = TimeZone(identifier: "GMT")
        format.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        return format.string(from: Date(timeIntervalSinceNow: seconds))
    }

    static let old = "Last-Modified: Wed, 01 Jan 2020 00:00:00 GMT"
    static var young: String { "Last-Modified: \(date(-3600))" }

    private static func expectTooYoung(_ answer: SeenMessage, _ file: String = "f") {
        #expect(answer.status == 403, "\(answer)")
        #expect(answer.cacheStatus.contains("detail=too-young"))
        #expect(answer["Proxy-Status"]?.contains("details=\"\(file) was published ") == true, "\(answer)")
        // Most clients print the reason phrase and nothing else.
        #expect(answer.head.startLine.contains("Forbidden: \(file) was published 20"))
        #expect(answer.head.startLine.contains(" and opens 20"))
        #expect(!answer.text.contains("secret body"))
        #expect(answer["Last-Modified"] == nil && answer["ETag"] == nil)
    }

    /// What the origin sends as `Last-Modified`, and whether the client gets the file.
    static let rows: [(fields: [String], passes: Bool)] = [
        ([old], true), ([young], false), (["Last-Modified: \(date(86_400))"], false), ([], true),
        (["Last-Modified: yesterday"], true), ([old, young], false), ([old, "Cache-Control: no-store"], true),
        ([young, "Cache-Control: no-store"], false), ([young, "Cache-Control: private", "Set-Cookie: a=b"], false),
        ([young, "Transfer-Encoding: chunked"], false),
    ]
    @Test(arguments: rows) func `a file passes from its age on`(_ row: (fields: [String], passes: Bool)) throws {
        try scenario(cache: Self.rule()) { s in
            let isChunked = row.fields.contains("Transfer-Encoding: chunked")
            s.origin.expects("GET /p/f").replies(
                200, row.fields, Array((isChunked ? "b\r\nsecret body\r\n0\r\n\r\n" : "secret body").utf8))
            let answer = try s.client().get("/p/f")
            if row.passes {
                #expect(answer.status == 200 && answer.text == "secret body", "\(answer)")
            } else {
                Self.expectTooYoung(answer)
                #expect(try s.stat(.refusals, "too-young") == 1)
            }
        }
    }

    @Test func `every request for a file that is stored and too young is refused, until the rule lets it through`()
        throws
    {
        try scenario(cache: Self.rule()) { s in
            s.origin.expects("GET /p/f").replies(200, Self.young, "ETag: \"1\"", body: "secret body")
            let client = try s.client()
            Self.expectTooYoung(try client.get("/p/f"))
            try s.expect(.stored, 1)
            Self.expectTooYoung(try client.get("/p/f"))
            Self.expectTooYoung(try client.get("/p/f", "Range: bytes=0-3"))
            Self.expectTooYoung(try client.get("/p/f", "If-None-Match: \"1\""))
            Self.expectTooYoung(try client.get("/p/f", "Cache-Control: only-if-cached"))
            let head = try client.request("HEAD", "/p/f")
            #expect(head.status == 403 && head.cacheStatus.contains("detail=too-young"))
            // The stored copy opens without the origin.
            try s.adopt(cache: Self.rule("30m"))
            let open = try client.get("/p/f")
            #expect(open.text == "secret body" && open.cacheStatus.hasPrefix("larder; hit"), "\(open)")
        }
    }

    @Test(arguments: ["HEAD", "GET"]) func `nothing of a response that is only passed on goes out`(_ method: String)
        throws
    {
        try scenario(cache: Self.rule()) { s in
            for status in [200, 206] {
                s.origin.expects("\(method) /p/f").replies(
                    status,
                    [Self.young, "Cache-Control: no-store", "Content-Range: bytes 0-10/11", "Content-Length: 11"],
                    Array((method == "GET" ? "secret body" : "").utf8))
                let answer = try s.client().request(method, "/p/f", "Range: bytes=0-")
                #expect(answer.status == 403 && !answer.text.contains("secret"), "\(answer)")
                #expect(answer.cacheStatus.contains("detail=too-young"))
            }
        }
    }

    @Test func `a part of a file is refused like the whole`() throws {
        try scenario(cache: Self.rule()) { s in
            s.origin.expects("GET /p/f", "Range: bytes=0-3").replies(
                206, Self.young, "ETag: \"1\"", "Content-Range: bytes 0-3/11", body: "secr")
            Self.expectTooYoung(try s.client().get("/p/f", "Range: bytes=0-3"))
        }
    }

    @Test func `a client that waits for the fetch of another gets the same refusal`() throws {
        try scenario(cache: Self.rule()) { s in
            let (asked, go) = (Gate("the origin was asked"), Gate("the origin answers"))
            s.origin.expects("GET /p/f").opens(asked).waits(for: go).replies(200, Self.young, body: "secret body")
            let (first, second) = (try s.client(), try s.client())
            try first.ask("GET", "/p/f")
            try asked.wait()
            try second.ask("GET", "/p/f")
            try s.eventually("the second waits") { s.count(.requests) == 2 }
            go.open()
            Self.expectTooYoung(try first.response())
            Self.expectTooYoung(try second.response())
        }
    }

    @Test(arguments: [301, 404, 500]) func `errors and redirects are no releases`(_ status: Int) throws {
        try scenario(cache: Self.rule()) { s in
            s.origin.expects("GET /p/f").replies(status, Self.young, body: "as it is")
            let answer = try s.client().get("/p/f")
            #expect(answer.status == status)
        }
    }

    /// The path, the exceptions, and whether a young file passes.
    static let exceptions: [(path: String, more: String, passes: Bool)] = [
        ("/p/f", "except: p", true), ("/q/f", "except: p", false), ("/@acme/q/f", "except: \"@acme/*\"", true),
        ("/@acme%2fq/f", "except: \"@acme/*\"", true), ("/acme/f", "except: \"@acme/*\"", false),
        ("/p/f", "break_glass: [ { package: p, until: 2999-01-01, why: a hole } ]", true),
        ("/p/f", "break_glass: [ { package: p, until: 2020-01-01, why: a hole } ]", false),
        ("/p/f", "packages: [ { package: p, age: 1m } ]", true), ("/p/f", "report_only: yes", true),
        ("/p;v=1/f", "report_only: yes", true),
    ]
    @Test(arguments: exceptions) func `exceptions are by name`(_ row: (path: String, more: String, passes: Bool)) throws
    {
        try scenario(cache: Self.rule(more: ", \(row.more)")) { s in
            s.origin.expects("GET \(row.path)").replies(200, Self.young, body: "body")
            let answer = try s.client().get(row.path)
            #expect((answer.status == 200) == row.passes, "\(answer)")
            let reported = s.count(.releasesReported)
            #expect(reported == (row.more == "report_only: yes" ? 1 : 0))
        }
    }

    @Test func `a path that an origin may take for another package's is refused before it is asked`() throws {
        try scenario(cache: Self.rule(more: ", except: p")) { s in
            let answer = try s.client().get("/p/..%2f..%2fq%2ff")
            #expect(answer.status == 403 && answer.cacheStatus.contains("detail=release-undated"), "\(answer)")
        }
    }

    @Test func `a cut-off date never opens`() throws {
        try scenario(cache: Self.rule(more: ", cut_off: 2019-12-31")) { s in
            s.origin.expects("GET /p/f").replies(200, Self.old, body: "body")
            let answer = try s.client().get("/p/f", "Accept: application/json")
            #expect(answer.status == 403)
            #expect(answer.text.contains("\"error\":\"too-young\""))
            #expect(answer.text.contains("not before the cut-off date"))
        }
    }

    @Test func `a name in the path cannot become a field of the answer`() throws {
        try scenario(cache: Self.rule(more: ", undated: refuse")) { s in
            s.origin.expects("GET /p/a%0d%0aX-Own:%20b").replies(200, body: "body")
            let answer = try s.client().get("/p/a%0d%0aX-Own:%20b")
            #expect(answer.status == 403 && answer["X-Own"] == nil)
            #expect(answer.head.startLine.hasSuffix("nobody says when a??X-Own: b was published"))
        }
    }
}
