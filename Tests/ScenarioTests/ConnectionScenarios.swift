import Message
import Routing
import Origins
import Rules
import Server
import Settings
import Testing

@Suite("origins: connections by rule") struct ConnectionScenarios {
    private func configure(
        _ change: @escaping (inout OriginRule.Connections) -> Void
    ) -> (inout Configuration, Scenario.Files) throws -> Void {
        { configuration, _ in
            configuration.workers = .count(1)
            var rule = OriginRule(RuleConditions(), number: 1)
            change(&rule.connections)
            configuration.origins = [rule]
        }
    }

    @Test func `persistent: no gives each request a connection, and tells the origin so`() throws {
        try scenario(configure { $0.persists = false }) { s in
            for path in ["/a", "/b"] { s.origin.expects("GET \(path)", "Connection: close").replies(200, body: path) }
            let client = try s.client()
            for path in ["/a", "/b"] { #expect(try client.get(path).text == path) }
            try s.expect(.originConnectionsOpened, 2)
            try s.expect(.originConnectionsReused, 0)
        }
    }

    @Test func `http 1.0 sends requests of that version, each on a connection of its own`() throws {
        try scenario(configure { $0.isHTTP10 = true }) { s in
            s.origin.expects("GET /a", "!Connection").sends("HTTP/1.0 200 OK\r\n\r\nuntil the end").closes()
            s.origin.expects("POST /b", "Content-Length: 1").readsBody().replies(200, body: "b")
            let client = try s.client()
            #expect(try client.get("/a").text == "until the end")
            #expect(try client.request("POST", "/b", body: "x").text == "b")
            let lines = s.origin.requests.map { $0.message.head.startLine }
            #expect(lines == ["GET /a HTTP/1.0", "POST /b HTTP/1.0"])
            try s.expect(.originConnectionsOpened, 2)
        }
    }

    @Test func `an upgrade is not asked for in HTTP 1.0`() throws {
        try scenario(configure { $0.isHTTP10 = true }) { s in
            s.origin.expects("GET /a", "!Upgrade", "!Connection").replies(200, body: "a")
            let client = try s.client()
            #expect(try client.get("/a", "Connection: Upgrade", "Upgrade: websocket").text == "a")
        }
    }

    @Test func `requests with a body use a connection again only where a rule says so`() throws {
        for reuses in [false, true] {
            try scenario(configure { $0.carriesBodies = reuses }) { s in
                let client = try s.client()
                for path in ["/a", "/b"] {
                    s.origin.expects("POST \(path)").readsBody().replies(200)
                    #expect(try client.request("POST", path, body: "x").status == 200)
                }
                try s.expect(.originConnectionsOpened, reuses ? 1 : 2)
            }
        }
    }

    @Test func `a request with a body on a connection that turns out to be closed fails, and is not sent again`() throws
    {
        try scenario(configure { $0.carriesBodies = true }) { s in
            let client = try s.client()
            s.origin.expects("GET /a").replies(200)
            #expect(try client.get("/a").status == 200)
            // The origin closes the connection when it has read the request.
            s.origin.expects("POST /b").readsBody().closes()
            let answer = try client.request("POST", "/b", body: "x")
            #expect(answer.status == 502 && answer.cacheStatus.contains("connection-terminated"), "\(answer)")
            try s.expect(.originRetries, 0)
        }
    }

    @Test func `an idle time of nothing closes connections at once`() throws {
        try scenario(configure { $0.idle = .zero }) { s in
            let client = try s.client()
            for path in ["/a", "/b"] {
                s.origin.expects("GET \(path)").replies(200)
                _ = try client.get(path)
            }
            try s.expect(.originConnectionsOpened, 2)
            try s.expect(.originConnectionsClosed, 2)
        }
    }

    @Test func `a rule bounds the connections to its origins, and other rules their own`() throws {
        try scenario(configure { $0.countMax = 1 }) { s in
            let (asked, gate) = (Gate(), Gate())
            s.origin.expects("GET /a").opens(asked).waits(for: gate).replies(200)
            s.origin.expects("GET /b").replies(200, body: "b")
            let (first, second) = (try s.client(), try s.client())
            try first.ask("GET", "/a")
            try asked.wait()
            try second.ask("GET", "/b")
            try s.expect(.originQueued, 1)
            gate.open()
            #expect(try first.response().status == 200)
            #expect(try second.response().text == "b")
            try s.expect(.originConnectionsOpened, 1)
        }
    }

    @Test func `connections come from the address of the rule`() throws {
        let source = IPAddress(v4: 0x7F00_0009)
        try scenario(configure { $0.dialling = Dialling(sources: [source]) }) { s in
            s.origin.expects("GET /a").replies(200)
            let answer = try s.client().get("/a")
            #expect(answer.status == 200)
            #expect(s.origin.peers.allSatisfy { $0.hasPrefix("127.0.0.9:") } && s.origin.peers.count == 1)
        }
    }

    @Test(arguments: [
        Dialling(family: .ipv6), Dialling(sources: [IPAddress(v6: 0, low: 1)]),
        Dialling(sources: [IPAddress(v4: 0xC000_0201)]), Dialling(device: "nowhere0"),
    ])
    func `what cannot be dialled that way is not dialled another way`(dialling: Dialling) throws {
        try scenario(configure { $0.dialling = dialling }) { s in
            let answer = try s.client().get("/a")
            #expect(answer.status == 502 && s.origin.peers.isEmpty, "\(answer)")
        }
    }

    @Test func `Fast Open and TCP keep-alive change nothing that can be seen`() throws {
        try scenario(configure { $0.dialling = Dialling(fastOpen: true, keepAlive: .seconds(60)) }) { s in
            for path in ["/a", "/b"] { s.origin.expects("GET \(path)").replies(200, body: path) }
            let client = try s.client()
            for path in ["/a", "/b"] { #expect(try client.get(path).text == path) }
            try s.expect(.originConnectionsOpened, 1)
        }
    }

    @Test func `clients take turns at the connections of an origin`() throws {
        try scenario(configure { $0.countMax = 1 }) { s in
            let (asked, gate) = (Gate(), Gate())
            s.origin.expects("GET /busy").opens(asked).waits(for: gate).replies(200)
            let busy = try s.client(from: 0x7F00_0002)
            try busy.ask("GET", "/busy")
            try asked.wait()
            var clients: [ScriptedClient] = []
            // One client asks for four things, then another one for one.
            for (number, source) in [0x7F00_0002, 0x7F00_0002, 0x7F00_0002, 0x7F00_0002, 0x7F00_0003].enumerated() {
                s.origin.expects("GET /\(number)").replies(200)
                let client = try s.client(from: UInt32(source))
                try client.ask("GET", "/\(number)")
                try s.expect(.originQueued, UInt64(number + 1))
                clients.append(client)
            }
            gate.open()
            for client in clients { #expect(try client.response().status == 200) }
            let order = s.origin.requests.map { $0.message.head.startLine.split(separator: " ")[1] }
            #expect(order == ["/busy", "/0", "/4", "/1", "/2", "/3"])
        }
    }

    @Test func `a full queue takes the request of who has none in it, and refuses one of who fills it`() throws {
        try scenario({ configuration, files in
            try configure { $0.countMax = 1 }(&configuration, files)
            configuration.limits.originQueueMax = 2
        }) { s in
            let (asked, gate) = (Gate(), Gate())
            s.origin.expects("GET /busy").opens(asked).waits(for: gate).replies(200)
            let busy = try s.client(from: 0x7F00_0002)
            try busy.ask("GET", "/busy")
            try asked.wait()
            let greedy = try (0..<3).map { _ in try s.client(from: 0x7F00_0002) }
            for (number, client) in greedy.enumerated() {
                try client.ask("GET", "/\(number)")
                if number < 2 { try s.expect(.originQueued, UInt64(number + 1)) }
            }
            // The third one finds no place, and the second one makes room for the other client.
            let refused = try greedy[2].response()
            #expect(refused.status == 503 && refused["Retry-After"] == "1", "\(refused)")
            let other = try s.client(from: 0x7F00_0003)
            try other.ask("GET", "/other")
            let displaced = try greedy[1].response()
            #expect(displaced.status == 503 && displaced.cacheStatus.contains("origin-queue-full"), "\(displaced)")
            for path in ["/0", "/other"] { s.origin.expects("GET \(path)").replies(200) }
            gate.open()
            #expect(try other.response().status == 200 && greedy[0].response().status == 200)
        }
    }
}
