import Server
import Testing

/// Where a response is in its life is said by the `Age` it comes with: no scenario waits for time to pass.
@Suite("RFC 5861, RFC 9111 §4.2.4 Serving stale responses")
struct StaleScenarios {
    /// The directives and the age of the stored response, the directives of the request, and whether the response is served before the
    /// origin is asked.
    static let whileRevalidating: [(stored: String, age: Int, request: String?, isServed: Bool)] = [
        ("max-age=10, stale-while-revalidate=100", 11, nil, true),
        ("max-age=10, stale-while-revalidate=100", 100, nil, true),
        ("max-age=10, stale-while-revalidate=100", 111, nil, false),
        ("max-age=10, stale-while-revalidate=0", 11, nil, false),
        ("max-age=10", 11, nil, false), ("max-age=10, stale-while-revalidate=x", 11, nil, false),
        ("max-age=10, stale-while-revalidate=100, must-revalidate", 11, nil, false),
        ("max-age=10, stale-while-revalidate=100, proxy-revalidate", 11, nil, false),
        ("s-maxage=10, stale-while-revalidate=100", 11, nil, false),
        ("no-cache, max-age=10, stale-while-revalidate=100", 11, nil, false),
        ("max-age=10, stale-while-revalidate=100", 20, "no-cache", false),
        ("max-age=10, stale-while-revalidate=100", 20, "max-age=15", false),
        ("max-age=10, stale-while-revalidate=100", 20, "min-fresh=5", false),
    ]

    @Test(arguments: [
        (503, "60", true), (429, "60", true), (503, "0", false), (503, "soon", false), (500, "60", false),
    ])
    func `an origin that says Retry-After is not asked in the background until then`(
        status: Int, value: String, isHeeded: Bool
    ) throws {
        try scenario { s in
            s.origin.expects("GET /a").replies(
                200, "Cache-Control: max-age=10, stale-while-revalidate=1000", "Age: 11", "ETag: \"a\"", body: "old")
            let client = try s.client()
            try client.get("/a")
            s.origin.expects("GET /a", "If-None-Match: \"a\"").replies(status, "Retry-After: \(value)")
            #expect(try client.get("/a").text == "old")
            try s.expect(.originRequests, 2)
            try s.eventually("the validation is over") { s.proxy.transfers().isEmpty }
            if !isHeeded { s.origin.expects("GET /a", "If-None-Match: \"a\"").replies(status) }
            #expect(try client.get("/a").text == "old")
            try s.expect(.originRequests, isHeeded ? 2 : 3)
            try s.eventually("the next one is over") { s.proxy.transfers().isEmpty }
            // A client that waits is not kept from asking.
            s.origin.expects("GET /b").replies(200, body: "b")
            #expect(try client.get("/b").text == "b")
        }
    }

    @Test(arguments: [403, 408, 425, 429], [true, false])
    func `a status that a rule takes for a failure is one`(status: Int, isNamed: Bool) throws {
        try scenario(cache: "rules: [ { failure_statuses: [ \(isNamed ? status : status == 403 ? 429 : 403) ] } ]") {
            s in
            s.origin.expects("GET /a").replies(
                200, "Cache-Control: max-age=10", "Age: 11", "ETag: \"a\"", body: "old")
            let client = try s.client()
            try client.get("/a")
            s.origin.expects("GET /a", "If-None-Match: \"a\"").replies(status, body: "no")
            let answer = try client.get("/a")
            #expect(answer.status == (isNamed ? 200 : status) && answer.text == (isNamed ? "old" : "no"), "\(answer)")
            let expected = "larder; fwd=stale; fwd-status=\(status)"
            #expect(answer.cacheStatus.hasPrefix(expected), "\(answer.cacheStatus)")
            #expect(answer.cacheStatus.contains("stale-on-error") == isNamed, "\(answer.cacheStatus)")
            // Without anything stored the answer is that of the origin.
            s.origin.expects("GET /b").replies(status, body: "no")
            #expect(try client.get("/b").status == status)
        }
    }

    @Test func `while such an origin wants no requests, what is stored stands in without asking`() throws {
        try scenario(cache: "rules: [ { failure_statuses: [ 429 ] } ]") { s in
            for path in ["/a", "/b"] {
                s.origin.expects("GET \(path)").replies(
                    200, "Cache-Control: max-age=10", "Age: 11", "ETag: \"a\"", body: path)
                try s.client().get(path)
            }
            let client = try s.client()
            s.origin.expects("GET /a", "If-None-Match: \"a\"").replies(429, "Retry-After: 60")
            #expect(try client.get("/a").text == "/a")
            let asked = s.origin.requests.count
            for path in ["/a", "/b", "/a"] {
                let answer = try client.get(path)
                #expect(answer.text == path && answer.cacheStatus.hasPrefix("larder; hit; ttl=-"), "\(answer)")
            }
            #expect(s.origin.requests.count == asked)
            let explained = try s.proxy.explain(ExplainQuestion(target: s.origin.url("/b")))
            #expect(explained.decision == .hit, "\(explained)")
            // Who wants the answer of this moment gets it, and so does who wants what is not stored.
            s.origin.expects("GET /a").replies(200, "Cache-Control: no-store", body: "new")
            #expect(try client.get("/a", "Cache-Control: no-cache").text == "new")
            s.origin.expects("GET /c").replies(200, body: "c")
            #expect(try client.get("/c").text == "c")
        }
    }

    @Test(arguments: whileRevalidating)
    func `stale-while-revalidate, at once inside the window, not after (RFC 5861 §3)`(
        _ row: (stored: String, age: Int, request: String?, isServed: Bool)
    ) throws {
        try scenario { s in
            let (asked, answer) = (Gate("asked"), Gate("answer"))
            s.origin.expects("GET /a").replies(
                200, "Cache-Control: \(row.stored)", "Age: \(row.age)", "ETag: \"a\"", body: "old")
            s.origin.expects("GET /a", "If-None-Match: \"a\"").opens(asked).waits(for: answer).replies(
                200, "Cache-Control: max-age=60", body: "new")
            let client = try s.client()
            try client.get("/a")
            try client.ask("GET", "/a", row.request.map { ["Cache-Control: \($0)"] } ?? [])
            // The origin answers only after the client has the stored response, or has to wait.
            if !row.isServed { answer.open() }
            let second = try client.response()
            #expect(second.text == (row.isServed ? "old" : "new"))
            try asked.wait()
            answer.open()
            try s.expect(.stored, 2)
            #expect(try client.get("/a").text == "new")
        }
    }

    @Test func `many requests inside the window are served stale and cause one validation`() throws {
        try scenario { s in
            let (asked, answer) = (Gate("asked"), Gate("answer"))
            s.origin.expects("GET /a").replies(
                200, "Cache-Control: max-age=10, stale-while-revalidate=100", "Age: 20", "ETag: \"a\"", body: "old")
            s.origin.expects("GET /a", "If-None-Match: \"a\"").opens(asked).waits(for: answer).replies(
                304, "Cache-Control: max-age=60", "ETag: \"a\"")
            let clients = try (0..<4).map { _ in try s.client() }
            try clients[0].get("/a")
            for _ in 0..<2 { for client in clients { #expect(try client.get("/a").text == "old") } }
            try asked.wait()
            answer.open()
            try s.expect(.freshened, 1)
            #expect(s.origin.requests.count == 2)
        }
    }

    /// What the validation behind meets; the client has its answer, and the next one as well.
    static let behind: [(what: String, answer: String)] = [
        ("an error", "HTTP/1.1 503 Down\r\nContent-Length: 4\r\n\r\ndown"), ("nonsense", "nonsense\r\n\r\n"),
        ("what is not stored", "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 3\r\n\r\nnew"),
        ("what breaks off", "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 9\r\n\r\nnew"),
    ]

    @Test(arguments: behind) func `a failure of the background validation reaches no client`(
        _ row: (what: String, answer: String)
    )
        throws
    {
        try scenario { s in
            s.origin.expects("GET /a").replies(
                200, "Cache-Control: max-age=10, stale-while-revalidate=100", "Age: 20", "ETag: \"a\"", body: "old")
            let done = Gate("answered")
            s.origin.expects("GET /a").sends(row.answer).opens(done).closes()
            let client = try s.client()
            try client.get("/a")
            let second = try client.get("/a")
            #expect(second.text == "old")
            #expect(second.isWhole)
            try done.wait()
        }
    }

    /// What is stored, its age, directives of the request, and whether it may stand in for an origin that fails.
    static let onError: [(stored: String, age: Int, request: String?, isServed: Bool)] = [
        ("max-age=10, stale-if-error=100", 20, nil, true), ("max-age=10, stale-if-error=100", 111, nil, false),
        ("max-age=10, stale-if-error=0", 20, nil, false), ("max-age=10", 20, nil, true),
        ("max-age=10", 604_700, nil, true), ("max-age=10", 604_900, nil, false),
        ("max-age=10, stale-if-error=1000000", 700_000, nil, true),
        ("max-age=10, must-revalidate, stale-if-error=100", 20, nil, false),
        ("s-maxage=10, stale-if-error=100", 20, nil, false),
        ("max-age=10, proxy-revalidate", 20, nil, false), ("no-cache", 0, nil, false),
        ("max-age=10, stale-if-error=0", 20, "stale-if-error=100", true),
        ("max-age=10", 604_900, "stale-if-error=100", false),
        ("max-age=10", 20, "no-cache", false), ("max-age=10", 20, "max-age=0", false),
        ("max-age=60", 20, "max-age=0", true),
        ("max-age=10, must-revalidate", 20, "stale-if-error=100", false),
    ]

    @Test(arguments: onError, ["HTTP/1.1 500 Down\r\nContent-Length: 4\r\n\r\ndown", "nonsense\r\n\r\n", nil])
    func `stale-if-error (RFC 5861 §4)`(
        _ row: (stored: String, age: Int, request: String?, isServed: Bool), _ failure: String?
    ) throws {
        try scenario({ configuration, _ in configuration.timeouts.firstByte = .milliseconds(100) }) { s in
            s.origin.expects("GET /a").replies(
                200, "Cache-Control: \(row.stored)", "Age: \(row.age)", "ETag: \"a\"", body: "old")
            let client = try s.client()
            try client.get("/a")
            let expectation = s.origin.expects("GET /a", "If-None-Match: \"a\"")
            if let failure { expectation.sends(failure).closes() } else { expectation.hangs() }
            try client.ask("GET", "/a", row.request.map { ["Cache-Control: \($0)"] } ?? [])
            let answer = try client.response()
            #expect((answer.status == 200 && answer.text == "old") == row.isServed, "\(answer)")
            if !row.isServed { #expect(answer.status >= 500) }
            #expect(answer.cacheStatus.contains("stale-on-error") == row.isServed, "\(answer.cacheStatus)")
        }
    }

    @Test(arguments: [400, 403, 404, 410]) func `an error response that is not a failure of the origin is passed on`(
        _ status: Int
    ) throws {
        try scenario { s in
            s.origin.expects("GET /a").replies(
                200, "Cache-Control: max-age=10, stale-if-error=100", "Age: 20", "ETag: \"a\"", body: "old")
            s.origin.expects("GET /a").replies(status, body: "no")
            let client = try s.client()
            try client.get("/a")
            let second = try client.get("/a")
            #expect(second.status == status)
            #expect(second.text == "no")
        }
    }

    @Test func `an answer that fails after its head is not replaced by a stale one`() throws {
        try scenario { s in
            s.origin.expects("GET /a").replies(
                200, "Cache-Control: max-age=10, stale-if-error=100", "Age: 20", "ETag: \"a\"", body: "old")
            s.origin.expects("GET /a").sends(
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 9\r\n\r\nnew"
            ).closes()
            let client = try s.client()
            try client.get("/a")
            let second = try client.get("/a")
            #expect(second.text == "new")
            #expect(!second.isWhole)
        }
    }

    @Test func `a client that accepts a stale response gets it, even if its leader did not`() throws {
        // On one worker a request that is counted has joined the other's transfer in the same turn.
        try scenario({ configuration, _ in configuration.workers = .count(1) }) { s in
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=10", "Age: 20", "ETag: \"a\"", body: "old")
            let (strict, lenient) = (try s.client(), try s.client())
            try strict.get("/a")
            let (asked, answer) = (Gate("asked"), Gate("answer"))
            s.origin.expects("GET /a", "If-None-Match: \"a\"").opens(asked).waits(for: answer).sends("nonsense\r\n\r\n")
                .closes()
            try strict.ask("GET", "/a", ["Cache-Control: max-age=5"])
            try asked.wait()
            try lenient.ask("GET", "/a")
            try s.expect(.requests, 3)
            answer.open()
            #expect(try strict.response().status == 502)
            let second = try lenient.response()
            #expect(second.status == 200)
            #expect(second.text == "old")
        }
    }
}
