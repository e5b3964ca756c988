import Access
import EventLoop
import Message
import ProgramUnderTest
import Origins
import Rules
import Settings
import Testing

/// Name servers that are silent, or late.
@Suite("Names: timeouts.connect bounds the name and the connection together")
struct SlowNameScenarios {
    private static let loopback = IPAddress(v4: 0x7F00_0001)

    /// By what a name is looked up first.
    enum Asker: String, CaseIterable, Sendable {
        /// The connection.
        case request, tunnel
        /// An access rule with an address.
        case ruledRequest, ruledTunnel

        var isTunnel: Bool { self == .tunnel || self == .ruledTunnel }
        var isRuled: Bool { self == .ruledRequest || self == .ruledTunnel }
    }

    private static func with(
        _ names: ScriptedNames, _ asker: Asker, limits: [(host: String, connect: Duration)],
        _ play: (Scenario) throws -> Void
    ) throws {
        try withExtendedLifetime(names) {
            try scenario(
                { configuration, _ in
                    // One worker ends what is late in the order of the deadlines.
                    configuration.workers = .count(1)
                    configuration.dns.servers = [.tcp(loopback, port: names.port)]
                    configuration.dns.hostsFile = nil
                    configuration.access.connectPorts = [1...65535]
                    configuration.origins = limits.enumerated().map { index, limit in
                        var conditions = RuleConditions()
                        conditions.hosts = [HostPattern(limit.host)!]
                        var timeouts = OriginRule.Timeouts()
                        timeouts.connect = limit.connect
                        return OriginRule(conditions, timeouts: timeouts, number: index + 1)
                    }
                    guard asker.isRuled else { return }
                    var rule = AccessRule(effect: .allow, number: 1)
                    rule.conditions.addresses = [AddressRange("127.0.0.0/8")!]
                    rule.tunnel = .any
                    configuration.access.rules = [rule]
                }, play)
        }
    }

    private static func ask(_ s: Scenario, _ asker: Asker, _ host: String, port: UInt16 = 80) throws -> ScriptedClient {
        let client = try s.client()
        try asker.isTunnel ? client.ask("CONNECT", "\(host):\(port)") : client.ask("GET", "http://\(host):\(port)/")
        return client
    }

    private static func answer(_ client: ScriptedClient, _ asker: Asker) throws -> SeenMessage {
        try client.response(to: asker.isTunnel ? "CONNECT" : "GET")
    }

    @Test(arguments: Asker.allCases)
    func `a silent name server holds nobody up for longer`(_ asker: Asker) throws {
        let names = try ScriptedNames(.silence)
        try Self.with(names, asker, limits: [("silent.test", .milliseconds(300))]) { s in
            let answer = try Self.answer(try Self.ask(s, asker, "silent.test"), asker)
            #expect(answer.status == 504 && answer.cacheStatus.contains("detail=name-timeout"), "\(answer)")
            // The resolver itself would go on for three rounds.
            #expect(names.asked.count < 6, "\(names.asked)")
        }
    }

    @Test func `nor a tunnel that waits for the server name`() throws {
        let names = try ScriptedNames(.silence)
        try withExtendedLifetime(names) {
            try scenario({ configuration, _ in
                configuration.timeouts.connect = .milliseconds(300)
                configuration.dns.servers = [.tcp(Self.loopback, port: names.port)]
                configuration.dns.hostsFile = nil
                configuration.access.connectPorts = [1...65535]
                var named = AccessRule(effect: .allow, number: 1)
                named.conditions.addresses = [AddressRange("127.0.0.0/8")!]
                named.conditions.serverNames = [HostPattern("good.test")!]
                configuration.access.rules = [named]
            }) { s in
                let client = try s.tunnel(to: "silent.test:443")
                #expect(names.asked.isEmpty)
                try client.wire.write(HelloBytes(name: "good.test").bytes)
                #expect(try client.reader.untilEnd() == [])
                #expect((1..<6).contains(names.asked.count), "\(names.asked)")
                let lines = try s.logLines()
                #expect(lines.count == 1 && lines[0].contains("name-timeout"), "\(lines)")
            }
        }
    }

    /// `slow.test` has 1 s. Its address comes after half a second at least, when `half.test` has had its time. `later.test` begins then and has 0.75 s: it
    /// ends behind `slow.test`, unless the connection begins a second of its own.
    @Test(arguments: Asker.allCases)
    func `the connection has what the name has left of it`(_ asker: Asker) throws {
        let names = try ScriptedNames(.late)
        let full = try Unanswering.FullListener()
        let limits: [(String, Duration)] = [
            ("slow.test", .seconds(1)), ("half.test", .milliseconds(500)), ("later.test", .milliseconds(750)),
        ]
        try withExtendedLifetime(full) {
            try Self.with(names, asker, limits: limits) { s in
                let slow = try Self.ask(s, asker, "slow.test", port: full.port)
                try s.eventually("a name server is asked") { names.asked.contains("slow.test") }
                let half = try Self.answer(try Self.ask(s, asker, "half.test"), asker)
                #expect(half.status == 504 && half.cacheStatus.contains("detail=name-timeout"), "\(half)")
                names.answerLate(["slow.test": [[0x7F00_0001]]])
                let later = try Self.ask(s, asker, "later.test")
                #expect(try Self.answer(slow, asker).status == 504)
                #expect(try Self.answer(later, asker).status == 504)
                let lines = try s.logLines()
                let order = ["half", "slow", "later"].map { name in lines.firstIndex { $0.contains("\(name).test") } }
                #expect(order == [0, 1, 2], "\(lines)")
            }
        }
    }

    @Test(arguments: Asker.allCases)
    func `an answer that comes too late is kept for the next request`(_ asker: Asker) throws {
        let names = try ScriptedNames(.late)
        try Self.with(names, asker, limits: [("slow.test", .milliseconds(300))]) { s in
            let first = try Self.answer(try Self.ask(s, asker, "slow.test", port: s.origin.port), asker)
            #expect(first.status == 504 && first.cacheStatus.contains("detail=name-timeout"), "\(first)")
            names.answerLate(["slow.test": [[0x7F00_0001]]])
            if !asker.isTunnel { s.origin.expects("GET /").replies(200, body: "here") }
            let second = try Self.answer(try Self.ask(s, asker, "slow.test", port: s.origin.port), asker)
            #expect(second.status == 200, "\(second)")
        }
    }
}
