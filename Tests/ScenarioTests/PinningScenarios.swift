import Message
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
}
