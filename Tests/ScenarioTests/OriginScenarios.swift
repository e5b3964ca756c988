import Message
import ProgramUnderTest
import Origins
import Rules
import Server
import Settings
import Testing

/// One worker, so that one budget counts.
private func retrying(_ countMax: Int, _ configuration: inout Configuration) {
    configuration.workers = .count(1)
    configuration.retries.countMax = countMax
    configuration.retries.pause = .milliseconds(10)
}

private func rule(path: String, _ change: (inout OriginRule) -> Void) -> OriginRule {
    var conditions = RuleConditions()
    conditions.paths = [PathPattern(path)!]
    var rule = OriginRule(conditions, number: 1)
    change(&rule)
    return rule
}

@Suite("Retries: requests that an origin did not answer") struct RetryScenarios {
    @Test func `a response that does not come in time is asked for again`() throws {
        try scenario({ configuration, _ in
            retrying(1, &configuration)
            configuration.timeouts.firstByte = .milliseconds(300)
        }) { s in
            s.origin.expects("GET /a").hangs()
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", body: "a")
            let client = try s.client()
            #expect(try client.get("/a").text == "a")
            #expect(try client.get("/a").cacheStatus == "larder; hit; ttl=60")
            try s.expect(.retries, 1)
        }
    }

    /// What the client receives while both come together: interim responses of both attempts, then one final head.
    @Test func `interim responses of an attempt that failed come before the only final head`() throws {
        try scenario({ configuration, _ in
            retrying(1, &configuration)
            configuration.timeouts.firstByte = .milliseconds(300)
        }) { s in
            let hints = "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
            s.origin.expects("GET /a").sends(hints).hangs()
            s.origin.expects("GET /a").sends(hints).replies(200, body: "a")
            s.origin.expects("GET /b").replies(200, body: "b")
            let client = try s.client()
            try client.ask("GET", "/a")
            #expect(try client.head().startLine.hasPrefix("HTTP/1.1 103"))
            #expect(try client.head().startLine.hasPrefix("HTTP/1.1 103"))
            let answer = try client.response()
            #expect(answer.status == 200 && answer.text == "a" && answer.isWhole)
            #expect(try client.get("/b").text == "b")
        }
    }

    @Test func `half a head is not asked for again as if nothing had come, but ends in one error`() throws {
        try scenario({ configuration, _ in
            retrying(1, &configuration)
        }) { s in
            s.origin.expects("GET /a").sends("HTTP/1.1 200 OK\r\nContent-Le").closes()
            let answer = try s.client().get("/a")
            #expect(answer.status == 502 && answer["Proxy-Status"]?.contains("http_response_incomplete") == true)
            try s.expect(.retries, 0)
        }
    }

    @Test func `a POST that was sent is not sent again`() throws {
        try scenario({ configuration, _ in
            retrying(1, &configuration)
            configuration.timeouts.firstByte = .milliseconds(300)
        }) { s in
            s.origin.expects("POST /a").hangs()
            #expect(try s.client().request("POST", "/a", body: "x").status == 504)
            try s.expect(.retries, 0)
        }
    }

    @Test func `a refused connection is tried as often as the settings say`() throws {
        try scenario({ configuration, _ in retrying(3, &configuration) }) { s in
            let closed = try Unanswering.ClosedPort()
            let client = try s.client()
            #expect(try client.get("http://127.0.0.1:\(closed.port)/").status == 502)
            try s.expect(.retries, 3)
            // Nothing was sent, so a body can still follow.
            #expect(try client.request("POST", "http://127.0.0.1:\(closed.port)/", body: "x").status == 502)
            try s.expect(.retries, 6)
        }
    }

    @Test func `when the budget is used up requests fail at once`() throws {
        try scenario({ configuration, _ in
            retrying(10, &configuration)
            configuration.retries.budgetPercent = 0
        }) { s in
            let closed = try Unanswering.ClosedPort()
            let client = try s.client()
            for _ in 1...3 { #expect(try client.get("http://127.0.0.1:\(closed.port)/").status == 502) }
            try s.expect(.retries, 10)
            try s.expect(.retriesRefused, 2)
        }
    }

    @Test func `a client that leaves during the pause ends the attempts`() throws {
        try scenario({ configuration, _ in
            retrying(1, &configuration)
            configuration.retries.pause = .seconds(60)
        }) { s in
            let closed = try Unanswering.ClosedPort()
            let client = try s.client()
            try client.ask("GET", "http://127.0.0.1:\(closed.port)/")
            try s.expect(.retries, 1)
            client.wire.reset()
            try s.eventually("the end of the fetch") { s.proxy.transfers().isEmpty }
        }
    }
}

@Suite("origins: time limits for some origins") struct OriginScenarios {
    @Test func `a rule sets the time for the first byte of what it matches`() throws {
        try scenario({ configuration, _ in
            configuration.origins = [rule(path: "/a") { $0.timeouts.firstByte = .milliseconds(300) }]
        }) { s in
            let gate = Gate()
            s.origin.expects("GET /b").waits(for: gate).replies(200, body: "b")
            s.origin.expects("GET /a").hangs()
            let patient = try s.client()
            try patient.ask("GET", "/b")
            #expect(try s.client().get("/a").status == 504)
            gate.open()
            #expect(try patient.response().text == "b")
        }
    }

    @Test func `a rule sets the time for a pause in the body`() throws {
        try scenario({ configuration, _ in
            configuration.origins = [rule(path: "/a") { $0.timeouts.idle = .milliseconds(300) }]
        }) { s in
            s.origin.expects("GET /a").sends("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n01234").hangs()
            let answer = try s.client().get("/a")
            #expect(answer.text == "01234" && !answer.isWhole)
        }
    }

    @Test func `a rule sets the number of other attempts`() throws {
        try scenario({ configuration, _ in
            retrying(0, &configuration)
            configuration.origins = [rule(path: "/a") { $0.retriesMax = 2 }]
        }) { s in
            let closed = try Unanswering.ClosedPort()
            let client = try s.client()
            try client.get("http://127.0.0.1:\(closed.port)/b")
            try s.expect(.retries, 0)
            try client.get("http://127.0.0.1:\(closed.port)/a")
            try s.expect(.retries, 2)
        }
    }

    @Test func `a body ends with the time for the whole response, and what came of it is kept`() throws {
        try scenario({ configuration, _ in configuration.timeouts.total = .seconds(1) }) { s in
            let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nETag: \"a\"\r\nContent-Length: 10\r\n\r\n"
            s.origin.expects("GET /a").sends(head + "01234").hangs()
            let answer = try s.client().get("/a")
            #expect(answer.text == "01234" && !answer.isWhole)
            s.origin.expects("GET /a", "Range: bytes=5-9", "If-Range: \"a\"").replies(
                206, "ETag: \"a\"", "Content-Range: bytes 5-9/10", body: "56789")
            let second = try s.client().get("/a")
            #expect(second.text == "0123456789" && second.isWhole)
        }
    }

    @Test func `the time for the whole response counts while a connection is opened`() throws {
        try scenario({ configuration, _ in
            configuration.timeouts.connect = .seconds(600)
            configuration.timeouts.total = .seconds(1)
        }) { s in
            let full = try Unanswering.FullListener()
            try withExtendedLifetime(full) {
                let answer = try s.client().get("http://127.0.0.1:\(full.port)/")
                #expect(answer.status == 504 && answer["Proxy-Status"]?.contains("connection_timeout") == true)
            }
        }
    }

    @Test func `a rule changes the fields of requests, and nothing of others`() throws {
        try scenario({ configuration, _ in
            configuration.origins = [
                rule(path: "/a") {
                    $0.fields = [
                        FieldChange(.remove, Array("referer".utf8)), FieldChange(.remove, Array("x-data".utf8)),
                        FieldChange(.set, Array("user-Agent".utf8), Array("fleet/1".utf8)),
                        FieldChange(.set, Array("X-Team".utf8), Array("build".utf8)),
                        FieldChange(.add, Array("X-Also".utf8), Array("two".utf8)),
                    ]
                }
            ]
        }) { s in
            for path in ["/a", "/b"] { s.origin.expects("GET \(path)").replies(200, body: path) }
            let client = try s.client()
            let own = ["Referer: r", "X-DATA: d", "User-Agent: curl", "x-team: own", "X-Also: one"]
            for path in ["/a", "/b"] {
                try client.ask("GET", path, own)
                #expect(try client.response().text == path)
            }
            let sent = s.origin.requests.map { request in
                request.message.head.lines.filter { !$0.hasPrefix("Host: ") && !$0.hasPrefix("Via: ") }
            }
            #expect(sent == [["X-Also: one", "user-Agent: fleet/1", "X-Team: build", "X-Also: two"], own])
        }
    }

    @Test func `a rule sets the time for a tunnel's connection`() throws {
        try scenario({ configuration, _ in
            configuration.access.connectPorts = [1...65535]
            configuration.origins = [OriginRule(RuleConditions(), number: 1)]
            configuration.origins[0].timeouts.connect = .milliseconds(300)
        }) { s in
            let full = try Unanswering.FullListener()
            try withExtendedLifetime(full) {
                let client = try s.client()
                try client.send("CONNECT 127.0.0.1:\(full.port) HTTP/1.1\r\nHost: 127.0.0.1:\(full.port)\r\n\r\n")
                #expect(try client.response().status == 504)
            }
        }
    }
}
