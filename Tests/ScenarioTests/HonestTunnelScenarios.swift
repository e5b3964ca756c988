import Access
import Foundation
import Message
import Rules
import Server
import Settings
import TLS
import Testing
import Transaction

/// What a tunnel carries is judged by the first bytes, while nothing is decrypted.
@Suite("Honest tunnels: the first bytes after CONNECT")
struct HonestTunnelScenarios {
    /// `allowed.test` is at the origin, and the one rule is for it. Nothing else is said of tunnels.
    private static func withRule(
        tunnel: TunnelProtocols? = nil, greeting: String = "", answer: String = "answer",
        configure: (inout Configuration) -> Void = { _ in },
        _ play: (Scenario, RecordingOrigin) throws -> Void
    ) throws {
        let origin = try RecordingOrigin(greeting: greeting, answer: answer)
        defer { origin.end() }
        try scenario(
            { configuration, _ in
                configuration.dns.hosts = [DNSEntry(name: "*.test", values: [IPAddress(v4: 0x7F00_0001)])]
                var conditions = RuleConditions()
                conditions.hosts = [HostPattern("allowed.test")!]
                conditions.ports = [origin.port...origin.port]
                configuration.access.rules = [
                    AccessRule(effect: .allow, conditions: conditions, tunnel: tunnel, number: 1)
                ]
                configure(&configuration)
            }, { try play($0, origin) })
    }

    private static func tunnel(_ s: Scenario, _ origin: RecordingOrigin, host: String = "allowed.test") throws
        -> ScriptedClient
    { try s.tunnel(to: "\(host):\(origin.port)") }

    // MARK: what is passed on

    static let honest: [(what: String, hello: HelloBytes)] = [
        ("the host", HelloBytes(name: "allowed.test")), ("in another case", HelloBytes(name: "ALLOWED.Test")),
        ("random bytes like an encrypted hello", HelloBytes(name: "allowed.test", encryptedHello: HelloBytes.grease)),
        ("one byte in each record", HelloBytes(name: "allowed.test", recordMax: 1)),
        ("15 KiB", HelloBytes(name: "allowed.test", padding: 15 << 10)),
    ]

    @Test(arguments: honest)
    func `a ClientHello for the host goes to the origin as it came`(_ row: (what: String, hello: HelloBytes)) throws {
        try Self.withRule { s, origin in
            let client = try Self.tunnel(s, origin)
            let sent = row.hello.bytes
            try client.wire.write(sent)
            #expect(try client.reader.bytes(6) == Array("answer".utf8))
            try s.eventually("all of it arrives") { origin.bytes == sent }
            client.wire.finishWriting()
            try s.expect(.tunnels, 1)
        }
    }

    @Test func `a ClientHello may come byte by byte, and nothing of it goes out before it is whole`() throws {
        try Self.withRule { s, origin in
            let client = try Self.tunnel(s, origin)
            let before = s.count(.bytesFromClients)
            let sent = HelloBytes(name: "allowed.test").bytes
            for byte in sent.dropLast() {
                try client.wire.write([byte])
                #expect(origin.bytes.isEmpty)
            }
            try s.expect(.bytesFromClients, before + UInt64(sent.count) - 1)
            #expect(origin.bytes.isEmpty)
            try client.wire.write([sent[sent.count - 1]])
            #expect(try client.reader.bytes(6) == Array("answer".utf8))
            #expect(origin.bytes == sent)
        }
    }

    @Test func `bytes that come with the CONNECT wait for the 200, and are judged like others`() throws {
        for (name, isPassed) in [("allowed.test", true), ("other.test", false)] {
            try Self.withRule { s, origin in
                let client = try s.client()
                let authority = "allowed.test:\(origin.port)"
                let hello = HelloBytes(name: name).bytes
                try client.wire.write(
                    Array("CONNECT \(authority) HTTP/1.1\r\nHost: \(authority)\r\n\r\n".utf8) + hello)
                #expect(try client.response(to: "CONNECT").status == 200)
                let came = try client.reader.bytes(6)
                #expect(came == (isPassed ? Array("answer".utf8) : [0x15, 3, 3, 0, 2, 2]))
                #expect(origin.bytes == (isPassed ? hello : []))
            }
        }
    }

    @Test func `a whole TLS session goes through`() throws {
        let certificate = try MadeCertificate(for: "DNS:allowed.test")
        let origin = try TLSOrigin(certificate, .answers("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecret"))
        defer { origin.end() }
        try scenario({ configuration, _ in
            configuration.dns.hosts = [DNSEntry(name: "allowed.test", values: [IPAddress(v4: 0x7F00_0001)])]
            var conditions = RuleConditions()
            conditions.hosts = [HostPattern("allowed.test")!]
            conditions.ports = [origin.port...origin.port]
            configuration.access.rules = [
                AccessRule(effect: .allow, conditions: conditions, tunnel: .tls, number: 1)
            ]
        }) { s in
            let path = try Scenario.Files(directory: s.directory, origin: s.origin)
                .write("ca.pem", certificate.certificate)
            let context = try TLSClientContext(authorities: .file(path))
            let client = try s.secureTunnel(
                to: "allowed.test:\(origin.port)", name: "allowed.test", trusting: context)
            #expect(try client.getInside("/a", host: "allowed.test").text == "secret")
        }
    }

    // MARK: what is refused

    private static func alert(_ code: UInt8) -> [UInt8] { [0x15, 3, 3, 0, 2, 2, code] }

    static let refused: [(what: String, bytes: [UInt8], reason: CloseReason, alert: UInt8?)] = [
        ("another name", HelloBytes(name: "denied.test").bytes, .serverNameMismatch, 112),
        ("a trailing dot", HelloBytes(name: "allowed.test.").bytes, .serverNameMismatch, 112),
        ("a NUL", HelloBytes(name: "allowed.test\0.denied.test").bytes, .serverNameMismatch, 112),
        ("no name", HelloBytes().bytes, .serverNameMissing, 109),
        (
            "a public name before an encrypted hello",
            HelloBytes(name: "public.test", encryptedHello: HelloBytes.grease).bytes, .serverNameMismatch, 112
        ),
        ("an inner hello", HelloBytes(name: "allowed.test", encryptedHello: [1]).bytes, .malformedHello, 47),
        ("17 KiB", HelloBytes(name: "allowed.test", padding: 17 << 10).bytes, .malformedHello, 50),
        ("no ClientHello", [0x16, 3, 1, 0, 4, 2, 0, 0, 0], .malformedHello, 50),
        ("HTTP", Array("GET http://denied.test/ HTTP/1.1\r\nHost: denied.test\r\n\r\n".utf8), .tlsMissing, nil),
        ("HTTP behind an empty line", Array("\r\nGET / HTTP/1.1\r\n".utf8), .tlsMissing, nil),
        ("HTTP/2 without TLS", Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8), .tlsMissing, nil),
        ("SOCKS", [5, 1, 0], .tlsMissing, nil),
    ]

    @Test(arguments: refused)
    func `where a rule names hosts, nothing else reaches the origin`(
        _ row: (what: String, bytes: [UInt8], reason: CloseReason, alert: UInt8?)
    ) throws {
        try Self.withRule { s, origin in
            let client = try Self.tunnel(s, origin)
            try client.wire.write(row.bytes)
            // Some of a long hello may not have been read, which resets the connection.
            let end: [UInt8]? = try? client.reader.untilEnd()
            if row.bytes.count < 1000 { #expect(end == row.alert.map(Self.alert) ?? [], "\(row.what)") }
            try s.eventually("it is counted") { try s.stat(.closes, row.reason.name) == 1 }
            #expect(origin.bytes.isEmpty, "\(row.what)")
            #expect(s.count(.tunnels) == 0)
            try s.eventually("each connection is counted once") {
                s.count(.clientConnectionsAccepted) == s.count(.clientConnectionsClosed)
            }
            let line = try s.logLines().first { $0.contains("\"close\":\"\(row.reason.name)\"") }
            #expect(line?.contains("\"outcome\":\"refused\"") == true, "\(row.what)")
        }
    }

    @Test(arguments: [[], [0x16], Array(HelloBytes(name: "allowed.test").bytes.dropLast())])
    func `a client that does not send a whole ClientHello in time gets nothing`(_ bytes: [UInt8]) throws {
        try Self.withRule(configure: { $0.limits.helloTimeout = .milliseconds(200) }) { s, origin in
            let client = try Self.tunnel(s, origin)
            try client.wire.write(bytes)
            try client.expectClosed()
            #expect(origin.bytes.isEmpty)
            try s.eventually("it is counted") { try s.stat(.closes, CloseReason.helloTimeout.name) == 1 }
        }
    }

    @Test func `a client that leaves first frees its place`() throws {
        try Self.withRule(configure: { $0.limits.tunnelsMax = 1 }) { s, origin in
            for _ in 0..<3 {
                // A refusal ends the connection.
                var client = try s.client()
                try s.eventually("there is room") {
                    client = try s.client()
                    return try client.request("CONNECT", "allowed.test:\(origin.port)").status == 200
                }
                client.wire.reset()
                try s.eventually("it is gone") {
                    s.count(.clientConnectionsAccepted) == s.count(.clientConnectionsClosed)
                }
            }
            #expect(origin.bytes.isEmpty)
        }
    }

    @Test func `an origin that leaves first ends the tunnel`() throws {
        try Self.withRule { s, origin in
            let client = try Self.tunnel(s, origin)
            try s.eventually("it is connected") { origin.connectionCount == 1 }
            origin.end()
            try client.expectClosed()
            try s.eventually("it is counted") { try s.stat(.closes, CloseReason.tunnelRefused.name) == 1 }
        }
    }

    @Test func `Larder stops while a client has not begun`() throws {
        try Self.withRule { s, origin in
            let client = try Self.tunnel(s, origin)
            s.proxy.drain()
            try client.expectClosed()
        }
    }

    // MARK: other protocols

    @Test func `a server may speak first, as with SMTP`() throws {
        try Self.withRule(greeting: "220 mail.test\r\n") { s, origin in
            let client = try Self.tunnel(s, origin)
            #expect(try client.reader.line() == "220 mail.test")
            try client.send("EHLO client.test\r\n")
            #expect(try client.reader.bytes(6) == Array("answer".utf8))
            #expect(origin.bytes == Array("EHLO client.test\r\n".utf8))
        }
    }

    @Test func `SSH goes through, whoever speaks first`() throws {
        for greeting in ["", "SSH-2.0-server\r\n"] {
            try Self.withRule(greeting: greeting) { s, origin in
                let client = try Self.tunnel(s, origin)
                try client.send("SSH-2.0-client\r\n")
                if !greeting.isEmpty { #expect(try client.reader.line() == "SSH-2.0-server") }
                #expect(try client.reader.bytes(6) == Array("answer".utf8))
                #expect(origin.bytes == Array("SSH-2.0-client\r\n".utf8))
            }
        }
    }

    @Test func `tunnel: tls wants TLS, whatever the server says`() throws {
        try Self.withRule(tunnel: .tls, greeting: "220 mail.test\r\n") { s, origin in
            let client = try Self.tunnel(s, origin)
            try client.send("SSH-2.0-client\r\n")
            try client.expectClosed()
            #expect(origin.bytes.isEmpty)
        }
    }

    @Test func `tunnel: any passes on whatever comes, at once`() throws {
        try Self.withRule(tunnel: .any) { s, origin in
            let client = try Self.tunnel(s, origin)
            try client.send("x")
            #expect(try client.reader.bytes(6) == Array("answer".utf8))
            #expect(origin.bytes == Array("x".utf8))
        }
    }

    @Test func `where no rule names hosts, another name and another protocol go through`() throws {
        for bytes in [HelloBytes(name: "denied.test").bytes, Array("x".utf8)] {
            try Self.withRule(configure: { $0.access.rules[0].conditions.hosts = [] }) { s, origin in
                let client = try Self.tunnel(s, origin)
                try client.wire.write(bytes)
                #expect(try client.reader.bytes(6) == Array("answer".utf8))
                #expect(origin.bytes == bytes)
            }
        }
    }

    @Test func `a rule that denies hosts names hosts as well`() throws {
        try Self.withRule(configure: { configuration in
            configuration.access.rules[0].effect = .deny(reason: nil)
            configuration.access.rules[0].conditions.hosts = [HostPattern("denied.test")!]
            configuration.access.writtenDefault = .allow
        }) { s, origin in
            #expect(try s.client().request("CONNECT", "denied.test:\(origin.port)").status == 403)
            let client = try Self.tunnel(s, origin)
            try client.wire.write(HelloBytes(name: "denied.test").bytes)
            #expect(try client.reader.untilEnd() == Self.alert(112))
            #expect(origin.bytes.isEmpty)
        }
    }

    // MARK: port 443

    /// Nobody can listen on port 443 here: a next proxy carries the tunnel there.
    @Test func `port 443 is for TLS, without any rule`() throws {
        for (bytes, isPassed) in [
            (HelloBytes(name: "anything.test").bytes, true), (HelloBytes().bytes, true),
            (Array("GET / HTTP/1.1\r\n".utf8), false), (Array("SSH-2.0-client\r\n".utf8), false),
        ] {
            try scenario { s in
                try s.adopt(routes: s.nextProxy())
                s.origin.expects("CONNECT allowed.test:443").sends("HTTP/1.1 200 OK\r\n\r\n").echoes()
                let client = try s.tunnel(to: "allowed.test:443")
                try client.wire.write(bytes)
                client.wire.finishWriting()
                #expect(try client.reader.untilEnd() == (isPassed ? bytes : []))
            }
        }
    }
}
