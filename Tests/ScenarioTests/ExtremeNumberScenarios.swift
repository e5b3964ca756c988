import Limiting
import Rules
import Server
import Testing

private let disk = "disk: { path: DIRECTORY/disk, size: 200MiB, sync: 100ms }"

/// Numbers at which sums of 32, 53, 63 and 64 bits end, and texts that are no numbers.
private let beyond = [
    "9007199254740992", "9223372036854775743", "9223372036854775807", "9223372036854775808", "18446744073709551615",
    "18446744073709551616", "999999999999999999999999999999",
]
private let within = ["2147483647", "2147483649", "4294967295", "4294967297", "9007199254740991"]
private let malformed = ["-1", "+1", "1.0", "1e3", "0x10", "", "1 1"]

@Suite("Numbers of any size in messages (RFC 9110 §8.6, RFC 9112 §6.3, §8)") struct ExtremeNumberScenarios {
    private static let kinds = ["Cache-Control: no-store", "Cache-Control: max-age=60", "X: y"]

    @Test(arguments: beyond + malformed, kinds)
    func `a response whose Content-Length is beyond every content is refused`(_ length: String, _ kind: String) throws {
        try scenario(cache: disk) { s in
            s.origin.expects("GET /a").sends("HTTP/1.1 200 OK\r\nContent-Length: \(length)\r\n\(kind)\r\n\r\nabc")
                .closes()
            let answer = try s.client().get("/a")
            #expect(answer.status == 502)
            #expect(
                answer["Proxy-Status"] == "larder; error=http_protocol_error; details=\"bad-cl\"",
                "\(answer)")
            s.origin.expects("HEAD /b").sends("HTTP/1.1 200 OK\r\nContent-Length: \(length)\r\n\(kind)\r\n\r\n")
                .closes()
            #expect(try s.client().request("HEAD", "/b").status == 502)
        }
    }

    @Test(arguments: within, kinds)
    func `a body that is announced longer than it is breaks off`(_ length: String, _ kind: String) throws {
        try scenario(cache: disk) { s in
            s.origin.expects("GET /a").sends("HTTP/1.1 200 OK\r\nContent-Length: \(length)\r\n\(kind)\r\n\r\nabc")
                .closes()
            let answer = try s.client().get("/a")
            #expect(answer.status == 200 && !answer.isWhole && answer["Content-Length"] == length)
            #expect(answer.text == "abc")
            s.origin.expects("HEAD /a").replies(200, "Content-Length: \(length)", kind)
            #expect(try s.client().request("HEAD", "/a")["Content-Length"] == length)
        }
    }

    @Test(arguments: beyond + malformed) func `a request whose Content-Length is one is refused`(_ length: String)
        throws
    {
        try scenario { s in
            let client = try s.client()
            try client.ask("POST", "/a", ["Content-Length: \(length)"])
            let answer = try client.response(to: "POST")
            #expect(answer.status == 400 && answer.cacheStatus == "larder; detail=bad-cl", "\(answer)")
            try s.expect(.originConnectionsOpened, 0)
        }
    }

    @Test(arguments: within) func `a long request is too large where requests are limited`(_ length: String) throws {
        try scenario { configuration, _ in
            configuration.limitPlan = LimitPlan([
                LimitRule(name: "small", RuleConditions(), LimitTerms(requestBody: 10))
            ])
        } _: { s in
            let client = try s.client()
            try client.ask("POST", "/a", ["Content-Length: \(length)"])
            #expect(try client.response(to: "POST").status == 413)
        }
    }

    @Test(
        arguments: [
            "7fffffff", "100000001", "1fffffffffffff", "20000000000000", "7fffffffffffffff", "ffffffffffffffff",
        ], kinds)
    func `a chunk longer than what comes ends the answer`(_ size: String, _ kind: String) throws {
        try scenario(cache: disk) { s in
            s.origin.expects("GET /a").sends(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\(kind)\r\n\r\n1\r\na\r\n\(size)\r\nbc"
            ).closes()
            let answer = try s.client().get("/a")
            #expect(answer.status == 502 || !answer.isWhole)
            s.origin.expects("GET /b").replies(200, body: "b")
            #expect(try s.client().get("/b").text == "b")
        }
    }

    // MARK: ranges

    @Test(arguments: within + beyond, [false, true])
    func `a Range beyond the content is cut, or unsatisfiable (RFC 9110 §14.1.2)`(_ number: String, isOnDisk: Bool)
        throws
    {
        try scenario(cache: disk) { s in
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", "ETag: \"a\"", body: "0123456789")
            let client = try s.client()
            try client.get("/a")
            for (range, status, text) in [
                ("8-\(number)", 206, "89"), ("-\(number)", 206, "0123456789"), ("\(number)-", 416, ""),
                ("\(number)-\(number)", 416, ""), ("1-2,8-\(number)", 206, nil), ("\(number)-5", 200, "0123456789"),
                ("--\(number)", 200, "0123456789"), ("0-\(number).5", 200, "0123456789"),
            ] as [(String, Int, String?)] {
                if isOnDisk { try s.leaveToDisk() }
                let answer = try client.get("/a", "Range: bytes=\(range)")
                #expect(answer.status == status, "\(range)")
                if let text { #expect(answer.text == text, "\(range)") }
            }
            try s.expect(.originRequests, 1)
        }
    }

    @Test(arguments: [
        ("0-2/9007199254740991", true), ("9007199254740988-9007199254740990/9007199254740991", true),
        ("2147483646-2147483648/4294967297", true), ("0-2/1099511627777", true),
        ("9223372036854775804-9223372036854775806/9223372036854775807", false), ("0-2/9223372036854775807", false),
        ("0-2/18446744073709551615", false), ("18446744073709551613-18446744073709551615/*", false),
        ("0-2/99999999999999999999999999", false), ("-1-2/3", false),
    ])
    func `a part of content of any length is passed on`(_ range: String, isOfContent: Bool) throws {
        try scenario(cache: disk) { s in
            let asked = range.hasPrefix("-") ? "0-2" : String(range.prefix { $0 != "/" })
            s.origin.expects("GET /a", "Range: bytes=\(asked)").replies(
                206, "Cache-Control: max-age=60", "ETag: \"a\"", "Content-Range: bytes \(range)", body: "abc")
            let answer = try s.client().get("/a", "Range: bytes=\(asked)")
            #expect(answer.status == 206 && answer.text == "abc" && answer["Content-Range"] == "bytes \(range)")
            if !isOfContent { #expect(answer.cacheStatus.contains("detail=part-unplaced"), "\(answer)") }
            s.origin.expects("GET /b").replies(200, body: "b")
            #expect(try s.client().get("/b").text == "b")
        }
    }

    @Test(
        arguments: [
            ("bytes=-5", 200), ("bytes=-1", 200), ("bytes=0-, -5", 200), ("bytes=-99999999999999999999", 200),
            ("bytes=0-", 416), ("bytes=0-0", 416), ("bytes=-0", 416),
        ], [false, true])
    func `a suffix of an empty response is all of it (RFC 9110 §14.1.2)`(
        _ row: (range: String, status: Int), isOnDisk: Bool
    ) throws {
        try scenario(cache: disk) { s in
            s.origin.expects("GET /a").replies(
                200, "Cache-Control: max-age=60", "ETag: \"a\"", "Content-Type: text/plain")
            let client = try s.client()
            try client.get("/a")
            if isOnDisk { try s.leaveToDisk() }
            let answer = try client.get("/a", "Range: \(row.range)", "Accept-Encoding: gzip")
            #expect(answer.status == row.status && answer.body.isEmpty && answer["Content-Length"] == "0", "\(answer)")
            #expect(answer["Content-Range"] == (row.status == 416 ? "bytes */0" : nil))
            #expect(try client.get("/a").status == 200)
            try s.expect(.originRequests, 1)
        }
    }

    // MARK: times

    private static let times: [String] = (within + beyond + malformed + ["0", "00000000000000000000000000001"]).flatMap
    {
        [
            "Cache-Control: max-age=\($0)", "Cache-Control: s-maxage=\($0)",
            "Cache-Control: max-age=1, stale-if-error=\($0)",
            "Cache-Control: max-age=1, stale-while-revalidate=\($0)", "Age: \($0)",
            "Larder-Cache-Control: max-age=\($0)",
            "Retry-After: \($0)", "Keep-Alive: timeout=\($0), max=\($0)", "Larder-Policy: ttl=\($0)",
            "Set-Cookie: a=b; Max-Age=\($0)",
        ]
    }
    private static let dates = [
        "Sat, 01 Jan 0000 00:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT", "Sat, 01 Jan 10000 00:00:00 GMT",
        "Thu, 01 Jan 1970 00:00:00 GMT", "Wed, 31 Dec 1969 23:59:59 GMT", "Tue, 19 Jan 2038 03:14:08 GMT",
        "Saturday, 01-Jan-00 00:00:00 GMT", "Sat Jan  1 00:00:00 0000", "0", "-1", "99999999999999999999",
    ].flatMap { date in
        ["Expires", "Date", "Last-Modified", "Retry-After", "Set-Cookie: a=b; Expires="].map {
            $0.hasSuffix("=") ? "\($0)\(date)" : "\($0): \(date)"
        }
    }

    @Test func `every time that an origin can name is survived`() throws {
        try scenario(cache: disk) { s in
            for (index, field) in (Self.times + Self.dates).enumerated() {
                for status in [200, 503] {
                    let path = "/\(index)-\(status)"
                    s.origin.expects("GET \(path)").replies(status, field, "ETag: \"a\"", body: "abc")
                    let answer = try s.client().get(path)
                    #expect(answer.text == "abc", "\(field)")
                }
            }
        }
    }

    @Test(arguments: within + beyond + malformed + ["0"])
    func `every time that a client can name is survived`(_ number: String) throws {
        try scenario { s in
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=600", body: "abc")
            let client = try s.client()
            try client.get("/a")
            let directives = ["max-age", "max-stale", "min-fresh", "stale-if-error"]
            for field in directives.map({ "Cache-Control: only-if-cached, \($0)=\(number)" }) + [
                "Max-Forwards: \(number)"
            ] {
                let answer = try client.get("/a", field)
                #expect([200, 504].contains(answer.status), "\(field)")
            }
        }
    }
}

@Suite("RFC 9110 §15 A status above 599 counts as 5xx") struct UnknownStatusScenarios {
    @Test(arguments: [600, 700, 999]) func `it is passed on as it is`(_ status: Int) throws {
        try scenario { s in
            for _ in 0..<2 { s.origin.expects("GET /a").replies(status, "ETag: \"a\"", body: "abc") }
            for _ in 0..<2 {
                let answer = try s.client().get("/a")
                #expect(answer.status == status && answer.text == "abc")
                #expect(answer.cacheStatus.contains("detail=not-cacheable"), "\(answer)")
            }
            s.origin.expects("POST /a").replies(status, body: "abc")
            #expect(try s.client().request("POST", "/a", body: "x").status == status)
        }
    }

    @Test(arguments: [600, 999]) func `it is stored where the origin says so`(_ status: Int) throws {
        try scenario(cache: disk) { s in
            s.origin.expects("GET /a").replies(status, "Cache-Control: max-age=60", body: "abc")
            for _ in 0..<2 { #expect(try s.client().get("/a").status == status) }
            try s.leaveToDisk()
            #expect(try s.client().get("/a").status == status)
        }
    }

    @Test(arguments: [600, 999]) func `a stale response may take its place (RFC 5861 §4)`(_ status: Int) throws {
        try scenario { s in
            s.origin.expects("GET /a").replies(
                200, "Cache-Control: max-age=10, stale-if-error=100", "Age: 20", "ETag: \"a\"", body: "old")
            let client = try s.client()
            try client.get("/a")
            s.origin.expects("GET /a", "If-None-Match: \"a\"").replies(status, body: "down")
            #expect(try client.get("/a").text == "old")
        }
    }

    @Test(arguments: [600, 999]) func `a POST that got it invalidates nothing (RFC 9111 §4.4)`(_ status: Int) throws {
        try scenario { s in
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", body: "old")
            let client = try s.client()
            try client.get("/a")
            s.origin.expects("POST /a").replies(status)
            #expect(try client.request("POST", "/a", body: "x").status == status)
            #expect(try client.get("/a").text == "old")
        }
    }

    @Test(arguments: ["099", "000", "1000", "20", "2x0"]) func `what is no status is refused`(_ status: String) throws {
        try scenario { s in
            s.origin.expects("GET /a").sends("HTTP/1.1 \(status) X\r\nContent-Length: 0\r\n\r\n").closes()
            let answer = try s.client().get("/a")
            #expect(answer.status == 502 && answer["Proxy-Status"]?.contains("bad-status") == true, "\(answer)")
        }
    }
}

@Suite("RFC 9110 §14.4 Content-Range where the status is not 206") struct MisplacedPartScenarios {
    private static let part = ["Content-Range: bytes 0-2/10", "Cache-Control: max-age=60", "ETag: \"a\""]

    @Test(arguments: ["bytes 0-2/10", "bytes 0-2/3", "bytes */3", "items 1-2/3", "x"])
    func `a 200 with it is passed on and never stored`(_ range: String) throws {
        try scenario(cache: disk) { s in
            for _ in 0..<2 {
                s.origin.expects("GET /a").replies(
                    200, "Content-Range: \(range)", "Cache-Control: max-age=60", "ETag: \"a\"", body: "abc")
                let answer = try s.client().get("/a")
                #expect(answer.status == 200 && answer.text == "abc" && answer["Content-Range"] == range)
                #expect(answer.cacheStatus.contains("detail=part-status"), "\(answer)")
            }
        }
    }

    @Test func `neither as the answer to a validation`() throws {
        try scenario { s in
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=0", "ETag: \"a\"", body: "0123456789")
            let client = try s.client()
            try client.get("/a")
            for _ in 0..<2 {
                s.origin.expects("GET /a").replies(200, Self.part, Array("abc".utf8))
                #expect(try client.get("/a").text == "abc")
            }
        }
    }

    @Test func `nor as the answer to a range`() throws {
        try scenario { s in
            for _ in 0..<2 {
                s.origin.expects("GET /a", "Range: bytes=0-2").replies(200, Self.part, Array("abc".utf8))
                let answer = try s.client().get("/a", "Range: bytes=0-2")
                #expect(answer.status == 200 && answer.text == "abc")
            }
        }
    }

    @Test func `in the answer to a HEAD it says nothing of what is stored`() throws {
        try scenario { s in
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", "ETag: \"a\"", body: "0123456789")
            let client = try s.client()
            try client.get("/a")
            s.origin.expects("HEAD /a").replies(200, Self.part + ["Content-Length: 3"], [])
            try client.request("HEAD", "/a", "Cache-Control: no-cache")
            #expect(try client.get("/a").cacheStatus.hasPrefix("larder; hit"))
        }
    }
}
