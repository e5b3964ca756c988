import EventLoop
import Foundation
import Glibc
import ProgramUnderTest
import TLS
import Testing

/// Debian's Apache httpd, which asks for a user and a password: `/basic` and `/digest` over TLS and in plain text. Both accept PUT.
struct Apache: Sendable {
    static let modules = "/usr/lib/apache2/modules"
    static let isInstalled =
        installed("apache2") != nil && FileManager.default.fileExists(atPath: "\(modules)/mod_auth_digest.so")

    let child: Child
    let port: UInt16
    let plainPort: UInt16
    private let log: String

    /// - Parameter user: knows both places. A new password can be set later.
    static func start(
        in place: Workplace, tls: (certificate: String, key: String), user: String, password: String
    ) async throws -> Apache {
        // Started by root, it has a user of its own.
        try FileManager.default.setAttributes([.posixPermissions: 0o711], ofItemAtPath: place.directory)
        let folder = try place.makeDirectory("apache")
        for name in ["apache/www", "apache/www/basic", "apache/www/digest", "apache/lock"] {
            let made = try place.makeDirectory(name)
            try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: made)
        }
        for name in ["basic", "digest"] { try place.write("apache/www/\(name)/file", "for \(user)".utf8) }
        let (port, plainPort) = (FreePort.take(), FreePort.take())
        let places = ["Basic", "Digest"].map { scheme in
            """
            <Location /\(scheme.lowercased())>
              Dav On
              AuthType \(scheme)
              AuthName "the place"
              Auth\(scheme)Provider file
              AuthUserFile \(folder)/\(scheme.lowercased()).users
              Require valid-user
            </Location>
            """
        }
        let modules = [
            "mpm_event", "authn_core", "authn_file", "authz_core", "authz_user", "auth_basic", "auth_digest", "dav",
            "dav_fs", "headers", "socache_shmcb", "ssl",
        ].map { "LoadModule \($0)_module \(Self.modules)/mod_\($0).so\n" }.joined()
        try place.write(
            "apache/httpd.conf",
            """
            \(modules)
            ServerRoot \(folder)
            ServerName localhost
            PidFile \(folder)/pid
            Mutex sem
            User nobody
            Group nogroup
            Listen 127.0.0.1:\(port) https
            Listen 127.0.0.1:\(plainPort)
            DocumentRoot \(folder)/www
            DavLockDB \(folder)/lock/db
            ErrorLog \(folder)/error.log
            LogFormat "%r %>s %u" asked
            CustomLog \(folder)/access.log asked
            Header set Cache-Control max-age=600 "expr=%{REQUEST_STATUS} == 200"
            <VirtualHost 127.0.0.1:\(port)>
              SSLEngine on
              SSLCertificateFile \(tls.certificate)
              SSLCertificateKeyFile \(tls.key)
            </VirtualHost>
            \(places.joined(separator: "\n"))

            """.utf8)
        try await setPassword(password, of: user, in: place)
        let child = try await place.start(
            "apache2", ["-D", "FOREGROUND", "-f", "\(folder)/httpd.conf"], lastSignal: "TERM")
        let apache = Apache(child: child, port: port, plainPort: plainPort, log: "\(folder)/access.log")
        try await eventually("apache is up; it said: \(child.errors)") {
            if child.exitStatus != nil {
                throw Failure(
                    description:
                        "apache: \(child.errors) \(String(decoding: place.bytes("apache/error.log"), as: UTF8.self))")
            }
            return String(decoding: place.bytes("apache/error.log"), as: UTF8.self).contains(
                "resuming normal operations")
        }
        return apache
    }

    static func setPassword(_ password: String, of user: String, in place: Workplace) async throws {
        let made = try await place.run("htpasswd", ["-bcm", place.path("apache/basic.users"), user, password])
        try #require(made.status == 0, "\(made)")
        let key = try #require(Digest.hash(.md5, Array("\(user):the place:\(password)".utf8)))
        let digits = key.map { String(format: "%02x", $0) }.joined()
        try place.write("apache/digest.users", "\(user):the place:\(digits)\n".utf8)
    }

    /// What it was asked: the request line, status, user.
    var asked: [String] {
        let text = (try? String(contentsOfFile: log, encoding: .utf8)) ?? ""
        return text.split(separator: "\n").map(String.init)
    }
}
