import Foundation
import Origins
import Rules
import Server
import Settings
import TLS
import Testing

@Suite("origins: TLS by rule")
struct OriginTLSScenarios {
    private static let fleeting = TLSScenarios.fleeting
    private static let own = Result { try MadeCertificate(for: "IP:127.0.0.1") }
    private static let named = Result { try MadeCertificate(for: "DNS:other.test") }
    private static let client = Result { try MadeCertificate(for: "DNS:larder.test") }

    private static func rule(_ number: Int = 1, path: String? = nil, _ change: (inout OriginTLS) throws -> Void)
        rethrows
        -> OriginRule
    {
        var conditions = RuleConditions()
        conditions.hosts = [HostPattern("127.0.0.1")!]
        conditions.paths = path.flatMap { PathPattern($0) }.map { [$0] } ?? []
        var tls = OriginTLS()
        try change(&tls)
        return OriginRule(conditions, tls: tls, number: number)
    }

    static func pin(_ certificate: MadeCertificate) throws -> PublicKeyPin {
        let process = Process()
        let (input, output) = (Pipe(), Pipe())
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments = [
            "-c",
            "openssl x509 -pubkey -noout | openssl pkey -pubin -outform der | openssl dgst -sha256 -binary | base64",
        ]
        process.standardInput = input
        process.standardOutput = output
        try process.run()
        input.fileHandleForWriting.write(Data(certificate.certificate.utf8))
        try input.fileHandleForWriting.close()
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        return try #require(PublicKeyPin("sha256/" + text.trimmingCharacters(in: .newlines)))
    }

    /// An origin with the certificate, which no authority of the system has signed.
    private func play(
        _ certificate: Result<MadeCertificate, any Error> = own,
        _ rules: (Scenario.Files) throws -> [OriginRule], _ play: (Scenario, TLSOrigin) throws -> Void
    ) throws {
        let origin = try TLSOrigin(try certificate.get(), .answers(Self.fleeting))
        defer { origin.end() }
        try scenario({ configuration, files in
            configuration.origins = try rules(files)
            try files.intercept("127.0.0.1", in: &configuration)
        }) { try play($0, origin) }
    }

    private static func authority(_ files: Scenario.Files, _ certificate: MadeCertificate) throws -> String {
        try files.write("origin-\(UUID().uuidString).pem", certificate.certificate)
    }

    @Test func `the authorities of a rule are trusted for its origins, also inside an opened tunnel`() throws {
        try play { files in
            [try Self.rule { $0.authorityFile = try Self.authority(files, try Self.own.get()) }]
        } _: { (s: Scenario, origin: TLSOrigin) throws in
            #expect(try s.client().get(origin.url("/a")).text == "secret")
            let inside = try s.secureTunnel(to: "127.0.0.1:\(origin.port)")
            #expect(try inside.getInside("/a", host: "127.0.0.1:\(origin.port)").text == "secret")
        }
    }

    @Test(arguments: [true, false]) func `a pinned key must be the origin's`(_ isRight: Bool) throws {
        try play { files in
            let own = try Self.own.get()
            return [
                try Self.rule {
                    $0.authorityFile = try Self.authority(files, own)
                    $0.pins = [try Self.pin(isRight ? own : try Self.named.get())]
                }
            ]
        } _: { (s: Scenario, origin: TLSOrigin) throws in
            let answer = try s.client().get(origin.url("/a"))
            guard !isRight else { return #expect(answer.text == "secret") }
            #expect(answer.status == 502)
            #expect(answer.cacheStatus.contains("detail=tls-pin"))
            #expect(answer["Proxy-Status"]?.hasPrefix("larder; error=tls_certificate_error; details=") == true)
            #expect(origin.heads.isEmpty)
            let inside = try s.secureTunnel(to: "127.0.0.1:\(origin.port)")
            #expect(try inside.getInside("/a", host: "127.0.0.1:\(origin.port)").cacheStatus.contains("tls-pin"))
        }
    }

    @Test func `without verification any certificate will do, but not without the rule`() throws {
        try play(Self.named) { _ in
            [Self.rule(path: "/a*") { $0.verification = .none }]
        } _: { (s: Scenario, origin: TLSOrigin) throws in
            #expect(try s.client().get(origin.url("/a")).text == "secret")
            // The open connection is not used: nobody has verified it.
            #expect(try s.client().get(origin.url("/b")).cacheStatus.contains("tls-certificate"))
            #expect(origin.connectionCount == 2)
            #expect(s.count(.originConnectionsUnverified) == 1)
            let listed = try s.stats()["unverified_origins"]?.elements
            #expect(listed?.map { $0["host"] } == [.string("127.0.0.1")])
            let lines = try s.logLines()
            // Each client has its worker, and each worker writes its lines when it likes.
            #expect(lines.count == 2)
            #expect(lines.allSatisfy { $0.contains("\"tls\":\"unverified\"") == $0.contains("/a\"") }, "\(lines)")
        }
    }

    @Test(arguments: [false, true]) func `credentials are not sent to an origin that proves nothing`(_ isPinned: Bool)
        throws
    {
        let pin = try Self.pin(try Self.named.get())
        try play(Self.named) { _ in
            [
                Self.rule {
                    $0.verification = .none
                    $0.pins = isPinned ? [pin] : []
                }
            ]
        } _: { (s: Scenario, origin: TLSOrigin) throws in
            let rules = s.proxy.snapshot.configuration.origins
            try s.adopt(credentials: s.credential(isUnasked: true, plainHTTP: false)) { $0.origins = rules }
            #expect(try s.client().get(origin.url("/a")).text == "secret")
            // The key proves the origin as well as a certificate would.
            #expect(origin.heads.first?.contains("\r\nAuthorization: Basic ") == isPinned)
            #expect(try s.logLines().map { $0.contains("unverified") } == [!isPinned])
        }
    }

    @Test func `the name of the rule is asked for and verified, in place of the host`() throws {
        try play(Self.named) { files in
            let authority = try Self.authority(files, try Self.named.get())
            return [
                Self.rule(1, path: "/a") {
                    $0.authorityFile = authority
                    $0.serverName = "other.test"
                }, Self.rule(2) { $0.authorityFile = authority },
            ]
        } _: { (s: Scenario, origin: TLSOrigin) throws in
            #expect(try s.client().get(origin.url("/a")).text == "secret")
            #expect(try s.client().get(origin.url("/b")).cacheStatus.contains("tls-certificate"))
            // The host of the message stays what it was.
            #expect(origin.heads.first?.contains("\r\nHost: 127.0.0.1:\(origin.port)\r\n") == true)
        }
    }

    @Test func `rules with the same settings share connections, and others do not`() throws {
        try play { files in
            let authority = try Self.authority(files, try Self.own.get())
            let pin = try Self.pin(try Self.own.get())
            return [
                Self.rule(1, path: "/a") { $0.authorityFile = authority },
                Self.rule(2, path: "/b") { $0.authorityFile = authority },
                Self.rule(3, path: "/c") {
                    $0.authorityFile = authority
                    $0.pins = [pin]
                },
            ]
        } _: { (s: Scenario, origin: TLSOrigin) throws in
            let client = try s.client()
            for path in ["/a", "/b", "/a", "/b"] { #expect(try client.get(origin.url(path)).text == "secret") }
            #expect(origin.connectionCount == 1)
            for _ in 0..<2 { #expect(try client.get(origin.url("/c")).text == "secret") }
            #expect(origin.connectionCount == 2)
        }
    }

    @Test func `a reload keeps the connections of rules that stay, and of no others`() throws {
        let certificate = try Self.own.get()
        let pin = try Self.pin(certificate)
        try play { files in
            [try Self.rule { $0.authorityFile = try Self.authority(files, certificate) }]
        } _: { (s: Scenario, origin: TLSOrigin) throws in
            let rules = s.proxy.snapshot.configuration.origins
            let client = try s.client()
            #expect(try client.get(origin.url("/a")).text == "secret")
            try s.adopt { configuration, _ in configuration.origins = rules }
            #expect(try client.get(origin.url("/a")).text == "secret")
            #expect(origin.connectionCount == 1)
            var pinned = rules
            pinned[0].tls?.pins = [pin]
            try s.adopt { configuration, _ in configuration.origins = pinned }
            #expect(try client.get(origin.url("/a")).text == "secret")
            #expect(origin.connectionCount == 2)
            // Without the rule nothing of it is left.
            try s.adopt { _, _ in }
            #expect(try client.get(origin.url("/a")).cacheStatus.contains("tls-certificate"))
        }
    }

    // Client certificates

    private static func asked(
        by demand: AskingOrigin.Demand, _ version: String, trusting: Result<MadeCertificate, any Error>,
        shows: Result<MadeCertificate, any Error>, _ play: (Scenario, AskingOrigin) throws -> Void
    ) throws {
        let origin = try AskingOrigin(own.get(), demand, version: version, trusting: trusting.get())
        defer { origin.end() }
        try scenario({ configuration, files in
            let shown = try shows.get()
            configuration.origins = [
                try rule {
                    $0.authorityFile = try authority(files, try own.get())
                    $0.identity = .pem(
                        certificate: try files.write("client.pem", shown.certificate),
                        key: try files.write("client.key", shown.key))
                }
            ]
        }) { try play($0, origin) }
    }

    @Test(arguments: ["-tls1_2", "-tls1_3"]) func `the certificate of the rule is shown`(_ version: String) throws {
        try Self.asked(by: .required, version, trusting: Self.client, shows: Self.client) { s, origin in
            let answer = try s.client().get(origin.url("/a"))
            #expect(answer.status == 200 && answer.text.contains("Client certificate\n"), "\(answer)")
            // It got what it asked for.
            #expect(try s.stats()["certificate_requests"]?.elements?.isEmpty == true)
        }
    }

    @Test(arguments: ["-tls1_2", "-tls1_3"]) func `an origin that refuses the certificate is named`(_ version: String)
        throws
    {
        try Self.asked(by: .required, version, trusting: Self.client, shows: Self.named) { s, origin in
            let answer = try s.client().get(origin.url("/a"))
            #expect(
                answer.status == 502 && answer.cacheStatus.contains("detail=client-certificate-refused"), "\(answer)")
            #expect(answer["Proxy-Status"]?.hasPrefix("larder; error=tls_alert_received; details=") == true)
        }
    }
}
