import Foundation
import ProgramUnderTest
import Testing

/// curl with a placeholder in place of a password, Larder, and Apache httpd, which knows the password.
@Suite("Placeholders: curl and Apache httpd", .enabled(if: Apache.isInstalled, "package apache2-bin"))
struct PlaceholderTests {
    private static let password = "R3alS3cretR3alS3cretR3alS3cret01"

    private static func start(in place: Workplace) async throws -> (apache: Apache, larder: Larder) {
        let tls = try await place.certificate()
        let apache = try await Apache.start(in: place, tls: tls, user: "fleet", password: password)
        let made = try await place.run(
            Larder.executable, ["ca", "create", "--out", place.path("ca"), "--host", "localhost"])
        try #require(made.status == 0, "\(made)")
        try place.write("secret", "\(password)\n".utf8)
        let adminPort = FreePort.take()
        let text = Larder.configuration(
            in: place, adminPort: adminPort,
            access: "access: { rules: [ allow: { host: localhost, address: 127.0.0.1, port: 1-65535 } ] }",
            more: """
                tls: { ca_file: \(tls.certificate) }
                intercept:
                  ca: { certificate: \(place.path("ca/intermediate.pem")), key: \(place.path("ca/intermediate.key")) }
                  hosts: [ localhost ]
                credentials:
                  - name: fleet
                    scheme: placeholder
                    match: { host: localhost, path: /basic/* }
                    token: { file: \(place.path("secret")) }
                """)
        return (apache, try await Larder.start(in: place, text: text, adminPort: adminPort))
    }

    private func issue(_ larder: Larder, _ options: String...) async throws -> String {
        let issued = try await larder.place.run(
            Larder.executable,
            ["credential", "issue", "fleet"] + options + ["--config", larder.configuration])
        try #require(issued.status == 0, "\(issued)")
        return issued.out.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    @Test func `a job has a placeholder until it is revoked, and the password is nowhere but at its origin`()
        async throws
    {
        try await Workplace.with { place in
            let (apache, larder) = try await Self.start(in: place)
            let text = try await issue(larder, "--job", "nightly", "--for", "1h")
            #expect(text.utf8.count == Self.password.utf8.count && text != Self.password)
            let ca = ["--cacert", place.path("ca/root.pem")]
            let url = "https://localhost:\(apache.port)/basic/file"
            func ask(_ more: String...) async throws -> Workplace.Reply {
                try await place.curl(ca + more, through: larder)
            }
            let inside = try await ask("-u", "fleet:\(text)", url)
            #expect(inside.text == "for fleet", "\(inside) \(larder.child.errors)")
            // Elsewhere it is refused, and nothing of it reaches anybody.
            for reply in [
                try await ask("-u", "fleet:\(text)", "https://localhost:\(apache.port)/digest/file"),
                try await ask("-A", "agent \(text)", url),
                try await ask("-u", "fleet:\(text)", "http://localhost:\(apache.plainPort)/basic/file"),
            ] {
                #expect(reply.heads.contains("403") && reply.text.contains("credential-misplaced"), "\(reply)")
            }
            #expect(try await larder.command("credential", "list").out.contains("nightly"))
            let revoked = try await larder.command("credential", "revoke", "--job", "nightly")
            #expect(revoked.out.contains("revoked 1 placeholder"), "\(revoked)")
            let after = try await ask("-u", "fleet:\(text)", url)
            #expect(after.heads.contains("403") && after.text.contains("was revoked"), "\(after)")

            for output in [
                try await larder.command("stats", "--json"), try await larder.command("credential", "list", "--json"),
                try await larder.command("explain", url),
            ] {
                #expect(!"\(output)".contains(Self.password) && !"\(output)".contains(text), "\(output)")
            }
            let seen = larder.child.output + larder.child.errors + textOfFile(larder.accessLog)
            #expect(!seen.contains(Self.password) && !seen.contains(text), "\(seen)")
        }
    }
}
