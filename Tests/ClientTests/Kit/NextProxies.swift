import EventLoop
import Foundation
import Glibc
import ProgramUnderTest
import Testing

/// Debian's Squid as a next proxy: plain and over TLS, with a user and a password or without.
struct Squid: Sendable {
    static let isInstalled = installed("squid") != nil && FileManager.default.fileExists(atPath: helper)
    private static let helper = "/usr/lib/squid/basic_ncsa_auth"

    let child: Child
    let port: UInt16
    let securePort: UInt16
    private let log: String

    /// What it wants of those that use it.
    enum Demand: Sendable {
        case nothing
        case basic(user: String, password: String)
        case digest(user: String, password: String)
        /// A ticket for `HTTP/localhost`, whose key is in this file.
        case negotiate(keytab: String)
        /// Any user and any password, in an answer to a challenge of its own.
        case ntlm

        /// What checks it. Nil if nothing does.
        func program(_ folder: String) -> (scheme: String, command: String)? {
            switch self {
            case .nothing: nil
            case .basic: ("basic", "\(helper) \(folder)/users")
            case .digest: ("digest", "/usr/lib/squid/digest_file_auth \(folder)/passwords")
            case .negotiate(let keytab):
                ("negotiate", "/usr/lib/squid/negotiate_kerberos_auth -k \(keytab) -s GSS_C_NO_NAME -t none")
            case .ntlm: ("ntlm", "/usr/lib/squid/ntlm_fake_auth")
            }
        }
    }

    /// - Parameters:
    ///   - names: names that mean 127.0.0.1.
    ///   - environment: for its helpers.
    static func start(
        in place: Workplace, tls: (certificate: String, key: String), names: [String] = [],
        demands demand: Demand = .nothing, environment: [String: String] = [:]
    ) async throws -> Squid {
        // Squid has a user of its own if it is started by root.
        try FileManager.default.setAttributes([.posixPermissions: 0o711], ofItemAtPath: place.directory)
        let folder = try place.makeDirectory("squid")
        try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: folder)
        try place.write("squid/hosts", names.map { "127.0.0.1 \($0)\n" }.joined().utf8)
        switch demand {
        case .basic(let user, let password), .digest(let user, let password):
            let made = try await place.run("htpasswd", ["-bcm", "\(folder)/users", user, password])
            try #require(made.status == 0, "\(made)")
            try place.write("squid/passwords", "\(user):\(password)\n".utf8)
        case .nothing, .negotiate, .ntlm: break
        }
        var access = "http_access allow all"
        if let (scheme, command) = demand.program(folder) {
            access = """
                auth_param \(scheme) program \(command)
                \(["basic", "digest"].contains(scheme) ? "auth_param \(scheme) realm next" : "")
                acl known proxy_auth REQUIRED
                http_access allow known
                http_access deny all
                """
        }
        let (port, securePort) = (FreePort.take(), FreePort.take())
        try place.write(
            "squid/squid.conf",
            """
            http_port 127.0.0.1:\(port)
            https_port 127.0.0.1:\(securePort) tls-cert=\(tls.certificate) tls-key=\(tls.key)
            hosts_file \(folder)/hosts
            pid_filename none
            cache_log /dev/null
            logformat asked %rm %ru %>Hs "%un"
            access_log stdio:\(folder)/access.log asked
            cache deny all
            memory_cache_shared off
            shutdown_lifetime 0 seconds
            \(access)

            """.utf8)
        // The name is that of its shared memory.
        let name = "larder\(port)"
        let child = try await place.start(
            "squid", ["-N", "-d1", "-n", name, "-f", "\(folder)/squid.conf"], environment: environment,
            lastSignal: "TERM")
        try await eventually("squid is up; it said: \(child.errors)") {
            if child.exitStatus != nil { throw Failure(description: "squid: \(child.errors)") }
            return child.errors.contains("Accepting HTTPS")
        }
        for part in ["metadata", "queues", "readers"] { unsafe unlink("/dev/shm/\(name)-cf__\(part).shm") }
        return Squid(child: child, port: port, securePort: securePort, log: "\(folder)/access.log")
    }

    /// What it was asked: method, target, status, user.
    var asked: [String] { textOfFile(log).split(separator: "\n").map(String.init) }
}

/// Debian's microsocks as a SOCKS5 proxy that wants a user and a password. Dante knows those of the system alone.
struct Microsocks: Sendable {
    static let isInstalled = installed("microsocks") != nil

    let child: Child
    let port: UInt16

    static func start(in place: Workplace, user: String, password: String) async throws -> Microsocks {
        let port = FreePort.take()
        let child = try await place.start(
            "microsocks", ["-i", "127.0.0.1", "-p", "\(port)", "-u", user, "-P", password])
        try await eventually("microsocks is up; it said: \(child.errors)") {
            if child.exitStatus != nil { throw Failure(description: "microsocks: \(child.errors)") }
            return accepts(port)
        }
        return Microsocks(child: child, port: port)
    }

    private static func accepts(_ port: UInt16) -> Bool {
        let fd = connectLoopback(port)
        guard fd >= 0 else { return false }
        close(fd)
        return true
    }
}

/// Debian's Dante as a SOCKS5 proxy.
struct Dante: Sendable {
    static let isInstalled = installed("danted") != nil

    let child: Child
    let port: UInt16

    /// - Parameter blockedPort: a port that its rules block.
    static func start(in place: Workplace, blockedPort: UInt16) async throws -> Dante {
        let port = FreePort.take()
        let folder = try place.makeDirectory("dante")
        try place.write(
            "dante/danted.conf",
            """
            logoutput: stderr
            internal: 127.0.0.1 port = \(port)
            external: lo
            clientmethod: none
            socksmethod: none
            client pass { from: 127.0.0.0/8 to: 0.0.0.0/0 }
            socks block { from: 127.0.0.0/8 to: 127.0.0.0/8 port = \(blockedPort) }
            socks pass { from: 127.0.0.0/8 to: 0.0.0.0/0 log: connect }

            """.utf8)
        let child = try await place.start(
            "danted", ["-f", "\(folder)/danted.conf", "-p", "\(folder)/pid"], lastSignal: "TERM")
        try await eventually("danted is up; it said: \(child.errors)") {
            if child.exitStatus != nil { throw Failure(description: "danted: \(child.errors)") }
            return child.errors.contains("running")
        }
        return Dante(child: child, port: port)
    }
}
