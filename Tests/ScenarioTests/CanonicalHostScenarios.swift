import Access
import Foundation
import Message
import Routing
import Origins
import Rules
import Server
import Settings
import Testing

/// One form of a host is matched, dialled, keyed and logged.
@Suite("Destinations: one canonical host") struct CanonicalHostScenarios {
    private static let loopback = IPAddress(v4: 0x7F00_0001)
    static let spellings = ["allowed.test", "ALLOWED.Test", "allowed.test.", "Allowed.TEST."]

    /// A name server knows `allowed.test` and nothing else, and a rule allows it.
    private static func withNames(_ play: (Scenario, ScriptedNames) throws -> Void) throws {
        let names = try ScriptedNames(.addresses(["allowed.test": [[0x7F00_0001]]]))
        try scenario(
            { configuration, _ in
                configuration.dns.servers = [.tcp(loopback, port: names.port)]
                configuration.dns.hostsFile = nil
                var conditions = RuleConditions()
                conditions.hosts = [HostPattern("allowed.test")!]
                configuration.access.rules = [AccessRule(effect: .allow, conditions: conditions, number: 1)]
            }, { try play($0, names) })
    }

    @Test func `the same rule, the same name server's question, the same stored response, the same line`() throws {
        try Self.withNames { s, names in
            let port = s.origin.port
            s.origin.expects("GET /a", "Host").replies(200, "Cache-Control: max-age=60", body: "one")
            for (index, host) in Self.spellings.enumerated() {
                let answer = try s.client().get("http://\(host):\(port)/a")
                #expect(answer.text == "one", "\(host): \(answer)")
                #expect(answer.cacheStatus.hasPrefix("larder; hit") == (index > 0), "\(host): \(answer)")
            }
            #expect(Set(names.asked) == ["allowed.test"])
            let lines = try s.logLines()
            #expect(lines.count == Self.spellings.count)
            for line in lines { #expect(line.contains("\"uri\":\"http://allowed.test:\(port)/a\""), "\(line)") }
        }
    }

    @Test(arguments: spellings) func `an origin gets the form of the key, whatever the client sends`(_ host: String)
        throws
    {
        try Self.withNames { s, _ in
            let port = s.origin.port
            for _ in 0..<2 {
                s.origin.expects("GET /a", "Host: allowed.test:\(port)").replies(
                    200, "Cache-Control: no-store", body: "one")
            }
            let client = try s.client()
            #expect(try client.get("http://\(host):\(port)/a").text == "one")
            // Once more with what the connection has remembered.
            #expect(try client.get("http://\(host):\(port)/a").text == "one")
        }
    }

    @Test(arguments: spellings, spellings) func `an opened tunnel and the requests in it may differ in spelling`(
        _ tunnel: String, _ host: String
    ) throws {
        let certificate = try MadeCertificate(for: "DNS:allowed.test")
        let origin = try TLSOrigin(certificate, .answers("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhere"))
        defer { origin.end() }
        try scenario({ configuration, files in
            configuration.dns.hosts = [DNSEntry(name: "allowed.test", values: [Self.loopback])]
            configuration.access.connectPorts = [origin.port...origin.port]
            try files.intercept("allowed.test", in: &configuration)
            configuration.tls.caFile = try files.write("ca.pem", certificate.certificate)
        }) { s in
            // No client sends the dot in SNI (RFC 6066 §3).
            let client = try s.secureTunnel(to: "\(tunnel):\(origin.port)", name: "allowed.test")
            #expect(try client.getInside("/a", host: "\(host):\(origin.port)").text == "here")
            #expect(
                origin.heads.first?.hasPrefix("GET /a HTTP/1.1\r\nHost: allowed.test:\(origin.port)\r\n") == true,
                "\(origin.heads)")
        }
    }

    @Test(arguments: spellings) func `a tunnel is matched, dialled and logged by it`(_ host: String) throws {
        try Self.withNames { s, names in
            let authority = "\(host):\(s.origin.port)"
            let client = try s.tunnel(to: authority)
            client.wire.finishWriting()
            try client.expectClosed()
            #expect(Set(names.asked) == ["allowed.test"])
            let lines = try s.logLines()
            #expect(lines.contains { $0.contains("\"uri\":\"allowed.test:\(s.origin.port)\"") }, "\(lines)")
        }
    }

    /// Each is refused with 400 before any rule, by its syntax.
    static let refused: [(what: String, host: String)] = [
        ("percent-encoding", "allowed%2Etest"), ("an encoded NUL", "allowed.test%00.denied.test"),
        ("a comma", "allowed.test,denied.test"), ("Unicode", "allowed\u{FF0E}test"), ("a long s", "allowed.te\u{17F}t"),
        ("two dots at the end", "allowed.test.."), ("a dot in front", ".allowed.test"),
        ("an empty label", "allowed..test"), ("a label of 64 bytes", String(repeating: "a", count: 64) + ".test"),
        ("254 bytes", String(repeating: "abcdefghi.", count: 25) + "test"), ("a tilde", "~allowed.test"),
        ("an asterisk", "*.test"), ("an ampersand", "allowed&.test"), ("a semicolon", "allowed.test;denied.test"),
        ("a zone", "[fe80::1%25eth0]"), ("a future address", "[v1.a]"), ("a number that is too large", "4294967296"),
        ("five numbers", "1.2.3.4.5"), ("a name that ends in a number", "denied.test.1"),
    ]

    @Test(arguments: refused, ["GET", "CONNECT"])
    func `what is no host is refused`(_ row: (what: String, host: String), _ method: String) throws {
        try Self.withNames { s, names in
            let client = try s.client()
            let authority = "\(row.host):\(s.origin.port)"
            let target = method == "GET" ? "http://\(authority)/a" : authority
            try client.send("\(method) \(target) HTTP/1.1\r\nHost: \(authority)\r\n\r\n")
            let answer = try client.response(to: method)
            #expect(answer.status == 400, "\(row.what): \(answer)")
            #expect(names.asked.isEmpty)
            #expect(s.origin.connectionCount == 0)
        }
    }

    @Test(arguments: ["allowed.test\0", "allowed.test\u{1}", "allowed.test\t", "allowed.test x"])
    func `controls and spaces are refused`(_ host: String) throws {
        try Self.withNames { s, names in
            let client = try s.client()
            try client.send("GET http://\(host)/a HTTP/1.1\r\nHost: allowed.test\r\n\r\n")
            #expect(try client.response().status == 400)
            #expect(names.asked.isEmpty)
        }
    }

    @Test(arguments: ["under_score.test", "_service._tcp.test", "xn--mnchen-3ya.test"])
    func `an underscore and A-labels are names`(_ host: String) throws {
        try scenario({ configuration, _ in
            configuration.dns.hosts = [DNSEntry(name: "*.test", values: [Self.loopback])]
        }) { s in
            s.origin.expects("GET /a", "Host: \(host):\(s.origin.port)").replies(200, body: "found")
            let answer = try s.client().get("http://\(host):\(s.origin.port)/a")
            #expect(answer.text == "found")
        }
    }
}

/// Whoever can make Larder ask for names of his own tells them to his name server.
@Suite("Destinations: a name is resolved once a rule has allowed it") struct ResolvedNameScenarios {
    private static let loopback = IPAddress(v4: 0x7F00_0001)

    private static func withNames(
        answer: [String: [[UInt32]]] = ["allowed.test": [[0x7F00_0001]], "secret.denied.test": [[0x7F00_0001]]],
        _ rules: [AccessRule], configure: (inout Configuration) -> Void = { _ in },
        _ play: (Scenario, ScriptedNames) throws -> Void
    ) throws {
        let names = try ScriptedNames(.addresses(answer))
        try scenario(
            { configuration, _ in
                configuration.dns.servers = [.tcp(loopback, port: names.port)]
                configuration.dns.hostsFile = nil
                configuration.dns.ttlMin = .zero
                configuration.access.rules = rules
                configure(&configuration)
            }, { try play($0, names) })
    }

    private static func rule(
        _ number: Int, _ effect: AccessRule.Effect = .allow, host: String? = nil, address: [UInt32] = []
    ) -> AccessRule {
        var conditions = RuleConditions()
        conditions.hosts = host.flatMap { HostPattern($0) }.map { [$0] } ?? []
        conditions.addresses = address.map { AddressRange(IPAddress(v4: $0)) }
        return AccessRule(effect: effect, conditions: conditions, number: number)
    }

    static let ways = [
        "GET http://secret.denied.test/", "GET https://secret.denied.test/", "POST http://secret.denied.test/",
        "CONNECT secret.denied.test:443", "CONNECT secret.denied.test:22", "OPTIONS http://secret.denied.test",
    ]

    /// Rules under which a denied name has no business with a name server.
    static let rules: [(what: String, rules: [AccessRule])] = [
        ("a host is allowed", [rule(1, host: "allowed.test")]),
        ("a host with an address is allowed", [rule(1, host: "allowed.test", address: [0x7F00_0001])]),
        (
            "an address is denied before",
            [rule(1, .deny(reason: nil), address: [0x7F00_0002]), rule(2, host: "allowed.test")]
        ),
        (
            "the host is denied before an address is allowed",
            [rule(1, .deny(reason: nil), host: "*.denied.test"), rule(2, address: [0x7F00_0001])]
        ),
    ]

    @Test(arguments: ways, rules)
    func `no name server hears of a denied name`(_ way: String, _ row: (what: String, rules: [AccessRule])) throws {
        try Self.withNames(row.rules) { s, names in
            let parts = way.split(separator: " ").map(String.init)
            let client = try s.client()
            try client.ask(parts[0], parts[1])
            #expect(try client.response(to: parts[0]).status == 403, "\(row.what)")
            #expect(names.asked.isEmpty, "\(row.what): \(way)")
        }
    }

    @Test func `nor of one that a redirect names`() throws {
        try Self.withNames(
            [Self.rule(1, host: "allowed.test")],
            configure: { configuration in
                configuration.origins = [OriginRule(RuleConditions(), redirectsMax: 3, number: 1)]
            }
        ) { s, names in
            s.origin.expects("GET /a").replies(302, "Location: http://secret.denied.test:\(s.origin.port)/b")
            let answer = try s.client().get("http://allowed.test:\(s.origin.port)/a")
            #expect(answer.status == 403, "\(answer)")
            #expect(Set(names.asked) == ["allowed.test"])
        }
    }

    /// The name has an address that a rule opens when the rules look, and another one a moment later (DNS rebinding).
    @Test(arguments: ["GET", "CONNECT"])
    func `only an address that was judged is dialled`(_ method: String) throws {
        // The origin listens on 127.0.0.1; 127.0.0.2 is this machine too.
        let (closed, opened) = try RecordingOrigin.pair(RecordingOrigin.page, RecordingOrigin.page)
        defer {
            opened.end()
            closed.end()
        }
        var rule = Self.rule(1, address: [0x7F00_0002])
        rule.conditions.ports = [opened.port...opened.port]
        try Self.withNames(
            answer: ["rebound.test": [[0x7F00_0002], [0x7F00_0001]]], [rule],
            configure: { $0.access.privateDestinations = .deny }
        ) { s, names in
            let target = method == "GET" ? "http://rebound.test:\(opened.port)/" : "rebound.test:\(opened.port)"
            for _ in 0..<3 {
                let answer = try s.client().request(method, target)
                #expect(answer.status == 403, "\(answer)")
            }
            #expect(closed.connectionCount == 0)
            #expect(names.asked.count > 2)
        }
    }
}

@Suite("Destinations: Larder itself, and next proxies") struct OwnAddressScenarios {
    static let spellings = ["127.0.0.1", "localhost", "2130706433", "0.0.0.0", "[::]", "[::ffff:127.0.0.1]"]

    @Test(arguments: spellings, ["GET", "CONNECT"])
    func `no client comes back through the proxy`(_ host: String, _ method: String) throws {
        try scenario({ configuration, _ in
            configuration.access.connectPorts = [1...65535]
            configuration.dns.hosts = [DNSEntry(name: "localhost", values: [IPAddress(v4: 0x7F00_0001)])]
        }) { s in
            let own = s.proxy.addresses[0].port
            let target = method == "GET" ? "http://\(host):\(own)/proxy.pac" : "\(host):\(own)"
            let answer = try s.client().request(method, target)
            #expect(answer.status == 403, "\(answer)")
            #expect(answer["Larder-Deny"]?.hasPrefix("reason=own-listener; ") == true, "\(answer)")
            #expect(s.count(.clientConnectionsAccepted) == 1)
        }
    }

    @Test func `a listener on every address is there under each of them, whatever a rule names`() throws {
        try scenario({ configuration, _ in
            configuration.listen = [.tcp(IPAddress(v4: 0), port: 0)]
            var conditions = RuleConditions()
            conditions.addresses = [AddressRange("0.0.0.0/0")!]
            conditions.ports = [1...65535]
            configuration.access.rules = [AccessRule(effect: .allow, conditions: conditions, number: 1)]
        }) { s in
            let own = s.proxy.addresses[0].port
            for host in ["127.0.0.1", "127.9.9.9", "0.0.0.0"] {
                let answer = try s.client().request("CONNECT", "\(host):\(own)")
                #expect(answer["Larder-Deny"]?.hasPrefix("reason=own-listener; ") == true, "\(host): \(answer)")
            }
        }
    }

    @Test func `a next proxy is no destination, unless a rule names its address`() throws {
        let proxy = try RecordingOrigin(answer: "HTTP/1.1 200 OK\r\n\r\n")
        defer { proxy.end() }
        try scenario({ configuration, files in
            configuration.access.connectPorts = [1...65535]
            var conditions = RuleConditions()
            conditions.hosts = [HostPattern("far.test")!]
            configuration.routes = [
                RouteRule(
                    conditions, via: [.proxy(NextProxy(Endpoint(host: "127.0.0.1", port: proxy.port), .http))],
                    number: 1)
            ]
        }) { s in
            let target = "127.0.0.1:\(proxy.port)"
            let answer = try s.client().request("CONNECT", target)
            #expect(answer["Larder-Deny"]?.hasPrefix("reason=next-proxy; ") == true, "\(answer)")
            #expect(proxy.connectionCount == 0)
            try s.adopt { configuration, _ in
                configuration = s.proxy.snapshot.configuration
                var named = RuleConditions()
                named.addresses = [AddressRange("127.0.0.1")!]
                named.ports = [proxy.port...proxy.port]
                configuration.access.rules = [AccessRule(effect: .allow, conditions: named, tunnel: .any, number: 1)]
            }
            #expect(try s.client().request("CONNECT", target).status == 200)
        }
    }
}
