import Foundation
import ProgramUnderTest
import Testing

/// OpenLDAP's server with users and groups below `dc=example`. Its log has every request.
///
/// | user | password | groups |
/// |---|---|---|
/// | ann | secret | builders |
/// | bob | hunter2 | |
/// | ali | other | builders |
/// | `a*(b)\c` | odd | |
/// | twin, in two entries | secret | |
///
/// The account `cn=larder,dc=example` has the password reader. `seeAlso` of ann names the entry of the group night.
struct Slapd: Sendable {
    let place: Workplace
    let name: String
    let child: Child
    let port: UInt16
    let tlsPort: UInt16

    static let isInstalled = installed("slapd") != nil && installed("slapadd") != nil

    var plain: String { "ldap://127.0.0.1:\(port)" }
    var secured: String { "ldaps://127.0.0.1:\(tlsPort)" }
    /// What it said of its requests.
    var log: String { child.errors }
    /// How often a name was bound.
    func binds(_ dn: String) -> Int { log.components(separatedBy: "BIND dn=\"\(dn)\" method").count - 1 }

    /// - Parameters:
    ///   - tls: certificate and key; absent: no TLS.
    ///   - ports: those of one that has ended, whose place this one takes.
    static func start(
        in place: Workplace, name: String = "slapd", tls: (certificate: String, key: String)? = nil,
        ports: (plain: UInt16, tls: UInt16)? = nil
    ) async throws -> Slapd {
        let folder = try place.makeDirectory(name)
        let secure = tls.map { "TLSCertificateFile \($0.certificate)\nTLSCertificateKeyFile \($0.key)" } ?? ""
        let file = try place.write(
            "\(name)/slapd.conf",
            """
            include /etc/ldap/schema/core.schema
            include /etc/ldap/schema/cosine.schema
            include /etc/ldap/schema/inetorgperson.schema
            modulepath /usr/lib/ldap
            moduleload back_mdb
            pidfile \(folder)/pid
            \(secure)
            database mdb
            maxsize 16777216
            suffix dc=example
            directory \(folder)/data
            access to attrs=userPassword by anonymous auth by * none
            access to * by dn.exact="cn=larder,dc=example" read by users read by * none

            """.utf8)
        if ports == nil {
            try place.makeDirectory("\(name)/data")
            let entries = try place.write("\(name)/entries.ldif", Slapd.entries.utf8)
            let added = try await place.run("slapadd", ["-f", file, "-l", entries])
            try #require(added.status == 0, "\(added)")
        }
        let (port, tlsPort) = ports ?? (FreePort.take(), FreePort.take())
        let urls = ["ldap://127.0.0.1:\(port)/"] + (tls == nil ? [] : ["ldaps://127.0.0.1:\(tlsPort)/"])
        let child = try await place.start(
            "slapd", ["-f", file, "-h", urls.joined(separator: " "), "-d", "stats"])
        try await eventually("slapd is up; it said: \(child.errors)") {
            if let status = child.exitStatus {
                throw Failure(description: "slapd ended with \(status): \(child.errors)")
            }
            return child.errors.contains("slapd starting")
        }
        return Slapd(place: place, name: name, child: child, port: port, tlsPort: tlsPort)
    }

    private static func user(_ dn: String, _ uid: String, _ password: String, more: String = "") -> String {
        """
        dn: \(dn)
        objectClass: inetOrgPerson
        uid: \(uid)
        cn: \(uid)
        sn: x
        userPassword: \(password)
        \(more)

        """
    }

    private static let entries = """
        dn: dc=example
        objectClass: dcObject
        objectClass: organization
        dc: example
        o: example

        dn: cn=larder,dc=example
        objectClass: organizationalRole
        objectClass: simpleSecurityObject
        cn: larder
        userPassword: reader

        dn: ou=people,dc=example
        objectClass: organizationalUnit
        ou: people

        dn: ou=groups,dc=example
        objectClass: organizationalUnit
        ou: groups

        \(user("uid=ann,ou=people,dc=example", "ann", "secret", more: "seeAlso: cn=night,ou=groups,dc=example\n"))
        \(user("uid=bob,ou=people,dc=example", "bob", "hunter2"))
        \(user("uid=ali,ou=people,dc=example", "ali", "other"))
        \(user(#"uid=a*(b)\5cc,ou=people,dc=example"#, #"a*(b)\c"#, "odd"))
        \(user("uid=twin,ou=people,dc=example", "twin", "secret"))
        \(user("uid=twin,ou=groups,dc=example", "twin", "secret"))
        dn: cn=builders,ou=groups,dc=example
        objectClass: groupOfNames
        cn: builders
        member: uid=ann,ou=people,dc=example
        member: uid=ali,ou=people,dc=example

        """
}
