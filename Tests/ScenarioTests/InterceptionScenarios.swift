import Access
import Foundation
import Glibc
import Interception
import JSON
import Passwords
import Rules
import Server
import Settings
import TLS
import Testing
import Transaction

@Suite("Interception: tunnels to listed hosts are opened")
struct InterceptionScenarios {
    /// An origin with TLS on 127.0.0.1, which the proxy trusts, and tunnels to 127.0.0.1 are opened.
    private func withOrigin(
        _ behaviour: TLSOrigin.Behaviour, isTrusted: Bool = true,
        configure: (inout Configuration) -> Void = { _ in }, _ play: (Scenario, TLSOrigin) throws -> Void
    ) throws {
        let certificate = try MadeCertificate(for: "IP:127.0.0.1")
        let other = try MadeCertificate(for: "IP:127.0.0.1")
        let origin = try TLSOrigin(certificate, behaviour)
        defer { origin.end() }
        try scenario(
            { configuration, files in
                try files.intercept("127.0.0.1", "*.listed.test", in: &configuration)
                configuration.tls.caFile = try files.write("ca.pem", (isTrusted ? certificate : other).certificate)
                configure(&configuration)
            },
            { try play($0, origin) })
    }

    private static let stored = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 6\r\n\r\nsecret"
    private static func authority(_ origin: TLSOrigin) -> String { "127.0.0.1:\(origin.port)" }

    // MARK: what is cached

    @Test func `the second request is a hit, in the same tunnel and in another`() throws {
        try withOrigin(.answers(Self.stored)) { s, origin in
            let authority = Self.authority(origin)
            let client = try s.secureTunnel(to: authority)
            #expect(try client.getInside("/a", host: authority).text == "secret")
            let hit = try client.getInside("/a", host: authority)
            #expect(hit.text == "secret")
            #expect(hit.cacheStatus.hasPrefix("larder; hit"))
            let other = try s.secureTunnel(to: authority)
            #expect(try other.getInside("/a", host: authority).cacheStatus.hasPrefix("larder; hit"))
            #expect(origin.heads.count == 1)
            #expect(origin.heads.first?.hasPrefix("GET /a HTTP/1.1\r\nHost: \(authority)\r\n") == true)
            #expect(s.count(.tunnelsOpened) == 2)
        }
    }

    @Test func `absolute-form and a tunnel share one stored response`() throws {
        try withOrigin(.answers(Self.stored)) { s, origin in
            #expect(try s.client().get(origin.url("/a")).text == "secret")
            let client = try s.secureTunnel(to: Self.authority(origin))
            #expect(try client.getInside("/a", host: Self.authority(origin)).cacheStatus.hasPrefix("larder; hit"))
        }
    }

    @Test func `nobody asks the origin before there is a request`() throws {
        try withOrigin(.answers(Self.stored)) { s, origin in
            _ = try s.secureTunnel(to: Self.authority(origin))
            _ = try s.secureTunnel(to: "offline.listed.test:443")
            #expect(origin.connectionCount == 0)
        }
    }

    /// A client of TLS 1.2 asks for nothing before the end of the handshake has come.
    @Test(arguments: ["-tls1_2", "-tls1_3"]) func `openssl s_client gets its answer`(_ version: String) throws {
        try withOrigin(.answers(Self.stored)) { s, origin in
            let authority = Self.authority(origin)
            let output = try shell(
                "printf 'GET /a HTTP/1.1\\r\\nHost: \(authority)\\r\\nConnection: close\\r\\n\\r\\n' | timeout 60 openssl s_client -proxy 127.0.0.1:\(s.proxy.addresses[0].port) -connect \(authority) \(version) -ign_eof 2>&1"
            )
            #expect(output.contains("\r\n\r\nsecret"), "\(output)")
        }
    }

    private static func hasBytes(_ client: ScriptedClient) -> Bool {
        var byte: UInt8 = 0
        return unsafe recv(client.wire.fd, &byte, 1, CInt(MSG_PEEK | MSG_DONTWAIT)) == 1
    }

    @Test func `a client that asks for nothing gets its session tickets`() throws {
        try withOrigin(.answers(Self.stored)) { s, _ in
            let client = try s.secureTunnel(to: "offline.listed.test:443")
            try s.eventually("the tickets arrive") { Self.hasBytes(client) }
        }
    }

    @Test func `session tickets do not wait for an answer that takes time`() throws {
        try withOrigin(.answers("")) { s, origin in
            let authority = Self.authority(origin)
            let client = try s.tunnel(to: authority)
            // The request arrives together with the last record of the handshake.
            try client.wire.holdSegments(true)
            try client.wire.secure(try s.trust(), name: "127.0.0.1")
            try client.askInside("GET", "/a", host: authority)
            try client.wire.holdSegments(false)
            try s.eventually("the origin is asked") { origin.heads.count == 1 }
            try s.eventually("the tickets arrive") { Self.hasBytes(client) }
        }
    }

    @Test func `requests may be pipelined, and answers stay in order`() throws {
        try withOrigin(.answers(Self.stored)) { s, origin in
            let authority = Self.authority(origin)
            let client = try s.secureTunnel(to: authority)
            let paths = (0..<50).map { "/\($0 % 3)" }
            try client.send(paths.map { "GET \($0) HTTP/1.1\r\nHost: \(authority)\r\n\r\n" }.joined())
            for path in paths { #expect(try client.response().text == "secret", "\(path)") }
            #expect(origin.heads.count == 3)
        }
    }

    @Test func `a body of several records goes out whole, to a client that reads slowly too`() throws {
        let body = String((0..<200_000).map { Character(UnicodeScalar(UInt8(97 + $0 % 26))) })
        let answer = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
        try withOrigin(.answers(answer)) { s, origin in
            let authority = Self.authority(origin)
            for _ in 0..<2 {
                let client = try s.secureTunnel(to: authority)
                #expect(try client.getInside("/a", host: authority).text == body)
            }
            let slow = try s.client(receiveBuffer: 4096)
            #expect(try slow.request("CONNECT", authority).status == 200)
            try slow.wire.secure(s.trust(), name: "127.0.0.1")
            for _ in 0..<10 { try slow.askInside("GET", "/a", host: authority) }
            for _ in 0..<10 { #expect(try slow.response().text == body) }
        }
    }

    @Test func `the body of a request arrives whole`() throws {
        try withOrigin(.answers("HTTP/1.1 204 No Content\r\n\r\n")) { s, origin in
            let client = try s.secureTunnel(to: Self.authority(origin))
            try client.askInside("POST", "/a", host: Self.authority(origin), body: "x")
            #expect(try client.response().status == 204)
        }
    }

    @Test func `alternative services are not passed on, over https`() throws {
        let answer = Self.stored.replacing("\r\nContent", with: "\r\nAlt-Svc: h3=\":443\"\r\nContent")
        try withOrigin(.answers(answer)) { s, origin in
            let client = try s.secureTunnel(to: Self.authority(origin))
            for _ in 0..<2 {
                let answer = try client.getInside("/a", host: Self.authority(origin))
                #expect(answer.status == 200)
                #expect(answer["Alt-Svc"] == nil)
            }
        }
        try scenario { s in
            s.origin.expects("GET /a").replies(200, "Alt-Svc: h2=\":443\"", body: "a")
            let answer = try s.client().get("/a")
            #expect(answer["Alt-Svc"] != nil)
        }
    }

    private static let switching =
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"

    @Test func `a switch of protocols inside a tunnel passes on every byte, in both directions`() throws {
        try withOrigin(.echoes(Self.switching)) { s, origin in
            let authority = Self.authority(origin)
            let client = try s.secureTunnel(to: authority)
            try client.askInside("GET", "/a", host: authority, "Connection: Upgrade", "Upgrade: websocket")
            #expect(try client.head().startLine.contains(" 101 "))
            for size in [1, 100, 16384, 300_000] {
                let sent = (0..<size).map { UInt8(97 + $0 % 26) }
                try client.wire.write(sent)
                var got: [UInt8] = []
                while got.count < size { got += try client.reader.some() }
                #expect(got == sent)
            }
            _ = client.wire.session?.shutdown()
            #expect(try client.reader.untilEnd().isEmpty)
            try s.expect(.tunnelsClosed, 1)
            // The head of the 101 does not count.
            let lines = try s.logLines()
            let logged = lines.compactMap { $0.split(separator: "\"bytes\":").last?.prefix { $0 != "," } }.compactMap {
                Int($0)
            }
            #expect(logged.contains(316_485), "\(lines)")
        }
    }

    @Test func `a switch of protocols to an https origin passes on every byte of a client without TLS`() throws {
        try withOrigin(.echoes(Self.switching)) { s, origin in
            let client = try s.client()
            try client.ask("GET", origin.url("/a"), ["Connection: Upgrade", "Upgrade: websocket"])
            #expect(try client.head().startLine.contains(" 101 "))
            try client.send("ping")
            #expect(try client.reader.some() == Array("ping".utf8))
            client.wire.finishWriting()
            #expect(try client.reader.untilEnd().isEmpty)
        }
    }

    @Test func `the idle limit of tunnels does not concern a request in an opened tunnel of a client with TLS`() throws
    {
        let made = try MadeCertificate(for: "IP:127.0.0.1")
        try scenario(
            { configuration, files in
                try files.intercept("127.0.0.1", in: &configuration)
                configuration.secure(try files.listenerTLS(made))
                configuration.timeouts.tunnelIdle = .milliseconds(100)
            }
        ) { s in
            let (asked, answer) = (Gate("asked"), Gate("answer"))
            s.origin.expects("GET /a").opens(asked).waits(for: answer).replies(200, body: "late")
            let silent = try RecordingOrigin()
            defer { silent.end() }
            let client = try s.securedClient(trusting: made)
            try client.ask("CONNECT", s.origin.authority)
            #expect(try client.response(to: "CONNECT").status == 200)
            try client.askInside("GET", "/a", host: s.origin.authority)
            try asked.wait()
            // A tunnel that is idle for the limit tells that the time is over.
            let idle = try s.securedClient(trusting: made)
            try idle.ask("CONNECT", "localhost:\(silent.port)")
            #expect(try idle.response(to: "CONNECT").status == 200)
            try s.expect(.tunnelsClosed, 1)
            answer.open()
            #expect(try client.response().text == "late")
        }
    }

    @Test func `OPTIONS for the whole server is the origin's, and Larder answers at zero`() throws {
        try withOrigin(.answers("HTTP/1.1 200 OK\r\nDAV: 1\r\nContent-Length: 0\r\n\r\n")) { s, origin in
            let authority = Self.authority(origin)
            let client = try s.secureTunnel(to: authority)
            try client.send("OPTIONS * HTTP/1.1\r\nHost: \(authority)\r\nMax-Forwards: 1\r\n\r\n")
            #expect(try client.response(to: "OPTIONS")["DAV"] == "1")
            #expect(origin.heads.first?.hasPrefix("OPTIONS * HTTP/1.1\r\nHost: \(authority)\r\n") == true)
            #expect(origin.heads.first?.contains("Max-Forwards: 0\r\n") == true)
            try client.send("OPTIONS * HTTP/1.1\r\nHost: \(authority)\r\nMax-Forwards: 0\r\n\r\n")
            let own = try client.response(to: "OPTIONS")
            #expect(own.status == 200 && own["DAV"] == nil && own.cacheStatus == "larder; detail=local")
            #expect(origin.heads.count == 1)
            let lines = try s.logLines().filter { $0.contains("\"method\":\"OPTIONS\"") }
            #expect(
                lines.count == 2 && lines.allSatisfy { $0.contains("\"uri\":\"https://\(authority)\"") }, "\(lines)")
        }
    }

    // MARK: who is asked for

    @Test(arguments: ["other.test", "127.0.0.1:1", "user@127.0.0.1", ""])
    func `a request for another origin gets 421 and the connection ends`(_ host: String) throws {
        try withOrigin(.answers(Self.stored)) { s, origin in
            let client = try s.secureTunnel(to: Self.authority(origin))
            let answer = try client.getInside("/a", host: host)
            #expect(answer.status == (host.contains("@") ? 400 : 421), "\(answer)")
            #expect(origin.connectionCount == 0)
        }
    }

    static let misdirected: [(what: String, head: String, uri: String)] = [
        ("another host", "GET /a?b=c HTTP/1.1\r\nHost: Other.test.\r\n\r\n", "https://other.test/a?b=c"),
        ("another port", "GET /a HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n", "https://127.0.0.1:1/a"),
        ("the default port", "GET /a HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "https://127.0.0.1/a"),
        ("no host", "GET /a HTTP/1.1\r\nHost:\r\n\r\n", "https://AUTHORITY/a"),
        ("a whole URL", "GET http://other.test/a HTTP/1.1\r\nHost: other.test\r\n\r\n", "http://other.test/a"),
        ("all of another host", "OPTIONS * HTTP/1.1\r\nHost: other.test\r\n\r\n", "https://other.test"),
        ("a tunnel", "CONNECT other.test:443 HTTP/1.1\r\nHost: other.test:443\r\n\r\n", "other.test:443"),
    ]

    @Test(arguments: misdirected)
    func `the line of a 421 has the URL that was asked for, and leads to the tunnel`(
        row: (what: String, head: String, uri: String)
    ) throws {
        try withOrigin(.answers(Self.stored)) { s, origin in
            let authority = Self.authority(origin)
            let client = try s.secureTunnel(to: authority)
            let before = s.count(.requests)
            try client.send(row.head)
            #expect(try client.response().status == 421)
            #expect(s.count(.requests) == before + 1)
            let lines = try s.logLines().map { try JSONValue(parsing: $0.utf8) }
            let refused = try #require(lines.first { $0["status"]?.integer == 421 })
            #expect(refused["uri"]?.text == row.uri.replacing("AUTHORITY", with: authority), "\(row.what)")
            let opened = try #require(lines.first { $0["id"]?.text == refused["tunnel"]?.text })
            #expect(opened["uri"]?.text == authority)
        }
    }

    @Test(arguments: [true, false]) func `CONNECT inside an opened tunnel gets 421`(_ isSecured: Bool) throws {
        try withOrigin(.answers(Self.stored)) { s, origin in
            let authority = Self.authority(origin)
            let client = isSecured ? try s.secureTunnel(to: authority) : try s.tunnel(to: authority)
            try client.send("CONNECT \(authority) HTTP/1.1\r\nHost: \(authority)\r\n\r\n")
            #expect(try client.response(to: "CONNECT").status == 421)
            #expect(origin.connectionCount == 0)
        }
    }

    static let wrongNames = ["other.listed.test", "h.listed.test.evil.test", "listed.test"]
    @Test(arguments: wrongNames) func `SNI for another host gets an alert`(_ name: String) throws {
        try scenario({ try $1.intercept("*.listed.test", in: &$0) }) { s in
            let client = try s.tunnel(to: "h.listed.test:443")
            let problem = #expect(throws: Wire.TLSProblem.self) {
                try client.wire.secure(s.trust(), name: name)
            }
            #expect(problem?.failure == .alertReceived(code: 112, name: "unrecognized name"))
        }
    }

    @Test func `a host that is not listed remains a tunnel`() throws {
        try scenario({ try $1.intercept("*.listed.test", in: &$0) }) { s in
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", body: "a")
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", body: "b")
            for body in ["a", "b"] {
                let client = try s.tunnel(to: s.origin.authority)
                let answer = try client.getInside("/a", host: s.origin.authority)
                #expect(answer.text == body)
                #expect(answer["Via"] == nil)
            }
            try s.expect(.tunnels, 2)
        }
    }

    @Test func `HTTP without TLS in a tunnel to a listed host is read, too`() throws {
        try scenario({ try $1.intercept("127.0.0.1", in: &$0) }) { s in
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", body: "a")
            for _ in 0..<2 {
                let client = try s.tunnel(to: s.origin.authority)
                #expect(try client.getInside("/a", host: s.origin.authority).text == "a")
            }
            // The same key as in absolute-form.
            #expect(try s.client().get("/a").cacheStatus.hasPrefix("larder; hit"))
        }
    }

    @Test func `another protocol in a tunnel to a listed host is passed on`() throws {
        try scenario({ try $1.intercept("127.0.0.1", in: &$0) }) { s in
            s.origin.expects("NICK /inside").echoes()
            let client = try s.tunnel(to: s.origin.authority)
            try client.send("NICK /inside HTTP/9\r\n\r\n")
            try client.send("ping")
            #expect(try client.reader.some() == Array("ping".utf8))
        }
    }

    // MARK: the rules

    @Test func `rules with a path and a method hold inside`() throws {
        try withOrigin(
            .answers(Self.stored),
            configure: { configuration in
                var connect = RuleConditions()
                connect.methods = ["CONNECT"]
                var read = RuleConditions()
                read.methods = ["GET"]
                read.paths = [PathPattern("/public/*")].compactMap { $0 }
                configuration.access.rules = [
                    AccessRule(effect: .allow, conditions: connect, number: 1),
                    AccessRule(effect: .allow, conditions: read, number: 2),
                ]
            }
        ) { s, origin in
            let authority = Self.authority(origin)
            let client = try s.secureTunnel(to: authority)
            #expect(try client.getInside("/public/a", host: authority).status == 200)
            #expect(try client.getInside("/private/a", host: authority).status == 403)
            let other = try s.secureTunnel(to: authority)
            try other.askInside("POST", "/public/a", host: authority)
            #expect(try other.response().status == 403)
            #expect(origin.heads.count == 1)
        }
    }

    @Test func `a rule opens a host that is not listed, and keeps a listed one closed`() throws {
        try withOrigin(
            .answers(Self.stored),
            configure: { configuration in
                var closed = RuleConditions()
                closed.ports = [1...1]
                configuration.intercept.hosts = []
                configuration.access.rules = [
                    AccessRule(effect: .allow, conditions: closed, intercept: false, number: 1),
                    AccessRule(effect: .allow, intercept: true, number: 2),
                ]
            }
        ) { s, origin in
            let client = try s.secureTunnel(to: Self.authority(origin))
            #expect(try client.getInside("/a", host: Self.authority(origin)).text == "secret")
            // Nothing listens on port 1: the tunnel is not opened, so the client learns of it before its 200.
            #expect(try s.client().request("CONNECT", "127.0.0.1:1").status == 502)
        }
    }

    @Test func `the user of the CONNECT is the user of the requests inside`() throws {
        let certificate = try MadeCertificate(for: "IP:127.0.0.1")
        let origin = try TLSOrigin(certificate, .answers(Self.stored))
        defer { origin.end() }
        try scenario({ configuration, files in
            try files.intercept("127.0.0.1", in: &configuration)
            configuration.tls.caFile = try files.write("ca.pem", certificate.certificate)
            let lines = try ["ann", "bob"].map { "\($0):\(try hash(password: Array("secret".utf8)))\n" }
            configuration.access.authentication.basic.usersFile = try files.write("users", lines.joined())
            var connect = RuleConditions()
            connect.methods = ["CONNECT"]
            var ann = RuleConditions()
            ann.users = ["ann"]
            configuration.access.rules = [
                AccessRule(effect: .allow, conditions: connect, number: 1),
                AccessRule(effect: .allow, conditions: ann, number: 2),
            ]
        }) { s in
            let authority = Self.authority(origin)
            #expect(try s.client().request("CONNECT", authority).status == 407)
            for (name, status) in [("ann", 200), ("bob", 403)] {
                let credentials = Data("\(name):secret".utf8).base64EncodedString()
                let client = try s.tunnel(to: authority, "Proxy-Authorization: Basic \(credentials)")
                try client.wire.secure(s.trust(), name: "127.0.0.1")
                #expect(try client.getInside("/a", host: authority).status == status, "\(name)")
            }
            let lines = try s.logLines()
            #expect(lines.contains { $0.contains("\"user\":\"ann\"") && $0.contains("\"method\":\"GET\"") }, "\(lines)")
            #expect(lines.contains { $0.contains("\"user\":\"ann\"") && $0.contains("\"outcome\":\"opened\"") })
        }
    }

    @Test func `lines of requests in a tunnel have the whole URL, an ID, and that of the CONNECT`() throws {
        try withOrigin(.answers(Self.stored)) { s, origin in
            let authority = Self.authority(origin)
            for _ in 1...2 {
                let client = try s.secureTunnel(to: authority)
                for path in ["/a", "/a", "/b?x=1"] { _ = try client.getInside(path, host: authority) }
            }
            func member(_ name: String, of line: String) -> String? {
                line.split(separator: "\"\(name)\":\"").dropFirst().first?.split(separator: "\"").first.map(String.init)
            }
            let lines = try s.logLines()
            let ids = lines.compactMap { member("id", of: $0) }
            #expect(ids.count == lines.count && Set(ids).count == ids.count, "\(lines)")
            let opened = lines.filter { $0.contains("\"outcome\":\"opened\"") }.compactMap { member("id", of: $0) }
            #expect(opened.count == 2)
            for tunnel in opened {
                let inside = lines.filter { member("tunnel", of: $0) == tunnel }
                let wanted = ["/a", "/a", "/b?x=1"].map { "https://\(authority)\($0)" }
                #expect(inside.compactMap { member("uri", of: $0) } == wanted, "\(lines)")
            }
        }
    }

    // MARK: origins that fail

    @Test func `an origin whose certificate is not trusted is a 502 inside the tunnel`() throws {
        try withOrigin(.answers(Self.stored), isTrusted: false) { s, origin in
            let client = try s.secureTunnel(to: Self.authority(origin))
            let answer = try client.getInside("/a", host: Self.authority(origin))
            #expect(answer.status == 502)
            #expect(answer["Proxy-Status"]?.contains("error=tls_certificate_error") == true, "\(answer)")
            #expect(origin.heads.isEmpty)
        }
    }

    @Test func `a body that breaks off shows by the end of the connection`() throws {
        try withOrigin(.breaksOff("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart")) { s, origin in
            let client = try s.secureTunnel(to: Self.authority(origin))
            let answer = try client.getInside("/a", host: Self.authority(origin))
            #expect(!answer.isWhole)
            #expect(answer.text == "part")
        }
    }

    // MARK: TLS

    @Test func `a session is resumed for its own host alone`() throws {
        try scenario({ try $1.intercept("*.listed.test", in: &$0) }) { s in
            let context = try s.trust()
            for name in ["a.listed.test", "a.listed.test", "b.listed.test"] {
                let client = try s.secureTunnel(to: "\(name):443", trusting: context)
                // An answer without an origin. Tickets come before it.
                try client.askInside("GET", "/", host: name, "Cache-Control: only-if-cached")
                #expect(try client.response().status == 504)
            }
            try s.expect(.handshakes, 3)
            #expect(s.count(.handshakesResumed) == 1)
            #expect(s.count(.leavesIssued) == 2)
        }
    }

    @Test
    func `a client that does not trust the authority is remembered, and gets its tunnel where that is configured`()
        throws
    {
        try withOrigin(.answers(Self.stored), configure: { $0.intercept.refused = .tunnel }) { s, origin in
            let authority = Self.authority(origin)
            let refusing = try s.tunnel(to: authority)
            #expect(throws: Wire.TLSProblem.self) {
                try refusing.wire.secure(s.trust(MadeAuthority.stranger), name: "127.0.0.1")
            }
            try s.expect(.leavesRefused, 1)
            // Now it sees the origin's own certificate.
            let path = try #require(s.proxy.snapshot.configuration.tls.caFile)
            let client = try s.tunnel(to: authority)
            try client.wire.secure(TLSClientContext(authorities: .file(path)), name: "127.0.0.1")
            let answer = try client.getInside("/a", host: authority)
            #expect(answer.text == "secret")
            #expect(answer["Via"] == nil)
        }
    }

    @Test func `the first request may come in the same write as the end of the handshake`() throws {
        try withOrigin(.answers(Self.stored)) { s, origin in
            let authority = Self.authority(origin)
            for _ in 0..<20 {
                let client = try s.secureTunnel(to: authority)
                #expect(try client.getInside("/a", host: authority).text == "secret")
                client.wire.finishWriting()
            }
            try s.eventually("all connections are closed") {
                s.count(.clientConnectionsAccepted) == s.count(.clientConnectionsClosed)
            }
        }
    }
}
