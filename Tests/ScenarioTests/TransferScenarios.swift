import Server
import Settings
import Testing
import Transaction

@Suite("transfers under way: seen, and ended") struct TransferScenarios {
    private static let half = String(repeating: "x", count: 5000)
    private static let head = "HTTP/1.1 200 OK\r\nContent-Length: 10000\r\nETag: \"a\"\r\n"

    private func ask(_ client: ScriptedClient, _ s: Scenario, _ path: String) throws {
        try client.send("GET \(s.origin.url(path)) HTTP/1.1\r\nHost: \(s.origin.authority)\r\n\r\n")
    }

    private func only(_ s: Scenario, _ what: String, _ isSo: (TransferReport) -> Bool) throws -> TransferReport {
        try s.eventually(what) { s.proxy.transfers().contains(where: isSo) }
        return s.proxy.transfers().first(where: isSo)!
    }

    @Test func `a fetch tells what it is, how far it is, and for whom`() throws {
        try scenario { s in
            let gate = Gate()
            s.origin.expects("GET /a").sends(Self.head + "\r\n" + Self.half).waits(for: gate).sends(Self.half)
            let client = try s.client()
            try ask(client, s, "/a")
            let report = try only(s, "half of it is there") { $0.received == 5000 }
            #expect(report.expected == 10_000 && report.state == .receiving && report.id.kind == .fetch)
            #expect(report.uri == Array(s.origin.url("/a").utf8) && report.method == "GET")
            #expect(report.client == "127.0.0.1" && report.readers == 1 && report.sent == 0)
            gate.open()
            #expect(try client.response().body.count == 10_000)
            try s.eventually("it is over") { s.proxy.transfers().isEmpty }
        }
    }

    @Test func `the bytes of an upload are counted`() throws {
        try scenario { s in
            let gate = Gate()
            s.origin.expects("POST /a").readsBody().waits(for: gate).replies(200)
            let client = try s.client()
            try client.send(
                "POST \(s.origin.url("/a")) HTTP/1.1\r\nHost: \(s.origin.authority)\r\nContent-Length: 5000\r\n\r\n"
                    + Self.half)
            let report = try only(s, "the upload is there") { $0.sent == 5000 }
            #expect(report.state == .waiting && report.received == 0 && report.expected == nil)
            gate.open()
            #expect(try client.response().status == 200)
        }
    }

    @Test func `a tunnel tells its bytes in both directions, and ends`() throws {
        try scenario({ configuration, _ in configuration.access.connectPorts = [1...65535] }) { s in
            let client = try s.client()
            try client.send("CONNECT \(s.origin.authority) HTTP/1.1\r\nHost: \(s.origin.authority)\r\n\r\n")
            #expect(try client.response(to: "CONNECT").status == 200)
            s.origin.expects("GET /a").replies(200, body: "hello")
            let request = "GET /a HTTP/1.1\r\nHost: \(s.origin.authority)\r\n\r\n"
            try client.send(request)
            #expect(try client.response().text == "hello")
            let report = try only(s, "the tunnel") { $0.id.kind == .tunnel }
            #expect(report.uri == Array(s.origin.authority.utf8) && report.method == "CONNECT" && report.state == .open)
            #expect(report.sent == UInt64(request.utf8.count) && report.received > 5 && report.expected == nil)
            #expect(s.proxy.cancelTransfer(report.id))
            try client.expectClosed()
            #expect(s.proxy.transfers().isEmpty && !s.proxy.cancelTransfer(report.id))
            try s.expect(.transfersCancelled, 1)
            try s.expect(.tunnelsClosed, 1)
        }
    }

    @Test func `a body that is ended breaks off for its client, and what came is kept`() throws {
        try scenario { s in
            let gate = Gate()
            s.origin.expects("GET /a", "!Range").sends(Self.head + "Cache-Control: max-age=60\r\n\r\n" + Self.half)
                .waits(
                    for: gate)
            let client = try s.client()
            try ask(client, s, "/a")
            let report = try only(s, "half of it is there") { $0.received == 5000 }
            #expect(s.proxy.cancelTransfer(report.id))
            let answer = try client.response()
            #expect(answer.text == Self.half && !answer.isWhole)
            gate.open()
            // The next request asks for the rest alone.
            s.origin.expects("GET /a", "Range: bytes=5000-9999").sends(
                "HTTP/1.1 206 Partial Content\r\nETag: \"a\"\r\nContent-Range: bytes 5000-9999/10000\r\n"
                    + "Content-Length: 5000\r\nCache-Control: max-age=60\r\n\r\n" + Self.half)
            #expect(try s.client().get("/a").body.count == 10_000)
        }
    }

    @Test func `a body that several clients read ends for all of them, and is not kept`() throws {
        try scenario { s in
            let gate = Gate()
            s.origin.expects("GET /a").sends(Self.head + "Cache-Control: max-age=60\r\n\r\n" + Self.half).waits(
                for: gate)
            let clients = try (0..<3).map { _ in try s.client() }
            for client in clients { try ask(client, s, "/a") }
            let report = try only(s, "half of it is there") { $0.received == 5000 && $0.readers == 3 }
            #expect(s.proxy.cancelTransfer(report.id))
            for client in clients {
                let answer = try client.response()
                #expect(answer.text == Self.half && !answer.isWhole, "\(answer)")
            }
            gate.open()
            s.origin.expects("GET /a", "!Range").replies(200, body: "new")
            #expect(try s.client().get("/a").text == "new")
        }
    }

    @Test func `all who wait for a response are told that it was ended`() throws {
        try scenario { s in
            let (asked, gate) = (Gate(), Gate())
            s.origin.expects("GET /a").opens(asked).waits(for: gate)
            let clients = try (0..<3).map { _ in try s.client() }
            for client in clients { try ask(client, s, "/a") }
            try asked.wait()
            let report = try only(s, "all have joined") { $0.readers == 3 && $0.state == .waiting }
            #expect(s.proxy.cancelTransfer(report.id))
            for client in clients {
                let answer = try client.response()
                #expect(answer.status == 503 && answer.cacheStatus.contains("transfer-cancelled"), "\(answer)")
            }
            gate.open()
        }
    }

    @Test func `nothing stale stands in for a response that is ended`() throws {
        try scenario { s in
            let gate = Gate()
            s.origin.expects("GET /a").replies(
                200, "Cache-Control: max-age=0, stale-if-error=600", "ETag: \"a\"", body: "old")
            s.origin.expects("GET /a", "If-None-Match: \"a\"").waits(for: gate)
            let client = try s.client()
            #expect(try client.get("/a").text == "old")
            try ask(client, s, "/a")
            let report = try only(s, "the validation") { $0.state == .waiting }
            #expect(s.proxy.cancelTransfer(report.id))
            #expect(try client.response().status == 503)
            gate.open()
        }
    }

    @Test func `a transfer that is held to a rate says so, and can be ended`() throws {
        try scenario({ configuration, _ in configuration.bandwidth.total = 1 << 10 }) { s in
            s.origin.expects("GET /a").replies(200, body: Self.half + Self.half)
            let client = try s.client()
            try ask(client, s, "/a")
            let report = try only(s, "it is held") { $0.state == .held }
            #expect(s.proxy.cancelTransfer(report.id))
            try s.eventually("it is over") { s.proxy.transfers().isEmpty }
        }
    }

    @Test(arguments: ["f0-0-0", "t1-12-3", "f65535-4294967295-4294967295"])
    func `an ID has one spelling`(text: String) { #expect(TransferID(text)?.description == text) }

    @Test func `an ID of a worker that is not there ends nothing`() throws {
        try scenario { s in #expect(!s.proxy.cancelTransfer(TransferID("f9-0-0")!)) }
    }
}
