import Access
import Authentication
import Foundation
import Message
import Passwords
import Rules
import Server
import Settings
import Testing

@Suite("Access: rules that ask for a log-in")
struct AuthenticateRuleScenarios {
    /// `open.test` is for everybody, `closed.test` for users, and bob is none of them. Both are at the origin.
    private static func withRules(
        _ change: (inout Configuration, Scenario.Files) throws -> Void = { _, _ in }, _ play: (Scenario) throws -> Void
    ) throws {
        try scenario(
            { configuration, files in
                try base(&configuration, files)
                try change(&configuration, files)
            }, play)
    }

    private static func base(_ configuration: inout Configuration, _ files: Scenario.Files) throws {
        let lines = try ["ann", "bob"].map { "\($0):\(try hash(password: Array("secret".utf8)))\n" }
        configuration.access.authentication.basic.usersFile = try files.write("users", lines.joined())
        configuration.access.authentication.isForAll = false
        configuration.access.connectPorts = [1...65535]
        configuration.dns.hosts = [DNSEntry(name: "*.test", values: [IPAddress(v4: 0x7F00_0001)])]
        configuration.access.rules = rules([
            (.authenticate, { $0.hosts = [HostPattern("closed.test")!] }),
            (.deny(reason: nil), { $0.users = ["bob"] }), (.allow, { _ in }),
        ])
    }

    private static func rules(
        _ rules: [(AccessRule.Effect, (inout RuleConditions) -> Void)]
    ) -> [AccessRule] {
        rules.enumerated().map { index, rule in
            var made = AccessRule(effect: rule.0, number: index + 1)
            rule.1(&made.conditions)
            return made
        }
    }

    private static func basic(_ name: String, _ password: String = "secret") -> String {
        "Proxy-Authorization: Basic \(Data("\(name):\(password)".utf8).base64EncodedString())"
    }

    private static func ask(
        _ s: Scenario, _ client: ScriptedClient, _ host: String, _ fields: String..., path: String = "/a"
    ) throws -> SeenMessage {
        try client.ask("GET", "http://\(host):\(s.origin.port)\(path)", fields)
        return try client.response()
    }

    @Test func `one host is open, and for another a client logs in`() throws {
        try Self.withRules { s in
            s.origin.expects("GET /a", "!Proxy-Authorization").replies(200, "Cache-Control: max-age=60", body: "a")
            let client = try s.client()
            #expect(try Self.ask(s, client, "open.test").status == 200)
            let asked = try Self.ask(s, client, "closed.test")
            #expect(asked.status == 407 && asked["Proxy-Authenticate"]?.hasPrefix("Basic realm=") == true, "\(asked)")
            #expect(asked["Larder-Deny"] == nil && asked["Connection"] == nil)
            s.origin.expects("GET /a", "!Proxy-Authorization").replies(200, "Cache-Control: max-age=60", body: "a")
            #expect(try Self.ask(s, client, "closed.test", Self.basic("ann")).status == 200)
            #expect(try Self.ask(s, client, "closed.test", Self.basic("bob")).status == 403)
            // Credentials that nobody asked for have to be right as well.
            #expect(try Self.ask(s, client, "open.test", Self.basic("ann", "wrong")).status == 407)
            #expect(try Self.ask(s, client, "open.test", Self.basic("bob")).status == 403)
            let lines = try s.logLines()
            #expect(lines[1].contains(#""denial":"not-authenticated","rule":1"#), "\(lines)")
            #expect(lines[2].contains(#""user":"ann""#) && !lines[0].contains(#""user":"#), "\(lines)")
        }
    }

    @Test func `what was decided for one who has logged in is not kept for nobody, nor the other way`() throws {
        try Self.withRules { s in
            for _ in 0..<2 { s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", body: "a") }
            let client = try s.client()
            for _ in 0..<3 { #expect(try Self.ask(s, client, "closed.test", Self.basic("ann")).status == 200) }
            try s.expect(.hitsByEarlierDecision, 1)
            #expect(try Self.ask(s, client, "closed.test").status == 407)
            for _ in 0..<3 { #expect(try Self.ask(s, client, "open.test").status == 200) }
            try s.expect(.hitsByEarlierDecision, 2)
            #expect(try Self.ask(s, client, "open.test", Self.basic("bob")).status == 403)
            #expect(try Self.ask(s, client, "open.test", Self.basic("ann", "wrong")).status == 407)
            #expect(try Self.ask(s, client, "closed.test").status == 407)
            try s.expect(.hitsByEarlierDecision, 2)
        }
    }

    @Test func `a tunnel is asked for with the CONNECT`() throws {
        try Self.withRules { s in
            let client = try s.client()
            try client.ask("CONNECT", "closed.test:\(s.origin.port)")
            let asked = try client.response(to: "CONNECT")
            #expect(asked.status == 407 && asked["Proxy-Authenticate"] != nil)
            try client.ask("CONNECT", "closed.test:\(s.origin.port)", [Self.basic("ann")])
            #expect(try client.response(to: "CONNECT").status == 200)
            _ = try s.tunnel(to: "open.test:\(s.origin.port)")
        }
    }

    @Test func `a rule about paths asks with the CONNECT, and a request in a tunnel gets 403`() throws {
        try Self.withRules { configuration, files in
            try files.intercept("*.test", in: &configuration)
            configuration.access.rules = Self.rules([
                (.authenticate, { $0.paths = [PathPattern("/x/*")!] }), (.allow, { _ in }),
            ])
        } _: { s in
            let client = try s.client()
            try client.ask("CONNECT", "open.test:443")
            #expect(try client.response(to: "CONNECT").status == 407)
            try client.ask("CONNECT", "open.test:443", [Self.basic("ann")])
            #expect(try client.response(to: "CONNECT").status == 200)
            // A request in a tunnel is of nobody if the rules have changed since the CONNECT.
            func adopt(_ effect: AccessRule.Effect) throws {
                try s.adopt { configuration, files in
                    try Self.base(&configuration, files)
                    try files.intercept("*.test", in: &configuration)
                    configuration.access.rules = Self.rules([(effect, { _ in })])
                }
            }
            try adopt(.allow)
            let tunnel = try s.secureTunnel(to: "open.test:443")
            try adopt(.authenticate)
            let denied = try tunnel.getInside("/x/y", host: "open.test")
            #expect(denied.status == 403 && denied["Proxy-Authenticate"] == nil, "\(denied)")
            #expect(denied["Larder-Deny"]?.contains("reason=not-authenticated; rule=1") == true, "\(denied)")
        }
    }

    private static func named(_ name: String, _ port: UInt16) -> [UInt8] {
        [5, 1, 0, 3, UInt8(name.utf8.count)] + Array(name.utf8) + [UInt8(port >> 8), UInt8(port & 255)]
    }

    static let socks: [(host: String, methods: [UInt8], user: String?, reply: [UInt8])] = [
        ("open.test", [0], nil, [5, 0, 5, 0]), ("closed.test", [0], nil, [5, 0, 5, 2]),
        ("closed.test", [0, 2], "ann", [5, 2, 1, 0, 5, 0]), ("open.test", [0, 2], "bob", [5, 2, 1, 0, 5, 2]),
        ("open.test", [2], "eve", [5, 2, 1, 1]),
    ]
    @Test(arguments: socks) func `a SOCKS client that offers a password is asked for it`(
        _ row: (host: String, methods: [UInt8], user: String?, reply: [UInt8])
    ) throws {
        try Self.withRules { s in
            let client = try s.client()
            try client.wire.write([5, UInt8(row.methods.count)] + row.methods)
            #expect(try client.reader.bytes(2) == Array(row.reply[..<2]))
            var rest = row.reply.dropFirst(2)
            if let user = row.user {
                try client.wire.write([1, UInt8(user.utf8.count)] + Array(user.utf8) + [6] + Array("secret".utf8))
                #expect(try client.reader.bytes(2) == Array(rest.prefix(2)))
                rest = rest.dropFirst(2)
            }
            guard !rest.isEmpty else { return }
            try client.wire.write(Self.named(row.host, s.origin.port))
            #expect(try client.reader.bytes(2) == Array(rest))
        }
    }

    @Test func `where certificates alone say who clients are, nobody is asked`() throws {
        try Self.withRules { configuration, files in
            configuration.access.authentication.basic.usersFile = nil
            configuration.access.authentication.certificates.entries = [
                .init(.cn, NamePattern("operator")!, user: "operator")
            ]
        } _: { s in
            s.origin.expects("GET /a").replies(200, body: "a")
            let client = try s.client()
            #expect(try Self.ask(s, client, "open.test").status == 200)
            let denied = try Self.ask(s, client, "closed.test")
            #expect(denied.status == 403 && denied["Larder-Deny"]?.contains("reason=not-authenticated") == true)
        }
    }
}
