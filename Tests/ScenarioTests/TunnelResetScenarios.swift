import Access
import Foundation
import Message
import Rules
import Server
import Settings
import TLS
import Testing

private let made = Result { try MadeCertificate(for: "IP:127.0.0.1") }

/// How a client and an origin come to a tunnel.
private enum Way: String, CaseIterable, CustomTestStringConvertible {
    case connect, socks, nextProxy, upgrade
    /// The first bytes of the client are judged.
    case judged
    /// The client speaks TLS with the proxy.
    case secured

    var testDescription: String { rawValue }

    func configure(_ configuration: inout Configuration, _ files: Scenario.Files, _ port: UInt16) throws {
        configuration.access.connectPorts = [1...65535]
        switch self {
        case .connect, .socks, .nextProxy, .upgrade: break
        case .judged:
            configuration.dns.hosts = [DNSEntry(name: "*.test", values: [IPAddress(v4: 0x7F00_0001)])]
            var conditions = RuleConditions()
            conditions.hosts = [HostPattern("judged.test")!]
            conditions.ports = [port...port]
            configuration.access.rules = [AccessRule(effect: .allow, conditions: conditions, number: 1)]
        case .secured: configuration.secure(try files.listenerTLS(made.get()))
        }
    }

    /// - Returns: the two ends of an open tunnel. Nothing waits to be read at either.
    func open(_ s: Scenario, _ origin: RawOrigin) throws -> (client: ScriptedClient, origin: Wire) {
        let authority = "127.0.0.1:\(origin.port)"
        let client = try s.client()
        switch self {
        case .connect: break
        case .secured:
            let path = s.directory.appendingPathComponent("trust.pem").path
            try made.get().certificate.write(toFile: path, atomically: true, encoding: .utf8)
            try client.wire.secure(try TLSClientContext(authorities: .file(path)), name: "127.0.0.1")
        case .socks:
            try client.wire.write([5, 1, 0])
            #expect(try client.reader.bytes(2) == [5, 0])
            try client.wire.write([5, 1, 0, 1, 127, 0, 0, 1, UInt8(origin.port >> 8), UInt8(origin.port & 255)])
            #expect(try client.reader.bytes(10)[1] == 0)
            return (client, try origin.accept(s))
        case .judged:
            let hello = HelloBytes(name: "judged.test").bytes
            try client.ask("CONNECT", "judged.test:\(origin.port)")
            #expect(try client.response(to: "CONNECT").status == 200)
            try client.wire.write(hello)
            let taken = try origin.accept(s)
            var came: [UInt8] = []
            while came.count < hello.count { came += try taken.read() }
            return (client, taken)
        case .nextProxy:
            try s.adopt(routes: s.nextProxy(port: origin.port)) { $0.access.connectPorts = [1...65535] }
            try client.ask("CONNECT", "a.example:8080")
            let taken = try Way.asked(origin, s, answer: "HTTP/1.1 200 OK\r\n\r\n")
            #expect(try client.response(to: "CONNECT").status == 200)
            return (client, taken)
        case .upgrade:
            try client.ask("GET", "http://\(authority)/", ["Connection: Upgrade", "Upgrade: websocket"])
            let taken = try Way.asked(
                origin, s,
                answer: "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
            #expect(try client.head().startLine.contains(" 101 "))
            return (client, taken)
        }
        try client.ask("CONNECT", authority)
        #expect(try client.response(to: "CONNECT").status == 200)
        return (client, try origin.accept(s))
    }

    /// The connection on which a head has come and was answered.
    private static func asked(_ origin: RawOrigin, _ s: Scenario, answer: String) throws -> Wire {
        let taken = try origin.accept(s)
        var head = ""
        while !head.hasSuffix("\r\n\r\n") { head += String(decoding: try taken.read(), as: UTF8.self) }
        try taken.write(Array(answer.utf8))
        return taken
    }
}

@Suite("Tunnels: a reset arrives as a reset")
struct TunnelResetScenarios {
    private static let sent = (0..<20_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }

    private static func scenario(_ way: Way, _ play: (Scenario, ScriptedClient, Wire) throws -> Void) throws {
        let origin = try RawOrigin()
        try ScenarioTests.scenario({ configuration, files in
            try way.configure(&configuration, files, origin.port)
        }) { s in
            let ends = try way.open(s, origin)
            try play(s, ends.client, ends.origin)
        }
    }

    /// All that comes until the connection breaks. Fails if it ends in order.
    private static func untilReset(_ wire: Wire) throws -> [UInt8] {
        var came: [UInt8] = []
        while true {
            do {
                let bytes = try wire.read()
                if bytes.isEmpty {
                    Issue.record("the connection ended in order after \(came.count) bytes")
                    return came
                }
                came += bytes
            } catch {
                #expect("\(error)".contains("reset") || error is Wire.TLSProblem, "\(error)")
                return came
            }
        }
    }

    private static func closeOf(_ s: Scenario) throws -> String? {
        let line = try #require(try s.logLines().last)
        #expect(line.contains("\"outcome\":\"tunnel\""), "\(line)")
        guard line.contains("\"broken\":true") else { return nil }
        return line.firstMatch(of: /"close":"([a-z-]+)"/).map { String($0.1) }
    }

    @Test(arguments: Way.allCases)
    fileprivate func `the client of an origin that resets gets what came before, and a reset`(_ way: Way) throws {
        try Self.scenario(way) { s, client, origin in
            try origin.write(Self.sent)
            origin.reset()
            #expect(try Self.untilReset(client.wire) == Self.sent)
            try s.expect(.tunnelsClosed, 1)
            #expect(try Self.closeOf(s) == "origin-reset")
        }
    }

    @Test(arguments: Way.allCases)
    fileprivate func `the origin of a client that resets gets what came before, and a reset`(_ way: Way) throws {
        try Self.scenario(way) { s, client, origin in
            try client.wire.write(Self.sent)
            client.wire.reset()
            #expect(try Self.untilReset(origin) == Self.sent)
            try s.expect(.tunnelsClosed, 1)
            #expect(try Self.closeOf(s) == "client-reset")
        }
    }

    @Test(arguments: Way.allCases)
    fileprivate func `sides that end in order do so, and what the tunnel carried is counted alone`(_ way: Way) throws {
        try Self.scenario(way) { s, client, origin in
            try origin.write(Self.sent)
            origin.finishWriting()
            var came: [UInt8] = []
            while came.count < Self.sent.count { came += try client.wire.read() }
            #expect(came == Self.sent)
            #expect(try client.wire.read().isEmpty)
            try client.wire.write(Array("more".utf8))
            #expect(try origin.read() == Array("more".utf8))
            if let session = client.wire.session { _ = session.shutdown() }
            client.wire.finishWriting()
            #expect(try origin.read().isEmpty)
            try s.expect(.tunnelsClosed, 1)
            #expect(s.count(.bytesTunnelledToClients) == UInt64(Self.sent.count))
            let hello = way == .judged ? HelloBytes(name: "judged.test").bytes.count : 0
            #expect(s.count(.bytesTunnelledFromClients) == UInt64(hello + 4))
            #expect(try Self.closeOf(s) == nil)
            #expect(try s.logLines().last?.contains("\"bytes\":\(Self.sent.count),") == true)
        }
    }
}
