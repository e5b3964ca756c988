import EventLoop
import Foundation
import Glibc
import ProgramUnderTest
import Testing

/// Debian's Apache httpd, which asks for Negotiate at `/`, and remembers for each connection who has logged in on it. It accepts PUT.
struct NegotiatingApache: Sendable {
    enum Mechanism: String, Sendable, CaseIterable {
        case kerberos = "krb5"
        /// NTLM within SPNEGO, which has a leg more.
        case ntlm = "ntlmssp"
    }

    static func isInstalled(_ mechanism: Mechanism) -> Bool {
        let module = "\(Apache.modules)/mod_auth_gssapi.so"
        let names = ["/etc/gss/mech.d/mech.ntlmssp.conf", "/etc/gss/mech.d/ntlmssp.conf"]
        return Apache.isInstalled && FileManager.default.fileExists(atPath: module)
            && (mechanism == .kerberos
                ? KerberosRealm.isInstalled : names.contains { FileManager.default.fileExists(atPath: $0) })
    }

    let child: Child
    let port: UInt16
    /// What a client needs to log in as the user `fleet`.
    let clientEnvironment: [String: String]
    private let log: String
    private let realm: KerberosRealm?

    /// The user as the log of Apache names it, which doubles "\".
    var user: String { realm == nil ? "DOMAIN\\\\fleet" : "fleet@\(KerberosRealm.name)" }

    /// - Parameter files: by name, with their content.
    static func start(
        in place: Workplace, _ mechanism: Mechanism, files: [String: String]
    ) async throws -> NegotiatingApache {
        // Started by root, it has a user of its own.
        try FileManager.default.setAttributes([.posixPermissions: 0o711], ofItemAtPath: place.directory)
        let folder = try place.makeDirectory("apache")
        for name in ["apache/www", "apache/lock"] {
            let made = try place.makeDirectory(name)
            try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: made)
        }
        for (name, content) in files { try place.write("apache/www/\(name)", content.utf8) }
        var realm: KerberosRealm?
        var (environment, clientEnvironment) = ([String: String](), [String: String]())
        var keys = ""
        switch mechanism {
        case .kerberos:
            let made = try KerberosRealm(in: place.makeDirectory("realm"))
            realm = made
            try made.add("fleet")
            try made.add("HTTP/localhost")
            keys = "GssapiCredStore keytab:\(try made.keytab("apache", of: "HTTP/localhost"))"
            environment = made.environment
            // It would be in a directory that Apache's own user cannot write to.
            environment["KRB5RCACHENAME"] = "none:"
            clientEnvironment = made.environment
            clientEnvironment["KRB5CCNAME"] = "FILE:\(place.path("fleet.cache"))"
            let ticket = try await place.run(
                "kinit", ["-k", "-t", try made.keytab("fleet", of: "fleet"), "fleet"], environment: clientEnvironment)
            try #require(ticket.status == 0, "\(ticket)")
        case .ntlm:
            let users = try place.write("ntlm.users", "DOMAIN:fleet:open sesame\n".utf8)
            let nobody = ["KRB5CCNAME": "FILE:\(place.path("nobody.cache"))", "NTLM_USER_FILE": users]
            environment = nobody.merging(["NETBIOS_COMPUTER_NAME": "BOX", "NETBIOS_DOMAIN_NAME": "DOMAIN"]) { $1 }
            clientEnvironment = nobody
        }
        let port = FreePort.take()
        let modules = ["mpm_event", "authn_core", "authz_core", "authz_user", "auth_gssapi", "dav", "dav_fs"].map {
            "LoadModule \($0)_module \(Apache.modules)/mod_\($0).so\n"
        }
        try place.write(
            "apache/httpd.conf",
            """
            \(modules.joined())
            ServerRoot \(folder)
            ServerName localhost
            PidFile \(folder)/pid
            Mutex sem
            User nobody
            Group nogroup
            Listen 127.0.0.1:\(port)
            DocumentRoot \(folder)/www
            DavLockDB \(folder)/lock/db
            KeepAliveTimeout 60
            ErrorLog \(folder)/error.log
            LogFormat "%m %U %>s %u %k" asked
            CustomLog \(folder)/access.log asked
            <Location />
              Dav On
              AuthType GSSAPI
              AuthName "the place"
              GssapiAllowedMech \(mechanism.rawValue)
              GssapiConnectionBound On
              \(keys)
              Require valid-user
            </Location>

            """.utf8)
        let child = try await place.start(
            "apache2", ["-D", "FOREGROUND", "-f", "\(folder)/httpd.conf"], environment: environment, lastSignal: "TERM")
        try await eventually("apache is up; it said: \(child.errors)") {
            let said = textOfFile("\(folder)/error.log")
            if child.exitStatus != nil { throw Failure(description: "apache: \(child.errors) \(said)") }
            return said.contains("resuming normal operations")
        }
        return NegotiatingApache(
            child: child, port: port, clientEnvironment: clientEnvironment, log: "\(folder)/access.log", realm: realm)
    }

    func stop() { realm?.stop() }

    /// What it was asked: method, path, status, user, and how many requests its connection had carried before.
    var asked: [String] { textOfFile(log).split(separator: "\n").map(String.init) }
}

/// Debian's Squid as a reverse proxy that asks for NTLM. Its helper goes through all steps of a log-in, and believes every password.
struct NTLMSquid: Sendable {
    private static let helper = "/usr/lib/squid/ntlm_fake_auth"
    static let isInstalled = installed("squid") != nil && FileManager.default.fileExists(atPath: helper)

    let child: Child
    let port: UInt16
    private let log: String

    /// - Parameter server: the port of the server behind it.
    static func start(in place: Workplace, before server: UInt16) async throws -> NTLMSquid {
        try FileManager.default.setAttributes([.posixPermissions: 0o711], ofItemAtPath: place.directory)
        let folder = try place.makeDirectory("squid")
        try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: folder)
        let port = FreePort.take()
        try place.write(
            "squid/squid.conf",
            """
            http_port 127.0.0.1:\(port) accel defaultsite=localhost no-vhost
            cache_peer 127.0.0.1 parent \(server) 0 no-query no-digest originserver
            auth_param ntlm program \(helper)
            auth_param ntlm children 2
            acl known proxy_auth REQUIRED
            http_access allow known
            http_access deny all
            pid_filename none
            cache_log /dev/null
            logformat asked %rm %rp %>Hs %>p %un
            access_log stdio:\(folder)/access.log asked
            cache deny all
            memory_cache_shared off
            shutdown_lifetime 0 seconds

            """.utf8)
        // The name is that of its shared memory.
        let name = "larder\(port)"
        let child = try await place.start(
            "squid", ["-N", "-d1", "-n", name, "-f", "\(folder)/squid.conf"], lastSignal: "TERM")
        try await eventually("squid is up; it said: \(child.errors)") {
            if child.exitStatus != nil { throw Failure(description: "squid: \(child.errors)") }
            return child.errors.contains("Accepting reverse-proxy HTTP")
        }
        for part in ["metadata", "queues", "readers"] { unsafe unlink("/dev/shm/\(name)-cf__\(part).shm") }
        return NTLMSquid(child: child, port: port, log: "\(folder)/access.log")
    }

    /// What it was asked: method, path, status, the port of the client, user.
    var asked: [[String]] {
        textOfFile(log).split(separator: "\n").map { $0.split(separator: " ").map(String.init) }
    }
}
