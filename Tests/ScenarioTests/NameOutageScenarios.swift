import EventLoop
import Message
import ProgramUnderTest
import Server
import Settings
import Testing

@Suite("circuit: names that name servers are silent about") struct NameOutageScenarios {
    private static let loopback: [[UInt32]] = [[0x7F00_0001]]

    /// Look-ups wait for 1.1 seconds. Nothing is kept of a failure, or of addresses beyond their lifetime.
    private static func play(
        pause: Duration = .seconds(60), failures: Int = 3, workers: Int = 1,
        _ play: (Scenario, ScriptedNames) throws -> Void
    ) throws {
        let names = try ScriptedNames(.late)
        try withExtendedLifetime(names) {
            try scenario({ configuration, _ in
                configuration.workers = .count(workers)
                configuration.timeouts.connect = .milliseconds(1100)
                configuration.circuit.failuresMax = failures
                configuration.circuit.pause = pause
                configuration.circuit.pauseMax = pause
                configuration.dns.servers = [.tcp(IPAddress(v4: 0x7F00_0001), port: names.port)]
                configuration.dns.hostsFile = nil
                (configuration.dns.ttlMin, configuration.dns.stale) = (.zero, .zero)
                configuration.access.connectPorts = [1...65535]
            }) { try play($0, names) }
        }
    }

    @Test func `the first request waits, and the others get at once what is stored`() throws {
        try Self.play { s, names in
            names.answerLate(["a.test": Self.loopback])
            let url = "http://a.test:\(s.origin.port)"
            for path in ["/a", "/b"] {
                // A connection that is kept would need no name.
                s.origin.expects("GET \(path)").replies(
                    200, "Cache-Control: max-age=10", "Age: 11", "Connection: close", body: path
                ).closes()
                try s.client().get(url + path)
            }
            names.answerLate([:])
            for path in ["/a", "/b", "/a"] {
                let answer = try s.client().get(url + path)
                #expect(answer.status == 200 && answer.text == path, "\(answer)")
                #expect(answer.cacheStatus.contains("detail=stale-on-error"), "\(answer)")
            }
            try s.eventually("the gauge") { s.gauge(.namesUnasked) == 2 }
        }
    }

    @Test func `without anything stored the answer says since when, and a tunnel is refused as well`() throws {
        try Self.play { s, names in
            let client = try s.client()
            #expect(try client.get("http://a.test/").cacheStatus.contains("detail=name-timeout"))
            let answer = try client.get("http://a.test/", "Accept: application/json")
            #expect(answer.status == 504 && answer.cacheStatus.contains("detail=name-servers-silent"), "\(answer)")
            let status = answer["Proxy-Status"] ?? ""
            #expect(status.contains("error=dns_timeout; details=\"no answer of a name server since 2"), "\(status)")
            #expect(answer["Retry-After"] == nil, "the field has no meaning with 504")
            let tunnel = try s.client()
            try tunnel.ask("CONNECT", "a.test:443")
            let refused = try tunnel.response(to: "CONNECT")
            #expect(refused.status == 504 && refused.cacheStatus.contains("name-servers-silent"), "\(refused)")
            let listed = try s.stats()["names_unanswered"]?.elements
            #expect(listed?.count == 1 && listed?[0]["name"] == .string("a.test"), "\(String(describing: listed))")
            #expect(listed?[0]["servers"] == .string("127.0.0.1:\(names.port)"))
            #expect(listed?[0]["retry_after"].map { $0 != .integer(0) } == true)
        }
    }

    @Test(arguments: [1, 2])
    func `the first answer ends it, for all workers`(workers: Int) throws {
        try Self.play(pause: .milliseconds(100), workers: workers) { s, names in
            let client = try s.client()
            let url = "http://a.test:\(s.origin.port)/a"
            #expect(try client.get(url).status == 504)
            names.answerLate(["a.test": Self.loopback])
            s.origin.expects("GET /a").replies(200, "Cache-Control: no-store", body: "a")
            try s.eventually("an answer") { try s.client().get(url).status == 200 }
            #expect(try s.stats()["names_unanswered"]?.elements?.isEmpty == true)
        }
    }

    @Test func `names that the servers answer are not affected`() throws {
        try Self.play { s, names in
            names.answerLate(["good.test": Self.loopback])
            let client = try s.client()
            #expect(try client.get("http://a.test/").status == 504)
            s.origin.expects("GET /a").replies(200, body: "a")
            #expect(try client.get("http://good.test:\(s.origin.port)/a").status == 200)
            #expect(try client.get("http://a.test/").cacheStatus.contains("name-servers-silent"))
        }
    }

    @Test func `with 0 failures every look-up waits`() throws {
        try Self.play(failures: 0) { s, _ in
            let client = try s.client()
            for _ in 1...2 { #expect(try client.get("http://a.test/").cacheStatus.contains("detail=name-timeout")) }
        }
    }

    @Test func `explain says it`() throws {
        try Self.play { s, _ in
            _ = try s.client().get("http://a.test/")
            let explained = try s.proxy.explain(ExplainQuestion(target: "http://a.test/"))
            let lines = explained.sections.first { $0.name == "origin" }?.lines
            let line = lines?.first { $0.name == "name" }?.value ?? ""
            #expect(line.hasPrefix("no answer of a name server since 2"), "\(String(describing: lines))")
        }
    }
}
