import ProgramUnderTest
import Server
import Settings
import Testing

@Suite("circuit: origins that do not accept connections") struct OutageScenarios {
    private func configure(
        failures: Int, pause: Duration
    ) -> (inout Configuration, Scenario.Files) throws -> Void {
        { configuration, _ in
            configuration.workers = .count(1)
            configuration.timeouts.connect = .milliseconds(200)
            configuration.timeouts.firstByte = .milliseconds(300)
            configuration.circuit.failuresMax = failures
            configuration.circuit.pause = pause
            configuration.access.connectPorts = [1...65535]
        }
    }

    @Test func `after some time-outs requests fail at once, and say since when and until when`() throws {
        try scenario(configure(failures: 2, pause: .seconds(60))) { s in
            let full = try Unanswering.FullListener()
            try withExtendedLifetime(full) {
                let client = try s.client()
                let url = "http://127.0.0.1:\(full.port)/"
                #expect(try client.get(url).status == 504)
                #expect(try client.get(url).status == 504)
                let answer = try client.get(url, "Accept: application/json")
                #expect(answer.status == 503 && answer.cacheStatus.contains("detail=origin-unavailable"), "\(answer)")
                #expect(answer["Retry-After"].flatMap { Int($0) }.map { (50...60).contains($0) } == true, "\(answer)")
                #expect(
                    answer["Proxy-Status"]?.contains("error=destination_unavailable; details=\"no connection since 2")
                        == true)
                #expect(answer.text.contains("\"detail\":\"no connection since 2"), "\(answer)")
                try s.expect(.originsUnavailable, 1)
                try s.expect(.originConnectionsFailed, 2)
                let down = try s.stats()["origins_down"]?.elements
                #expect(down?.count == 1 && down?[0]["origin"] == .string("127.0.0.1:\(full.port)"))
                // A tunnel to the same place, and a request with a body.
                let other = try s.client()
                try other.send("CONNECT 127.0.0.1:\(full.port) HTTP/1.1\r\nHost: 127.0.0.1:\(full.port)\r\n\r\n")
                let refused = try other.response()
                #expect(refused.status == 503 && refused["Retry-After"] != nil, "\(refused)")
                #expect(try s.client().request("POST", url, body: "x").status == 503)
            }
            // Another origin is not affected.
            s.origin.expects("GET /a").replies(200, body: "a")
            #expect(try s.client().get("/a").text == "a")
        }
    }

    @Test func `one request tries when the time is over, and all go again when it succeeds`() throws {
        try scenario(configure(failures: 1, pause: .milliseconds(100))) { s in
            let full = try Unanswering.FullListener()
            let client = try s.client()
            let url = "http://127.0.0.1:\(full.port)/"
            #expect(try client.get(url).cacheStatus.contains("connection-timeout"))
            try full.makeRoom()
            // Requests come back with 503 until one has tried, and connected: nobody answers it.
            try s.eventually("a connection") { try client.get(url).cacheStatus.contains("response-timeout") }
            #expect(try s.stats()["origins_down"]?.elements?.isEmpty == true)
            try full.makeRoom()
            #expect(try client.get(url).cacheStatus.contains("response-timeout"))
        }
    }

    @Test func `with 0 failures origins are always tried`() throws {
        try scenario(configure(failures: 0, pause: .seconds(60))) { s in
            let full = try Unanswering.FullListener()
            try withExtendedLifetime(full) {
                let client = try s.client()
                for _ in 1...3 { #expect(try client.get("http://127.0.0.1:\(full.port)/").status == 504) }
                try s.expect(.originConnectionsFailed, 3)
            }
        }
    }

    @Test func `a refused connection costs no time, and is always tried`() throws {
        try scenario(configure(failures: 1, pause: .seconds(60))) { s in
            let closed = try Unanswering.ClosedPort()
            try withExtendedLifetime(closed) {
                let client = try s.client()
                for _ in 1...3 {
                    let answer = try client.get("http://127.0.0.1:\(closed.port)/")
                    #expect(answer.cacheStatus.contains("connection-refused"))
                }
            }
        }
    }
}
