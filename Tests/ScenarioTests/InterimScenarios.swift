import Server
import Testing

/// Ten bytes, so that offsets can be read off.
private let content = "0123456789"

@Suite("Interim responses come before the final head, never behind it (RFC 9110 §15.2)")
struct InterimScenarios {
    /// How the origin frames the body that it breaks off, and whether Larder stores it.
    static let bodies: [(what: String, head: String, start: String)] = [
        ("passed on", "Cache-Control: no-store\r\nETag: \"a\"\r\nContent-Length: 10\r\n", "0123"),
        (
            "passed on, chunked", "Cache-Control: no-store\r\nETag: \"a\"\r\nTransfer-Encoding: chunked\r\n",
            "4\r\n0123\r\n"
        ),
        ("stored", "Cache-Control: max-age=60\r\nETag: \"a\"\r\nContent-Length: 10\r\n", "0123"),
        (
            "stored, chunked", "Cache-Control: max-age=60\r\nETag: \"a\"\r\nTransfer-Encoding: chunked\r\n",
            "4\r\n0123\r\n"
        ),
    ]

    static let interims = ["HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"]

    @Test(arguments: bodies, interims)
    func `an interim response before the rest of a body does not reach the client`(
        body: (what: String, head: String, start: String), interim: String
    ) throws {
        try scenario { s in
            s.origin.expects("GET /a", "!Range").sends("HTTP/1.1 200 OK\r\n\(body.head)\r\n\(body.start)").closes()
            s.origin.expects("GET /a", "Range: bytes=4-", "If-Range: \"a\"").sends(interim).replies(
                206, "ETag: \"a\"", "Content-Range: bytes 4-9/10", body: "456789")
            s.origin.expects("GET /b").replies(200, body: "next")
            let client = try s.client()
            let answer = try client.get("/a")
            #expect(answer.text == content)
            #expect(answer.isWhole)
            #expect(try client.get("/b").text == "next")
        }
    }

    @Test(arguments: interims)
    func `an interim response before the bytes of a hole does not reach the client`(interim: String) throws {
        try scenario { s in
            let fields = ["Cache-Control: max-age=60", "ETag: \"a\""]
            s.origin.expects("GET /a", "Range: bytes=0-3").replies(
                206, fields + ["Content-Range: bytes 0-3/10"], Array("0123".utf8))
            s.origin.expects("GET /a", "Range: bytes=4-9", "If-Range: \"a\"").sends(interim).replies(
                206, fields + ["Content-Range: bytes 4-9/10"], Array("456789".utf8))
            s.origin.expects("GET /b").replies(200, body: "next")
            let client = try s.client()
            #expect(try client.get("/a", "Range: bytes=0-3").text == "0123")
            let answer = try client.get("/a")
            #expect(answer.text == content)
            #expect(answer.isWhole)
            #expect(try client.get("/b").text == "next")
        }
    }

    /// The answer has not begun, so the client may get interim responses.
    @Test func `an interim response before the final head is passed on`() throws {
        try scenario { s in
            let fields = ["Cache-Control: max-age=60", "ETag: \"a\""]
            s.origin.expects("GET /a", "Range: bytes=4-9").replies(
                206, fields + ["Content-Range: bytes 4-9/10"], Array("456789".utf8))
            s.origin.expects("GET /a", "Range: bytes=0-3").sends(Self.interims[1]).replies(
                206, fields + ["Content-Range: bytes 0-3/10"], Array("0123".utf8))
            let client = try s.client()
            #expect(try client.get("/a", "Range: bytes=4-9").text == "456789")
            try client.ask("GET", "/a")
            #expect(try client.response().status == 103)
            #expect(try client.response().text == content)
        }
    }

    /// The final head is queued, but nothing of it is out when the chunk behind it turns out to be none.
    @Test func `an answer that fails before its first byte was sent is replaced, even behind an interim response`()
        throws
    {
        try scenario { s in
            s.origin.expects("GET /a").sends(
                "\(Self.interims[1])HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nno chunk\r\n")
            let client = try s.client()
            try client.ask("GET", "/a")
            #expect(try client.response().status == 103)
            let answer = try client.response()
            #expect(answer.status == 502)
            #expect(answer.isWhole)
            s.origin.expects("GET /b").replies(200, body: "next")
            #expect(try client.get("/b").text == "next")
        }
    }
}
