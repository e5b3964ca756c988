import Server
import Testing

@Suite("RFC 9112 Messages on both connections of a proxy")
struct MessageScenarios {
    @Test func `each side is sent HTTP/1.1, whatever version it speaks (§2.3)`() throws {
        try scenario { s in
            s.origin.expects("GET /a").sends("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na").closes()
            let client = try s.client()
            try client.ask("GET", "/a", version: "1.0")
            let answer = try client.response()
            #expect(answer.head.startLine.hasPrefix("HTTP/1.1 200"))
            #expect(s.origin.requests.first?.message.head.startLine == "GET /a HTTP/1.1")
        }
    }

    @Test func `OPTIONS for a whole server reaches it as * (§3.2.4)`() throws {
        try scenario { s in
            s.origin.expects("OPTIONS *").replies(204)
            let answer = try s.client().request("OPTIONS", "http://\(s.origin.authority)")
            #expect(answer.status == 204)
        }
    }

    @Test func `nothing behind a request with two framings is read (§6.3 rule 3, §11.2)`() throws {
        try scenario { s in
            let client = try s.client()
            try client.send(
                "POST \(s.origin.url("/a")) HTTP/1.1\r\nHost: \(s.origin.authority)\r\nContent-Length: 4\r\n"
                    + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
                    + "GET \(s.origin.url("/smuggled")) HTTP/1.1\r\nHost: \(s.origin.authority)\r\n\r\n")
            let answer = try client.response()
            #expect(answer.status == 400)
            #expect(answer["Connection"] == "close")
            try client.expectClosed()
            #expect(s.origin.requests.isEmpty)
        }
    }

    @Test func `a response with two framings is 502, and its connection is not used again (§6.3 rule 3)`() throws {
        try scenario { s in
            s.origin.expects("GET /a").sends(
                "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n")
            s.origin.expects("GET /b").replies(200, body: "b")
            let client = try s.client()
            #expect(try client.get("/a").status == 502)
            #expect(try client.get("/b").text == "b")
            #expect(s.origin.connectionCount == 2)
        }
    }

    @Test func `bytes behind a response do not answer another request (§6.3, §11.1)`() throws {
        try scenario { s in
            s.origin.expects("GET /a").sends(
                "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\naHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
            s.origin.expects("GET /b").replies(200, body: "b")
            let client = try s.client()
            #expect(try client.get("/a").text == "a")
            #expect(try client.get("/b").text == "b")
        }
    }

    @Test func `no request is read behind one with Connection close (§9.6)`() throws {
        try scenario { s in
            s.origin.expects("GET /a").replies(200, body: "a")
            let client = try s.client()
            try client.ask("GET", "/a", ["Connection: close"])
            try client.ask("GET", "/b")
            let answer = try client.response()
            #expect(answer.text == "a")
            #expect(answer["Connection"] == "close")
            try client.expectClosed()
            #expect(s.origin.requests.count == 1)
        }
    }

    @Test func `a 101 that nobody asked for is 502 (RFC 9110 §15.2.2)`() throws {
        try scenario { s in
            s.origin.expects("GET /a").sends(
                "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
            let answer = try s.client().get("/a")
            #expect(answer.status == 502)
            #expect(answer["Proxy-Status"]?.contains("error=http_protocol_error") == true, "\(answer)")
        }
    }
}
