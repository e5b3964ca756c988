import Glibc
import Server
import Testing

@Suite("timeouts.first_byte and timeouts.idle: the head of a response")
struct HeadTimeScenarios {
    @Test func `first_byte is for the first byte, and the rest of the head may take longer`() throws {
        try scenario({ configuration, _ in configuration.timeouts.firstByte = .milliseconds(100) }) { s in
            let (asked, go) = (Gate("asked"), Gate("go"))
            s.origin.expects("GET /a").sends("HTTP/1.1 200 OK\r\n").opens(asked).waits(for: go).sends(
                "Content-Length: 2\r\n\r\nok")
            let client = try s.client()
            try client.ask("GET", "/a")
            try asked.wait()
            // Three times the limit. It was over before the head was whole.
            usleep(300_000)
            go.open()
            #expect(try client.response().text == "ok")
            #expect(s.count(.timeouts) == 0)
        }
    }

    @Test func `a head that is not whole within idle of its first byte is a 504, whatever still trickles in`() throws {
        try scenario({ configuration, _ in configuration.timeouts.idle = .milliseconds(300) }) { s in
            let end = Gate("end")
            s.origin.expects("GET /a").sends("HTTP/1.1 200 OK\r\nX-A: ").waits(for: end)
            let answer = try s.client().get("/a")
            #expect(answer.status == 504)
            #expect(answer["Proxy-Status"]?.contains("http_response_timeout") == true)
            end.open()
        }
    }
}

@Suite("RFC 9112 §9.6: an answer behind which the connection closes says so")
struct EarlyAnswerScenarios {
    static let bodies = ["Content-Length: 5", "Transfer-Encoding: chunked"]

    @Test(arguments: bodies) func `the origin answers before the client has sent the body of its request`(
        _ framing: String
    ) throws {
        try scenario { s in
            s.origin.expects("POST /a", "Expect: 100-continue").replies(
                401, "WWW-Authenticate: Basic realm=x", body: "who are you"
            ).closes().readsBody()
            let client = try s.client()
            try client.ask("POST", "/a", ["Expect: 100-continue", framing])
            let answer = try client.response(to: "POST")
            #expect(answer.status == 401)
            #expect(answer["Connection"] == "close")
            try client.expectClosed()
        }
    }

    @Test func `Larder itself answers before the body`() throws {
        try scenario { s in
            let client = try s.client()
            try client.ask("OPTIONS", "*", ["Expect: 100-continue", "Content-Length: 5", "Max-Forwards: 0"])
            let answer = try client.response(to: "OPTIONS")
            #expect(answer["Connection"] == "close")
            try client.expectClosed()
        }
    }

    @Test func `a body that has been read closes nothing`() throws {
        try scenario { s in
            s.origin.expects("POST /a").replies(401, "WWW-Authenticate: Basic realm=x", body: "no")
            s.origin.expects("GET /b").replies(200, body: "yes")
            let client = try s.client()
            try client.ask("POST", "/a", body: "hello")
            #expect(try client.response(to: "POST")["Connection"] == nil)
            #expect(try client.get("/b").text == "yes")
        }
    }
}
