import Origins
import Rules
import Server
import Settings
import Testing

/// A transfer is never faster than its rate, however busy the machine is. How exact rates are is measured in Benchmarks.
@Suite("bandwidth: rates of transfers") struct BandwidthScenarios {
    /// One MB per second: 300 kB take at least 0.2 s, with 0.1 s that a flow may be ahead.
    private static let rate: UInt64 = 1_000_000
    private static let body = String(repeating: "0123456789", count: 30_000)
    private static let timeMin = Duration.milliseconds(150)

    private func configure(
        _ change: @escaping (inout BandwidthPlan) -> Void = { $0.total = rate }
    ) -> (inout Configuration, Scenario.Files) throws -> Void {
        { configuration, _ in
            change(&configuration.bandwidth)
            configuration.access.connectPorts = [1...65535]
        }
    }

    private func timed<Result>(_ work: () throws -> Result) rethrows -> (Result, Duration) {
        let clock = ContinuousClock()
        let start = clock.now
        let result = try work()
        return (result, clock.now - start)
    }

    @Test(arguments: ["Cache-Control: max-age=60", "Cache-Control: no-store"])
    func `a response comes at the rate, stored or passed`(control: String) throws {
        try scenario(configure()) { s in
            s.origin.expects("GET /a").replies(200, control, body: Self.body)
            let client = try s.client()
            let (answer, time) = try timed { try client.get("/a") }
            #expect(answer.text == Self.body && time >= Self.timeMin, "\(time)")
            let usage = try s.stats()["bandwidth_limits"]?.elements
            #expect(usage?.count == 1 && usage?[0]["limit"] == .string("total"))
            #expect(usage?[0]["rate"] == .integer(Int64(Self.rate)))
        }
    }

    @Test func `chunks come at the rate`() throws {
        try scenario(configure()) { s in
            let chunks = String(repeating: "3e8\r\n\(String(repeating: "x", count: 1000))\r\n", count: 300)
            s.origin.expects("GET /a").sends(
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n\(chunks)0\r\n\r\n")
            let client = try s.client()
            let (answer, time) = try timed { try client.get("/a") }
            #expect(answer.body.count == 300_000 && time >= Self.timeMin, "\(time)")
            // The connection is in order afterwards.
            s.origin.expects("GET /b").replies(200, body: "b")
            #expect(try client.get("/b").text == "b")
            try s.expect(.originConnectionsOpened, 1)
        }
    }

    @Test func `a client's responses share its rate, one after another`() throws {
        try scenario(configure { $0.client = Self.rate }) { s in
            let client = try s.client()
            let piece = String(repeating: "x", count: 30_000)
            for number in 1...10 { s.origin.expects("GET /\(number)").replies(200, body: piece) }
            let (_, time) = try timed { () throws -> Void in
                for number in 1...10 { #expect(try client.get("/\(number)").text == piece) }
            }
            #expect(time >= Self.timeMin, "\(time)")
            let limits = try s.stats()["bandwidth_limits"]?.elements?.map { $0["limit"] }
            #expect(limits == [.string("client 127.0.0.1")])
        }
    }

    @Test func `a class and a rule of origins have rates of their own, and others have none`() throws {
        try scenario({ configuration, files in
            var conditions = RuleConditions()
            conditions.paths = [PathPattern("/slow/*")!]
            configuration.bandwidth.classes = [BandwidthClass(name: "slow", conditions, rate: Self.rate)]
            conditions.paths = [PathPattern("/ruled/*")!]
            configuration.origins = [OriginRule(conditions, bandwidth: Self.rate, number: 1)]
        }) { s in
            let client = try s.client()
            for path in ["/slow/a", "/ruled/a"] {
                s.origin.expects("GET \(path)").replies(200, body: Self.body)
                let (answer, time) = try timed { try client.get(path) }
                #expect(answer.text == Self.body && time >= Self.timeMin, "\(path): \(time)")
            }
            s.origin.expects("GET /free").replies(200, body: "free")
            #expect(try client.get("/free").text == "free")
            let limits = try s.stats()["bandwidth_limits"]?.elements?.map { $0["limit"]?.text ?? "" } ?? []
            #expect(limits.sorted() == ["class slow", "origins[1]"])
        }
    }

    @Test func `what is stored is served without a limit`() throws {
        try scenario(configure { $0.total = 1 << 10 }) { s in
            // Nothing of this comes from the origin at 1 KiB/s but the head and 700 bytes.
            s.origin.expects("GET /a").replies(
                200, "Cache-Control: max-age=60", body: String(repeating: "x", count: 700))
            let client = try s.client()
            _ = try client.get("/a")
            let before = try s.stats()["origins"]?["received_bytes"]
            for _ in 1...1000 { #expect(try client.get("/a").body.count == 700) }
            #expect(try s.stats()["origins"]?["received_bytes"] == before)
            try s.expect(.hits, 1000)
        }
    }

    @Test func `a rate that is lower than the time limits suggest is no time-out`() throws {
        try scenario({ configuration, _ in
            configuration.bandwidth.total = 1 << 10
            configuration.timeouts.idle = .milliseconds(100)
            configuration.timeouts.firstByte = .seconds(2)
        }) { s in
            s.origin.expects("GET /a").replies(200, body: String(repeating: "x", count: 1000))
            let answer = try s.client().get("/a")
            #expect(answer.body.count == 1000, "\(answer)")
            try s.expect(.timeouts, 0)
        }
    }

    @Test func `bytes of a tunnel to the client have the rate, the others do not`() throws {
        try scenario(configure()) { s in
            let client = try s.client()
            try client.send("CONNECT \(s.origin.authority) HTTP/1.1\r\nHost: \(s.origin.authority)\r\n\r\n")
            #expect(try client.response(to: "CONNECT").status == 200)
            s.origin.expects("GET /a").replies(200, body: Self.body)
            let (answer, time) = try timed {
                try client.send("GET /a HTTP/1.1\r\nHost: \(s.origin.authority)\r\n\r\n")
                return try client.response()
            }
            #expect(answer.text == Self.body && time >= Self.timeMin, "\(time)")
            let usage = try s.stats()["bandwidth_limits"]?.elements
            #expect(usage?[0]["flows"] == .integer(1))
        }
    }

    @Test func `a body that breaks off is completed at the rate`() throws {
        try scenario(configure()) { s in
            let half = String(Self.body.prefix(150_000))
            s.origin.expects("GET /a", "!Range").sends(
                "HTTP/1.1 200 OK\r\nETag: \"a\"\r\nContent-Length: 300000\r\n\r\n\(half)"
            ).closes()
            s.origin.expects("GET /a", "Range").sends(
                "HTTP/1.1 206 Partial Content\r\nETag: \"a\"\r\nContent-Range: bytes 150000-299999/300000\r\n"
                    + "Content-Length: 150000\r\n\r\n\(half)")
            let client = try s.client()
            let (answer, time) = try timed { try client.get("/a") }
            #expect(answer.text == Self.body && time >= Self.timeMin, "\(time)")
        }
    }

    @Test func `a client that leaves while its response is held back leaves nothing behind`() throws {
        try scenario(configure { $0.total = 1 << 10 }) { s in
            s.origin.expects("GET /a").replies(200, "Cache-Control: no-store", body: Self.body)
            let client = try s.client()
            try client.send("GET \(s.origin.url("/a")) HTTP/1.1\r\nHost: \(s.origin.authority)\r\n\r\n")
            _ = try client.head()
            client.wire.reset()
            try s.eventually("the flow has ended") {
                try s.stats()["bandwidth_limits"]?.elements?.allSatisfy { $0["flows"] == .integer(0) } == true
            }
        }
    }

    @Test func `a reload changes the rate of what comes later`() throws {
        try scenario(configure { $0.total = 1 << 10 }) { s in
            try s.adopt { configuration, _ in configuration.bandwidth = BandwidthPlan() }
            s.origin.expects("GET /a").replies(200, body: Self.body)
            #expect(try s.client().get("/a").text == Self.body)
            #expect(try s.stats()["bandwidth_limits"]?.elements?.isEmpty == true)
        }
    }
}
