import Caching
import Rules
import Server
import Settings
import Testing

private let content = "0123456789"

extension ScriptedOrigin {
    /// A part of ten bytes with a strong tag.
    fileprivate func givesPart(_ first: Int, _ last: Int, asked: String? = nil) {
        let body = Array(Array(content.utf8)[first...last])
        expects("GET /a", "Range: \(asked ?? "bytes=\(first)-\(last)")").replies(
            206, ["Cache-Control: max-age=60", "ETag: \"a\"", "Content-Range: bytes \(first)-\(last)/10"], body)
    }
}

@Suite("Parts are stored and combined (RFC 9110 §14, RFC 9111 §3.3, §3.4)")
struct PartScenarios {
    struct Step: Sendable {
        /// What the client asks for; nil: the whole.
        var range: String?
        /// What the origin is asked for meanwhile, in order.
        var origin: [(Int, Int)] = []
        var status = 206
        var body: String
    }

    static let rows: [(what: String, steps: [Step])] = [
        (
            "the same again, and what lies inside",
            [
                Step(range: "bytes=2-5", origin: [(2, 5)], body: "2345"), Step(range: "bytes=2-5", body: "2345"),
                Step(range: "bytes=3-4", body: "34"),
            ]
        ),
        (
            "of an overlapping range, only what is missing",
            [
                Step(range: "bytes=2-5", origin: [(2, 5)], body: "2345"),
                Step(range: "bytes=4-8", origin: [(6, 8)], body: "45678"),
            ]
        ),
        (
            "a hole before what is there",
            [
                Step(range: "bytes=4-5", origin: [(4, 5)], body: "45"),
                Step(range: "bytes=1-5", origin: [(1, 3)], body: "12345"),
            ]
        ),
        (
            "adjacent ones are one",
            [
                Step(range: "bytes=2-3", origin: [(2, 3)], body: "23"),
                Step(range: "bytes=4-5", origin: [(4, 5)], body: "45"),
                Step(range: "bytes=2-5", body: "2345"),
            ]
        ),
        (
            "one request for each hole of the whole",
            [
                Step(range: "bytes=2-3", origin: [(2, 3)], body: "23"),
                Step(range: "bytes=6-7", origin: [(6, 7)], body: "67"),
                Step(range: nil, origin: [(0, 1), (4, 5), (8, 9)], status: 200, body: content),
                Step(range: nil, status: 200, body: content),
            ]
        ),
        (
            "from an offset to the end, the last bytes, more than there is",
            [
                Step(range: "bytes=0-4", origin: [(0, 4)], body: "01234"),
                Step(range: "bytes=3-", origin: [(5, 9)], body: "3456789"),
                Step(range: "bytes=-2", body: "89"), Step(range: "bytes=8-99", body: "89"),
            ]
        ),
        (
            "beyond the end",
            [Step(range: "bytes=0-1", origin: [(0, 1)], body: "01"), Step(range: "bytes=10-", status: 416, body: "")]
        ),
    ]

    @Test(arguments: rows) func `each Range gets its part from the store and the origin`(
        row: (what: String, steps: [Step])
    ) throws {
        try scenario { s in
            let client = try s.client()
            for step in row.steps {
                for (first, last) in step.origin { s.origin.givesPart(first, last) }
                let before = s.origin.requests.count
                let answer = try step.range.map { try client.get("/a", "Range: \($0)") } ?? client.get("/a")
                #expect(answer.status == step.status, "\(step)")
                #expect(answer.text == step.body, "\(step)")
                #expect(s.origin.requests.count - before == step.origin.count, "\(step)")
                if step.origin.isEmpty && step.status != 416 {
                    #expect(answer.cacheStatus.hasPrefix("larder; hit"), "\(step)")
                }
            }
        }
    }

    @Test func `a filled hole is reported as fwd=partial with the Content-Range of the request`() throws {
        try scenario { s in
            let client = try s.client()
            s.origin.givesPart(2, 3)
            let first = try client.get("/a", "Range: bytes=2-3")
            #expect(first.cacheStatus.contains("fwd=uri-miss; fwd-status=206"))
            #expect(first["Content-Range"] == "bytes 2-3/10")
            s.origin.givesPart(4, 5)
            let second = try client.get("/a", "Range: bytes=4-5")
            #expect(second.cacheStatus.contains("fwd=partial; fwd-status=206"))
            #expect(second["Content-Range"] == "bytes 4-5/10")
            #expect(second["ETag"] == "\"a\"")
        }
    }

    @Test func `several ranges are answered as multipart, holes filled on the way (§14.6)`() throws {
        try scenario { s in
            let client = try s.client()
            s.origin.givesPart(2, 3)
            try client.get("/a", "Range: bytes=2-3")
            s.origin.givesPart(7, 8)
            let answer = try client.get("/a", "Range: bytes=2-3, 7-8")
            #expect(answer.status == 206)
            #expect(answer["Content-Range"] == nil)
            let type = try #require(answer["Content-Type"])
            #expect(type.hasPrefix("multipart/byteranges; boundary="))
            let boundary = String(type.dropFirst("multipart/byteranges; boundary=".count))
            #expect(
                answer.text
                    == "--\(boundary)\r\nContent-Range: bytes 2-3/10\r\n\r\n23\r\n--\(boundary)\r\n"
                    + "Content-Range: bytes 7-8/10\r\n\r\n78\r\n--\(boundary)--\r\n")
            #expect(answer.isWhole)
        }
    }

    @Test func `several ranges of a complete response come in the requested order, each with its type`() throws {
        try scenario { s in
            s.origin.expects("GET /a").replies(
                200, "Cache-Control: max-age=60", "Content-Type: text/plain", body: content)
            let client = try s.client()
            try client.get("/a")
            let answer = try client.get("/a", "Range: bytes=-1, 0-1")
            #expect(answer.status == 206)
            #expect(answer.text.contains("Content-Type: text/plain\r\nContent-Range: bytes 9-9/10\r\n\r\n9\r\n"))
            #expect(answer.text.contains("Content-Range: bytes 0-1/10\r\n\r\n01\r\n"))
            #expect(answer.head.all("Content-Type").count == 1)
        }
    }

    /// Answers to ranges that may not be combined with others.
    static let unstored: [(what: String, fields: [String])] = [
        ("a weak tag", ["Cache-Control: max-age=60", "ETag: W/\"a\"", "Content-Range: bytes 2-3/10"]),
        ("no validator", ["Cache-Control: max-age=60", "Content-Range: bytes 2-3/10"]),
        ("an unknown length", ["Cache-Control: max-age=60", "ETag: \"a\"", "Content-Range: bytes 2-3/*"]),
        ("no-store", ["Cache-Control: no-store", "ETag: \"a\"", "Content-Range: bytes 2-3/10"]),
        ("private", ["Cache-Control: private", "ETag: \"a\"", "Content-Range: bytes 2-3/10"]),
    ]

    @Test(arguments: unstored) func `parts that cannot be stored are passed on`(how: (what: String, fields: [String]))
        throws
    {
        try scenario { s in
            for _ in 0..<2 { s.origin.expects("GET /a", "Range: bytes=2-3").replies(206, how.fields, Array("23".utf8)) }
            for _ in 0..<2 {
                let answer = try s.client().get("/a", "Range: bytes=2-3")
                #expect(answer.status == 206)
                #expect(answer.text == "23")
            }
        }
    }

    @Test func `another representation replaces the stored parts`() throws {
        try scenario { s in
            s.origin.givesPart(0, 3)
            let client = try s.client()
            try client.get("/a", "Range: bytes=0-3")
            s.origin.expects("GET /a", "Range: bytes=4-9", "If-Range: \"a\"").replies(
                200, "Cache-Control: max-age=60", "ETag: \"b\"", body: "ABCDEFGHIJ")
            let second = try client.get("/a", "Range: bytes=4-")
            #expect(second.status == 206)
            #expect(second.text == "EFGHIJ")
            #expect(try client.get("/a").text == "ABCDEFGHIJ")
        }
    }

    static let replacements: [(what: String, status: Int, fields: [String])] = [
        ("stored", 200, ["Cache-Control: max-age=60", "ETag: \"b\""]), ("passed on", 200, ["Cache-Control: no-store"]),
        ("of unknown length", 200, ["Cache-Control: max-age=60", "Transfer-Encoding: chunked"]),
        ("an error", 404, ["Cache-Control: no-store"]),
    ]

    /// The answer to the request for a hole is read to its end from the connection on which it began.
    @Test(arguments: replacements)
    func `another representation replaces the stored parts even if its body follows later`(
        how: (what: String, status: Int, fields: [String])
    )
        throws
    {
        try scenario { s in
            s.origin.givesPart(0, 3)
            let client = try s.client()
            try client.get("/a", "Range: bytes=0-3")
            let headCame = Gate("the proxy has read the head")
            let isChunked = how.fields.contains("Transfer-Encoding: chunked")
            func piece(_ text: String) -> String { isChunked ? "a\r\n\(text)\r\n" : text }
            let fields = isChunked ? how.fields : how.fields + ["Content-Length: 10"]
            s.origin.expects("GET /a", "Range: bytes=4-9", "If-Range: \"a\"")
                .sends("HTTP/1.1 \(how.status) Other\r\n" + fields.map { "\($0)\r\n" }.joined() + "\r\n")
                .waits(for: headCame).sends(piece("ABCDEFGHIJ") + (isChunked ? "0\r\n\r\n" : ""))
            let before = s.count(.bytesFromOrigins)
            try client.ask("GET", "/a", ["Range: bytes=4-"])
            try s.eventually("the proxy has read the head") { s.count(.bytesFromOrigins) > before }
            headCame.open()
            let answer = try client.response()
            #expect(answer.isWhole)
            #expect(answer.text == (answer.status == 206 ? "EFGHIJ" : "ABCDEFGHIJ"))
        }
    }

    @Test func `another representation in the middle of an answer ends it visibly`() throws {
        try scenario { s in
            s.origin.givesPart(0, 3)
            let client = try s.client()
            try client.get("/a", "Range: bytes=0-3")
            s.origin.expects("GET /a", "Range: bytes=4-9").replies(
                200, "Cache-Control: max-age=60", "ETag: \"b\"", body: "ABCDEFGHIJ")
            let answer = try client.get("/a")
            #expect(answer.text == "0123")
            #expect(!answer.isWhole)
            s.origin.expects("GET /a", "!Range").replies(
                200, "Cache-Control: max-age=60", "ETag: \"b\"", body: "ABCDEFGHIJ")
            #expect(try s.client().get("/a").text == "ABCDEFGHIJ")
        }
    }

    @Test func `two clients that need the same hole share one request`() throws {
        try scenario { s in
            s.origin.givesPart(0, 1)
            try s.client().get("/a", "Range: bytes=0-1")
            let go = Gate("both wait")
            s.origin.expects("GET /a", "Range: bytes=2-9").waits(for: go).replies(
                206, ["Cache-Control: max-age=60", "ETag: \"a\"", "Content-Range: bytes 2-9/10"], Array("23456789".utf8)
            )
            let clients = try (0..<3).map { _ in try s.client() }
            for client in clients { try client.ask("GET", "/a") }
            for client in clients {
                #expect(try client.head().startLine.contains(" 200 "))
                let start = try client.reader.bytes(2)
                #expect(String(decoding: start, as: UTF8.self) == "01")
            }
            go.open()
            for client in clients {
                let rest = try client.reader.bytes(8)
                #expect(String(decoding: rest, as: UTF8.self) == "23456789")
            }
        }
    }

    @Test func `a hole whose transfer breaks off is requested again`() throws {
        try scenario { s in
            s.origin.givesPart(0, 1)
            let client = try s.client()
            try client.get("/a", "Range: bytes=0-1")
            s.origin.expects("GET /a", "Range: bytes=2-9").sends(
                "HTTP/1.1 206 Part\r\nETag: \"a\"\r\nContent-Range: bytes 2-9/10\r\nContent-Length: 8\r\n\r\n234"
            ).closes()
            s.origin.givesPart(5, 9)
            let answer = try client.get("/a")
            #expect(answer.text == content)
            #expect(answer.isWhole)
        }
    }

    @Test func `only-if-cached gets stored bytes, and 504 for missing ones (§5.2.1.7)`() throws {
        try scenario { s in
            s.origin.givesPart(0, 3)
            let client = try s.client()
            try client.get("/a", "Range: bytes=0-3")
            #expect(try client.get("/a", "Range: bytes=1-2", "Cache-Control: only-if-cached").text == "12")
            #expect(try client.get("/a", "Range: bytes=1-6", "Cache-Control: only-if-cached").status == 504)
            #expect(try client.get("/a", "Cache-Control: only-if-cached").status == 504)
        }
    }

    @Test func `a stale part is validated like a complete response, then completed (§4.3)`() throws {
        try scenario { s in
            s.origin.expects("GET /a", "Range: bytes=0-3").replies(
                206, ["Cache-Control: max-age=0", "ETag: \"a\"", "Content-Range: bytes 0-3/10"], Array("0123".utf8))
            let client = try s.client()
            try client.get("/a", "Range: bytes=0-3")
            s.origin.expects("GET /a", "If-None-Match: \"a\"", "!Range").replies(
                304, "Cache-Control: max-age=60", "ETag: \"a\"")
            s.origin.givesPart(4, 9)
            #expect(try client.get("/a").text == content)
        }
    }

    @Test func `bytes beyond what the store keeps of one object are passed on`() throws {
        try scenario({ configuration, _ in configuration.cache.writtenObjectSizeMax = 1 << 20 }) { s in
            let body = [UInt8](repeating: 0x78, count: 2 << 20)
            let fields = ["Cache-Control: max-age=60", "ETag: \"a\""]
            s.origin.expects("GET /a", "Range: bytes=0-9").replies(
                206, fields + ["Content-Range: bytes 0-9/2097152"], [UInt8](repeating: 0x78, count: 10))
            let client = try s.client()
            try client.get("/a", "Range: bytes=0-9")
            s.origin.expects("GET /a", "!Range").replies(200, fields, body)
            let whole = try client.get("/a")
            #expect(whole.isWhole && whole.body == body)
            s.origin.expects("GET /a", "Range: bytes=10-1999999").replies(
                206, fields + ["Content-Range: bytes 10-1999999/2097152"], Array(body[10..<2_000_000]))
            let part = try client.get("/a", "Range: bytes=10-1999999")
            #expect(part.isWhole && part.body.count == 1_999_990)
        }
    }

    /// What becomes of the hole when the origin fails.
    static let failures: [(what: String, isAnswered: Bool)] = [("before the head", false), ("after it", true)]

    @Test(arguments: failures)
    func `a failure of the origin on a hole is reported once`(how: (what: String, isAnswered: Bool)) throws {
        try scenario { s in
            s.origin.givesPart(2, 3)
            let client = try s.client()
            try client.get("/a", "Range: bytes=2-3")
            // On the pooled connection, then on a new one.
            for _ in 0..<2 { s.origin.expects("GET /a", "Range").closes() }
            let answer = try client.get("/a", "Range: bytes=\(how.isAnswered ? "2-5" : "4-5")")
            #expect(answer.status == (how.isAnswered ? 206 : 502))
            #expect(answer.isWhole != how.isAnswered)
            if how.isAnswered { #expect(answer.text == "23") }
        }
    }

    @Test func `if a rule wants the whole response, the rest is fetched in the background`() throws {
        try scenario({ configuration, _ in
            var rule = CacheRule(conditions: RuleConditions(), number: 1)
            rule.changes.ranges = .whole
            configuration.cache.rules = [rule]
        }) { s in
            s.origin.givesPart(2, 3)
            s.origin.givesPart(0, 1)
            s.origin.givesPart(4, 9)
            #expect(try s.client().get("/a", "Range: bytes=2-3").text == "23")
            try s.expect(.stored, 1)
            let whole = try s.client().get("/a")
            #expect(whole.text == content && whole.cacheStatus.hasPrefix("larder; hit"))
        }
    }

    @Test func `a response with missing bytes is not served stale after a failure (RFC 5861 §4)`() throws {
        try scenario { s in
            let fields = ["Cache-Control: max-age=0, stale-if-error=600", "ETag: \"a\""]
            s.origin.expects("GET /a", "Range: bytes=0-3").replies(
                206, fields + ["Content-Range: bytes 0-3/10"], Array("0123".utf8))
            let client = try s.client()
            try client.get("/a", "Range: bytes=0-3")
            s.origin.expects("GET /a", "If-None-Match: \"a\"").replies(503, body: "sorry")
            let whole = try client.get("/a")
            #expect(whole.status == 503 && whole.text == "sorry")
            s.origin.expects("GET /a", "If-None-Match: \"a\"").replies(503, body: "sorry")
            let part = try client.get("/a", "Range: bytes=1-2")
            #expect(part.status == 206 && part.text == "12")
        }
    }

    @Test func `a part that is too large for the store leaves nothing stored`() throws {
        try scenario({ configuration, _ in configuration.cache.writtenObjectSizeMax = 4 }) { s in
            let client = try s.client()
            s.origin.givesPart(0, 5)
            #expect(try client.get("/a", "Range: bytes=0-5").text == "012345")
            #expect(s.proxy.shared.tier.memory.statistics.recordCount == 0)
        }
    }

    @Test func `a range far ahead of a present transfer is fetched separately`() throws {
        try scenario { s in
            let go = Gate("the range is answered")
            s.origin.expects("GET /a", "!Range").sends(
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nETag: \"a\"\r\nContent-Length: 6000000\r\n\r\n0123"
            ).waits(for: go).sends([UInt8](repeating: 0x78, count: 5_999_996))
            let first = try s.client()
            try first.ask("GET", "/a")
            _ = try first.head()
            s.origin.expects("GET /a", "Range: bytes=5999998-5999999").replies(
                206, ["Cache-Control: max-age=60", "ETag: \"a\"", "Content-Range: bytes 5999998-5999999/6000000"],
                Array("xx".utf8))
            #expect(try s.client().get("/a", "Range: bytes=5999998-5999999").text == "xx")
            go.open()
            let all = try first.reader.bytes(6_000_000)
            #expect(all.count == 6_000_000)
        }
    }
}
