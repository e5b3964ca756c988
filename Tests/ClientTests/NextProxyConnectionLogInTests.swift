import Foundation
import ProgramUnderTest
import Testing

/// curl, Larder, Squid that wants NTLM or a ticket of Kerberos, and Apache httpd, which wants a user of its own.
@Suite(
    "Next proxies that log in connections: Squid",
    .enabled(
        if: Apache.isInstalled && Squid.isInstalled && KerberosRealm.isInstalled,
        "packages apache2-bin, squid, krb5-kdc, krb5-admin-server, krb5-user"))
struct NextProxyConnectionLogInTests {
    /// What Larder proves itself with.
    enum Means: String, CaseIterable, Sendable { case ntlm, password, keytab, cache }
    /// How Larder asks Squid.
    enum Way: String, CaseIterable, Sendable {
        /// It passes requests on.
        case absolute
        /// It opens a tunnel.
        case tunnel
    }

    struct Row: Sendable, CustomTestStringConvertible {
        let means: Means
        let way: Way
        /// Whether Larder speaks TLS with Squid.
        var isSecure = false
        var testDescription: String { "\(means.rawValue), \(way.rawValue)\(isSecure ? ", over TLS" : "")" }
    }
    static let rows =
        Means.allCases.flatMap { means in Way.allCases.map { Row(means: means, way: $0) } }
        + Means.allCases.prefix(2).flatMap { means in Way.allCases.map { Row(means: means, way: $0, isSecure: true) } }

    private static func start(
        _ row: Row, in place: Workplace, password: String = "open-sesame"
    ) async throws -> (apache: Apache, squid: Squid, realm: KerberosRealm, larder: Larder, url: String) {
        let tls = try await place.certificate()
        let apache = try await Apache.start(in: place, tls: tls, user: "fleet", password: "at the origin")
        let folder = try place.makeDirectory("realm")
        // Squid's helpers read its files.
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: folder)
        let realm = try KerberosRealm(in: folder)
        try realm.add("fleet", password: "open-sesame")
        try realm.add("HTTP/localhost")
        let service = try realm.keytab("service", of: "HTTP/localhost")
        let own = try realm.keytab("own", of: "fleet")
        var environment = realm.environment
        if row.means == .cache {
            environment["KRB5CCNAME"] = "FILE:\(folder)/own.cache"
            let made = try await place.run("kinit", ["-k", "-t", own, "fleet"], environment: environment)
            try #require(made.status == 0, "\(made)")
        }
        let squid = try await Squid.start(
            in: place, tls: tls, names: ["localhost"],
            demands: row.means == .ntlm ? .ntlm : .negotiate(keytab: service),
            environment: realm.environment)
        let made = try await place.run(
            Larder.executable, ["ca", "create", "--out", place.path("ca"), "--host", "localhost"])
        try #require(made.status == 0, "\(made)")
        let proof =
            switch row.means {
            case .ntlm: "scheme: ntlm, user: fleet, domain: CORP, password: \(password)"
            case .password: "scheme: negotiate, user: fleet, password: \(password)"
            case .keytab: "scheme: negotiate, user: fleet, keytab: \(own)"
            case .cache: "scheme: negotiate"
            }
        let hop = row.isSecure ? "https://localhost:\(squid.securePort)" : "http://localhost:\(squid.port)"
        let adminPort = FreePort.take()
        let text = Larder.configuration(
            in: place, adminPort: adminPort,
            access:
                "access: { rules: [ allow: { host: [ localhost ], address: [ 127.0.0.1, \"::1\" ], port: [ 1-65535 ] } ] }",
            more: """
                workers: 1
                tls: { ca_file: \(tls.certificate) }
                intercept:
                  ca: { certificate: \(place.path("ca/intermediate.pem")), key: \(place.path("ca/intermediate.key")) }
                  hosts: [ localhost ]
                credentials:
                  - { name: corp, \(proof) }
                  - { name: site, scheme: basic, match: { host: localhost }, user: fleet, password: at the origin, plain_http: yes }
                routes: [ { via: "\(hop)", credential: corp } ]
                """)
        let larder = try await Larder.start(in: place, text: text, adminPort: adminPort, environment: environment)
        let base =
            row.way == .tunnel ? "https://localhost:\(apache.port)" : "http://localhost:\(apache.plainPort)"
        return (apache, squid, realm, larder, "\(base)/basic")
    }

    @Test(arguments: rows) func `downloads and uploads come through, each with both log-ins`(_ row: Row) async throws {
        try await Workplace.with { place in
            let (apache, squid, realm, larder, url) = try await Self.start(row, in: place)
            defer { realm.stop() }
            let content = String(repeating: "0123456789abcdef", count: 16384)
            try place.write("upload", content.utf8)
            let trusted = ["--cacert", place.path("ca/root.pem")]
            for number in 1...2 {
                let reply = try await place.curl(trusted + ["\(url)/file?\(number)"], through: larder)
                #expect(reply.text == "for fleet", "\(reply) \(larder.child.errors) \(squid.asked)")
                #expect(!reply.heads.contains(" 407 ") && !reply.heads.lowercased().contains("proxy-auth"), "\(reply)")
                let words = trusted + ["-T", place.path("upload"), "-H", "Expect:", "\(url)/\(number)"]
                let upload = try await place.curl(words, through: larder)
                #expect(upload.status == 201, "\(upload) \(larder.child.errors) \(squid.asked) \(apache.asked)")
                #expect(String(decoding: place.bytes("apache/www/basic/\(number)"), as: UTF8.self) == content)
            }
            #expect(try await larder.statistic("origins", "connection_log_ins") >= 1)
            #expect(try await larder.statistic("origins", "connection_log_ins_failed") == 0)
            await larder.child.stop()
            let user = row.means == .ntlm ? "CORP\\\\fleet" : "fleet@\(KerberosRealm.name)"
            try await eventually("squid knows the user; it was asked \(squid.asked)") {
                squid.asked.contains { $0.contains(" 20") && $0.hasSuffix("\"\(user)\"") }
            }
            #expect(!larder.child.errors.contains("open-sesame"))
        }
    }

    @Test(arguments: Way.allCases) func `what the center refuses is not asked of it without end`(
        _ way: Way
    ) async throws {
        try await Workplace.with { place in
            let row = Row(means: .password, way: way)
            let (_, _, realm, larder, url) = try await Self.start(row, in: place, password: "wrong")
            defer { realm.stop() }
            for _ in 1...5 {
                let reply = try await place.curl(
                    "--cacert", place.path("ca/root.pem"), "\(url)/file", through: larder)
                #expect(reply.heads.contains(" 502"), "\(reply)")
            }
            #expect(realm.requests.filter { $0.contains("PREAUTH_FAILED") }.count == 3, "\(realm.requests)")
            let errors = larder.child.errors
            #expect(errors.contains("has refused it 3 times") && !errors.contains("wrong"), "\(errors)")
        }
    }

    @Test(arguments: Way.allCases) func `without a ticket the client learns that the log-in is incomplete`(
        _ way: Way
    ) async throws {
        try await Workplace.with { place in
            let row = Row(means: .keytab, way: way)
            let (_, _, realm, larder, url) = try await Self.start(row, in: place)
            realm.stop()
            let reply = try await place.curl("--cacert", place.path("ca/root.pem"), "\(url)/file", through: larder)
            #expect(reply.heads.contains(" 502"), "\(reply)")
            #expect(reply.heads.contains("next-proxy-log-in-incomplete"), "\(reply)")
            #expect(larder.child.errors.contains("KDC"), "\(larder.child.errors)")
        }
    }
}
