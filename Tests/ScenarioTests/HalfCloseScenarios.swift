import Server
import Testing
import Transaction

@Suite("A client that has sent its last byte gets its answers, and one that is gone delays nothing")
struct HalfCloseScenarios {
    private static let stored = "Cache-Control: max-age=60"

    static let answers: [(what: String, fields: String)] = [
        ("stored", stored), ("passed on", "Cache-Control: no-store"),
    ]

    @Test(arguments: answers) func `a client that has sent its last byte gets an answer that comes later`(
        how: (what: String, fields: String)
    ) throws {
        try scenario { s in
            let ended = Gate("the client has ended its side")
            s.origin.expects("GET /a").waits(for: ended).replies(200, how.fields, body: "late")
            let client = try s.client()
            try client.ask("GET", "/a")
            client.wire.finishWriting()
            // The end of the client's side is seen by now, or is while the origin is waited for.
            ended.open()
            #expect(try client.response().text == "late")
            try client.expectClosed()
            #expect(s.count(.failed) == 0)
        }
    }

    @Test func `a client that has sent its last byte gets a hit`() throws {
        try scenario { s in
            s.origin.expects("GET /a").replies(200, Self.stored, body: "here")
            try s.client().get("/a")
            let client = try s.client()
            try client.ask("GET", "/a")
            client.wire.finishWriting()
            let answer = try client.response()
            #expect(answer.text == "here")
            #expect(answer.cacheStatus.hasPrefix("larder; hit"))
            try client.expectClosed()
        }
    }

    @Test func `a client that has sent its last byte gets the answer to its upload`() throws {
        try scenario { s in
            let ended = Gate("the client has ended its side")
            s.origin.expects("POST /a").readsBody().waits(for: ended).replies(
                200, "Cache-Control: no-store", body: "got it")
            let client = try s.client()
            try client.ask("POST", "/a", body: "0123456789")
            client.wire.finishWriting()
            ended.open()
            #expect(try client.response().text == "got it")
            try client.expectClosed()
            #expect(s.origin.requests.first?.message.text == "0123456789")
        }
    }

    @Test func `a client that has sent its last byte gets the answers to all pipelined requests`() throws {
        try scenario { s in
            for path in ["/a", "/b", "/c"] { s.origin.expects("GET \(path)").replies(200, body: path) }
            let client = try s.client()
            for path in ["/a", "/b", "/c"] { try client.ask("GET", path) }
            client.wire.finishWriting()
            for path in ["/a", "/b", "/c"] { #expect(try client.response().text == path) }
            try client.expectClosed()
        }
    }

    @Test func `a client that ends within its body has given up`() throws {
        try scenario { s in
            let client = try s.client()
            let isAsked = Gate("the origin has the head of the request")
            s.origin.expects("POST /a").opens(isAsked).readsBody().closes()
            try client.send(
                "POST \(s.origin.url("/a")) HTTP/1.1\r\nHost: \(s.origin.authority)\r\nContent-Length: 10\r\n\r\n01234")
            try isAsked.wait()
            client.wire.finishWriting()
            try client.expectClosed()
            try s.eventually("its connection is counted") { s.closes(.clientLeft) == 1 }
        }
    }

    @Test(arguments: [false, true])
    func `a client that is gone cancels the fetch that only it waits for`(endsFirst: Bool) throws {
        try scenario { s in
            let asked = Gate("the origin was asked")
            s.origin.expects("GET /a").opens(asked).hangs()
            let client = try s.client()
            try client.ask("GET", "/a")
            try asked.wait()
            if endsFirst { client.wire.finishWriting() }
            client.wire.reset()
            try s.expect(.originConnectionsClosed, 1)
            #expect(s.closes(.clientLeft) == 1)
            let line = try #require(try s.logLines().first)
            #expect(line.contains("\"broken\":true,\"close\":\"client-left\""))
        }
    }
}

@Suite("Every close of a client's connection has its reason")
struct CloseScenarios {
    @Test func `a head that is late has its line in the log and its counters`() throws {
        try scenario({ configuration, _ in configuration.timeouts.clientHead = .milliseconds(200) }) { s in
            let client = try s.client()
            try client.send("GET http://")
            #expect(try client.response().status == 408)
            try client.expectClosed()
            try s.expect(.clientConnectionsClosed, 1)
            #expect(s.closes(.headTimeout) == 1)
            #expect(s.count(.requests) == 1)
            #expect(s.count(.refused) == 1)
            #expect(s.count(.timeouts) == 1)
            let lines = try s.logLines()
            #expect(lines.count == 1)
            #expect(lines.first?.contains("\"status\":408") == true)
            #expect(lines.first?.contains("\"outcome\":\"refused\",\"reason\":\"request-timeout\"") == true)
        }
    }

    static let greetings: [(what: String, bytes: [UInt8], reply: [UInt8], reason: CloseReason)] = [
        ("TLS", [0x16, 0x03, 0x01, 0x00, 0x05, 0x01, 0, 0, 1, 0], [0x15, 0x03, 0x01, 0, 2, 2, 40], .tlsNotOffered),
        ("SOCKS", [0x05, 0x01, 0x00], [0x05, 0xFF], .protocolNotOffered),
        (
            "HTTP/2", Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8), Array("HTTP/1.1 505".utf8), .protocolNotOffered
        ),
        ("PROXY", Array("PROXY UNKNOWN\r\n".utf8), Array("HTTP/1.1 403".utf8), .proxyHeaderUntrusted),
    ]

    @Test(arguments: greetings)
    func `a protocol that is not offered is refused in its own terms`(
        how: (what: String, bytes: [UInt8], reply: [UInt8], reason: CloseReason)
    ) throws {
        try scenario { configuration, _ in
            configuration.listen[0].protocols = [.http1]
        } _: { s in
            let client = try s.client()
            try client.wire.write(how.bytes)
            #expect(try client.reader.bytes(how.reply.count) == how.reply)
            _ = try client.reader.untilEnd()
            client.wire.hangUp()
            try s.eventually("its connection is counted") { s.closes(how.reason) == 1 }
            let line = try #require(try s.logLines().first)
            #expect(line.contains("\"close\":\"\(how.reason.name)\""))
        }
    }

    /// CloseReasonScenarios provokes each reason once; these are other ways to two of them.
    static let ends: [(reason: CloseReason, request: String)] = [
        (.closeRequested, "GET URL HTTP/1.0\r\n\r\n"), (.clientLeft, "GET URL HTTP/1.1\r\nHost: H\r\n\r\nGET "),
    ]

    @Test(arguments: ends) func `the close is counted under its reason`(how: (reason: CloseReason, request: String))
        throws
    {
        try scenario { s in
            s.origin.expects("GET /a").replies(200, body: "a")
            let client = try s.client()
            try client.send(
                how.request.replacing("URL", with: s.origin.url("/a")).replacing(
                    "H\r\n", with: "\(s.origin.authority)\r\n"))
            _ = try client.response()
            client.wire.finishWriting()
            try s.eventually("counted") { s.closes(how.reason) == 1 }
        }
    }
}

@Suite("Connections, requests and tunnels are bounded")
struct OccupancyScenarios {
    @Test func `clients beyond the limit are closed when they are accepted`() throws {
        try scenario({ configuration, _ in configuration.limits.clientsMax = 1 }) { s in
            s.origin.expects("GET /a").replies(200, body: "a")
            let first = try s.client()
            try first.get("/a")
            let second = try s.client()
            try second.expectClosed()
            try s.eventually("counted") { s.closes(.tooManyClients) == 1 }
            #expect(s.count(.clientConnectionsRefused) == 1)
            first.wire.reset()
            try s.expect(.clientConnectionsClosed, 1)
            s.origin.expects("GET /b").replies(200, body: "b")
            #expect(try s.client().get("/b").text == "b")
        }
    }

    @Test func `requests beyond the limit get 503`() throws {
        try scenario({ configuration, _ in configuration.limits.exchangesMax = 1 }) { s in
            let (asked, go) = (Gate("asked"), Gate("go"))
            s.origin.expects("GET /a").opens(asked).waits(for: go).replies(200, body: "a")
            let first = try s.client()
            try first.ask("GET", "/a")
            try asked.wait()
            let refused = try s.client().get("/b")
            #expect(refused.status == 503)
            #expect(refused.cacheStatus.hasSuffix("detail=too-many-requests"))
            go.open()
            #expect(try first.response().text == "a")
            s.origin.expects("GET /b").replies(200, body: "b")
            #expect(try first.get("/b").text == "b")
        }
    }

    @Test func `tunnels beyond the limit get 503`() throws {
        try scenario({ configuration, files in
            configuration.limits.tunnelsMax = 1
            configuration.access.connectPorts = [files.origin.port...files.origin.port]
        }) { s in
            let first = try s.client()
            #expect(try first.request("CONNECT", s.origin.authority).status == 200)
            let refused = try s.client().request("CONNECT", s.origin.authority)
            #expect(refused.status == 503)
            #expect(refused.cacheStatus.hasSuffix("detail=too-many-tunnels"))
            first.wire.reset()
            try s.expect(.tunnelsClosed, 1)
            #expect(try s.client().request("CONNECT", s.origin.authority).status == 200)
        }
    }
}
