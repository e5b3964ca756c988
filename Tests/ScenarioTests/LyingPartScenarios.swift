import Server
import Testing

private let content = "0123456789"

/// A 206 whose `Content-Range` promises another number of bytes than the message carries.
@Suite("A part that contradicts itself is an error and is never stored (RFC 9110 §14.4, §15.3.7)")
struct LyingPartScenarios {
    /// How the bytes of the part are framed: all of the response behind its `Content-Range`.
    struct Lie: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let rest: String
        /// The contradiction shows in the head.
        let isDeclared: Bool
    }

    static let lies = [
        Lie(testDescription: "too short by Content-Length", rest: "Content-Length: 2\r\n\r\n01", isDeclared: true),
        Lie(
            testDescription: "too long by Content-Length", rest: "Content-Length: 12\r\n\r\n012345678901",
            isDeclared: true),
        Lie(
            testDescription: "too short by chunks", rest: "Transfer-Encoding: chunked\r\n\r\n2\r\n01\r\n0\r\n\r\n",
            isDeclared: false),
        Lie(
            testDescription: "too long by chunks",
            rest: "Transfer-Encoding: chunked\r\n\r\nc\r\n012345678901\r\n0\r\n\r\n",
            isDeclared: false),
    ]

    private func part(_ range: String, _ fields: String, _ lie: Lie) -> String {
        "HTTP/1.1 206 Part\r\nETag: \"a\"\r\n\(fields)Content-Range: bytes \(range)\r\n\(lie.rest)"
    }

    private func givesWhole(_ s: Scenario) {
        s.origin.expects("GET /a", "!Range").replies(
            200, "Cache-Control: max-age=60", "ETag: \"a\"", "Accept-Ranges: bytes", body: content)
    }

    /// The next request for the whole gets the whole.
    private func expectNothingStored(_ s: Scenario) throws {
        givesWhole(s)
        let whole = try s.client().get("/a")
        #expect(whole.status == 200)
        #expect(whole.isWhole)
        #expect(whole.text == content)
        #expect(try s.client().get("/a").cacheStatus.hasPrefix("larder; hit"))
    }

    @Test(arguments: lies, ["Cache-Control: max-age=60\r\n", "Cache-Control: no-store\r\n"])
    func `a contradictory part in answer to a client's range is an error`(_ lie: Lie, _ fields: String) throws {
        try scenario { s in
            s.origin.expects("GET /a", "Range: bytes=0-9").sends(part("0-9/10", fields, lie))
            do {
                let answer = try s.client().get("/a", "Range: bytes=0-9")
                if lie.isDeclared {
                    #expect(answer.status == 502)
                    #expect(answer["Proxy-Status"]?.contains("error=http_protocol_error") == true, "\(answer)")
                } else if answer.status == 502 {
                    #expect(answer["Proxy-Status"]?.contains("error=http_response_incomplete") == true, "\(answer)")
                } else {
                    #expect(answer.status == 206 && !answer.isWhole)
                }
            } catch { #expect("\(error)".contains("reset")) }
            try expectNothingStored(s)
        }
    }

    @Test func `if the head has been sent, a contradictory part ends the connection`() throws {
        try scenario { s in
            let headIsOut = Gate("the head is out")
            s.origin.expects("GET /a", "Range: bytes=0-9").sends(
                "HTTP/1.1 206 Part\r\nCache-Control: max-age=60\r\nETag: \"a\"\r\nContent-Range: bytes 0-9/10\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n01\r\n"
            ).waits(for: headIsOut).sends("0\r\n\r\n")
            let client = try s.client()
            try client.ask("GET", "/a", ["Range: bytes=0-9"])
            var answer = SeenMessage(head: try client.head())
            #expect(answer.status == 206)
            headIsOut.open()
            do { try client.reader.body(of: &answer, untilClose: false) } catch { answer.isWhole = false }
            #expect(!answer.isWhole)
            try expectNothingStored(s)
        }
    }

    @Test(arguments: lies) func `a contradictory part in answer to the request for a hole is an error`(_ lie: Lie)
        throws
    {
        try scenario { s in
            let client = try s.client()
            s.origin.expects("GET /a", "Range: bytes=0-1").replies(
                206, "Cache-Control: max-age=60", "ETag: \"a\"", "Content-Range: bytes 0-1/10", body: "01")
            #expect(try client.get("/a", "Range: bytes=0-1").text == "01")
            s.origin.expects("GET /a", "Range: bytes=2-9").sends(part("2-9/10", "", lie))
            do {
                let answer = try client.get("/a")
                #expect(!answer.isWhole || answer.status == 502, "\(answer)")
            } catch { #expect("\(error)".contains("reset")) }
            // A contradiction in the head does not affect the stored bytes. One in the body leaves it unknown which bytes were right.
            guard lie.isDeclared else { return try expectNothingStored(s) }
            s.origin.expects("GET /a", "Range: bytes=2-9").replies(
                206, "ETag: \"a\"", "Content-Range: bytes 2-9/10", body: "23456789")
            #expect(try s.client().get("/a").text == content)
        }
    }

    @Test(arguments: lies) func `a contradictory part in answer to the request for a rest is an error`(_ lie: Lie)
        throws
    {
        try scenario { s in
            s.origin.expects("GET /a", "!Range").sends(
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nETag: \"a\"\r\nContent-Length: 10\r\n\r\n01"
            ).closes()
            s.origin.expects("GET /a", "Range: bytes=2-").sends(part("2-9/10", "", lie))
            do {
                let answer = try s.client().get("/a")
                #expect(!answer.isWhole)
            } catch { #expect("\(error)".contains("reset")) }
            guard lie.isDeclared else { return try expectNothingStored(s) }
            s.origin.expects("GET /a", "Range: bytes=2-9").replies(
                206, "ETag: \"a\"", "Content-Range: bytes 2-9/10", body: "23456789")
            #expect(try s.client().get("/a").text == content)
        }
    }

    // MARK: parts that do not say where they belong

    static let unplaced: [[String]] = [
        [], ["Content-Range: nonsense"], ["Content-Range: bytes 0-9"], ["Content-Range: bytes 9-0/10"],
        ["Content-Range: bytes 0-9/9"], ["Content-Range: bytes 0-9/10", "Content-Range: bytes 0-9/10"],
        ["Content-Range: items 0-9/10"],
    ]

    @Test(arguments: unplaced)
    func `a part with an invalid Content-Range is passed on as it is, and not stored`(_ place: [String]) throws {
        try scenario { s in
            let fields = ["Cache-Control: max-age=60", "ETag: \"a\""] + place
            s.origin.expects("GET /a", "Range: bytes=0-9").replies(206, fields, Array(content.utf8))
            let answer = try s.client().get("/a", "Range: bytes=0-9")
            #expect(answer.status == 206 && answer.isWhole && answer.text == content)
            #expect(answer.head.all("Content-Range") == place.map { String($0.dropFirst("Content-Range: ".count)) })
            #expect(answer.cacheStatus.contains("detail=part-unplaced"), "\(answer.cacheStatus)")
            try expectNothingStored(s)
        }
    }

    @Test(arguments: unplaced)
    func `a part with an invalid Content-Range is not combined with what is stored`(_ place: [String]) throws {
        try scenario { s in
            let client = try s.client()
            s.origin.expects("GET /a", "Range: bytes=0-1").replies(
                206, "Cache-Control: max-age=60", "ETag: \"a\"", "Content-Range: bytes 0-1/10", body: "01")
            #expect(try client.get("/a", "Range: bytes=0-1").text == "01")
            s.origin.expects("GET /a", "Range: bytes=2-9").replies(
                206, ["Cache-Control: max-age=60", "ETag: \"a\""] + place, Array("xxxxxxxx".utf8))
            do {
                let answer = try client.get("/a")
                #expect(!answer.isWhole && !answer.text.contains("x"), "\(answer)")
            } catch { #expect("\(error)".contains("reset")) }
            s.origin.expects("GET /a", "Range: bytes=2-9").replies(
                206, "ETag: \"a\"", "Content-Range: bytes 2-9/10", body: "23456789")
            #expect(try s.client().get("/a").text == content)
        }
    }

    /// What the request did, it has done (RFC 9111 §4.4).
    @Test(arguments: ["PUT", "DELETE", "POST"])
    func `the answer to an unsafe request that is one invalidates all the same`(
        _ method: String
    ) throws {
        try scenario { s in
            let client = try s.client()
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", body: "one")
            #expect(try client.get("/a").text == "one")
            s.origin.expects("\(method) /a").sends(
                "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-9/10\r\nContent-Length: 2\r\n\r\n01")
            #expect(try client.request(method, "/a", body: "x").status == 502)
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", body: "two")
            #expect(try s.client().get("/a").text == "two")
        }
    }
}
