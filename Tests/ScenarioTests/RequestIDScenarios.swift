import Access
import Foundation
import JSON
import Message
import Origins
import Rules
import Server
import Settings
import Testing

@Suite("One ID for a request: in the access log, in an error page, and among the transfers")
struct RequestIDScenarios {
    private func isID(_ text: String) -> Bool {
        text.utf8.count == 16 && text.utf8.allSatisfy { hexValue($0) != nil }
    }

    /// Ends the proxy. The line of the access log with this ID.
    private func line(_ id: String?, _ s: Scenario) throws -> JSONValue {
        let id = try #require(id)
        #expect(isID(id), "\(id)")
        let lines = try s.logLines().map { try JSONValue(parsing: $0.utf8) }.filter { $0["id"]?.text == id }
        #expect(lines.count == 1)
        return try #require(lines.first)
    }

    // MARK: error pages

    @Test(arguments: ["text/plain", "text/html", "application/json", "application/problem+json"])
    func `an error page of each form leads to its line`(_ type: String) throws {
        try scenario({ configuration, _ in
            configuration.access.rules = [AccessRule(effect: .deny(reason: nil), number: 1)]
        }) { s in
            let client = try s.client()
            let answer = try client.get("/a", "Accept: \(type)")
            #expect(answer["Content-Type"]?.hasPrefix(type) == true)
            #expect(answer["Content-Length"] == "\(answer.body.count)")
            if type.hasSuffix("json") {
                #expect(try JSONValue(parsing: answer.body)["request_id"]?.text == answer.requestID)
            }
            // The line of another request has another ID.
            #expect(try client.get("/a", "Accept: \(type)").requestID != answer.requestID)
            let line = try line(answer.requestID, s)
            #expect(line["status"]?.integer == 403 && line["reason"]?.text == "access-denied")
        }
    }

    static let broken: [(request: String, status: Int)] = [
        ("GET /a HTTP/1.1\r\nHost: a\r\n\r\n", 400), ("GET http://h/ HTTP/9.9\r\n\r\n", 505),
        ("GET http://h/ HTTP/1.1\r\nHost: h\r\nContent-Length: x\r\n\r\n", 400), ("\u{1}\r\n\r\n", 400),
    ]
    @Test(arguments: broken) func `so does the page for a request that is none`(
        _ row: (request: String, status: Int)
    ) throws {
        try scenario { s in
            let client = try s.client()
            try client.send(row.request)
            let answer = try client.response()
            #expect(answer.status == row.status)
            #expect(try line(answer.requestID, s)["status"]?.integer.map(Int.init) == row.status)
        }
    }

    @Test func `so does the page for a head that is late`() throws {
        try scenario({ configuration, _ in configuration.timeouts.clientHead = .milliseconds(100) }) { s in
            let client = try s.client()
            try client.send("GET http://h/ HTTP/1.1\r\n")
            let answer = try client.response()
            #expect(answer.status == 408)
            #expect(try line(answer.requestID, s)["reason"]?.text == "request-timeout")
        }
    }

    @Test func `so does the page for an origin that gives no answer`() throws {
        try scenario { s in
            s.origin.expects("GET /a").closes()
            let answer = try s.client().get("/a")
            #expect(answer.status == 502)
            #expect(try line(answer.requestID, s)["outcome"]?.text == "error")
        }
    }

    @Test func `the page of a request in a tunnel leads to the line of the CONNECT as well`() throws {
        try scenario({ configuration, files in try files.intercept("127.0.0.1", in: &configuration) }) { s in
            let authority = s.origin.authority
            let client = try s.tunnel(to: authority)
            let answer = try client.getInside("/a", host: "other.example")
            #expect(answer.status == 421)
            let line = try line(answer.requestID, s)
            let tunnel = try self.line(line["tunnel"]?.text, s)
            #expect(tunnel["method"]?.text == "CONNECT" && tunnel["uri"]?.text == authority)
        }
    }

    @Test func `where Larder follows redirects, all requests have the ID of the first`() throws {
        try scenario({ configuration, _ in
            configuration.origins = [OriginRule(RuleConditions(), redirectsMax: 3, number: 1)]
        }) { s in
            let gate = Gate()
            s.origin.expects("GET /a").replies(302, "Location: /b")
            s.origin.expects("GET /b").waits(for: gate).sends("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n").closes()
            let client = try s.client()
            try client.ask("GET", "/a")
            try s.eventually("the second request is under way") {
                s.proxy.transfers().contains { $0.uri == Array(s.origin.url("/b").utf8) }
            }
            let id = s.proxy.transfers().first?.requestID
            gate.open()
            let answer = try client.response()
            #expect(answer.status == 502 && answer.requestID == id)
            #expect(try line(id, s)["uri"]?.text == s.origin.url("/a"))
        }
    }

    // MARK: transfers

    @Test func `a fetch has the ID of the request that it began for, also while others wait for it`() throws {
        try scenario { s in
            let (asked, gate) = (Gate("asked"), Gate("go"))
            s.origin.expects("GET /a").opens(asked).waits(for: gate).replies(
                200, "Cache-Control: max-age=60", "ETag: \"a\"", body: "hello")
            let (first, second) = (try s.client(), try s.client())
            try first.ask("GET", "/a", ["User-Agent: first"])
            try asked.wait()
            let id = try #require(s.proxy.transfers().first?.requestID)
            try second.ask("GET", "/a")
            try s.eventually("the second one waits as well") { s.proxy.transfers().first?.readers == 2 }
            #expect(s.proxy.transfers().map(\.requestID) == [id])
            #expect(s.proxy.transfers().first?.tunnelID == nil)
            gate.open()
            #expect(try first.response().text == "hello" && second.response().text == "hello")
            #expect(try line(id, s)["outcome"]?.text == "miss")
        }
    }

    @Test func `a tunnel has the ID of its CONNECT`() throws {
        try scenario({ configuration, _ in configuration.access.connectPorts = [1...65535] }) { s in
            let client = try s.client()
            try client.send("CONNECT \(s.origin.authority) HTTP/1.1\r\nHost: \(s.origin.authority)\r\n\r\n")
            #expect(try client.response(to: "CONNECT").status == 200)
            try s.eventually("the tunnel") { !s.proxy.transfers().isEmpty }
            let report = s.proxy.transfers()[0]
            #expect(report.id.kind == .tunnel && report.tunnelID == nil)
            #expect(try line(report.requestID, s)["method"]?.text == "CONNECT")
        }
    }

    @Test func `a fetch for a request in an opened tunnel has the ID of the CONNECT too`() throws {
        try scenario({ configuration, files in try files.intercept("127.0.0.1", in: &configuration) }) { s in
            let gate = Gate()
            s.origin.expects("GET /a").waits(for: gate).replies(200, body: "hello")
            let authority = s.origin.authority
            let client = try s.tunnel(to: authority)
            try client.askInside("GET", "/a", host: authority)
            try s.eventually("the fetch") { !s.proxy.transfers().isEmpty }
            let report = s.proxy.transfers()[0]
            gate.open()
            #expect(try client.response().text == "hello")
            let line = try line(report.requestID, s)
            #expect(line["method"]?.text == "GET" && line["tunnel"]?.text == report.tunnelID)
            #expect(try self.line(report.tunnelID, s)["method"]?.text == "CONNECT")
        }
    }
}
