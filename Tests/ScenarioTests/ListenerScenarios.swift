import Access
import Authentication
import Foundation
import Message
import Passwords
import Rules
import Server
import Settings
import TLS
import Testing
import Transaction

private let made = Result { try MadeCertificate(for: "IP:127.0.0.1") }

/// A client that speaks TLS with the proxy itself.
private func secured(_ s: Scenario) throws -> ScriptedClient {
    let client = try s.client()
    try client.wire.secure(try trust(s), name: "127.0.0.1")
    return client
}

private func trust(_ s: Scenario) throws -> TLSClientContext {
    let path = s.directory.appendingPathComponent("trust.pem").path
    try made.get().certificate.write(toFile: path, atomically: true, encoding: .utf8)
    return try TLSClientContext(authorities: .file(path))
}

@Suite("A listener with TLS")
struct TLSListenerScenarios {
    @Test func `hits and misses come through TLS, and plain clients have the same port`() throws {
        try scenario { configuration, files in
            configuration.secure(try files.listenerTLS(made.get()))
        } _: { s in
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", body: "hello")
            let client = try secured(s)
            #expect(try client.get("/a").text == "hello")
            #expect(try client.get("/a").cacheStatus.hasPrefix("larder; hit"))
            #expect(try s.client().get("/a").cacheStatus.hasPrefix("larder; hit"))
            #expect(s.count(.proxyHandshakes) == 1)
        }
    }

    @Test func `a large body and pipelined requests come whole`() throws {
        try scenario { configuration, files in
            configuration.secure(try files.listenerTLS(made.get()))
        } _: { s in
            let body = String(repeating: "0123456789abcdef", count: 100_000)
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", body: body)
            let client = try secured(s)
            #expect(try client.get("/a").text == body)
            for _ in 0..<3 { try client.ask("GET", "/a") }
            for _ in 0..<3 { #expect(try client.response().text == body) }
        }
    }

    @Test func `a tunnel of a client with TLS carries bytes both ways`() throws {
        try scenario { configuration, files in
            configuration.secure(try files.listenerTLS(made.get()))
            configuration.access.connectPorts = [1...65535]
        } _: { s in
            s.origin.expects("GET /a").replies(200, body: "through")
            let client = try secured(s)
            try client.ask("CONNECT", s.origin.authority)
            #expect(try client.response(to: "CONNECT").status == 200)
            try client.send("GET /a HTTP/1.1\r\nHost: \(s.origin.authority)\r\n\r\n")
            #expect(try client.response().text == "through")
        }
    }

    @Test func `where TLS is required, plain text is refused`() throws {
        try scenario { configuration, files in
            var tls = try files.listenerTLS(made.get())
            tls.isRequired = true
            configuration.secure(tls)
        } _: { s in
            let answer = try s.client().get("/a")
            #expect(answer.status == 403 && answer.text.contains("https://"), "\(answer)")
            try s.expect(.refused, 1)
        }
    }

    @Test func `a session is resumed on any worker`() throws {
        try scenario { configuration, files in
            configuration.secure(try files.listenerTLS(made.get()))
        } _: { s in
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", body: "a")
            let path = s.directory.appendingPathComponent("session.pem").path
            let sclient = { (way: String) in
                try shell(
                    "printf 'GET \(s.origin.url("/a")) HTTP/1.1\\r\\nHost: \(s.origin.authority)\\r\\nConnection: close\\r\\n\\r\\n' | timeout 20 openssl s_client -connect 127.0.0.1:\(s.proxy.addresses[0].port) \(way) \(path) -ign_eof 2>/dev/null"
                )
            }
            #expect(try sclient("-sess_out").contains("New, TLSv1.3"))
            for _ in 0..<4 { #expect(try sclient("-sess_in").contains("Reused, TLSv1.3")) }
            try s.expect(.proxyHandshakesResumed, 4)
        }
    }

    @Test(arguments: [("-tls1_1", false), ("-tls1_2", true), ("-tls1_3", true)])
    func `TLS 1.2 is the oldest version`(_ version: String, _ isSpoken: Bool) throws {
        try scenario { configuration, files in
            configuration.secure(try files.listenerTLS(made.get()))
        } _: { s in
            let output = try shell(
                "timeout 20 openssl s_client -connect 127.0.0.1:\(s.proxy.addresses[0].port) \(version) -cipher ALL:@SECLEVEL=0 </dev/null 2>&1; true"
            )
            #expect(output.contains("BEGIN CERTIFICATE") == isSpoken, "\(output)")
        }
    }

    @Test func `a client that is silent in its handshake holds nobody up, and is closed in time`() throws {
        try scenario { configuration, files in
            configuration.secure(try files.listenerTLS(made.get()))
            configuration.timeouts.clientHead = .milliseconds(300)
            configuration.workers = .count(1)
        } _: { s in
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", body: "a")
            let silent = try s.client()
            try silent.wire.write([0x16, 3, 1])
            #expect(try secured(s).get("/a").text == "a")
            #expect(try silent.reader.untilEnd().isEmpty)
            try s.eventually("the time limit") { s.closes(.proxyHandshakeFailed) == 1 }
        }
    }

    @Test func `a certificate that is replaced is shown to the next client, and connections go on`() throws {
        let other = try MadeCertificate(for: "IP:127.0.0.1")
        try scenario { configuration, files in
            configuration.secure(try files.listenerTLS(made.get()))
        } _: { s in
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", body: "a")
            let client = try secured(s)
            #expect(try client.get("/a").text == "a")
            try s.adopt { configuration, files in configuration.secure(try files.listenerTLS(other)) }
            #expect(try client.get("/a").text == "a")
            #expect(throws: Wire.TLSProblem.self) { try secured(s) }
        }
    }
}

@Suite("Certificates of clients")
struct ClientIdentityScenarios {
    /// A client with a certificate that the authority of the tests has issued.
    private static func client(_ s: Scenario, named: String? = "b7.builders.example") throws -> ScriptedClient {
        let client = try s.client()
        var options = TLSClientOptions()
        let path = s.directory.appendingPathComponent("trust.pem").path
        try made.get().certificate.write(toFile: path, atomically: true, encoding: .utf8)
        options.authorities = .file(path)
        if let named { options.identity = try identity(named, s) }
        try client.wire.secure(try TLSClientContext(options), name: "127.0.0.1")
        return client
    }

    private static func identity(_ name: String, _ s: Scenario) throws -> ClientIdentity {
        let folder = s.directory.path
        let authority = try clientAuthority.get()
        for (name, text) in [("issuer.pem", authority.certificate), ("issuer.key", authority.key)] {
            try text.write(toFile: "\(folder)/\(name)", atomically: true, encoding: .utf8)
        }
        _ = try shell(
            "cd \(folder) && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -subj '/CN=b7' -addext 'subjectAltName=DNS:\(name)' -addext basicConstraints=critical,CA:FALSE -CA issuer.pem -CAkey issuer.key -keyout own.key -out own.pem 2>/dev/null"
        )
        return try ClientIdentity(
            certificates: Array(try Data(contentsOf: URL(fileURLWithPath: "\(folder)/own.pem"))),
            key: Array(try Data(contentsOf: URL(fileURLWithPath: "\(folder)/own.key"))))
    }

    private static func configure(
        _ configuration: inout Configuration, _ files: Scenario.Files, _ demand: ClientCertificateDemand
    ) throws {
        configuration.secure(try files.listenerThatAsks(made.get(), demand))
        configuration.access.connectPorts = [1...65535]
        configuration.access.authentication.certificates = CertificateMap([
            .init(.san, try #require(NamePattern("*.builders.example")), user: "builder-{*}")
        ])
    }

    @Test func `the identity holds for all requests of the connection, and rules and log have it`() throws {
        try scenario { configuration, files in
            try Self.configure(&configuration, files, .required)
            var conditions = RuleConditions()
            conditions.users = ["builder-b7"]
            configuration.access.rules = [AccessRule(effect: .allow, conditions: conditions, number: 1)]
        } _: { s in
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", body: "a")
            let client = try Self.client(s)
            for _ in 0..<3 { #expect(try client.get("/a").text == "a") }
            // A counter is raised a moment after the answer is out.
            try s.expect(.hitsByEarlierDecision, 1)
            let lines = try s.logLines()
            #expect(lines.count == 3 && lines.allSatisfy { $0.contains("\"user\":\"builder-b7\"") }, "\(lines)")
        }
    }

    @Test(arguments: [true, false])
    func `a certificate is verified again when the listener reads its authorities again`(isStillTrusted: Bool) throws {
        try scenario { configuration, files in
            try Self.configure(&configuration, files, .required)
        } _: { s in
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", body: "a")
            let (client, tunnel) = (try Self.client(s), try Self.client(s))
            for _ in 0..<3 { #expect(try client.get("/a").text == "a") }
            try tunnel.ask("CONNECT", s.origin.authority)
            #expect(try tunnel.response(to: "CONNECT").status == 200)
            let authority = isStillTrusted ? try clientAuthority.get() : try MadeCertificate(for: "DNS:stranger.test")
            let own = try made.get()
            let context = try TLSServerContext(
                certificates: Array(own.certificate.utf8), privateKey: Array(own.key.utf8),
                clients: ClientVerification(
                    authorities: Array(authority.certificate.utf8), revocations: nil, isRequired: true))
            try #require(s.proxy.snapshot.listenerTLS.values.first).replace(by: context)
            s.proxy.noteListenersChanged()
            guard !isStillTrusted else {
                for _ in 0..<3 { #expect(try client.get("/a").text == "a") }
                return
            }
            try tunnel.expectClosed()
            #expect(try client.get("/a").status == 403)
            try client.expectClosed()
            try s.eventually("the reason is counted") { try s.stat(.closes, "identity-ended") == 1 }
        }
    }

    @Test(arguments: ["GET", "CONNECT", "SOCKS"])
    func `a certificate that nobody knows proves nothing, whatever the request is`(_ way: String) throws {
        try scenario { configuration, files in
            try Self.configure(&configuration, files, .required)
        } _: { s in
            let client = try Self.client(s, named: "a.strangers.example")
            switch way {
            case "GET": #expect(try client.get("/a").status == 403)
            case "CONNECT":
                try client.ask("CONNECT", s.origin.authority)
                #expect(try client.response(to: "CONNECT").status == 403)
            default:
                try client.wire.write([5, 1, 0])
                #expect(try client.reader.bytes(2) == [5, 0])
                try client.wire.write([5, 1, 0, 1, 127, 0, 0, 1, 0, 80])
                #expect(try client.reader.bytes(2) == [5, 2])
            }
            #expect(s.origin.connectionCount == 0)
        }
    }

    @Test func `where none is required, a password is as good`() throws {
        try scenario { configuration, files in
            try Self.configure(&configuration, files, .optional)
            configuration.access.authentication.basic.usersFile = try files.write(
                "users", "ali:\(try hash(password: Array("sesame".utf8)))\n")
        } _: { s in
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", body: "a")
            #expect(try Self.client(s).get("/a").text == "a")
            let other = try Self.client(s, named: nil)
            #expect(try other.get("/a").status == 407)
            let credentials = Data("ali:sesame".utf8).base64EncodedString()
            #expect(try other.get("/a", "Proxy-Authorization: Basic \(credentials)").text == "a")
        }
    }

    @Test func `without a certificate, or with one of another authority, the handshake fails`() throws {
        try scenario { configuration, files in
            try Self.configure(&configuration, files, .required)
        } _: { s in
            // In TLS 1.3 the client learns of it when it reads.
            #expect(throws: Wire.TLSProblem.self) { try Self.client(s, named: nil).get("/a") }
            try s.eventually("it is counted") { s.closes(.clientCertificateRefused) == 1 }
        }
    }
}

@Suite("SOCKS5 clients")
struct SocksScenarios {
    private static func target(_ s: Scenario) -> [UInt8] {
        [5, 1, 0, 1, 127, 0, 0, 1, UInt8(s.origin.port >> 8), UInt8(s.origin.port & 255)]
    }

    private static func open(_ configuration: inout Configuration) { configuration.access.connectPorts = [1...65535] }

    @Test(arguments: [false, true]) func `a tunnel is opened, however the bytes arrive`(_ isSplit: Bool) throws {
        try scenario { configuration, _ in
            Self.open(&configuration)
        } _: { s in
            s.origin.expects("GET /a").replies(200, body: "through")
            let client = try s.client()
            for piece in [[5, 2, 0, 2], Self.target(s)] {
                for byte in isSplit ? piece.map({ [$0] }) : [piece] {
                    try client.wire.write(byte)
                    if isSplit { usleep(2000) }
                }
            }
            #expect(try client.reader.bytes(2) == [5, 0])
            #expect(try client.reader.bytes(10) == [5, 0, 0, 1, 0, 0, 0, 0, 0, 0])
            try client.send("GET /a HTTP/1.1\r\nHost: \(s.origin.authority)\r\n\r\n")
            #expect(try client.response().text == "through")
            client.wire.hangUp()
            try s.expect(.tunnelsClosed, 1)
            let lines = try s.logLines()
            #expect(lines.count == 1 && lines[0].contains("\"protocol\":\"socks5\",\"method\":\"CONNECT\""), "\(lines)")
        }
    }

    @Test func `what is sent at once belongs into the tunnel`() throws {
        try scenario { configuration, _ in
            Self.open(&configuration)
        } _: { s in
            s.origin.expects("GET /a").replies(200, body: "through")
            let client = try s.client()
            let request = Array("GET /a HTTP/1.1\r\nHost: \(s.origin.authority)\r\n\r\n".utf8)
            try client.wire.write([5, 1, 0] + Self.target(s) + request)
            #expect(try client.reader.bytes(12) == [5, 0, 5, 0, 0, 1, 0, 0, 0, 0, 0, 0])
            #expect(try client.response().text == "through")
        }
    }

    struct Denied: Sendable, CustomTestStringConvertible {
        let name: String
        let request: [UInt8]
        let reply: UInt8
        var configure: @Sendable (inout Configuration) -> Void = { _ in }
        var testDescription: String { name }
    }

    private static func named(_ name: String, _ port: UInt8 = 80) -> [UInt8] {
        [5, 1, 0, 3, UInt8(name.utf8.count)] + Array(name.utf8) + [0, port]
    }

    static let denied: [Denied] = [
        Denied(name: "a rule", request: named("a.test"), reply: 2) {
            SocksScenarios.open(&$0)
            $0.access.rules = [AccessRule(effect: .deny(reason: "no"), number: 1)]
        },
        Denied(name: "a private address", request: [5, 1, 0, 1, 10, 0, 0, 1, 1, 0xBB], reply: 2) {
            $0.access.privateDestinations = .deny
        },
        Denied(name: "a metadata address", request: [5, 1, 0, 1, 169, 254, 169, 254, 1, 0xBB], reply: 2),
        Denied(name: "a port", request: named("a.test", 25), reply: 2) {
            $0.access.privateDestinations = .deny
        },
        Denied(name: "a client", request: named("a.test"), reply: 2) { $0.access.namedClients = [] },
        Denied(name: "no such name", request: named("nobody.invalid"), reply: 4) { SocksScenarios.open(&$0) },
        Denied(name: "nobody listens", request: [5, 1, 0, 1, 127, 0, 0, 1, 0, 1], reply: 5) {
            SocksScenarios.open(&$0)
        },
        Denied(name: "a name with a line feed", request: named("a\r\nb"), reply: 4) { SocksScenarios.open(&$0) },
        Denied(name: "a name with a NUL", request: named("a\0.test"), reply: 4) { SocksScenarios.open(&$0) },
        Denied(name: "port 0", request: named("a.test", 0), reply: 4) { SocksScenarios.open(&$0) },
        Denied(name: "BIND", request: [5, 2, 0, 1, 127, 0, 0, 1, 0, 80], reply: 7),
        Denied(name: "an unknown type of address", request: [5, 1, 0, 9], reply: 8),
    ]

    @Test(arguments: denied) func `what is refused has its reply, and the connection ends`(_ row: Denied) throws {
        try scenario { configuration, _ in
            row.configure(&configuration)
        } _: { s in
            let client = try s.client()
            try client.wire.write([5, 1, 0])
            #expect(try client.reader.bytes(2) == [5, 0])
            try client.wire.write(row.request)
            #expect(try client.reader.untilEnd() == [5, row.reply, 0, 1, 0, 0, 0, 0, 0, 0])
            #expect(s.origin.connectionCount == 0)
        }
    }

    @Test(arguments: ["sesame", "wrong"]) func `users and passwords are those of Basic`(_ password: String) throws {
        try scenario { configuration, files in
            Self.open(&configuration)
            configuration.access.authentication.basic.usersFile = try files.write(
                "users", "ali:\(try hash(password: Array("sesame".utf8)))\n")
        } _: { s in
            let client = try s.client()
            try client.wire.write([5, 2, 0, 2])
            #expect(try client.reader.bytes(2) == [5, 2])
            try client.wire.write([1, 3] + Array("ali".utf8) + [UInt8(password.utf8.count)] + Array(password.utf8))
            guard password == "sesame" else {
                #expect(try client.reader.untilEnd() == [1, 1])
                try s.expect(.authenticationFailures, 1)
                let lines = try s.logLines()
                #expect(!lines.joined().contains("wrong"), "\(lines)")
                return
            }
            #expect(try client.reader.bytes(2) == [1, 0])
            try client.wire.write(Self.target(s))
            #expect(try client.reader.bytes(2) == [5, 0])
            client.wire.hangUp()
            try s.expect(.tunnelsClosed, 1)
            let lines = try s.logLines()
            #expect(lines.last?.contains("\"user\":\"ali\"") == true, "\(lines)")
        }
    }

    @Test func `a client without a password is not let in where one is needed`() throws {
        try scenario { configuration, files in
            configuration.access.authentication.basic.usersFile = try files.write("users", "")
        } _: { s in
            let client = try s.client()
            try client.wire.write([5, 1, 0])
            #expect(try client.reader.untilEnd() == [5, 0xFF])
        }
    }

    @Test func `SOCKS inside TLS`() throws {
        try scenario { configuration, files in
            Self.open(&configuration)
            configuration.secure(try files.listenerTLS(made.get()))
        } _: { s in
            s.origin.expects("GET /a").replies(200, body: "through")
            let client = try secured(s)
            try client.wire.write([5, 1, 0])
            #expect(try client.reader.bytes(2) == [5, 0])
            try client.wire.write(Self.target(s))
            #expect(try client.reader.bytes(10)[1] == 0)
            try client.send("GET /a HTTP/1.1\r\nHost: \(s.origin.authority)\r\n\r\n")
            #expect(try client.response().text == "through")
        }
    }

    @Test func `SOCKS can be switched off`() throws {
        try scenario { configuration, _ in
            configuration.listen[0].protocols = [.http1]
        } _: { s in
            let client = try s.client()
            try client.wire.write([5, 1, 0])
            #expect(try client.reader.untilEnd() == [5, 0xFF])
        }
    }
}

@Suite("The PROXY protocol")
struct ProxyProtocolScenarios {
    private static let line = "PROXY TCP4 192.0.2.7 192.0.2.1 1234 80\r\n"

    @Test(arguments: [false, true])
    func `the client is the one in the header, for rules and the log, however it arrives`(_ isSplit: Bool) throws {
        try scenario { configuration, _ in
            configuration.trustLoopback()
            configuration.access.namedClients = [try #require(AddressRange("192.0.2.0/24"))]
        } _: { s in
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", body: "a")
            let client = try s.client()
            for piece in isSplit ? Self.line.map({ "\($0)" }) : [Self.line] {
                try client.send(piece)
                if isSplit { usleep(2000) }
            }
            #expect(try client.get("/a").text == "a")
            #expect(s.count(.proxyHeaders) == 1)
            let lines = try s.logLines()
            #expect(lines.first?.contains("\"client\":\"192.0.2.7\"") == true, "\(lines)")
        }
    }

    @Test func `a client behind the load balancer that access.clients does not name is refused`() throws {
        try scenario { configuration, _ in
            configuration.trustLoopback()
            configuration.access.namedClients = AddressRange.loopback
        } _: { s in
            let client = try s.client()
            try client.send(Self.line)
            #expect(try client.get("/a").status == 403)
            try s.expect(.clientConnectionsRefused, 1)
        }
    }

    @Test func `LOCAL leaves the address of the socket, and TLS and SOCKS may follow`() throws {
        let local: [UInt8] = [0x0D, 0x0A, 0x0D, 0x0A, 0, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A, 0x20, 0, 0, 0]
        try scenario { configuration, files in
            configuration.trustLoopback()
            configuration.secure(try files.listenerTLS(made.get()))
        } _: { s in
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", body: "a")
            let client = try s.client()
            try client.wire.write(local)
            try client.wire.secure(try trust(s), name: "127.0.0.1")
            #expect(try client.get("/a").text == "a")
            let socks = try s.client()
            try socks.wire.write(local + [5, 1, 0])
            #expect(try socks.reader.bytes(2) == [5, 0])
            socks.wire.hangUp()
            let lines = try s.logLines()
            #expect(lines.first?.contains("\"client\":\"127.0.0.1\"") == true, "\(lines)")
        }
    }
}
