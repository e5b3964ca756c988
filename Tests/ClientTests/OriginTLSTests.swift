import Foundation
import Glibc
import ProgramUnderTest
import Testing

/// curl, Larder, and nginx, which is particular about TLS.
@Suite("TLS by rule: nginx", .enabled(if: Nginx.isInstalled && installed("curl") != nil, "packages nginx-light, curl"))
struct OriginTLSTests {
    /// The servers' certificates are from `origins`, those of clients from `clients`.
    private struct Setting {
        let place: Workplace
        let origins: TestAuthority
        let clients: TestAuthority

        init(in place: Workplace) async throws {
            self.place = place
            origins = try await TestAuthority.make("origins", in: place)
            clients = try await TestAuthority.make("clients", in: place)
            try await origins.issue("localhost", for: "DNS:localhost")
            let made = try await place.run(
                Larder.executable, ["ca", "create", "--out", place.path("ca"), "--host", "localhost"])
            try #require(made.status == 0, "\(made)")
            try place.write("www/file", "from the origin".utf8)
        }

        /// It says whom it met.
        ///
        /// - Parameter isPersistent: whether a connection serves more than one request.
        func nginx(
            _ directives: String = "", certificate: String = "localhost", protocols: String = "TLSv1.2 TLSv1.3",
            isPersistent: Bool = false
        ) async throws -> Nginx {
            try await Nginx.start(
                in: place,
                server: """
                    keepalive_timeout \(isPersistent ? 60 : 0);
                    ssl_protocols \(protocols);
                    add_header Cache-Control no-store;
                    add_header X-Client $ssl_client_s_dn;
                    add_header X-TLS "$ssl_protocol $ssl_session_reused $ssl_server_name";
                    \(directives)
                    """, tls: (place.path("\(certificate).crt"), place.path("\(certificate).key")))
        }

        static let asksForCertificate = "ssl_verify_client on; ssl_client_certificate"

        /// - Parameter tls: of the rule for localhost. Nil: there is none.
        func configuration(_ tls: String?, more: String = "") -> String {
            let rule = tls.map { "origins:\n  - match: { host: localhost }\n    tls: { \($0) }" } ?? ""
            return """
                intercept:
                  ca: { certificate: \(place.path("ca/intermediate.pem")), key: \(place.path("ca/intermediate.key")) }
                  hosts: [ localhost ]
                \(rule)
                \(more)
                """
        }

        static let access = "access: { rules: [ allow: { host: [ localhost, 127.0.0.1, \"::1\" ], port: 1-65535 } ] }"

        func larder(_ tls: String?, more: String = "") async throws -> Larder {
            try await Larder.start(in: place, access: Self.access, more: configuration(tls, more: more))
        }

        func get(_ nginx: Nginx, _ larder: Larder) async throws -> Workplace.Reply {
            try await place.curl(
                "--cacert", place.path("ca/root.pem"), "https://localhost:\(nginx.port)/file", through: larder)
        }
    }

    // Client certificates

    enum Form: String, CaseIterable, Sendable { case pem, onePEM, encryptedPEM, pkcs12, legacyPKCS12 }

    @Test(arguments: Form.allCases) func `the origin sees Larder's certificate`(_ form: Form) async throws {
        try await Workplace.with { place in
            let setting = try await Setting(in: place)
            let own = try await setting.clients.issue("larder", for: "DNS:larder.test")
            try place.write("password", "s e same\n".utf8)
            let withPassword = "password_file: \(place.path("password"))"
            let keys: String
            switch form {
            case .pem: keys = "certificate: \(own.certificate), key: \(own.key)"
            case .onePEM:
                try place.write("both.pem", place.bytes("larder.crt") + place.bytes("larder.key"))
                keys = "certificate: \(place.path("both.pem"))"
            case .encryptedPEM:
                let words = ["pkcs8", "-topk8", "-in", own.key, "-passout", "pass:s e same", "-out"]
                #expect(try await place.run("openssl", words + [place.path("encrypted.key")]).status == 0)
                keys = "certificate: \(own.certificate), key: \(place.path("encrypted.key")), \(withPassword)"
            case .pkcs12, .legacyPKCS12:
                let options = form == .legacyPKCS12 ? ["-legacy"] : []
                let bundle = try await setting.clients.bundle(own, password: "s e same", options: options)
                keys = "pkcs12: \(bundle), \(withPassword)"
            }
            let nginx = try await setting.nginx("\(Setting.asksForCertificate) \(setting.clients.certificate);")
            let larder = try await setting.larder("ca_file: \(setting.origins.certificate), \(keys)")
            let reply = try await setting.get(nginx, larder)
            #expect(reply.text == "from the origin" && reply.fields["x-client"] == "CN=larder", "\(reply)")
            let stats = try await larder.command("stats", "--json")
            #expect(stats.out.contains("\"certificate_requests\":[]"), "\(stats.out)")
        }
    }

    @Test func `a certificate that changes on the disk is shown after a reload`() async throws {
        try await Workplace.with { place in
            let setting = try await Setting(in: place)
            let own = try await setting.clients.issue("larder", for: "DNS:larder.test")
            let nginx = try await setting.nginx(
                "\(Setting.asksForCertificate) \(setting.clients.certificate);", isPersistent: true)
            let larder = try await setting.larder(
                "ca_file: \(setting.origins.certificate), certificate: \(own.certificate), key: \(own.key)")
            #expect(try await setting.get(nginx, larder).fields["x-client"] == "CN=larder")
            let next = try await setting.clients.issue("next", for: "DNS:larder.test")
            for (from, to) in [(next.certificate, own.certificate), (next.key, own.key)] {
                #expect(unsafe rename(from, to) == 0)
            }
            #expect(try await setting.get(nginx, larder).fields["x-client"] == "CN=larder")
            larder.child.signal(SIGHUP)
            try await eventually("the new one is shown; it said: \(larder.child.errors)") {
                try await setting.get(nginx, larder).fields["x-client"] == "CN=next"
            }
            // What cannot be used leaves the old configuration in force.
            try place.write("larder.key", "nonsense".utf8)
            larder.child.signal(SIGHUP)
            try await eventually("the mistake is named") {
                larder.child.errors.contains(
                    "origins[1].tls.key: \(own.key): there is no private key in PEM")
                    && larder.child.errors.contains("the old configuration stays in force")
            }
            #expect(try await setting.get(nginx, larder).fields["x-client"] == "CN=next")
        }
    }

    /// nginx finishes the handshake, and says in HTTP what it thinks of the certificate.
    @Test(arguments: [true, false]) func `a certificate that is missing or of a stranger gets nginx's answer`(
        _ isShown: Bool
    ) async throws {
        try await Workplace.with { place in
            let setting = try await Setting(in: place)
            let own = try await setting.origins.issue("stranger", for: "DNS:larder.test")
            let nginx = try await setting.nginx("\(Setting.asksForCertificate) \(setting.clients.certificate);")
            let keys = isShown ? ", certificate: \(own.certificate), key: \(own.key)" : ""
            let larder = try await setting.larder("ca_file: \(setting.origins.certificate)\(keys)")
            let reply = try await setting.get(nginx, larder)
            #expect(reply.status == 400, "\(reply)")
            #expect(
                reply.text.contains(
                    isShown ? "The SSL certificate error" : "No required SSL certificate was sent"), "\(reply.text)")
        }
    }

    // Versions, names, keys

    struct Row: Sendable, CustomTestStringConvertible {
        let what: String
        /// Of nginx.
        var protocols = "TLSv1.2 TLSv1.3"
        /// Of the rule; `$origins`, `$clients`, `$pin` and `$other` are replaced.
        var tls: String?
        /// What nginx says it spoke; nil: the request fails.
        var spoken: String?
        /// The name of the refusal.
        var refusal: String?
        var testDescription: String { what }
    }
    static let rows = [
        Row(what: "without a rule the authority is unknown", refusal: "tls-certificate"),
        Row(what: "the authority of the rule", tls: "ca_file: $origins", spoken: "TLSv1.3 . localhost"),
        Row(what: "another authority", tls: "ca_file: $clients", refusal: "tls-certificate"),
        Row(
            what: "at most 1.2", tls: "ca_file: $origins, max_version: \"1.2\"", spoken: "TLSv1.2 . localhost"),
        Row(
            what: "at least 1.2, and the server has no more", protocols: "TLSv1.2",
            tls: "ca_file: $origins, min_version: \"1.2\"", spoken: "TLSv1.2 . localhost"),
        Row(
            what: "at least 1.3, and the server has 1.2", protocols: "TLSv1.2",
            tls: "ca_file: $origins, min_version: \"1.3\"", refusal: "tls-protocol"),
        Row(
            what: "at most 1.2, and the server has 1.3", protocols: "TLSv1.3",
            tls: "ca_file: $origins, max_version: \"1.2\"", refusal: "tls-protocol"),
        Row(what: "the pinned key", tls: "ca_file: $origins, pin: $pin", spoken: "TLSv1.3 . localhost"),
        Row(what: "another pinned key", tls: "ca_file: $origins, pin: $other", refusal: "tls-pin"),
        Row(
            what: "a pinned key does not replace the authority", tls: "ca_file: $clients, pin: $pin",
            refusal: "tls-certificate"),
        Row(
            what: "a name that the certificate does not have",
            tls: "ca_file: $origins, server_name: other.test", refusal: "tls-certificate"),
        Row(what: "without verification", tls: "verify: no", spoken: "TLSv1.3 . localhost"),
        Row(what: "without verification, the pinned key", tls: "verify: no, pin: $pin", spoken: "TLSv1.3 . localhost"),
        Row(what: "without verification, another key", tls: "verify: no, pin: $other", refusal: "tls-pin"),
    ]

    @Test(arguments: rows) func `Larder and nginx agree, or the client learns why not`(_ row: Row) async throws {
        try await Workplace.with { place in
            let setting = try await Setting(in: place)
            let nginx = try await setting.nginx(protocols: row.protocols)
            var tls = row.tls
            for (name, value) in [
                ("$origins", setting.origins.certificate), ("$clients", setting.clients.certificate),
                ("$pin", try await TestAuthority.pin(place.path("localhost.crt"), in: place)),
                ("$other", try await TestAuthority.pin(setting.clients.certificate, in: place)),
            ] { tls = tls?.replacingOccurrences(of: name, with: value) }
            let larder = try await setting.larder(tls)
            let reply = try await setting.get(nginx, larder)
            if let spoken = row.spoken {
                #expect(reply.text == "from the origin" && reply.fields["x-tls"] == spoken, "\(reply)")
            }
            if let refusal = row.refusal {
                #expect(reply.status == 502 && reply.cacheStatus.contains("detail=\(refusal)"), "\(reply)")
                #expect(nginx.asked.isEmpty, "no request may go out before the origin has proven itself")
            }
        }
    }

    @Test func `a server that chooses its certificate by SNI gets the name of the rule`() async throws {
        try await Workplace.with { place in
            let setting = try await Setting(in: place)
            try await setting.origins.issue("other.test", for: "DNS:other.test")
            let nginx = try await setting.nginx(certificate: "$ssl_server_name")
            let larder = try await setting.larder(
                "ca_file: \(setting.origins.certificate), server_name: other.test")
            let reply = try await setting.get(nginx, larder)
            #expect(reply.text == "from the origin" && reply.fields["x-tls"] == "TLSv1.3 . other.test", "\(reply)")
        }
    }

    @Test func `a session is resumed by the next connection`() async throws {
        try await Workplace.with { place in
            let setting = try await Setting(in: place)
            let own = try await setting.clients.issue("larder", for: "DNS:larder.test")
            let nginx = try await setting.nginx("\(Setting.asksForCertificate) \(setting.clients.certificate);")
            let larder = try await setting.larder(
                "ca_file: \(setting.origins.certificate), certificate: \(own.certificate), key: \(own.key), pin: \"\(try await TestAuthority.pin(setting.origins.certificate, in: place))\"",
                more: "workers: 1")
            #expect(try await setting.get(nginx, larder).fields["x-tls"] == "TLSv1.3 . localhost")
            let second = try await setting.get(nginx, larder)
            #expect(second.fields["x-tls"] == "TLSv1.3 r localhost", "\(second)")
            #expect(second.fields["x-client"] == "CN=larder", "\(second)")
        }
    }

    /// The proxy is verified as `tls` says, with another authority than the origin.
    @Test(.enabled(if: Squid.isInstalled, "package squid"), arguments: ["http", "https"])
    func `behind a next proxy the rule is for the origin`(_ scheme: String) async throws {
        try await Workplace.with { place in
            let setting = try await Setting(in: place)
            let own = try await setting.clients.issue("larder", for: "DNS:larder.test")
            let nginx = try await setting.nginx("\(Setting.asksForCertificate) \(setting.clients.certificate);")
            let proxy = try await setting.clients.issue("proxy", for: "IP:127.0.0.1")
            let squid = try await Squid.start(in: place, tls: proxy, names: ["localhost"])
            let port = scheme == "http" ? squid.port : squid.securePort
            let larder = try await setting.larder(
                "ca_file: \(setting.origins.certificate), certificate: \(own.certificate), key: \(own.key)",
                more: """
                    tls: { ca_file: \(setting.clients.certificate) }
                    routes: [ { match: { host: localhost }, via: "\(scheme)://127.0.0.1:\(port)" } ]
                    """)
            let reply = try await setting.get(nginx, larder)
            #expect(reply.fields["x-client"] == "CN=larder", "\(reply) \(larder.child.errors)")
        }
    }

    // What the operator sees

    @Test func `a file with a key that everybody can read is a warning`() async throws {
        try await Workplace.with { place in
            let setting = try await Setting(in: place)
            let own = try await setting.clients.issue("larder", for: "DNS:larder.test")
            let file = try place.write(
                "larder.yaml",
                Larder.configuration(
                    in: place, adminPort: 0, access: Setting.access,
                    more: setting.configuration("certificate: \(own.certificate), key: \(own.key)")
                ).utf8)
            for (mode, isExposed) in [(0o640, false), (0o644, true)] {
                #expect(unsafe chmod(own.key, mode_t(mode)) == 0)
                let checked = try await place.run(Larder.executable, ["check", "--config", file])
                let warning = "origins[1].tls.key: every user of this machine has access to \(own.key); run: chmod o= "
                #expect(checked.status == 0 && checked.err.contains(warning) == isExposed, "\(checked)")
            }
        }
    }

    @Test func `the log says why a handshake failed`() async throws {
        try await Workplace.with { place in
            let setting = try await Setting(in: place)
            let nginx = try await setting.nginx()
            let larder = try await setting.larder("ca_file: \(setting.clients.certificate)")
            for _ in 1...2 { #expect(try await setting.get(nginx, larder).status == 502) }
            let line = "larder: info: tls: localhost: the certificate's issuer is not known"
            #expect(larder.child.errors.components(separatedBy: line).count == 2, "\(larder.child.errors)")
        }
    }

    @Test func `without verification everything says so`() async throws {
        try await Workplace.with { place in
            let setting = try await Setting(in: place)
            let nginx = try await setting.nginx()
            let larder = try await setting.larder("verify: no")
            for _ in 1...2 { #expect(try await setting.get(nginx, larder).text == "from the origin") }
            let checked = try await larder.command("check")
            #expect(
                checked.status == 0
                    && checked.err.contains("origins[1].tls.verify: the certificates of localhost are NOT VERIFIED"),
                "\(checked)")
            let warnings = larder.child.errors.split(separator: "\n").filter { $0.contains("NOT VERIFIED") }
            #expect(
                warnings == [
                    "larder: warning: origins[1].tls.verify: the certificates of localhost are NOT VERIFIED: whoever is on the way can read and change everything",
                    "larder: warning: tls: the certificate of localhost:\(nginx.port) is NOT VERIFIED, as its rule of origins says",
                ], "\(larder.child.errors)")
            #expect(try await larder.statistic("origins", "unverified") == 2)
            let explained = try await larder.command("explain", "https://localhost:\(nginx.port)/file")
            #expect(explained.out.contains("the certificate of the origin is not verified"), "\(explained)")
            await larder.child.stop()
            let lines = textOfFile(larder.accessLog).split(separator: "\n").filter { $0.contains("/file") }
            #expect(lines.count == 2 && lines.allSatisfy { $0.contains("\"tls\":\"unverified\"") }, "\(lines)")
        }
    }

    struct Mistake: Sendable, CustomTestStringConvertible {
        /// `$` is the directory of the test.
        let tls: String
        let error: String
        var testDescription: String { tls }
    }
    static let mistakes = [
        Mistake(tls: "ca_file: $/none", error: "ca_file: $/none cannot be read: No such file or directory"),
        Mistake(tls: "ca_file: $/www/file", error: "ca_file: $/www/file: there is no certificate in PEM"),
        Mistake(tls: "certificate: $/none", error: "certificate: $/none cannot be read: No such file or directory"),
        Mistake(
            tls: "certificate: $/larder.crt",
            error: "certificate: $/larder.crt: there is no private key in PEM that OpenSSL can read (unsupported); "
                + "add key: FILE"),
        Mistake(
            tls: "certificate: $/larder.crt, key: $/localhost.key",
            error: "key: $/localhost.key: the key does not belong to the first certificate (CN=larder); "
                + "name the certificate of this key first, then those of its issuers"
        ),
        Mistake(
            tls: "pkcs12: $/bundle.p12", error: "pkcs12: $/bundle.p12: a password is needed; add password_file: FILE"),
        Mistake(
            tls: "pkcs12: $/bundle.p12, password_file: $/www/file",
            error: "password_file: the password is wrong for $/bundle.p12"),
        Mistake(
            tls: "pkcs12: $/bundle.p12, password_file: $/none",
            error: "password_file: the file $/none cannot be read: No such file or directory"),
        Mistake(
            tls: "pkcs12: $/larder.crt, password_file: $/www/file",
            error: "pkcs12: $/larder.crt: it is not a PKCS#12 file: "),
    ]

    @Test func `a file that cannot be used is an error with file, line and key`() async throws {
        try await Workplace.with { place in
            let setting = try await Setting(in: place)
            let own = try await setting.clients.issue("larder", for: "DNS:larder.test")
            _ = try await setting.clients.bundle(own, password: "sesame")
            for mistake in Self.mistakes {
                let tls = mistake.tls.replacingOccurrences(of: "$/", with: place.path(""))
                let error = mistake.error.replacingOccurrences(of: "$/", with: place.path(""))
                let file = try place.write(
                    "larder.yaml",
                    Larder.configuration(
                        in: place, adminPort: 0, access: Setting.access, more: setting.configuration(tls)
                    ).utf8)
                let checked = try await place.run(Larder.executable, ["check", "--config", file])
                let line = textOfFile(file).split(separator: "\n", omittingEmptySubsequences: false)
                    .firstIndex { $0.contains("tls: {") }.map { $0 + 1 }
                #expect(
                    checked.status == 2 && checked.err.contains("\(file):\(line ?? 0): origins[1].tls.\(error)"),
                    "\(mistake.tls): \(checked)")
                let served = try await place.run(Larder.executable, ["serve", "--config", file])
                #expect(served.status != 0 && served.err.contains("origins[1].tls.\(error)".prefix(60)), "\(served)")
            }
        }
    }
}
