import ProgramUnderTest
import Foundation
import Testing

/// curl, Larder, and Apache httpd, which wants to know who asks.
@Suite("Credentials: Apache httpd", .enabled(if: Apache.isInstalled, "package apache2-bin"))
struct CredentialTests {
    struct Row: Sendable, CustomTestStringConvertible {
        /// `scheme` of the credential.
        let schemes: String
        /// Of the URL: what Apache asks for there.
        let path: String
        let isOpened: Bool
        var testDescription: String { "\(schemes) at /\(path) over \(isOpened ? "https" : "http")" }
    }
    static let rows = ["basic", "digest"].flatMap { path in
        [path, "[ basic, digest ]"].flatMap { schemes in
            [true, false].map { Row(schemes: schemes, path: path, isOpened: $0) }
        }
    }

    private static func start(
        _ row: Row, in place: Workplace, password: String = "p@ss:\"% ü"
    ) async throws -> (apache: Apache, larder: Larder, url: String) {
        let tls = try await place.certificate()
        let apache = try await Apache.start(in: place, tls: tls, user: "fleet", password: "p@ss:\"% ü")
        let made = try await place.run(
            Larder.executable, ["ca", "create", "--out", place.path("ca"), "--host", "localhost"])
        try #require(made.status == 0, "\(made)")
        try place.write("secret", "\(password)\n".utf8)
        let larder = try await Larder.start(
            in: place, access: "access: { rules: [ allow: { host: localhost, address: 127.0.0.1, port: 1-65535 } ] }",
            more: """
                workers: 1
                tls: { ca_file: \(tls.certificate) }
                intercept:
                  ca: { certificate: \(place.path("ca/intermediate.pem")), key: \(place.path("ca/intermediate.key")) }
                  hosts: [ localhost ]
                credentials:
                  - name: fleet
                    scheme: \(row.schemes)
                    match: { host: localhost }
                    user: fleet
                    password: { file: \(place.path("secret")) }
                    plain_http: yes
                """)
        let base = row.isOpened ? "https://localhost:\(apache.port)" : "http://localhost:\(apache.plainPort)"
        return (apache, larder, "\(base)/\(row.path)")
    }

    @Test(arguments: rows) func `the origin knows Larder, and the client knows nothing of it`(_ row: Row) async throws {
        try await Workplace.with { place in
            let (apache, larder, url) = try await Self.start(row, in: place)
            for _ in 1...2 {
                let reply = try await place.curl("--cacert", place.path("ca/root.pem"), "\(url)/file", through: larder)
                #expect(reply.text == "for fleet", "\(reply) \(larder.child.errors)")
                #expect(!reply.heads.contains(" 401 ") && !reply.heads.lowercased().contains("www-auth"), "\(reply)")
            }
            try await eventually("it was asked without and with the user, and the second time not at all") {
                apache.asked == [
                    "GET /\(row.path)/file HTTP/1.1 401 -", "GET /\(row.path)/file HTTP/1.1 200 fleet",
                ]
            }
        }
    }

    @Test(arguments: rows.filter(\.isOpened)) func `an upload arrives once, even before anything was learnt`(
        _ row: Row
    ) async throws {
        try await Workplace.with { place in
            let (apache, larder, url) = try await Self.start(row, in: place)
            let content = String(repeating: "0123456789abcdef", count: 16384)
            try place.write("upload", content.utf8)
            let words = ["--cacert", place.path("ca/root.pem"), "-T", place.path("upload"), "-H", "Expect:"]
            for name in ["one", "two"] {
                let reply = try await place.curl(words + ["\(url)/\(name)"], through: larder)
                #expect(reply.status == 201, "\(reply) \(larder.child.errors) \(apache.asked)")
                #expect(String(decoding: place.bytes("apache/www/\(row.path)/\(name)"), as: UTF8.self) == content)
            }
        }
    }

    @Test(arguments: rows.filter { $0.isOpened && !$0.schemes.hasPrefix("[") })
    func `a wrong password is told to the operator, and a new one in the file is used`(_ row: Row) async throws {
        try await Workplace.with { place in
            let (apache, larder, url) = try await Self.start(row, in: place, password: "wrong")
            let words = ["--cacert", place.path("ca/root.pem"), "\(url)/file"]
            for _ in 1...5 {
                let reply = try await place.curl(words, through: larder)
                #expect(reply.status == 502 && reply.cacheStatus.contains("detail=credential-refused"), "\(reply)")
                #expect(!reply.heads.lowercased().contains("www-authenticate"), "\(reply)")
            }
            #expect(larder.child.errors.contains("credential fleet: localhost:\(apache.port) has refused it 3 times"))
            #expect(!larder.child.errors.contains("wrong"), "\(larder.child.errors)")
            try await eventually("it was tried three times: \(apache.asked)") {
                apache.asked.filter { $0.hasSuffix("401 fleet") }.count == 3
            }
            let cleared = try await larder.command("session", "clear", "fleet")
            #expect(cleared.status == 0 && cleared.out == "forgot the log-ins with 1 credential\n", "\(cleared)")
            #expect(try await larder.command("session", "clear", "fleat").status == 2)
            _ = try await place.curl(words, through: larder)
            try await eventually("it is tried again") { apache.asked.filter { $0.hasSuffix("401 fleet") }.count == 4 }
            try place.write("secret", "p@ss:\"% ü\n".utf8)
            try await eventually("the new password is used; it said: \(larder.child.errors)") {
                try await place.curl(words, through: larder).text == "for fleet"
            }
        }
    }

    @Test func `a secret comes from a variable, a descriptor or a program`() async throws {
        try await Workplace.with { place in
            try place.write("third", "three\nnot this\n".utf8)
            let sources = [
                "{ env: LARDER_TEST_TOKEN }", "{ fd: 7 }", "{ command: [ head, -n1, \(place.path("third")) ] }",
            ]
            let entries = sources.enumerated().map { index, source in
                "  - { name: a\(index), scheme: bearer, match: { host: 127.0.0.1, path: /\(index) }, token: \(source), plain_http: yes }\n"
            }
            try place.write("second", "two\n".utf8)
            let text = Larder.configuration(
                in: place, adminPort: FreePort.take(), more: "credentials:\n\(entries.joined())")
            // The shell opens descriptor 7.
            let program = ["/bin/sh", "-c", "exec 7<\(place.path("second")); exec \"$0\" \"$@\"", Larder.executable]
            let larder = try await Larder.start(
                in: place, text: text, adminPort: 0, program: program, environment: ["LARDER_TEST_TOKEN": "one"])
            try await ScriptedOrigin.with { _, connection in
                connection.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            } _: { origin in
                for (index, token) in ["one", "two", "three"].enumerated() {
                    _ = try await place.curl("\(origin.url)/\(index)", through: larder)
                    let head = origin.heads.withLock { $0.last } ?? ""
                    #expect(head.contains("Authorization: Bearer \(token)\r\n"), "\(head) \(larder.child.errors)")
                }
            }
        }
    }

    @Test func `a secret that cannot be read keeps Larder from starting, and no message shows one`() async throws {
        try await Workplace.with { place in
            let (none, empty) = (place.path("none"), place.path("empty"))
            let rows: [(source: String, error: String)] = [
                ("{ file: \(none) }", "the file \(none) cannot be read: No such file or directory"),
                (
                    "{ file: \(place.directory) }",
                    "the file \(place.directory) cannot be read: it is not a regular file"
                ),
                ("{ env: LARDER_TEST_NOTHING }", "the variable LARDER_TEST_NOTHING cannot be read: it is not set"),
                ("{ file: \(empty) }", "the secret from the file \(empty) is empty"),
                ("{ file: \(place.path("control")) }", "cannot be sent: the password contains a control character"),
                ("{ file: \(place.path("dos")) }", "contains a carriage return. Lines must end with a line feed alone"),
                ("{ fd: 99 }", "descriptor 99 cannot be read: Bad file descriptor"),
                (
                    "{ command: [ sh, -c, \"echo hidden; exit 3\" ] }",
                    "the program sh cannot be read: it ended with status 3"
                ),
            ]
            try place.write("dos", "hidden\r\n".utf8)
            try place.write("empty", "\nsecond line\n".utf8)
            try place.write("control", "hid\u{1}den\n".utf8)
            for row in rows {
                let file = try place.write(
                    "larder.yaml",
                    """
                    credentials:
                      - { name: a, scheme: basic, match: { host: a.example }, user: me, password: \(row.source) }

                    """.utf8)
                let said = try await place.run(Larder.executable, ["serve", "--config", file])
                #expect(said.status == 1 && said.err.contains("credentials[1].password: "), "\(said)")
                #expect(said.err.contains(row.error) && !said.err.contains("hid"), "\(said)")
            }
        }
    }
}
