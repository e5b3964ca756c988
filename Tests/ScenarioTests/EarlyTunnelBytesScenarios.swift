import Access
import Foundation
import Message
import Rules
import Server
import Settings
import TLS
import Testing

/// What becomes of a tunnel, which decides when and by whom the client's connection is taken over.
private enum Use: String, CaseIterable, CustomTestStringConvertible {
    /// The bytes are passed on unread.
    case passed
    /// The first bytes are judged; the origin is connected before the 200.
    case judged
    /// The access rules look at the server name; the origin is connected afterwards.
    case heard
    case opened

    var testDescription: String { rawValue }

    func configure(_ configuration: inout Configuration, _ files: Scenario.Files, _ port: UInt16) throws {
        configuration.dns.hosts = [DNSEntry(name: "*.test", values: [IPAddress(v4: 0x7F00_0001)])]
        configuration.access.connectPorts = [1...65535]
        var host = RuleConditions()
        host.hosts = [HostPattern("cdn.test")!]
        var name = RuleConditions()
        name.serverNames = [HostPattern("*.bad.test")!]
        switch self {
        case .passed: configuration.access.rules = [AccessRule(effect: .allow, number: 1)]
        case .judged: configuration.access.rules = [AccessRule(effect: .allow, conditions: host, number: 1)]
        case .heard:
            configuration.access.rules = [
                AccessRule(effect: .deny(reason: nil), conditions: name, number: 1),
                AccessRule(effect: .allow, number: 2),
            ]
        case .opened:
            configuration.access.rules = [AccessRule(effect: .allow, number: 1)]
            try files.intercept("cdn.test", in: &configuration)
        }
    }

    /// What the client sends in the tunnel, with its request for it.
    func bytes(_ count: Int, _ port: UInt16) -> [UInt8] {
        let rest = (0..<count).map { UInt8(truncatingIfNeeded: $0 % 251) }
        return switch self {
        case .passed: rest
        case .judged, .heard: HelloBytes(name: "cdn.test").bytes + rest
        case .opened:
            Array("POST /a HTTP/1.1\r\nHost: cdn.test:\(port)\r\nContent-Length: \(count)\r\n\r\n".utf8) + rest
        }
    }
}

/// How the client asks for the tunnel.
private enum Asking: String, CaseIterable, CustomTestStringConvertible {
    case connect, socks, connectOverTLS, socksOverTLS

    var testDescription: String { rawValue }
    var isSecured: Bool { self == .connectOverTLS || self == .socksOverTLS }
    var isSocks: Bool { self == .socks || self == .socksOverTLS }

    func bytes(_ port: UInt16) -> [UInt8] {
        guard isSocks else { return Array("CONNECT cdn.test:\(port) HTTP/1.1\r\nHost: cdn.test:\(port)\r\n\r\n".utf8) }
        return [5, 1, 0, 5, 1, 0, 3, 8] + Array("cdn.test".utf8) + [UInt8(port >> 8), UInt8(port & 255)]
    }

    func readAnswer(_ client: ScriptedClient) throws {
        guard isSocks else { return #expect(try client.response(to: "CONNECT").status == 200) }
        let answer = try client.reader.bytes(12)
        #expect(answer[0..<4] == [5, 0, 5, 0])
    }
}

@Suite("RFC 9110 §9.3.6 Bytes that come together with the request for a tunnel")
struct EarlyTunnelBytesScenarios {
    @Test(arguments: Use.allCases, Asking.allCases)
    fileprivate func `each byte reaches the origin once, in order`(_ use: Use, _ asking: Asking) throws {
        let made = try MadeCertificate(for: "IP:127.0.0.1")
        for count in [5, 20_000, 300_000] {
            let origin = try RawOrigin()
            try scenario(
                { configuration, files in
                    try use.configure(&configuration, files, origin.port)
                    if asking.isSecured { configuration.secure(try files.listenerTLS(made)) }
                }
            ) { s in
                let client = try asking.isSecured ? s.securedClient(trusting: made) : s.client()
                let sent = use.bytes(count, origin.port)
                try client.wire.write(asking.bytes(origin.port) + sent)
                try asking.readAnswer(client)
                let taken = try origin.accept(s)
                // The head of a request is written anew.
                let expected = use == .opened ? sent.suffix(count) : sent[...]
                var came: [UInt8] = []
                let length = { use == .opened ? came.count - (Self.bodyStart(came) ?? came.count) : came.count }
                while length() < expected.count {
                    let bytes = try taken.read()
                    guard !bytes.isEmpty else { break }
                    came += bytes
                }
                #expect(came.suffix(expected.count) == expected, "\(count)")
                if use != .opened { #expect(came.count == expected.count, "\(count)") }
            }
        }
    }

    private static func bodyStart(_ bytes: [UInt8]) -> Int? {
        let end = Array("\r\n\r\n".utf8)
        return bytes.indices.dropLast(3).first { bytes[$0] == end[0] && bytes[$0..<($0 + 4)].elementsEqual(end) }.map {
            $0 + 4
        }
    }

    @Test func `the first bytes are judged as if they came later`() throws {
        let origin = try RecordingOrigin(answer: "answer")
        defer { origin.end() }
        try scenario({ try Use.heard.configure(&$0, $1, origin.port) }) { s in
            let client = try s.client()
            try client.wire.write(Asking.connect.bytes(origin.port) + HelloBytes(name: "x.bad.test").bytes)
            #expect(try client.response(to: "CONNECT").status == 200)
            #expect(try client.reader.untilEnd() == [0x15, 3, 3, 0, 2, 2, 112])
            #expect(origin.connectionCount == 0)
        }
    }
}
