import Access
import Foundation
import Glibc
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
    case secured, securedJudged
    /// An upgrade in a tunnel that is opened, to an origin with TLS. `openedPlain`: the client speaks HTTP without TLS there, and so does the origin.
    case opened, openedPlain, securedOpened, securedOpenedPlain

    var testDescription: String { rawValue }

    private var isSecured: Bool {
        switch self {
        case .connect, .socks, .nextProxy, .upgrade, .judged, .opened, .openedPlain: false
        case .secured, .securedJudged, .securedOpened, .securedOpenedPlain: true
        }
    }

    /// What the client has sent before the tunnel carries anything else.
    var hello: [UInt8] {
        switch self {
        case .judged, .securedJudged: HelloBytes(name: "judged.test").bytes
        default: []
        }
    }

    func configure(_ configuration: inout Configuration, _ files: Scenario.Files, _ port: UInt16) throws {
        configuration.access.connectPorts = [1...65535]
        if isSecured { configuration.secure(try files.listenerTLS(made.get())) }
        switch self {
        case .connect, .socks, .nextProxy, .upgrade, .secured: break
        case .judged, .securedJudged:
            configuration.dns.hosts = [DNSEntry(name: "*.test", values: [IPAddress(v4: 0x7F00_0001)])]
            var conditions = RuleConditions()
            conditions.hosts = [HostPattern("judged.test")!]
            conditions.ports = [port...port]
            configuration.access.rules = [AccessRule(effect: .allow, conditions: conditions, number: 1)]
        case .opened, .openedPlain, .securedOpened, .securedOpenedPlain:
            try files.intercept("127.0.0.1", in: &configuration)
            configuration.tls.caFile = try files.write("ca.pem", try made.get().certificate)
        }
    }

    /// - Returns: the two ends of an open tunnel. Nothing waits to be read at either.
    func open(_ s: Scenario, _ origin: RawOrigin) throws -> (client: ScriptedClient, origin: Wire) {
        let authority = "127.0.0.1:\(origin.port)"
        let client = try isSecured ? securedClient(s) : s.client()
        switch self {
        case .connect, .secured: break
        case .socks:
            try client.wire.write([5, 1, 0])
            #expect(try client.reader.bytes(2) == [5, 0])
            try client.wire.write([5, 1, 0, 1, 127, 0, 0, 1, UInt8(origin.port >> 8), UInt8(origin.port & 255)])
            #expect(try client.reader.bytes(10)[1] == 0)
            return (client, try origin.accept(s))
        case .judged, .securedJudged:
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
            let taken = try Way.asked(origin, s, answer: Way.switching)
            #expect(try client.head().startLine.contains(" 101 "))
            return (client, taken)
        case .opened, .openedPlain, .securedOpened, .securedOpenedPlain:
            let hasTLS = self == .opened || self == .securedOpened
            try client.ask("CONNECT", authority)
            #expect(try client.response(to: "CONNECT").status == 200)
            if hasTLS { try client.wire.secure(s.trust(), name: "127.0.0.1") }
            try client.askInside("GET", "/", host: authority, "Connection: Upgrade", "Upgrade: websocket")
            let taken = try Way.asked(origin, s, answer: Way.switching, secured: hasTLS)
            #expect(try client.head().startLine.contains(" 101 "))
            return (client, taken)
        }
        try client.ask("CONNECT", authority)
        #expect(try client.response(to: "CONNECT").status == 200)
        return (client, try origin.accept(s))
    }

    private static let switching =
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"

    /// The connection on which a head has come and was answered.
    private static func asked(
        _ origin: RawOrigin, _ s: Scenario, answer: String, secured: Bool = false
    ) throws -> Wire {
        let taken = try origin.accept(s)
        if secured {
            let made = try made.get()
            try taken.secure(
                TLSServerContext(certificates: Array(made.certificate.utf8), privateKey: Array(made.key.utf8)))
        }
        var head = ""
        while !head.hasSuffix("\r\n\r\n") { head += String(decoding: try taken.read(), as: UTF8.self) }
        try taken.write(Array(answer.utf8))
        return taken
    }
}

/// A client that speaks TLS with the proxy.
private func securedClient(_ s: Scenario) throws -> ScriptedClient {
    let client = try s.client()
    let path = s.directory.appendingPathComponent("trust.pem").path
    try made.get().certificate.write(toFile: path, atomically: true, encoding: .utf8)
    try client.wire.secure(try TLSClientContext(authorities: .file(path)), name: "127.0.0.1")
    return client
}

extension Wire {
    /// All that comes until the connection is reset. Fails if it ends in order, or without a reset.
    fileprivate func untilReset() throws -> [UInt8] {
        var came: [UInt8] = []
        while true {
            do {
                let bytes = try read()
                if bytes.isEmpty {
                    Issue.record("the connection ended in order after \(came.count) bytes")
                    return came
                }
                came += bytes
            } catch let problem as Wire.TLSProblem {
                #expect(problem.failure == .connectionFailed(errno: ECONNRESET))
                return came
            } catch {
                #expect("\(error)".contains("reset"), "\(error)")
                return came
            }
        }
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

    /// `close` in the line of the tunnel, which is written last.
    private static func closeOf(_ s: Scenario) throws -> String? {
        let line = try #require(try s.logLines().last { $0.contains("\"outcome\":\"tunnel\"") })
        guard line.contains("\"broken\":true") else { return nil }
        return line.firstMatch(of: /"close":"([a-z-]+)"/).map { String($0.1) }
    }

    @Test(arguments: Way.allCases)
    fileprivate func `the client of an origin that resets gets what came before, and a reset`(_ way: Way) throws {
        try Self.scenario(way) { s, client, origin in
            try origin.write(Self.sent)
            origin.reset()
            #expect(try client.wire.untilReset() == Self.sent)
            try s.expect(.tunnelsClosed, 1)
            #expect(try Self.closeOf(s) == "origin-reset")
        }
    }

    @Test(arguments: Way.allCases)
    fileprivate func `the origin of a client that resets gets what came before, and a reset`(_ way: Way) throws {
        try Self.scenario(way) { s, client, origin in
            try client.wire.write(Self.sent)
            client.wire.reset()
            #expect(try origin.untilReset() == Self.sent)
            try s.expect(.tunnelsClosed, 1)
            #expect(try Self.closeOf(s) == "client-reset")
        }
    }

    @Test(arguments: Way.allCases)
    fileprivate func `sides that end in order do so, and what the tunnel carried is counted alone`(_ way: Way) throws {
        try Self.scenario(way) { s, client, origin in
            try origin.write(Self.sent)
            try origin.finishInOrder()
            var came: [UInt8] = []
            while came.count < Self.sent.count { came += try client.wire.read() }
            #expect(came == Self.sent)
            #expect(try client.wire.read().isEmpty)
            try client.wire.write(Array("more".utf8))
            #expect(try origin.read() == Array("more".utf8))
            try client.wire.finishInOrder()
            #expect(try origin.read().isEmpty)
            try s.expect(.tunnelsClosed, 1)
            #expect(s.count(.bytesTunnelledToClients) == UInt64(Self.sent.count))
            #expect(s.count(.bytesTunnelledFromClients) == UInt64(way.hello.count + 4))
            #expect(try Self.closeOf(s) == nil)
            #expect(try s.logLines().last?.contains("\"bytes\":\(Self.sent.count),") == true)
        }
    }
}

/// The client has its 200, and Larder waits for the first bytes. The origin is connected.
@Suite("Tunnels: a reset before the first bytes are judged")
struct UnjudgedTunnelScenarios {
    /// - Parameters:
    ///   - isSecured: the client speaks TLS with the proxy.
    ///   - protocols: with `.tls` the origin cannot speak first, and is not read before.
    private static func unjudged(
        _ isSecured: Bool, protocols: TunnelProtocols? = nil, configure: (inout Configuration) -> Void = { _ in },
        _ play: (Scenario, ScriptedClient, Wire) throws -> Void
    ) throws {
        let origin = try RawOrigin()
        try ScenarioTests.scenario({ configuration, files in
            let way = isSecured ? Way.securedJudged : .judged
            try way.configure(&configuration, files, origin.port)
            configuration.access.rules[0].tunnel = protocols
            configure(&configuration)
        }) { s in
            let client = try isSecured ? securedClient(s) : s.client()
            try client.ask("CONNECT", "judged.test:\(origin.port)")
            let taken = try origin.accept(s)
            #expect(try client.response(to: "CONNECT").status == 200)
            try play(s, client, taken)
        }
    }

    /// `close` in the one line that tells that something was broken off. The connections are closed.
    private static func expectClose(_ s: Scenario, _ reason: String) throws {
        let lines = try s.logLines().filter { $0.contains("\"broken\":true") }
        #expect(lines.count == 1 && lines[0].contains("\"close\":\"\(reason)\""), "\(lines)")
    }

    private static let hello = HelloBytes(name: "judged.test").bytes

    @Test(arguments: [false, true], [0, 1, 50])
    func `the origin of a client that resets is reset, and has got nothing`(_ isSecured: Bool, _ sent: Int) throws {
        try Self.unjudged(isSecured) { s, client, origin in
            if sent > 0 { try client.wire.write(Array(Self.hello.prefix(sent))) }
            client.wire.reset()
            #expect(try origin.untilReset().isEmpty)
            #expect(s.count(.tunnels) == 0)
            try Self.expectClose(s, "client-reset")
        }
    }

    @Test(arguments: [false, true], [0, 50])
    func `the client of an origin that resets is reset`(_ isSecured: Bool, _ sent: Int) throws {
        try Self.unjudged(isSecured) { s, client, origin in
            if sent > 0 { try client.wire.write(Array(Self.hello.prefix(sent))) }
            origin.reset()
            #expect(try client.wire.untilReset().isEmpty)
            #expect(s.count(.tunnels) == 0)
            try Self.expectClose(s, "origin-reset")
        }
    }

    @Test(arguments: [false, true])
    func `an origin that is not heard before is reset for the client when its bytes are passed on`(_ isSecured: Bool)
        throws
    {
        try Self.unjudged(isSecured, protocols: .tls) { s, client, origin in
            origin.reset()
            try client.wire.write(Self.hello)
            #expect(try client.wire.untilReset().isEmpty)
            try s.expect(.tunnelsClosed, 1)
            try Self.expectClose(s, "origin-reset")
        }
    }

    @Test(arguments: [false, true])
    func `a client that ends in order and has sent nothing ends the origin in order`(_ isSecured: Bool) throws {
        try Self.unjudged(isSecured) { s, client, origin in
            try client.wire.finishInOrder()
            #expect(try origin.read().isEmpty)
            #expect(try client.wire.read().isEmpty)
        }
    }

    @Test(arguments: [false, true])
    func `a client that ends within its first bytes has the origin reset`(_ isSecured: Bool) throws {
        try Self.unjudged(isSecured) { s, client, origin in
            try client.wire.write(Array(Self.hello.dropLast()))
            try client.wire.finishInOrder()
            #expect(try origin.untilReset().isEmpty)
            #expect(try client.wire.read().isEmpty)
        }
    }

    @Test(arguments: [false, true])
    func `a client that is refused has its alert, and the origin is reset`(_ isSecured: Bool) throws {
        try Self.unjudged(isSecured) { s, client, origin in
            try client.wire.write(HelloBytes(name: "other.test").bytes)
            #expect(try client.reader.untilEnd() == [0x15, 3, 3, 0, 2, 2, 112])
            #expect(try origin.untilReset().isEmpty)
        }
    }

    @Test(arguments: [false, true])
    func `an origin that ends in order ends the client in order`(_ isSecured: Bool) throws {
        try Self.unjudged(isSecured) { s, client, origin in
            try origin.finishInOrder()
            #expect(try client.wire.read().isEmpty)
            #expect(try origin.read().isEmpty)
        }
    }
}
