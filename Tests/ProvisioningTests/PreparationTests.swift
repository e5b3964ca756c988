import Foundation
import Testing

@testable import Provisioning
@testable import Settings

/// `check` finds what `serve` refuses, because both run the same readers.
@Suite("Provisioning: check finds what serve refuses")
struct PreparationTests {
    /// One setting that names a file or a directory, with what it needs beside it. `FILE` is missing.
    struct Row: CustomTestStringConvertible {
        let key: String
        let text: String
        /// `serve` starts without the file: it warns, or makes the file.
        var isOptional = false
        var testDescription: String { key }
    }

    static let rows =
        [
            Row(key: "tls.ca_file", text: "tls: { ca_file: FILE }"),
            Row(key: "admin.token", text: "admin: { address: 127.0.0.1:0, token: FILE }"),
            Row(key: "log.access", text: "log: { access: /nowhere/FILE }"),
            Row(key: "cache.disk.path", text: "cache: { disk: { path: /nowhere/FILE, size: 1GiB } }"),
            Row(
                key: "access.authentication.basic.users", text: "access: { authentication: { basic: { users: FILE } } }"
            ),
            Row(
                key: "access.authentication.digest.users",
                text: "access: { authentication: { digest: { users: FILE } } }"),
            Row(
                key: "access.authentication.groups",
                text: "access: { authentication: { groups: FILE, bearer: { tokens: TEXT } } }"),
            Row(
                key: "access.authentication.bearer.tokens",
                text: "access: { authentication: { bearer: { tokens: FILE } } }"),
            Row(
                key: "access.authentication.negotiate.keytab",
                text: "access: { authentication: { negotiate: { keytab: FILE } } }", isOptional: true),
            Row(
                key: "access.authentication.directory.ca_file",
                text:
                    "access: { authentication: { directory: { urls: \"ldaps://d.example\", ca_file: FILE, users: { base: \"ou=p,dc=e\" } } } }"
            ),
            Row(
                key: "access.authentication.directory.password_file",
                text:
                    "access: { authentication: { directory: { urls: \"ldap://127.0.0.1\", bind_dn: \"cn=l\", password_file: FILE, users: { base: \"ou=p,dc=e\" } } } }"
            ),
            Row(key: "intercept.ca.certificate", text: "intercept: { ca: { certificate: FILE, key: TEXT } }"),
            Row(
                key: "listen.tls.key",
                text: "listen: [ { address: 127.0.0.1:0, tls: { certificate: TEXT, key: FILE } } ]"),
            Row(
                key: "listen.tls.certificate",
                text: "listen: [ { address: 127.0.0.1:0, tls: { certificate: FILE, key: TEXT } } ]"),
            Row(
                key: "listen.tls.client_ca",
                text: "listen: [ { address: 127.0.0.1:0, tls: { certificate: TEXT, key: TEXT, client_ca: FILE } } ]"),
            Row(
                key: "listen.tls.crl",
                text:
                    "listen: [ { address: 127.0.0.1:0, tls: { certificate: TEXT, key: TEXT, client_ca: TEXT, crl: FILE } } ]"
            ),
            Row(
                key: "credentials[1].password",
                text:
                    "credentials: [ { name: r, scheme: basic, match: { host: r.example }, user: a, password: { file: FILE } } ]"
            ),
            Row(
                key: "origins[1].tls.ca_file",
                text: "origins: [ { match: { host: a.example }, tls: { ca_file: FILE } } ]"),
            Row(
                key: "origins[1].tls.certificate",
                text: "origins: [ { match: { host: a.example }, tls: { certificate: FILE } } ]"),
            Row(key: "routes[1].pac", text: "routes: [ { match: { host: \"*\" }, pac: FILE } ]"),
            Row(key: "access.rules[1].deny.host", text: "access: { rules: [ { deny: { host: { file: FILE } } } ] }"),
            Row(key: "fleet.secret_file", text: "fleet: { redis: { url: \"redis://r\" }, secret_file: FILE }"),
            Row(
                key: "fleet.redis.password_file",
                text: "fleet: { redis: { url: \"redis://r\", password_file: FILE }, secret_file: TEXT }"),
            Row(
                key: "fleet.redis.ca_file",
                text: "fleet: { redis: { url: \"rediss://r\", ca_file: FILE }, secret_file: TEXT }"),
        ]
        + ["certificate", "key", "ca"].map { name in
            let files = ["certificate", "key", "ca"].map { "\($0): \($0 == name ? "FILE" : "TEXT")" }
            return Row(
                key: "fleet.node.peer.\(name)",
                text:
                    "fleet: { redis: { url: \"redis://r\" }, secret_file: TEXT, peers: [ \"127.0.0.1:3130\" ], node: { peer: { address: \"127.0.0.1:3130\", \(files.joined(separator: ", ")) } } }"
            )
        }

    /// The configuration of a row: `TEXT` is a file that exists, and `FILE` one that does not.
    private func with(_ row: Row, _ body: (ConfigurationReading) throws -> Void) throws {
        let path = NSTemporaryDirectory() + "larder-check-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: path) }
        try String(repeating: "s", count: 40).write(toFile: "\(path)/text", atomically: false, encoding: .utf8)
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: "\(path)/text")
        let text = row.text.replacingOccurrences(of: "/nowhere/FILE", with: "\(path)/none/x").replacingOccurrences(
            of: "FILE", with: "\(path)/none"
        ).replacingOccurrences(of: "TEXT", with: "\(path)/text")
        try body(readConfiguration(text: Array("workers: 1\n\(text)\n".utf8), name: "x.yaml"))
    }

    @Test(arguments: rows) func `a file that is missing is an error with its line and key`(_ row: Row) throws {
        try with(row) { reading in
            var reading = reading
            try #require(reading.configuration != nil, "\(reading.errors)")
            reading.checkPreparation { _, _, _, _ in }
            let named = (row.isOptional ? reading.warnings : reading.errors).filter { $0.key == row.key }
            #expect(named.count == 1 && named[0].line == 2, "\(reading.errors) \(reading.warnings)")
            #expect((reading.configuration == nil) == !row.isOptional)
            for problem in reading.errors {
                #expect(!problem.message.contains("OpenSSL error"), "\(problem)")
            }
        }
    }

    @Test(arguments: rows) func `serve refuses what check refuses`(_ row: Row) throws {
        try with(row) { reading in
            guard let configuration = reading.configuration else { return }
            let files = PACFiles { _, _, _, _ in }
            defer { files.close() }
            var refusal: ProvisioningFault?
            do throws(ProvisioningFault) {
                _ = try makeSnapshot(configuration, files)
                _ = try readFleet(configuration)
                _ = try readAdminToken(configuration.admin)
            } catch { refusal = error }
            // The log and the disk are opened when the proxy starts.
            guard row.key != "log.access", row.key != "cache.disk.path" else { return }
            #expect((refusal == nil) == row.isOptional)
            var checked = reading
            checked.checkPreparation { _, _, _, _ in }
            if let refusal { #expect(checked.errors.contains { $0.message == refusal.message }, "\(refusal)") }
        }
    }

    /// Settings for a path that `serve` does not need to find: it makes the file, or goes on without it.
    static let notNeeded: Set = [
        "dns.hosts_file", "limits.budgets_file", "learn.directory", "cookie_jars", "intercept.ca.key",
    ]

    @Test func `every setting for the path of a file has a row`() {
        let named = Set(Self.rows.map(\.key)).union(Self.notNeeded)
        for setting in Settings.all where setting.allowed.contains("the path of a") {
            #expect(named.contains(setting.key), "\(setting.key): \(setting.allowed)")
        }
    }

    @Test func `all files that are missing are reported at once, in the order of their lines`() {
        let text = """
            tls: { ca_file: /nowhere/ca }
            listen:
              - { address: "127.0.0.1:0", tls: { certificate: /nowhere/c, key: /nowhere/k } }
            admin: { address: "127.0.0.1:0", token: /nowhere/t }
            log: { access: /nowhere/log }
            """
        var reading = readConfiguration(text: Array(text.utf8), name: "x.yaml")
        reading.checkPreparation { _, _, _, _ in }
        #expect(reading.errors.map(\.line) == [1, 3, 3, 4, 5], "\(reading.errors)")
        #expect(
            Set(reading.errors.map(\.key)) == [
                "tls.ca_file", "listen.tls.key", "listen.tls.certificate", "admin.token", "log.access",
            ])
    }
}
