import Access
import Foundation
import Message
import Rules
import Server
import Settings
import Testing
import Transaction

@Suite("Access: rules with a server name (SNI)")
struct ServerNameScenarios {
    private static func withRules(
        _ rules: (UInt16) -> [(AccessRule.Effect, (inout RuleConditions) -> Void)],
        configure: (inout Configuration, Scenario.Files) throws -> Void = { _, _ in },
        _ play: (Scenario, RecordingOrigin) throws -> Void
    ) throws {
        let origin = try RecordingOrigin(answer: "answer")
        defer { origin.end() }
        try scenario(
            { configuration, files in
                configuration.dns.hosts = [DNSEntry(name: "*.test", values: [IPAddress(v4: 0x7F00_0001)])]
                configuration.access.connectPorts = [1...65535]
                configuration.access.rules = rules(origin.port).enumerated().map { index, rule in
                    var made = AccessRule(effect: rule.0, number: index + 1)
                    rule.1(&made.conditions)
                    return made
                }
                try configure(&configuration, files)
            }, { try play($0, origin) })
    }

    private static func allowing(_ port: UInt16) -> [(AccessRule.Effect, (inout RuleConditions) -> Void)] {
        [
            (
                .allow,
                {
                    $0.hosts = [HostPattern("cdn.test")!]
                    $0.serverNames = [HostPattern("good.test")!]
                }
            )
        ]
    }

    @Test func `a name that a rule allows goes to the origin, which is connected then`() throws {
        try Self.withRules(Self.allowing) { s, origin in
            let client = try s.tunnel(to: "cdn.test:\(origin.port)")
            // The client has its 200, and nothing has been opened.
            #expect(origin.connectionCount == 0)
            let hello = HelloBytes(name: "good.test").bytes
            for byte in hello.dropLast() {
                try client.wire.write([byte])
                #expect(origin.connectionCount == 0)
            }
            try client.wire.write([hello[hello.count - 1]])
            #expect(try client.reader.bytes(6) == Array("answer".utf8))
            #expect(origin.bytes == hello)
            client.wire.hangUp()
            try s.expect(.tunnelsClosed, 1)
        }
    }

    static let refused: [(what: String, bytes: [UInt8], alert: UInt8?)] = [
        ("another name", HelloBytes(name: "bad.test").bytes, 112),
        ("the host", HelloBytes(name: "cdn.test").bytes, 112),
        ("no name", HelloBytes().bytes, 112), ("a trailing dot", HelloBytes(name: "good.test.").bytes, 47),
        ("a NUL", HelloBytes(name: "good.test\0.bad.test").bytes, 47),
        ("an inner hello", HelloBytes(name: "good.test", encryptedHello: [1]).bytes, 47),
        ("HTTP", Array("GET / HTTP/1.1\r\nHost: good.test\r\n\r\n".utf8), nil),
        ("SSH", Array("SSH-2.0-x\r\n".utf8), nil),
    ]
    @Test(arguments: refused) func `nothing else is connected`(_ row: (what: String, bytes: [UInt8], alert: UInt8?))
        throws
    {
        try Self.withRules(Self.allowing) { s, origin in
            let client = try s.tunnel(to: "cdn.test:\(origin.port)")
            try client.wire.write(row.bytes)
            #expect(try client.reader.untilEnd() == (row.alert.map { [0x15, 3, 3, 0, 2, 2, $0] } ?? []), "\(row.what)")
            #expect(origin.connectionCount == 0, "\(row.what)")
            if row.alert != 47 {
                let lines = try s.logLines()
                #expect(
                    lines.count == 1 && lines[0].contains(#""status":200"#) && lines[0].contains(#""denial":"#),
                    "\(lines)")
            }
        }
    }

    @Test func `a name that a rule denies is refused, and others pass as they are`() throws {
        try Self.withRules({ _ in
            [(.deny(reason: nil), { $0.serverNames = [HostPattern("*.bad.test")!] }), (.allow, { _ in })]
        }) { s, origin in
            let denied = try s.tunnel(to: "cdn.test:\(origin.port)")
            try denied.wire.write(HelloBytes(name: "x.bad.test").bytes)
            #expect(try denied.reader.untilEnd() == [0x15, 3, 3, 0, 2, 2, 112])
            #expect(origin.connectionCount == 0)
            for bytes in [HelloBytes(name: "cdn.test").bytes, Array("anything".utf8)] {
                let client = try s.tunnel(to: "cdn.test:\(origin.port)")
                try client.wire.write(bytes)
                #expect(try client.reader.bytes(6) == Array("answer".utf8))
            }
        }
    }

    @Test func `where no such rule can matter, the origin is connected before the 200`() throws {
        try Self.withRules({ port in Self.allowing(port) + [(.allow, { $0.hosts = [HostPattern("other.test")!] })] }) {
            s, origin in
            let client = try s.tunnel(to: "other.test:\(origin.port)")
            try s.eventually("it is connected") { origin.connectionCount == 1 }
            client.wire.hangUp()
            let refused = try s.client()
            try refused.ask("CONNECT", "none.test:\(origin.port)")
            #expect(try refused.response(to: "CONNECT").status == 403)
        }
    }

    /// Static entries are known at once; a name server is asked, and the tunnel waits.
    @Test(arguments: [false, true])
    func `the terms are those of the rule that allows the address`(_ asksServer: Bool) throws {
        let names = try ScriptedNames(.addresses(["cdn.test": [[0x7F00_0001]]]))
        try Self.withRules(
            { _ in
                [
                    (.allow, { $0.hosts = [HostPattern("other.test")!] }),
                    (
                        .allow,
                        {
                            $0.addresses = [AddressRange("127.0.0.0/8")!]
                            $0.serverNames = [HostPattern("good.test")!]
                        }
                    ), (.allow, { $0.addresses = [AddressRange("127.0.0.0/8")!] }),
                ]
            },
            configure: { configuration, _ in
                configuration.access.rules[2].tunnel = .any
                guard asksServer else { return }
                configuration.dns.hosts = []
                configuration.dns.hostsFile = nil
                configuration.dns.servers = [.tcp(IPAddress(v4: 0x7F00_0001), port: names.port)]
            }
        ) { s, origin in
            for bytes in [HelloBytes(name: "good.test").bytes, Array("anything".utf8)] {
                let client = try s.tunnel(to: "cdn.test:\(origin.port)")
                try client.wire.write(bytes)
                #expect(try client.reader.bytes(6) == Array("answer".utf8))
            }
            #expect(names.asked.isEmpty != asksServer)
            guard asksServer else { return }
            let lost = try s.tunnel(to: "none.test:\(origin.port)")
            #expect(!names.asked.contains("none.test"))
            try lost.wire.write(HelloBytes(name: "good.test").bytes)
            #expect(try lost.reader.untilEnd() == [])
            #expect(names.asked.contains("none.test") && origin.connectionCount == 2)
        }
    }

    @Test func `a rule that only reports is counted once for a tunnel`() throws {
        try Self.withRules(
            { _ in
                [
                    (.deny(reason: nil), { $0.methods = ["CONNECT"] }),
                    (.deny(reason: nil), { $0.serverNames = [HostPattern("bad.test")!] }), (.allow, { _ in }),
                ]
            }, configure: { configuration, _ in configuration.access.rules[0].isReport = true }
        ) { s, origin in
            let client = try s.tunnel(to: "cdn.test:\(origin.port)")
            try client.wire.write(HelloBytes(name: "cdn.test").bytes)
            #expect(try client.reader.bytes(6) == Array("answer".utf8))
            #expect(s.count(.reported) == 1)
        }
    }

    @Test func `requests in an opened tunnel have the name of the tunnel`() throws {
        try Self.withRules(
            { _ in
                [
                    (.allow, { $0.methods = ["CONNECT"] }),
                    (
                        .allow,
                        {
                            $0.serverNames = [HostPattern("cdn.test")!]
                            $0.paths = [PathPattern("/open/*")!]
                        }
                    ),
                ]
            }, configure: { try $1.intercept("*.test", in: &$0) }
        ) { s, origin in
            let client = try s.secureTunnel(to: "cdn.test:443")
            #expect(try client.getInside("/closed/a", host: "cdn.test").status == 403)
            let allowed = try client.getInside("/open/a", host: "cdn.test")
            #expect(allowed.status != 403, "\(allowed)")
            // Without a tunnel there is no name.
            let plain = try s.client()
            try plain.ask("GET", "http://cdn.test:\(origin.port)/open/a")
            #expect(try plain.response().status == 403)
        }
    }
}
