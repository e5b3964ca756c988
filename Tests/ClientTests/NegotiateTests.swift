import EventLoop
import Foundation
import ProgramUnderTest
import Testing

/// curl with a ticket, Larder with a keytab, and a key distribution center on loopback.
@Suite(
    "Negotiate with clients",
    .enabled(
        if: KerberosRealm.isInstalled && Nginx.isInstalled && installed("curl") != nil && installed("kinit") != nil,
        "packages krb5-kdc, krb5-user, nginx-light, curl"))
struct NegotiateTests {
    @Test func `curl --proxy-negotiate logs in its connection, for requests and for tunnels`() async throws {
        try await Workplace.with { place in
            try place.write("www/file", "from the origin".utf8)
            let origin = try await Nginx.start(in: place)
            let folder = try place.makeDirectory("realm")
            let realm = try KerberosRealm(in: folder)
            try realm.add("fleet", password: "sesame")
            try realm.add("HTTP/localhost")
            let keytab = try realm.keytab("service", of: "HTTP/localhost")
            var environment = realm.environment
            environment["KRB5CCNAME"] = "FILE:\(folder)/own.cache"
            environment["KRB5RCACHENAME"] = "dfl:"
            environment["KRB5RCACHEDIR"] = folder
            let made = try await place.run(
                "kinit", ["-k", "-t", try realm.keytab("fleet", of: "fleet"), "fleet"], environment: environment)
            try #require(made.status == 0, "\(made)")
            let access = """
                access:
                  authentication: { negotiate: { keytab: \(keytab), strip_realm: \(KerberosRealm.name) } }
                  rules: [ allow: { address: [ 127.0.0.1 ], port: [ 1-65535 ], user: [ fleet ] } ]
                """
            let adminPort = FreePort.take()
            let larder = try await Larder.start(
                in: place, text: Larder.configuration(in: place, adminPort: adminPort, access: access),
                adminPort: adminPort, environment: environment)
            func curl(_ words: String...) async throws -> Workplace.Output {
                try await place.run(
                    "curl",
                    ["-q", "-sS", "-v", "-m", "30", "-x", "http://localhost:\(larder.port)", "-U", ":"] + words,
                    environment: environment)
            }
            let url = "\(origin.url)/file"
            let output = try await curl("--proxy-negotiate", url, url, url)
            #expect(output.out == String(repeating: "from the origin", count: 3), "\(output)")
            #expect(output.err.contains("< Proxy-Authenticate: Negotiate "), "the proxy proves itself: \(output)")
            let any = try await curl("--proxy-anyauth", url)
            #expect(any.out == "from the origin", "\(any)")
            let tunnel = try await curl("--proxy-negotiate", "-p", url)
            #expect(tunnel.out == "from the origin", "\(tunnel)")
            #expect(origin.asked("/file").allSatisfy { $0.contains("pa=\"-\"") }, "\(origin.asked)")

            let without = try await place.curl(url, through: larder)
            #expect(without.status == 407 && without.fields["proxy-authenticate"] == "Negotiate", "\(without)")
            let ntlm = try await place.curl(
                "--proxy-header", "Proxy-Authorization: Negotiate TlRMTVNTUAABAAAA", url, through: larder)
            #expect(ntlm.status == 407, "\(ntlm)")
            let log: String = try await eventually("the requests are logged", within: Duration.seconds(10)) {
                () -> String? in
                let log = String(decoding: place.bytes("access.jsonl"), as: UTF8.self)
                return log.contains("\"user\":\"fleet\"") ? log : nil
            }
            #expect(!log.contains("Negotiate"), "\(log)")
            realm.stop()
        }
    }
}

@Suite("A keytab that cannot be used")
struct MissingKeytabTests {
    @Test func `it is said at the start and by check, and Larder serves`() async throws {
        try await Workplace.with { place in
            let keytab = place.path("http.keytab")
            let larder = try await Larder.start(
                in: place, access: "access: { authentication: { negotiate: { keytab: \(keytab) } } }")
            let said = "access.authentication.negotiate.keytab: \(keytab): No such file or directory"
            #expect(larder.child.errors.contains(said), "\(larder.child.errors)")
            let checked = try await larder.command("check")
            #expect(checked.status == 0 && checked.err.contains(said), "\(checked)")
        }
    }
}
