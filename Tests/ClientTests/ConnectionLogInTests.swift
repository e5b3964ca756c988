import Foundation
import ProgramUnderTest
import Testing

/// curl, Larder, and Apache httpd with mod_auth_gssapi: Negotiate with a key distribution center, and NTLM with gss-ntlmssp.
@Suite(
    "Log-ins of connections: Apache httpd",
    .enabled(
        if: KerberizedApache.isInstalled,
        "packages apache2-bin, libapache2-mod-auth-gssapi, gss-ntlmssp, krb5-kdc"))
struct ConnectionLogInTests {
    struct Row: Sendable, CustomTestStringConvertible {
        /// What Apache asks for there.
        let path: String
        /// The keys of the credential.
        let credential: String
        /// What Apache calls the user.
        let user: String
        /// Tokens that the second request needs.
        let tokensLater: Int
        var testDescription: String { "/\(path) with \(credential)" }
    }
    static let rows: [Row] = [
        Row(
            path: "negotiate", credential: "scheme: negotiate, user: fleet, password: sesame",
            user: "fleet@LARDER.EXAMPLE", tokensLater: 1),
        Row(
            path: "negotiate", credential: "scheme: [ negotiate, ntlm, basic ], user: fleet, password: sesame",
            user: "fleet@LARDER.EXAMPLE", tokensLater: 1),
        Row(
            path: "bound", credential: "scheme: negotiate, keytab: KEYTAB", user: "fleet@LARDER.EXAMPLE", tokensLater: 0
        ),
        Row(
            path: "ntlm", credential: "scheme: ntlm, user: fleet, domain: CORP, password: sesame",
            user: "CORP\\\\fleet",
            tokensLater: 0),
        Row(
            path: "ntlm", credential: "scheme: ntlm, user: 'CORP\\fleet', password: sesame", user: "CORP\\\\fleet",
            tokensLater: 0),
    ]

    private static func start(_ row: Row, in place: Workplace) async throws -> (KerberizedApache, Larder) {
        let apache = try await KerberizedApache.start(in: place)
        let adminPort = FreePort.take()
        let text = Larder.configuration(
            in: place, adminPort: adminPort,
            access: "access: { rules: [ allow: { host: localhost, address: 127.0.0.1, port: 1-65535 } ] }",
            more: """
                workers: 1
                credentials:
                  - { name: corp, match: { host: localhost }, plain_http: yes, \(row.credential.replacing("KEYTAB", with: apache.keytab)) }
                """)
        let larder = try await Larder.start(
            in: place, text: text, adminPort: adminPort, environment: apache.realm.environment)
        return (apache, larder)
    }

    @Test(arguments: rows) func `the origin knows Larder, on one connection`(_ row: Row) async throws {
        try await Workplace.with { place in
            let (apache, larder) = try await Self.start(row, in: place)
            defer { apache.realm.stop() }
            for name in ["file", "other"] {
                let reply = try await place.curl("\(apache.url)/\(row.path)/\(name)", through: larder)
                #expect(reply.text == "for fleet", "\(reply) \(larder.child.errors) \(apache.errors)")
                #expect(!reply.heads.contains(" 401 ") && !reply.heads.lowercased().contains("www-auth"), "\(reply)")
            }
            let legs = row.path == "ntlm" ? ["GET /ntlm/file 401 - 0"] : []
            try await eventually("it was asked without a log-in, then with one: \(apache.asked)") {
                apache.asked == ["GET /\(row.path)/file 401 - 0"] + legs + [
                    "GET /\(row.path)/file 200 \(row.user) \(legs.count)",
                    "GET /\(row.path)/other 200 \(row.user) \(legs.count + 1)",
                ]
            }
        }
    }

    @Test(arguments: rows) func `an upload arrives once, even before anything was learnt`(_ row: Row) async throws {
        try await Workplace.with { place in
            let (apache, larder) = try await Self.start(row, in: place)
            defer { apache.realm.stop() }
            let content = String(repeating: "0123456789abcdef", count: 16384)
            try place.write("upload", content.utf8)
            for name in ["one", "two"] {
                let reply = try await place.curl(
                    ["-T", place.path("upload"), "-H", "Expect:", "\(apache.url)/\(row.path)/\(name)"], through: larder)
                #expect(reply.status == 201, "\(reply) \(larder.child.errors) \(apache.asked) \(apache.errors)")
                #expect(String(decoding: place.bytes("apache/www/\(row.path)/\(name)"), as: UTF8.self) == content)
            }
        }
    }

    @Test func `a wrong password is told to the operator, and is sent three times`() async throws {
        for scheme in ["negotiate", "ntlm"] {
            let row = Row(
                path: scheme, credential: "scheme: \(scheme), user: fleet, password: wrong", user: "", tokensLater: 0)
            try await Workplace.with { place in
                let (apache, larder) = try await Self.start(row, in: place)
                defer { apache.realm.stop() }
                for _ in 1...5 {
                    let reply = try await place.curl("\(apache.url)/\(scheme)/file", through: larder)
                    #expect(
                        reply.status == 502 && reply.cacheStatus.contains("detail=credential-refused"),
                        "\(reply) \(larder.child.errors)")
                }
                #expect(larder.child.errors.contains("has refused it 3 times"), "\(larder.child.errors)")
                #expect(!larder.child.errors.contains("wrong"), "\(larder.child.errors)")
            }
        }
    }
}
