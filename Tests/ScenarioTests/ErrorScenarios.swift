import Admin
import Foundation
import JSON
import Server
import Testing

@Suite("RFC 9209 Errors that Larder makes")
struct ErrorScenarios {
    static let origins: [(name: String, script: String?, error: String, status: Int)] = [
        ("closes without an answer", "", "connection_terminated", 502),
        ("answers no HTTP", "SSH-2.0-x\r\n\r\n", "http_protocol_error", 502),
        (
            "has two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            "http_protocol_error", 502
        ),
        ("does not answer", nil, "http_response_timeout", 504),
    ]
    @Test(arguments: origins)
    func `an origin that fails is named`(_ row: (name: String, script: String?, error: String, status: Int)) throws {
        try scenario({ configuration, _ in configuration.timeouts.firstByte = .milliseconds(300) }) { s in
            let expectation = s.origin.expects("POST /a")
            if let script = row.script { expectation.sends(script).closes() } else { expectation.hangs() }
            let answer = try s.client().request("POST", "/a", body: "x")
            #expect(answer.status == row.status, "\(row.name)")
            #expect(answer["Proxy-Status"]?.contains("error=\(row.error)") == true, "\(answer)")
        }
    }

    @Test func `an origin that refuses the connection gives 502`() throws {
        try scenario { s in
            // Nobody listens there: the port was taken and is given back.
            let gone = try ScriptedOrigin()
            gone.end()
            let answer = try s.client().get("http://127.0.0.1:1/")
            #expect(answer.status == 502)
            #expect(answer["Proxy-Status"]?.contains("error=connection_refused") == true)
            // RFC 9211 §2.2: the true reason for which the request was forwarded, as it was tried.
            #expect(answer.cacheStatus == "larder; fwd=uri-miss; detail=connection-refused")
            #expect(
                try s.client().request("POST", "http://127.0.0.1:1/", body: "x").cacheStatus
                    == "larder; fwd=method; detail=connection-refused")
            #expect(
                try s.client().get("http://127.0.0.1:1/", "Cache-Control: only-if-cached").cacheStatus
                    == "larder; detail=only-if-cached")
        }
    }

    static let requests: [(request: String, status: Int)] = [
        ("GET http://h/\(String(repeating: "a", count: 9000)) HTTP/1.1\r\nHost: h\r\n\r\n", 414),
        ("GET http://h/ HTTP/1.1\r\nHost: h\r\n\(String(repeating: "a: b\r\n", count: 101))\r\n", 431),
        ("GET http://h/ HTTP/1.1\r\nHost: h\r\nX: \(String(repeating: "a", count: 65536))\r\n\r\n", 431),
        ("GET http://h/ HTTP/1.1\r\n\r\n", 400), ("GET http://h/ HTTP/1.1\r\nHost : h\r\n\r\n", 400),
        ("POST http://h/ HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: h\r\n\r\n", 400),
    ]
    @Test(arguments: requests)
    func `bytes that are not a request are refused with a reason`(_ row: (request: String, status: Int)) throws {
        try scenario { s in
            let client = try s.client()
            try client.send(row.request)
            let answer = try client.response()
            #expect(answer.status == row.status)
            #expect(answer["Proxy-Status"]?.hasPrefix("larder; error=http_request_error; details=") == true)
        }
    }

    static let forms: [(accept: String, type: String)] = [
        ("*/*", "text/plain; charset=utf-8"), ("text/html,*/*;q=0.1", "text/html; charset=utf-8"),
        ("application/json", "application/json"),
    ]
    @Test(arguments: forms) func `the error page has the form that the client prefers`(
        _ row: (accept: String, type: String)
    ) throws {
        try scenario { s in
            let answer = try s.client().get("/a", "Cache-Control: only-if-cached", "Accept: \(row.accept)")
            #expect(answer["Content-Type"] == row.type)
            #expect(answer.body.count == Int(answer["Content-Length"] ?? ""))
        }
    }
}

@Suite("Reload, drain and log")
struct OperationScenarios {
    @Test func `a new configuration applies to requests that begin after it`() throws {
        try scenario { s in
            s.origin.expects("GET /a").replies(200, "Cache-Control: no-store")
            let client = try s.client()
            #expect(try client.get("/a").status == 200)
            try s.adopt { configuration, _ in configuration.access.privateDestinations = .deny }
            try s.eventually("the new configuration") { try client.get("http://127.0.0.1:1/").status == 403 }
            #expect(try client.get("/a").status == 403)
        }
    }

    @Test func `draining completes present requests and accepts no new ones`() throws {
        try scenario { s in
            let asked = Gate("request")
            let answer = Gate("answer")
            s.origin.expects("GET /a").opens(asked).waits(for: answer).replies(200, body: "last")
            s.origin.expects("GET /first").replies(200, "Cache-Control: max-age=60")
            let (client, idle) = (try s.client(), try s.client())
            #expect(try idle.get("/first").status == 200)
            try client.ask("GET", "/a")
            try asked.wait()
            s.proxy.drain()
            try idle.expectClosed()
            answer.open()
            #expect(try client.response().text == "last")
            try client.expectClosed()
            try s.eventually("the end") { s.proxy.isDrained }
            #expect(throws: WireError.self) { try s.client().get("/b") }
        }
    }

    @Test(arguments: [0, 1, 40]) func `a client that has connected when draining begins gets an answer`(
        _ sentBytes: Int
    )
        throws
    {
        try scenario { configuration, _ in
            configuration.workers = .count(1)
        } _: { s in
            let (asked, answer) = (Gate("request"), Gate("answer"))
            s.origin.expects("GET /a").opens(asked).waits(for: answer).replies(200, body: "last")
            s.origin.expects("GET /b").replies(200, body: "also")
            s.origin.expects("GET /c").replies(200)
            let (client, newcomer, idle) = (try s.client(), try s.client(), try s.client())
            try idle.get("/c")
            try client.ask("GET", "/a")
            try asked.wait()
            let request = "GET \(s.origin.url("/b")) HTTP/1.1\r\nHost: \(s.origin.authority)\r\n\r\n"
            try newcomer.send(String(request.prefix(sentBytes)))
            try s.expect(.clientConnectionsAccepted, 3)
            s.proxy.drain()
            try idle.expectClosed()
            try newcomer.send(String(request.dropFirst(sentBytes)))
            let reply = try newcomer.response()
            #expect(reply.text == "also" && reply["Connection"] == "close", "\(reply)")
            try newcomer.expectClosed()
            answer.open()
            #expect(try client.response().text == "last")
            try s.eventually("the end") { s.proxy.isDrained }
        }
    }

    /// It has another owner from its first byte on, and is the only one there is.
    @Test func `the last client that has connected when draining begins may speak SOCKS`() throws {
        try scenario { configuration, _ in
            configuration.workers = .count(1)
        } _: { s in
            s.origin.expects("GET /a").replies(200)
            let (newcomer, idle) = (try s.client(), try s.client())
            try idle.get("/a")
            try s.expect(.clientConnectionsAccepted, 2)
            s.proxy.drain()
            try idle.expectClosed()
            try newcomer.wire.write([5, 1, 0])
            #expect(try newcomer.wire.read() == [5, 0])
            newcomer.wire.hangUp()
            try s.eventually("the end") { s.proxy.isDrained }
        }
    }

    @Test func `a client that is silent does not keep a draining proxy for long`() throws {
        try scenario { s in
            let silent = try s.client()
            try s.expect(.clientConnectionsAccepted, 1)
            s.proxy.drain()
            try silent.expectClosed()
            try s.eventually("the end") { s.proxy.isDrained }
        }
    }

    @Test func `the log has one line for each request, without secrets`() throws {
        try scenario { s in
            s.origin.expects("GET /a?token=hush&x=1").replies(200, "Cache-Control: max-age=60", body: "abc")
            let client = try s.client()
            try client.get("/a?token=hush&x=1")
            try client.get("/a?token=hush&x=1")
            try s.expect(.accessLogLines, 2)
            let lines = try s.logLines()
            #expect(lines.count == 2)
            #expect(lines.allSatisfy { !$0.contains("hush") && $0.contains("/a?token=***&x=1") })
            #expect(lines.first?.contains("\"outcome\":\"miss\"") == true)
            #expect(lines.last?.contains("\"outcome\":\"hit\"") == true)
        }
    }

    @Test func `duration_us is how long the client waited, and nothing for an answer from memory`() throws {
        try scenario { s in
            let (asked, go) = (Gate("asked"), Gate("go"))
            s.origin.expects("GET /a").opens(asked).waits(for: go).replies(
                200, "Cache-Control: max-age=60", body: "abc")
            let client = try s.client()
            try client.ask("GET", "/a")
            try asked.wait()
            usleep(30_000)
            go.open()
            #expect(try client.response().text == "abc")
            #expect(try client.get("/a").text == "abc")
            let lines = try s.logLines().map { try JSONValue(parsing: $0.utf8) }
            #expect(lines.map { $0["outcome"]?.text } == ["miss", "hit"])
            #expect(try #require(lines[0]["duration_us"]?.integer) >= 30_000)
            #expect(lines[1]["duration_us"]?.integer == 0)
        }
    }

    @Test(arguments: [
        "client_secret", "refresh_token", "id_token", "private_token", "job_token", "api-key", "access%5Ftoken",
        "X-Amz-Signature", "PASSWORD", "user%5Bpassword%5D",
    ])
    func `log, explain and the listing of what is stored show no secret, however its name is spelt`(
        _ name: String
    ) throws {
        try scenario { s in
            s.origin.expects("GET /a?\(name)=hush&x=1").replies(200, "Cache-Control: max-age=60", body: "abc")
            try s.client().get("/a?\(name)=hush&x=1")
            let explained = try s.proxy.explain(ExplainQuestion(target: s.origin.url("/a?\(name)=hush&x=1")))
            let nextPage = RunningProxy(proxy: s.proxy, version: "test").objects(Selection())
            var listed = ""
            while let page = nextPage() { listed += page.map(\.url).joined(separator: "\n") }
            try s.expect(.accessLogLines, 1)
            for shown in ["\(explained)", listed, try s.logLines().joined()] {
                #expect(!shown.contains("hush") && shown.contains("/a?\(name)=***&x=1"), "\(shown)")
            }
        }
    }
}
