import Foundation
import Message
import Passwords
import Origins
import Rules
import Server
import Settings
import Testing

/// A client's own log-in with NTLM or Negotiate authenticates a connection to the origin (RFC 4559 §6).
@Suite("RFC 4559 §6: connections pinned to a client connection") struct PinningScenarios {
    private static func oneWorker(_ configuration: inout Configuration, _ files: Scenario.Files) {
        configuration.workers = .count(1)
    }

    /// Logs in with three requests, as a client does that first asks without credentials.
    private func logIn(_ s: Scenario, _ client: ScriptedClient, scheme: String = "NTLM", path: String = "/in") throws {
        s.origin.expects("GET \(path)", "!Authorization").replies(401, "WWW-Authenticate: \(scheme)")
        s.origin.expects("GET \(path)", "Authorization: \(scheme) bmVn").replies(
            401, "WWW-Authenticate: \(scheme) Y2hh")
        s.origin.expects("GET \(path)", "Authorization: \(scheme) YXV0").replies(200, "Cache-Control: no-store")
        #expect(try client.get(path)["Proxy-Support"] == "Session-Based-Authentication")
        #expect(try client.get(path, "Authorization: \(scheme) bmVn")["WWW-Authenticate"] == "\(scheme) Y2hh")
        #expect(try client.get(path, "Authorization: \(scheme) YXV0").status == 200)
    }

    private func connections(_ s: Scenario) -> [Int] { s.origin.requests.map(\.connection) }

    @Test(arguments: ["NTLM", "Negotiate"])
    func `a log-in and what follows it use one connection, with and without content`(_ scheme: String) throws {
        try scenario(Self.oneWorker) { s in
            let client = try s.client()
            try logIn(s, client, scheme: scheme)
            s.origin.expects("GET /a", "!Authorization").replies(200)
            s.origin.expects("POST /b", "!Authorization").readsBody().replies(200)
            #expect(try client.get("/a").status == 200)
            #expect(try client.request("POST", "/b", body: "x").status == 200)
            #expect(connections(s) == [1, 2, 2, 2, 2])
        }
    }

    @Test func `a step with content uses the connection of the steps before it`() throws {
        try scenario(Self.oneWorker) { s in
            let client = try s.client()
            s.origin.expects("POST /a", "Authorization: NTLM bmVn").replies(401, "WWW-Authenticate: NTLM Y2hh")
            s.origin.expects("POST /a", "Authorization: NTLM YXV0").readsBody().replies(200)
            #expect(try client.request("POST", "/a", "Authorization: NTLM bmVn", body: "").status == 401)
            #expect(try client.request("POST", "/a", "Authorization: NTLM YXV0", body: "x").status == 200)
            #expect(connections(s) == [1, 1])
        }
    }

    @Test func `others never get the connection, nor does its client get theirs`() throws {
        try scenario(Self.oneWorker) { s in
            for path in ["/before", "/during", "/after"] {
                s.origin.expects("GET \(path)", "!Authorization").replies(200, "Cache-Control: no-store")
            }
            let other = try s.client()
            try other.get("/before")
            let client = try s.client()
            s.origin.expects("GET /in", "Authorization: NTLM bmVn").replies(200, "Cache-Control: no-store")
            try client.get("/in", "Authorization: NTLM bmVn")
            try other.get("/during")
            client.wire.hangUp()
            try s.expect(.originConnectionsClosed, 1)
            try other.get("/after")
            #expect(connections(s) == [1, 2, 1, 1])
        }
    }

    @Test func `the connection closes when the client leaves in the middle of the log-in`() throws {
        try scenario(Self.oneWorker) { s in
            let client = try s.client()
            s.origin.expects("GET /in", "Authorization: NTLM bmVn").replies(401, "WWW-Authenticate: NTLM Y2hh")
            try client.get("/in", "Authorization: NTLM bmVn")
            try s.expect(.originConnectionsClosed, 0)
            client.wire.hangUp()
            try s.expect(.originConnectionsClosed, 1)
        }
    }

    @Test func `after the origin has closed it, the next request opens another one`() throws {
        try scenario(Self.oneWorker) { s in
            let client = try s.client()
            s.origin.expects("GET /in", "Authorization: NTLM bmVn").replies(200, "Cache-Control: no-store").closes()
            try client.get("/in", "Authorization: NTLM bmVn")
            try s.expect(.originConnectionsClosed, 1)
            try logIn(s, client, path: "/again")
            #expect(connections(s) == [1, 2, 2, 2])
        }
    }

    @Test func `a step of a log-in is not sent again when the connection turns out to be closed`() throws {
        try scenario(Self.oneWorker) { s in
            let client = try s.client()
            s.origin.expects("GET /in", "Authorization: NTLM bmVn").replies(401, "WWW-Authenticate: NTLM Y2hh")
            s.origin.expects("GET /in", "Authorization: NTLM YXV0").closes()
            try client.get("/in", "Authorization: NTLM bmVn")
            #expect(try client.get("/in", "Authorization: NTLM YXV0").status == 502)
            #expect(connections(s) == [1, 1])
        }
    }

    @Test func `what comes on the connection is neither stored nor shared, and nothing stored is served`() throws {
        try scenario(Self.oneWorker) { s in
            let (client, other) = (try s.client(), try s.client())
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", body: "everybody's")
            #expect(try other.get("/a").text == "everybody's")
            try logIn(s, client)
            for path in ["/a", "/b"] {
                s.origin.expects("GET \(path)").replies(200, "Cache-Control: max-age=60", body: "the client's")
                #expect(try client.get(path).text == "the client's")
            }
            #expect(try other.get("/a").text == "everybody's")
            s.origin.expects("GET /b").replies(200, "Cache-Control: max-age=60", body: "everybody's")
            #expect(try other.get("/b").text == "everybody's")
        }
    }

    @Test func `pipelined requests go out on the connection in their order`() throws {
        try scenario(Self.oneWorker) { s in
            let client = try s.client()
            s.origin.expects("GET /0", "Authorization: NTLM bmVn").replies(401, "WWW-Authenticate: NTLM Y2hh")
            try client.ask("GET", "/0", ["Authorization: NTLM bmVn"])
            for path in ["/1", "/2"] {
                s.origin.expects("GET \(path)").replies(200, body: path)
                try client.ask("GET", path, [])
            }
            #expect(try client.response().status == 401)
            for path in ["/1", "/2"] { #expect(try client.response().text == path) }
            #expect(connections(s) == [1, 1, 1])
        }
    }

    @Test func `a rule for a type of responses changes nothing of that`() throws {
        try scenario(cache: "rules: [ { match: { type: text/html }, ttl: 60s, respect_cache_control: no } ]") {
            Self.oneWorker(&$0, $1)
        } _: { s in
            let client = try s.client()
            try logIn(s, client)
            s.origin.expects("GET /a").replies(200, "Content-Type: text/html", body: "the client's")
            #expect(try client.get("/a").text == "the client's")
            s.origin.expects("GET /a").replies(200, "Content-Type: text/html", body: "everybody's")
            #expect(try s.client().get("/a").text == "everybody's")
            // What is stored now is not for the client.
            s.origin.expects("GET /a").replies(200, "Content-Type: text/html", body: "the client's")
            #expect(try client.get("/a").text == "the client's")
        }
    }

    @Test func `a rule for users changes nothing of that`() throws {
        try scenario({ configuration, files in
            Self.oneWorker(&configuration, files)
            configuration.access.authentication.basic.usersFile = try files.write(
                "users", "ann:\(try hash(password: Array("secret".utf8)))\n")
            try configuration.read(
                cache: "rules: [ { match: { user: ann }, ttl: 60s, respect_cache_control: no } ]", files)
        }) { s in
            let ann = "Proxy-Authorization: Basic " + Data("ann:secret".utf8).base64EncodedString()
            let client = try s.client()
            s.origin.expects("GET /in", "Authorization: NTLM YXV0").replies(200, "Cache-Control: no-store")
            #expect(try client.get("/in", "Authorization: NTLM YXV0", ann).status == 200)
            s.origin.expects("GET /a").replies(200, body: "the client's")
            #expect(try client.get("/a", ann).text == "the client's")
            s.origin.expects("GET /a").replies(200, body: "ann's")
            let other = try s.client()
            #expect(try other.get("/a", ann).text == "ann's")
            #expect(try other.get("/a", ann).cacheStatus.hasPrefix("larder; hit"))
        }
    }

    @Test func `a request does not wait for the answer to another client, nor another for its answer`() throws {
        try scenario(Self.oneWorker) { s in
            let (client, other, third) = (try s.client(), try s.client(), try s.client())
            try logIn(s, client)
            let answer = Gate("answers to the others")
            let asked = [Gate("asked for /a"), Gate("asked for /b")]
            s.origin.expects("GET /a").opens(asked[0]).waits(for: answer).replies(
                200, "Cache-Control: max-age=60", body: "everybody's")
            try other.ask("GET", "/a")
            try asked[0].wait()
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", body: "the client's")
            #expect(try client.get("/a").text == "the client's")
            s.origin.expects("GET /b").opens(asked[1]).waits(for: answer).replies(
                200, "Cache-Control: max-age=60", body: "the client's")
            try client.ask("GET", "/b")
            try asked[1].wait()
            s.origin.expects("GET /b").replies(200, "Cache-Control: max-age=60", body: "everybody's")
            #expect(try third.get("/b").text == "everybody's")
            answer.open()
            #expect(try other.response().text == "everybody's")
            #expect(try client.response().text == "the client's")
        }
    }

    @Test func `a step of a log-in is not repeated, whatever the rule says`() throws {
        try scenario({ configuration, files in
            Self.oneWorker(&configuration, files)
            configuration.retries.countMax = 2
            configuration.retries.pause = .milliseconds(10)
            configuration.timeouts.firstByte = .seconds(2)
        }) { s in
            let client = try s.client()
            s.origin.expects("GET /in", "Authorization: NTLM bmVn").replies(401, "WWW-Authenticate: NTLM Y2hh")
            s.origin.expects("GET /in", "Authorization: NTLM YXV0").hangs()
            try client.get("/in", "Authorization: NTLM bmVn")
            #expect(try client.get("/in", "Authorization: NTLM YXV0").status == 504)
            #expect(connections(s) == [1, 1])
            #expect(s.count(.retries) == 0)
        }
    }

    @Test func `requests with credentials of Larder's own do not use the connection, and begin no pin`() throws {
        try scenario(Self.oneWorker) { s in
            try s.adopt(credentials: s.credential(isUnasked: true) { $0.paths = [PathPattern("/own")!] })
            let client = try s.client()
            let own = "Authorization: Basic bWU6c2VzYW1l"
            s.origin.expects("GET /own", own).replies(200, "Cache-Control: no-store")
            try client.get("/own", "Authorization: NTLM bmVn")
            try s.eventually("a gauge") { s.gauge(.originConnectionsOpen) == 1 }
            #expect(s.gauge(.originPinsOpen) == 0)
            s.origin.expects("GET /in", "Authorization: NTLM YXV0").replies(200, "Cache-Control: no-store")
            try client.get("/in", "Authorization: NTLM YXV0")
            s.origin.expects("GET /own", own).replies(200, "Cache-Control: no-store")
            try client.get("/own")
            s.origin.expects("GET /after", "!Authorization").replies(200, "Cache-Control: no-store")
            try client.get("/after")
            #expect(connections(s) == [1, 2, 1, 2])
        }
    }

    @Test func `a request behind a redirect waits until the connection has carried the redirect to its end`() throws {
        try scenario({ configuration, files in
            Self.oneWorker(&configuration, files)
            configuration.origins = [OriginRule(RuleConditions(), redirectsMax: 5, number: 1)]
        }) { s in
            let waits = Gate("the next request waits")
            s.origin.expects("GET /a", "Authorization: NTLM YXV0").sends(
                "HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Length: 5\r\n\r\nmo"
            ).waits(for: waits).sends("ved")
            s.origin.expects("GET /b", "Authorization: NTLM YXV0").replies(200, body: "there")
            let client = try s.client()
            try client.ask("GET", "/a", ["Authorization: NTLM YXV0"])
            try s.expect(.originQueued, 1)
            waits.open()
            #expect(try client.response().text == "there")
            #expect(connections(s) == [1, 1])
        }
    }

    // MARK: the end of a pin

    @Test func `of more origins than a client connection may be pinned to, the oldest pin ends`() throws {
        let others = try (0..<ConnectionPins.countMax).map { _ in try ScriptedOrigin() }
        defer { for other in others { other.end() } }
        try scenario(Self.oneWorker) { s in
            let client = try s.client()
            let origins = [s.origin] + others
            for origin in origins {
                try s.expect(.originConnectionsClosed, 0)
                origin.expects("GET /in", "Authorization: NTLM bmVn").replies(200, "Cache-Control: no-store")
                try client.get(origin.url("/in"), "Authorization: NTLM bmVn")
            }
            try s.expect(.originConnectionsClosed, 1)
            for origin in origins {
                origin.expects("GET /next", "!Authorization").replies(200, "Cache-Control: no-store")
                try client.get(origin.url("/next"))
            }
            #expect(origins.map { $0.requests.map(\.connection) } == [[1, 2]] + others.map { _ in [1, 1] })
        }
    }

    @Test func `a connection whose client has left closes when it comes back from its last response`() throws {
        try scenario({ configuration, files in
            Self.oneWorker(&configuration, files)
            configuration.origins = [OriginRule(RuleConditions(), redirectsMax: 5, number: 1)]
        }) { s in
            let left = Gate("the client has left")
            s.origin.expects("GET /a", "Authorization: NTLM bmVn").sends(
                "HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Length: 5\r\n\r\nmo"
            ).waits(for: left).sends("ved")
            let client = try s.client()
            try client.ask("GET", "/a", ["Authorization: NTLM bmVn"])
            try s.expect(.redirectsFollowed, 1)
            client.wire.hangUp()
            try s.expect(.clientConnectionsClosed, 1)
            #expect(s.count(.originConnectionsClosed) == 0)
            left.open()
            try s.expect(.originConnectionsClosed, 1)
        }
    }

    @Test func `statistics count the pins that there are`() throws {
        try scenario(Self.oneWorker) { s in
            let client = try s.client()
            #expect(try s.stat(.origins, "pinned") == 0)
            try logIn(s, client)
            try s.eventually("one is there") { s.gauge(.originPinsOpen) == 1 }
            #expect(try s.stat(.origins, "pinned") == 1)
            client.wire.hangUp()
            try s.eventually("none is there") { s.gauge(.originPinsOpen) == 0 }
        }
    }

    // MARK: another protocol

    @Test func `a switch of protocols uses the connection`() throws {
        try scenario(Self.oneWorker) { s in
            let client = try s.client()
            try logIn(s, client)
            s.origin.expects("GET /chat", "Upgrade: websocket", "!Authorization").replies(
                101, "Connection: Upgrade", "Upgrade: websocket"
            ).echoes()
            try client.ask("GET", "/chat", ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: x"])
            #expect(try client.response().status == 101)
            try client.send("ping")
            #expect(String(decoding: try client.reader.bytes(4), as: UTF8.self) == "ping")
            #expect(connections(s) == [1, 2, 2, 2])
            client.wire.finishWriting()
            try client.expectClosed()
            try s.expect(.tunnelsClosed, 1)
        }
    }

    @Test func `a switch of protocols may be what the log-in is for`() throws {
        try scenario(Self.oneWorker) { s in
            let client = try s.client()
            let upgrade = ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: x"]
            s.origin.expects("GET /chat", "Authorization: NTLM bmVn").replies(401, "WWW-Authenticate: NTLM Y2hh")
            s.origin.expects("GET /chat", "Authorization: NTLM YXV0", "Upgrade: websocket").replies(
                101, "Connection: Upgrade", "Upgrade: websocket"
            ).echoes()
            try client.ask("GET", "/chat", upgrade + ["Authorization: NTLM bmVn"])
            #expect(try client.response().status == 401)
            try client.ask("GET", "/chat", upgrade + ["Authorization: NTLM YXV0"])
            #expect(try client.response().status == 101)
            #expect(connections(s) == [1, 1])
        }
    }

    // MARK: inside opened tunnels

    @Test func `in an opened tunnel the rules are the same, and tunnels of one client do not share`() throws {
        try scenario({ configuration, files in
            Self.oneWorker(&configuration, files)
            try files.intercept("127.0.0.1", in: &configuration)
        }) { s in
            let authority = s.origin.authority
            let (first, second) = (try s.tunnel(to: authority), try s.tunnel(to: authority))
            func get(_ client: ScriptedClient, _ path: String, _ fields: String...) throws -> SeenMessage {
                s.origin.expects("GET \(path)", fields.first ?? "!Authorization").replies(
                    200, "Cache-Control: max-age=60", body: path)
                let lines = ["Host: \(authority)"] + fields
                try client.send("GET \(path) HTTP/1.1\r\n\(lines.map { "\($0)\r\n" }.joined())\r\n")
                return try client.response()
            }
            s.origin.expects("GET /in", "Authorization: NTLM bmVn").replies(401, "WWW-Authenticate: NTLM Y2hh")
            let challenge = try first.getInside("/in", host: authority, "Authorization: NTLM bmVn")
            #expect(challenge.status == 401 && challenge["Proxy-Support"] == "Session-Based-Authentication")
            #expect(try get(first, "/in", "Authorization: NTLM YXV0").status == 200)
            #expect(try get(second, "/second").status == 200)
            #expect(try get(first, "/first").status == 200)
            #expect(try get(second, "/in", "Authorization: NTLM bmVn").status == 200)
            // Neither the answer to the first tunnel is stored, nor does it get what the second one left in the store.
            #expect(try get(second, "/first").text == "/first")
            #expect(try get(first, "/second").text == "/second")
            #expect(connections(s) == [1, 1, 2, 1, 3, 3, 1])
            first.wire.hangUp()
            try s.expect(.originConnectionsClosed, 1)
            // And neither does a client without a tunnel.
            s.origin.expects("GET /last").replies(200)
            #expect(try s.client().get("/last").status == 200)
            #expect(connections(s).last == 2)
        }
    }

    @Test func `over TLS tunnels do not share either`() throws {
        let certificate = try MadeCertificate(for: "IP:127.0.0.1")
        let origin = try TLSOrigin(
            certificate, .answers("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 2\r\n\r\nok"))
        defer { origin.end() }
        try scenario({ configuration, files in
            Self.oneWorker(&configuration, files)
            try files.intercept("127.0.0.1", in: &configuration)
            configuration.tls.caFile = try files.write("ca.pem", certificate.certificate)
        }) { s in
            let authority = "127.0.0.1:\(origin.port)"
            let (first, second) = (try s.secureTunnel(to: authority), try s.secureTunnel(to: authority))
            for _ in 0..<2 {
                #expect(try first.getInside("/a", host: authority, "Authorization: Negotiate YQ==").status == 200)
                #expect(try first.getInside("/a", host: authority).status == 200)
            }
            #expect(origin.connectionCount == 1 && origin.heads.count == 4)
            #expect(try second.getInside("/a", host: authority).status == 200)
            #expect(origin.connectionCount == 2 && origin.heads.count == 5)
            first.wire.hangUp()
            try s.expect(.originConnectionsClosed, 1)
        }
    }
}
