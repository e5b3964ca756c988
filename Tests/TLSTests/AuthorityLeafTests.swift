import COpenSSL
import Glibc
import TLS
import Testing

@Suite("Leaves of an authority (RFC 5280)")
struct AuthorityLeafTests {
    static let now = AuthorityFixture.now
    static let long = String(repeating: "a", count: 60) + ".example.org"

    /// What `openssl x509 -text` must show, with a line break where lines follow each other.
    static let fields: [(field: String, name: LeafName, shows: String)] = [
        ("version", .dns("a.example.org"), "Version: 3 (0x2)"),
        ("subject", .dns("a.example.org"), "Subject: CN = a.example.org\n"),
        (
            "exactly one name", .dns("a.example.org"),
            "X509v3 Subject Alternative Name: \n DNS:a.example.org\n Signature"
        ),
        ("a name too long for CN", .dns(long), "Subject: \n"),
        ("which makes the SAN critical", .dns(long), "X509v3 Subject Alternative Name: critical\n DNS:\(long)\n"),
        ("IPv4", .address([192, 0, 2, 1]), "X509v3 Subject Alternative Name: critical\n IP Address:192.0.2.1\n"),
        (
            "IPv6", .address([0x20, 1, 0xD, 0xB8] + Array(repeating: 0, count: 11) + [1]),
            "IP Address:2001:DB8:0:0:0:0:0:1\n"
        ),
        ("basicConstraints", .dns("a.example.org"), "X509v3 Basic Constraints: critical\n CA:FALSE\n"),
        ("keyUsage", .dns("a.example.org"), "X509v3 Key Usage: critical\n Digital Signature\n"),
        ("EKU", .dns("a.example.org"), "X509v3 Extended Key Usage: \n TLS Web Server Authentication\n"),
        ("algorithm", .dns("a.example.org"), "Signature Algorithm: ecdsa-with-SHA256\n"),
        ("key", .dns("a.example.org"), "NIST CURVE: P-256\n"),
        ("48 hours back", .dns("a.example.org"), "Not Before: Nov 20 11:06:40 2026 GMT\n"),
        ("7 days", .dns("a.example.org"), "Not After : Nov 29 11:06:40 2026 GMT\n"),
    ]

    @Test(arguments: fields) func `a leaf has the fields that clients insist on`(
        _ row: (field: String, name: LeafName, shows: String)
    ) throws {
        let fixture = try AuthorityFixture(permitting: nil)
        let leaf = try fixture.authority.issue(row.name, at: Self.now)
        let seen = fixture.examine(leaf)
        let text = seen.text.split(separator: "\n").map { $0.drop { $0 == " " } }.joined(separator: "\n ") + "\n"
        #expect(
            text.contains(row.shows) || text.replacing("\n ", with: "\n").contains(row.shows),
            "\(row.field): \(seen.text)")
        #expect(!text.contains("Subject Key Identifier"))
        #expect(seen.isGood, "\(seen.verdict)")
    }

    @Test func `the authority key identifier is the issuer's own`() throws {
        let fixture = try AuthorityFixture(permitting: nil)
        let leaf = fixture.examine(try fixture.authority.issue(.dns("a.example.org"), at: Self.now)).text
        let issuer = shell(
            "openssl x509 -in '\(fixture.files.directory)/intermediate.pem' -noout -ext subjectKeyIdentifier"
        ).output
        let identifier = try #require(issuer.split(separator: "\n").last).drop { $0 == " " }
        #expect(identifier.count == 59)
        #expect(leaf.contains("X509v3 Authority Key Identifier: \n                \(identifier)\n"))
    }

    @Test func `serial numbers are positive, have 126 random bits, and are not repeated`() throws {
        let authority = try AuthorityFixture(permitting: nil).authority
        var seen: Set<[UInt8]> = []
        for _ in 0..<200 {
            let leaf = try authority.issue(.dns("a.example.org"), at: Self.now)
            let serial = unsafe X509_get0_serialNumber(leaf.certificate)
            #expect(unsafe ASN1_STRING_type(serial) == V_ASN1_INTEGER)  // not V_ASN1_NEG_INTEGER
            let octets = unsafe Array(
                UnsafeBufferPointer(start: ASN1_STRING_get0_data(serial), count: Int(ASN1_STRING_length(serial))))
            #expect(octets.count == 16 && (0x40..<0x80).contains(octets[0]))
            #expect(seen.insert(octets).inserted)
        }
    }

    @Test func `leaves share a key that is not the authority's`() throws {
        let authority = try AuthorityFixture(permitting: nil).authority
        let (a, b) = (
            try authority.issue(.dns("a.example.org"), at: Self.now),
            try authority.issue(.dns("b.example.org"), at: Self.now)
        )
        #expect(unsafe X509_check_private_key(a.certificate, a.key) == 1)
        #expect(unsafe X509_check_private_key(b.certificate, a.key) == 1)
        let issuer = try unsafe #require(OPENSSL_sk_value(a.chain, 0))
        #expect(unsafe X509_check_private_key(OpaquePointer(issuer), a.key) == 0)
        #expect(unsafe OPENSSL_sk_num(a.chain) == 1)  // without the root
    }

    static let invalid: [LeafName] = [
        .dns(""), .dns("A.example.org"), .dns("a.example.org."), .dns("*.example.org"), .dns("a\0.example.org"),
        .dns("a..example.org"), .dns("bücher.example"), .dns(String(repeating: "a", count: 64) + ".org"),
        .dns("a,DNS:b.example.org"), .address([1, 2, 3]),
    ]
    @Test(arguments: invalid) func `what is no canonical name is not certified`(_ name: LeafName) throws {
        let authority = try AuthorityFixture(permitting: nil).authority
        #expect { try authority.issue(name, at: Self.now) } throws: {
            if case .invalidName? = $0 as? AuthorityError { true } else { false }
        }
    }

    static let hosts: [(String, LeafName?)] = [
        ("A.Example.ORG.", .dns("a.example.org")), ("x_y.example", .dns("x_y.example")),
        ("192.0.2.1", .address([192, 0, 2, 1])), ("::1", .address(Array(repeating: 0, count: 15) + [1])),
        ("a b", nil), ("", nil), (".", nil), ("[::1]", nil), ("*.example.org", nil), ("a\0b", nil), ("é.example", nil),
    ]
    @Test(arguments: hosts) func `names are read from hosts`(_ host: String, _ name: LeafName?) {
        #expect(LeafName(host: host) == name)
    }

    static let validities: [(what: String, now: Int64, notBefore: Int64, notAfter: Int64, renewFrom: Int64)] = [
        ("the whole lifetime", now, now - 172_800, now + 604_800, now + 302_400),
        ("not before the issuer", now - 172_000, now - 172_800, now + 432_800, now + 130_400),
        ("not after the issuer", now + 395 * 86_400, now + 393 * 86_400, now + 397 * 86_400, now + 397 * 86_400),
    ]
    @Test(arguments: validities) func `a leaf is valid within its issuer's time`(
        _ row: (what: String, now: Int64, notBefore: Int64, notAfter: Int64, renewFrom: Int64)
    ) throws {
        let leaf = try AuthorityFixture(permitting: nil).authority.issue(.dns("a.example.org"), at: row.now)
        #expect(leaf.notBefore == row.notBefore, "\(row.what)")
        #expect(leaf.notAfter == row.notAfter, "\(row.what)")
        #expect(leaf.renewFrom == row.renewFrom, "\(row.what)")
    }

    @Test func `an authority whose time is over certifies nothing`() throws {
        let authority = try AuthorityFixture(permitting: nil).authority
        #expect(authority.daysLeft(at: Self.now) == 397)
        #expect(authority.daysLeft(at: Self.now + 397 * 86_400 + 1) == -1)
        #expect { try authority.issue(.dns("a.example.org"), at: Self.now + 397 * 86_400 + 1) } throws: {
            if case .expired? = $0 as? AuthorityError { true } else { false }
        }
        #expect { try authority.issue(.dns("a.example.org"), at: Self.now - 200_000) } throws: {
            if case .notYetValid? = $0 as? AuthorityError { true } else { false }
        }
    }

    @Test func `from 2050 on dates have four digits of the year`() throws {
        let later: Int64 = 2_524_608_000  // 2050-01-01
        let fixture = try AuthorityFixture(permitting: nil, at: later)
        let leaf = try fixture.authority.issue(.dns("a.example.org"), at: later)
        #expect(unsafe ASN1_STRING_type(X509_get0_notBefore(leaf.certificate)) == V_ASN1_UTCTIME)
        #expect(unsafe ASN1_STRING_type(X509_get0_notAfter(leaf.certificate)) == V_ASN1_GENERALIZEDTIME)
        #expect(fixture.examine(leaf, at: later).isGood)
    }
}
