import Foundation
import Glibc

/// A realm with a key distribution center on loopback, in a directory of its own. It ends with the test program at the latest.
package final class KerberosRealm: Sendable {
    package static let name = "LARDER.EXAMPLE"
    package static let isInstalled = ["krb5kdc", "kdb5_util", "kadmin.local"].allSatisfy {
        FileManager.default.isExecutableFile(atPath: "/usr/sbin/\($0)")
    }

    package let directory: String
    private let center: Program

    /// For every program that shall know the realm.
    package var environment: [String: String] {
        [
            "KRB5_CONFIG": "\(directory)/krb5.conf", "KRB5_KDC_PROFILE": "\(directory)/kdc.conf",
            // Nothing of the machine's own.
            "KRB5CCNAME": "FILE:\(directory)/nobody.cache", "KRB5_CLIENT_KTNAME": "FILE:\(directory)/nobody.keytab",
        ]
    }

    /// Makes the realm and starts its center. Blocks.
    /// - Parameter directory: exists, and is empty.
    package init(in directory: String) throws {
        self.directory = directory
        let port = FreePort.take()
        try """
        [libdefaults]
          default_realm = \(KerberosRealm.name)
          dns_lookup_kdc = false
          dns_lookup_realm = false
          dns_canonicalize_hostname = false
          rdns = false
          udp_preference_limit = 1
        [realms]
          \(KerberosRealm.name) = {
            kdc = 127.0.0.1:\(port)
          }
        """.write(toFile: "\(directory)/krb5.conf", atomically: true, encoding: .utf8)
        try """
        [kdcdefaults]
          kdc_listen = 127.0.0.1:\(port)
          kdc_tcp_listen = 127.0.0.1:\(port)
        [realms]
          \(KerberosRealm.name) = {
            database_name = \(directory)/principal
            key_stash_file = \(directory)/stash
            acl_file = \(directory)/acl
            default_principal_flags = +preauth
          }
        [logging]
          kdc = FILE:\(directory)/kdc.log
        """.write(toFile: "\(directory)/kdc.conf", atomically: true, encoding: .utf8)
        let files = ["KRB5_CONFIG=\(directory)/krb5.conf", "KRB5_KDC_PROFILE=\(directory)/kdc.conf"]
        try KerberosRealm.run(
            ["env"] + files + ["/usr/sbin/kdb5_util", "create", "-s", "-W", "-P", "master"], in: directory)
        center = try Program(["env"] + files + ["/usr/sbin/krb5kdc", "-n"], logs: "\(directory)/center")
        _ = try eventually("the center is up: \(textOfFile("\(directory)/kdc.log")) \(center.errors)") {
            textOfFile("\(directory)/kdc.log").contains("commencing operation") ? true : nil
        }
    }

    /// Adds a user, or a service with a random key. Blocks.
    package func add(_ principal: String, password: String? = nil) throws {
        try administer("add_principal \(password.map { "-pw \($0)" } ?? "-randkey") \(principal)")
    }

    package func setPassword(_ password: String, of principal: String) throws {
        try administer("change_password -pw \(password) \(principal)")
    }

    /// Writes the keys of principals into a new file, which everybody may read. Blocks.
    package func keytab(_ name: String, of principals: String...) throws -> String {
        let path = "\(directory)/\(name).keytab"
        for principal in principals { try administer("ktadd -norandkey -k \(path) \(principal)") }
        _ = unsafe chmod(path, 0o644)
        return path
    }

    /// What the center was asked for, by line.
    package var requests: [String] {
        textOfFile("\(directory)/kdc.log").split(separator: "\n").map(String.init).filter { $0.contains("_REQ ") }
    }

    package func stop() {
        center.signal(SIGKILL)
        _ = center.end(within: 20)
    }

    private func administer(_ query: String) throws {
        let files = ["KRB5_CONFIG=\(directory)/krb5.conf", "KRB5_KDC_PROFILE=\(directory)/kdc.conf"]
        try KerberosRealm.run(["env"] + files + ["/usr/sbin/kadmin.local", "-q", query], in: directory)
    }

    private static func run(_ words: [String], in directory: String) throws {
        let program = try Program(words, logs: "\(directory)/admin")
        guard let status = program.end(within: 60), status == 0 else {
            throw Failure(description: "\(words): \(program.output) \(program.errors)")
        }
    }
}
