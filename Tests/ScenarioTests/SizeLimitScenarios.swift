import Limiting
import Rules
import Server
import Settings
import Testing

/// `request_body`, `request_size` and `response_body` of `limits.rules`.
@Suite("limits.rules: sizes of requests and responses") struct SizeLimitScenarios {
    private func with(_ terms: LimitTerms) -> (inout Configuration, Scenario.Files) throws -> Void {
        { configuration, _ in configuration.limitPlan = LimitPlan([LimitRule(name: "small", RuleConditions(), terms)]) }
    }

    // MARK: requests

    @Test func `a body whose length is known is refused before the origin is asked, and without a 100`() throws {
        try scenario(with(LimitTerms(requestBody: 10))) { s in
            let client = try s.client()
            try client.send(
                "POST \(s.origin.url("/a")) HTTP/1.1\r\nHost: \(s.origin.authority)\r\nContent-Length: 11\r\nExpect: 100-continue\r\n\r\n"
            )
            let refused = try client.response(to: "POST")
            #expect(refused.status == 413, "\(refused)")
            #expect(refused["Proxy-Status"]?.contains("limit small: 10 bytes in the body of a request") == true)
            #expect(refused["Retry-After"] == nil && refused["Connection"] == "close")
            try s.expect(.originConnectionsOpened, 0)
        }
    }

    @Test func `a body of exactly the limit passes`() throws {
        try scenario(with(LimitTerms(requestBody: 10))) { s in
            s.origin.expects("POST /a").replies(200, body: "done")
            let client = try s.client()
            #expect(try client.request("POST", "/a", body: "0123456789").text == "done")
        }
    }

    @Test func `head and body count together where the whole request is limited`() throws {
        try scenario(with(LimitTerms(requestSize: 300))) { s in
            s.origin.expects("POST /a").replies(200, body: "done")
            let client = try s.client()
            #expect(try client.request("POST", "/a", body: "0123456789").status == 200)
            #expect(try client.get("/\(String(repeating: "x", count: 300))").status == 413)
            #expect(try s.client().request("POST", "/a", body: String(repeating: "x", count: 290)).status == 413)
        }
    }

    @Test func `chunks beyond the limit reset the origin's connection, and the client gets 413`() throws {
        let origin = try RawOrigin()
        try scenario(with(LimitTerms(requestBody: 10))) { s in
            let client = try s.client()
            let authority = "127.0.0.1:\(origin.port)"
            try client.send(
                "POST http://\(authority)/a HTTP/1.1\r\nHost: \(authority)\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n"
            )
            let taken = try origin.accept(s)
            var received = ""
            while !received.contains("abcde") { received += String(decoding: try taken.read(), as: UTF8.self) }
            try client.send("6\r\nfghijk\r\n0\r\n\r\n")
            let refused = try client.response(to: "POST")
            #expect(refused.status == 413 && refused.cacheStatus.contains("detail=content-too-large"), "\(refused)")
            let end = #expect(throws: WireError.self, "the end is a reset, not the end of a stream") {
                while true {
                    let bytes = try taken.read()
                    received += String(decoding: bytes, as: UTF8.self)
                    if bytes.isEmpty { break }
                }
            }
            #expect(end?.description.contains("reset") == true, "\(String(describing: end))")
            #expect(!received.contains("fghijk") && !received.contains("\r\n0\r\n"), "\(received)")
        }
    }

    // MARK: responses

    @Test(arguments: ["Cache-Control: max-age=600", "Cache-Control: no-store"])
    func `a response whose length is known is refused before a byte of it`(_ control: String) throws {
        try scenario(with(LimitTerms(responseBody: 10))) { s in
            let client = try s.client()
            s.origin.expects("GET /a").replies(200, control, body: "0123456789x")
            let refused = try client.get("/a")
            #expect(refused.status == 502, "\(refused)")
            #expect(
                refused["Proxy-Status"]
                    == #"larder; error=http_response_body_size; details="limit small: 10 bytes in the body of a response""#
            )
            #expect(!refused.text.contains("0123456789x"))
            s.origin.expects("GET /b").replies(200, body: "0123456789")
            #expect(try client.get("/b").text == "0123456789")
            s.origin.expects("HEAD /c").replies(200, "Content-Length: 5000")
            #expect(try client.request("HEAD", "/c").status == 200)
        }
    }

    @Test func `a hit that is too long is refused on the short way, too`() throws {
        try scenario(with(LimitTerms(responseBody: 10))) { s in
            let client = try s.client()
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=600", body: "small")
            s.origin.expects("GET /b").replies(200, "Cache-Control: max-age=600", body: "0123456789x")
            for _ in 1...3 { #expect(try client.get("/a").text == "small") }
            #expect(try client.get("/b").status == 502)
            #expect(try client.get("/a").text == "small")
            #expect(try client.get("/b").status == 502)
        }
    }

    @Test func `a response of unknown length breaks off visibly`() throws {
        try scenario(with(LimitTerms(responseBody: 10))) { s in
            s.origin.expects("GET /a").sends(
                "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nTransfer-Encoding: chunked\r\n\r\nb\r\n0123456789x\r\n0\r\n\r\n"
            )
            let answer = try s.client().get("/a")
            #expect(answer.status == 200 && !answer.isWhole && answer.text == "0123456789", "\(answer)")
            try s.eventually("the reason is counted") { try s.stat(.closes, "answer-too-long") == 1 }
        }
    }
}
