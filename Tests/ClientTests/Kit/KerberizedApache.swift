import Foundation
import ProgramUnderTest
import Testing

/// Debian's Apache httpd with mod_auth_gssapi, in plain text, and the realm to which it belongs. `/negotiate` asks for a token with each request,
/// `/bound` and `/ntlm` for each connection. All accept PUT.
struct KerberizedApache: Sendable {
    static let isInstalled =
        installed("apache2") != nil && KerberosRealm.isInstalled
        && ["\(Apache.modules)/mod_auth_gssapi.so", "/etc/gss/mech.d/mech.ntlmssp.conf"].allSatisfy {
            FileManager.default.fileExists(atPath: $0)
        }

    let child: Child
    let realm: KerberosRealm
    /// With the key of `fleet`, whose password is `sesame`.
    let keytab: String
    let url: String
    private let folder: String

    static func start(in place: Workplace) async throws -> KerberizedApache {
        // Started by root, it has a user of its own.
        try FileManager.default.setAttributes([.posixPermissions: 0o711], ofItemAtPath: place.directory)
        let folder = try place.makeDirectory("apache")
        let paths = ["negotiate", "bound", "ntlm"]
        for name in ["apache/www", "apache/lock"] + paths.map({ "apache/www/\($0)" }) {
            let made = try place.makeDirectory(name)
            try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: made)
        }
        for path in paths {
            for name in ["file", "other"] { try place.write("apache/www/\(path)/\(name)", "for fleet".utf8) }
        }
        let directory = try place.makeDirectory("realm")
        try FileManager.default.setAttributes([.posixPermissions: 0o711], ofItemAtPath: directory)
        let realm = try KerberosRealm(in: directory)
        try realm.add("fleet", password: "sesame")
        try realm.add("HTTP/localhost")
        let (keytab, service) = (
            try realm.keytab("fleet", of: "fleet"), try realm.keytab("service", of: "HTTP/localhost")
        )
        let users = try place.write("ntlm.users", "CORP:fleet:sesame\n".utf8)
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: users)
        let modules = ["mpm_event", "authn_core", "authz_core", "authz_user", "auth_gssapi", "dav", "dav_fs"].map {
            "LoadModule \($0)_module \(Apache.modules)/mod_\($0).so\n"
        }.joined()
        func location(_ path: String, _ lines: String) -> String {
            "<Location /\(path)>\nDav On\nAuthType GSSAPI\nAuthName place\nRequire valid-user\n\(lines)\n</Location>\n"
        }
        let port = FreePort.take()
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
            Listen 127.0.0.1:\(port)
            DocumentRoot \(folder)/www
            DavLockDB \(folder)/lock/db
            ErrorLog \(folder)/error.log
            LogFormat "%m %U %>s %u %k" asked
            CustomLog \(folder)/access.log asked
            \(location("negotiate", "GssapiCredStore keytab:\(service)"))
            \(location("bound", "GssapiCredStore keytab:\(service)\nGssapiConnectionBound On\nGssapiSignalPersistentAuth On"))
            \(location("ntlm", "GssapiAllowedMech ntlmssp\nGssapiConnectionBound On"))

            """.utf8)
        var environment = realm.environment
        environment["NTLM_USER_FILE"] = users
        // Its user cannot write where the tests keep their files.
        environment["KRB5RCACHENAME"] = "none:"
        let child = try await place.start(
            "apache2", ["-D", "FOREGROUND", "-f", "\(folder)/httpd.conf"], environment: environment, lastSignal: "TERM")
        let apache = KerberizedApache(
            child: child, realm: realm, keytab: keytab, url: "http://localhost:\(port)", folder: folder)
        try await eventually("apache is up; it said: \(child.errors)") {
            if child.exitStatus != nil { throw Failure(description: "apache: \(child.errors) \(apache.errors)") }
            return apache.errors.contains("resuming normal operations")
        }
        return apache
    }

    var errors: String { (try? String(contentsOfFile: "\(folder)/error.log", encoding: .utf8)) ?? "" }

    /// What it was asked: method, path, status, user, and how many requests the connection had carried before.
    var asked: [String] {
        let text = (try? String(contentsOfFile: "\(folder)/access.log", encoding: .utf8)) ?? ""
        return text.split(separator: "\n").map(String.init)
    }
}
