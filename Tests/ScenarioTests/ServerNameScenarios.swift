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

    // MARK: a client that is silent

    /// The tunnel may carry anything, unless a rule denies the name. A client is silent after 100 ms.
    private static func denyBadNames(_ configuration: inout Configuration) {
        configuration.limits.helloTimeout = .milliseconds(100)
        var conditions = RuleConditions()
        conditions.serverNames = [HostPattern("*.bad.test")!]
        conditions.addresses = [AddressRange("127.0.0.0/8")!]
        configuration.access.rules = [
            AccessRule(effect: .deny(reason: nil), conditions: conditions, number: 1),
            AccessRule(effect: .allow, number: 2),
        ]
    }

    private static func withSilence(
        greeting: String = "", _ configure: @escaping (inout Configuration) -> Void = { _ in },
        _ play: (Scenario, RecordingOrigin) throws -> Void
    ) throws {
        let origin = try RecordingOrigin(greeting: greeting, answer: "answer")
        defer { origin.end() }
        try scenario(
            { configuration, _ in
                configuration.dns.hosts = [DNSEntry(name: "*.test", values: [IPAddress(v4: 0x7F00_0001)])]
                configuration.access.connectPorts = [1...65535]
                denyBadNames(&configuration)
                configure(&configuration)
            }, { try play($0, origin) })
    }

    /// A tunnel in which the server has spoken, after the client was silent for the time limit.
    private static func greeted(_ s: Scenario, _ origin: RecordingOrigin) throws -> ScriptedClient {
        let client = try s.tunnel(to: "cdn.test:\(origin.port)")
        #expect(try client.reader.line() == "220 mail.test")
        return client
    }

    static let deniedLate: [(what: String, bytes: [UInt8], reason: CloseReason, alert: UInt8?)] = [
        ("the denied name", HelloBytes(name: "x.bad.test").bytes, .tunnelRefused, 112),
        ("a trailing dot", HelloBytes(name: "x.bad.test.").bytes, .malformedHello, 47),
        ("an inner hello", HelloBytes(name: "good.test", encryptedHello: [1]).bytes, .malformedHello, 47),
        ("no ClientHello", [0x16, 3, 1, 0, 4, 2, 0, 0, 0], .malformedHello, 50),
        ("half a ClientHello", Array(HelloBytes(name: "x.bad.test").bytes.dropLast()), .helloTimeout, nil),
    ]
    @Test(arguments: deniedLate)
    func `a client that is silent at first gets what the server says, and no denied name through`(
        _ row: (what: String, bytes: [UInt8], reason: CloseReason, alert: UInt8?)
    ) throws {
        try Self.withSilence(greeting: "220 mail.test\r\n") { s, origin in
            let client = try Self.greeted(s, origin)
            try client.wire.write(row.bytes)
            #expect(try client.reader.untilEnd() == (row.alert.map { [0x15, 3, 3, 0, 2, 2, $0] } ?? []), "\(row.what)")
            try s.expect(.tunnelsClosed, 1)
            #expect(origin.bytes.isEmpty, "\(row.what)")
            #expect(try s.stat(.closes, row.reason.name) == 1, "\(row.what)")
            #expect(s.count(.clientConnectionsAccepted) == s.count(.clientConnectionsClosed))
            let lines = try s.logLines()
            #expect(
                lines.count == 1 && lines[0].contains("\"outcome\":\"refused\"")
                    && lines[0].contains("\"close\":\"\(row.reason.name)\"")
                    && lines[0].contains("\"denial\":") == (row.reason == .tunnelRefused), "\(lines)")
        }
    }

    static let passedLate: [(what: String, bytes: [UInt8])] = [
        ("another name", HelloBytes(name: "good.test").bytes), ("no name", HelloBytes().bytes),
        ("SMTP", Array("EHLO client.test\r\n".utf8)), ("SSH", Array("SSH-2.0-x\r\n".utf8)),
        ("HTTP", Array("GET / HTTP/1.1\r\n\r\n".utf8)),
    ]
    @Test(arguments: passedLate, [false, true])
    func `a client that is silent at first is passed on from its first byte`(
        _ row: (what: String, bytes: [UInt8]), byteByByte: Bool
    ) throws {
        try Self.withSilence(greeting: "220 mail.test\r\n", { $0.limits.helloTimeout = .milliseconds(500) }) {
            s, origin in
            let client = try Self.greeted(s, origin)
            if byteByByte {
                for byte in row.bytes { try client.wire.write([byte]) }
            } else {
                try client.wire.write(row.bytes)
            }
            #expect(try client.reader.bytes(6) == Array("answer".utf8))
            let more = [UInt8](repeating: 7, count: 300_000)
            try client.wire.write(more)
            try s.eventually("all of it arrives") { origin.bytes == row.bytes + more }
            client.wire.finishWriting()
            #expect(try client.reader.untilEnd().isEmpty)
            try s.expect(.tunnelsClosed, 1)
            #expect(try s.logLines().allSatisfy { $0.contains("\"outcome\":\"tunnel\"") })
        }
    }

    @Test func `a client that says nothing at all hears the server to its end`() throws {
        for ends in [false, true] {
            try Self.withSilence(greeting: "220 mail.test\r\n") { s, origin in
                let client = try Self.greeted(s, origin)
                if ends { client.wire.finishWriting() } else { origin.end() }
                if !ends { client.wire.finishWriting() }
                #expect(try client.reader.untilEnd().isEmpty)
                try s.expect(.tunnelsClosed, 1)
                #expect(origin.bytes.isEmpty)
            }
        }
    }

    /// The rule looks at an address, and the next proxy connects to one that is not known here.
    @Test(arguments: ["x.bad.test", "good.test"])
    func `what a silent client sends later waits for the address`(_ name: String) throws {
        let names = try ScriptedNames(.addresses(["cdn.test": [[0x7F00_0001]]]))
        let proxy = try RawOrigin()
        let asking = { (configuration: inout Configuration) in
            configuration.dns.hosts = []
            configuration.dns.hostsFile = nil
            configuration.dns.servers = [.tcp(IPAddress(v4: 0x7F00_0001), port: names.port)]
        }
        try Self.withSilence(
            greeting: "",
            asking
        ) { s, _ in
            try s.adopt(routes: s.nextProxy(port: proxy.port)) { configuration in
                configuration.access.connectPorts = [1...65535]
                Self.denyBadNames(&configuration)
                asking(&configuration)
            }
            let client = try s.tunnel(to: "cdn.test:8080")
            let taken = try proxy.accept(s)
            var head = ""
            while !head.hasSuffix("\r\n\r\n") { head += String(decoding: try taken.read(), as: UTF8.self) }
            try taken.write(Array("HTTP/1.1 200 OK\r\n\r\n220 mail.test\r\n".utf8))
            #expect(try client.reader.line() == "220 mail.test")
            let hello = HelloBytes(name: name).bytes
            try client.wire.write(hello)
            guard name == "good.test" else {
                #expect(try client.reader.untilEnd() == [0x15, 3, 3, 0, 2, 2, 112])
                #expect(names.asked.contains("cdn.test"))
                return try s.expect(.tunnelsClosed, 1)
            }
            var came: [UInt8] = []
            while came.count < hello.count { came += try taken.read() }
            #expect(came == hello)
            #expect(names.asked.isEmpty)
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
