import Credentials
import Foundation
import Testing

@Suite("RFC 7616 §3.4 Digest, as Larder reads and checks it")
struct DigestCredentialsTests {
    static let ofRFC = #"""
        Digest username="Mufasa", realm="http-auth@example.org", uri="/dir/index.html", algorithm=MD5, \#
        nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", nc=00000001, \#
        cnonce="f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ", qop=auth, \#
        response="8ca523f5e9506fed4657c9700eebdbec", opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"
        """#

    static func read(_ text: String) throws -> DigestCredentials {
        guard case .credentials(let credentials) = DigestCredentials.read(Array(text.utf8)[...]) else {
            throw Unreadable()
        }
        return credentials
    }
    struct Unreadable: Error {}

    static func secret(
        _ algorithm: HashAlgorithm, user: String = "Mufasa", realm: String = "http-auth@example.org",
        password: String = "Circle of Life"
    ) throws -> Secret {
        try digestSecret(
            user: Array(user.utf8), realm: Array(realm.utf8), password: Array(password.utf8), algorithm,
            using: OpenSSLHashing())
    }

    /// The second value is the proof of the server, computed with Python's hashlib.
    static let examples: [(algorithm: HashAlgorithm, name: String, response: String, proof: String)] = [
        (.md5, "MD5", "8ca523f5e9506fed4657c9700eebdbec", "9b712497bc9f91499fbcca1dfc5f09a5"),
        (
            .sha256, "SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1",
            "86d3b25618d41854ca5039a5d7e53ff6355d5134a9b1fb088a78ac3c462195a0"
        ),
    ]
    @Test(arguments: examples) func `the example of §3.9.1, and the proof that the server knows the secret (§3.5)`(
        _ row: (algorithm: HashAlgorithm, name: String, response: String, proof: String)
    ) throws {
        let value = Self.ofRFC.replacingOccurrences(of: "MD5", with: row.name)
            .replacingOccurrences(of: Self.examples[0].response, with: row.response)
        let credentials = try Self.read(value)
        let secret = try Self.secret(row.algorithm)
        #expect(try credentials.prove(secret, method: Array("GET".utf8), using: OpenSSLHashing()))
        #expect(try !credentials.prove(secret, method: Array("PUT".utf8), using: OpenSSLHashing()))
        let other = try Self.secret(row.algorithm, password: "Circle of life")
        #expect(try !credentials.prove(other, method: Array("GET".utf8), using: OpenSSLHashing()))
        let client = #"cnonce="f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ", nc=00000001"#
        #expect(
            text(try credentials.information(secret, next: nil, using: OpenSSLHashing()))
                == "qop=auth, rspauth=\"\(row.proof)\", \(client)")
        #expect(
            text(try credentials.information(secret, next: Array("n\"".utf8), using: OpenSSLHashing()))
                == "qop=auth, rspauth=\"\(row.proof)\", \(client), nextnonce=\"n\\\"\"")
    }

    @Test func `auth-int proves nothing where the body is not known`() throws {
        let credentials = try Self.read(Self.ofRFC.replacingOccurrences(of: "qop=auth,", with: "qop=auth-int,"))
        let secret = try Self.secret(.md5)
        #expect(try !credentials.prove(secret, method: Array("GET".utf8), using: OpenSSLHashing()))
        #expect(try !credentials.prove(secret, method: Array("GET".utf8), body: .empty, using: OpenSSLHashing()))
    }

    /// The RFC prints other hashes, which are not those of SHA-512/256. Erratum 4897 has these.
    @Test func `the example of §3.9.2, with userhash and without`() throws {
        let hash = "793263caabb707a56211940d90411ea4a575adeccb7e360aeb624ed06ece9b0b"
        for (user, expected) in [
            ("username=\"\(hash)\", userhash=true", DigestCredentials.User.hashed(Array(hash.utf8))),
            ("username*=UTF-8''J%C3%A4s%C3%B8n%20Doe", .name(Array("Jäsøn Doe".utf8))),
        ] {
            let credentials = try Self.read(
                #"Digest \#(user), realm="api@example.org", uri="/doe.json", algorithm=SHA-512-256, nonce="5TsQWLVdgBdmrQ0XsxbDODV+57QdFR34I9HAbC/RVvkK", nc=00000001, cnonce="NTg6RKcb9boFIAS3KrFK9BGeh+iDa/sm6jUMp2wds69v", qop=auth, response="3798d4131c277846293534c3edc11bd8a5e4cdcbff78b05db9d95eeb1cec68a5""#
            )
            #expect(credentials.user == expected)
            let secret = try Self.secret(
                .sha512_256, user: "Jäsøn Doe", realm: "api@example.org", password: "Secret, or not?")
            #expect(try credentials.prove(secret, method: Array("GET".utf8), using: OpenSSLHashing()))
        }
        #expect(
            text(
                try digestUserHash(
                    Array("Jäsøn Doe".utf8), realm: Array("api@example.org".utf8), .sha512_256,
                    using: OpenSSLHashing())) == hash)
    }

    @Test func `the example of RFC 2617`() throws {
        let credentials = try Self.read(
            #"Digest username="Mufasa", realm="testrealm@host.com", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093", uri="/dir/index.html", qop=auth, nc=00000001, cnonce="0a4f113b", response="6629fae49393a05397450978507c4ef1", opaque="5ccc069c403ebaf9f0171e9517f40e41""#
        )
        let secret = try Self.secret(.md5, realm: "testrealm@host.com", password: "Circle Of Life")
        #expect(try credentials.prove(secret, method: Array("GET".utf8), using: OpenSSLHashing()))
    }

    /// The digest covers what the client wrote, in its spelling.
    @Test func `capital digits, quoted tokens and white space are understood`() throws {
        let plain = try Self.read(
            #"digest   username=u , realm=r, nonce=n, uri="/", qop="auth", nc=0000000A, cnonce=c, response=AB"#)
        #expect(plain.count == 10)
        #expect(plain.user == .name([0x75]))
        let shown = text(try plain.information(Secret("x"), next: nil, using: OpenSSLHashing()))
        #expect(shown.contains("nc=0000000A") && shown.hasPrefix("qop=auth, "))
    }

    static let complete =
        #"username="u", realm="r", nonce="n", uri="/", qop=auth, nc=00000001, cnonce="c", response="0""#
    static let malformed = [
        "", " ", "x", "username", complete.replacingOccurrences(of: ", qop=auth", with: ""),
        complete.replacingOccurrences(of: "qop=auth", with: "qop=auth-conf"),
        complete.replacingOccurrences(of: "nc=00000001", with: "nc=1"),
        complete.replacingOccurrences(of: "nc=00000001", with: "nc=00000000"),
        complete.replacingOccurrences(of: "nc=00000001", with: "nc=0000000g"),
        complete.replacingOccurrences(of: "nc=00000001", with: "nc=000000001"),
        complete.replacingOccurrences(of: "cnonce=\"c\"", with: "cnonce=\"\""),
        complete.replacingOccurrences(of: "uri=\"/\"", with: "uri=\"\""),
        complete.replacingOccurrences(of: "username=\"u\", ", with: ""),
        complete.replacingOccurrences(of: "nonce=\"n\"", with: "nonce=\"n"),
        complete + ", realm=\"other\"", complete + ", algorithm=SHA3", complete + ", username*=UTF-8''u",
        complete.replacingOccurrences(of: "username=", with: "username*="),
        complete.replacingOccurrences(of: "username=\"u\"", with: "username*=ISO-8859-1''u"),
        complete.replacingOccurrences(of: "username=\"u\"", with: "username*=UTF-8''u, userhash=true"),
        complete + String(repeating: ", a=b", count: 40),
    ]
    @Test(arguments: malformed) func `what lacks something, or has it twice, is no digest`(_ parameters: String) {
        #expect(DigestCredentials.read(Array("Digest \(parameters)".utf8)[...]) == .malformed)
    }

    @Test(arguments: ["", "Basic YTpi", "Digestive x", "Negotiate AA==", " Digest"])
    func `other schemes are left to others`(_ value: String) {
        #expect(DigestCredentials.read(Array(value.utf8)[...]) == .otherScheme)
    }

    @Test func `a challenge has what a client needs (§3.3)`() {
        #expect(
            text(
                digestChallengeText(
                    realm: Array("the \"big\" one".utf8), nonce: Array("n".utf8), opaque: Array("o".utf8), .sha256,
                    isStale: true))
                == #"Digest realm="the \"big\" one", nonce="n", opaque="o", algorithm=SHA-256, qop="auth", charset=UTF-8, userhash=true, stale=true"#
        )
    }

    /// What a server compares must not tell by its time how much was right.
    @Test func `every digit is compared, wherever the first difference is`() throws {
        let right = try Self.read(Self.ofRFC)
        for index in [0, 15, 31] {
            var digits = Array("8ca523f5e9506fed4657c9700eebdbec")
            digits[index] = digits[index] == "0" ? "1" : "0"
            let wrong = try Self.read(
                Self.ofRFC.replacingOccurrences(of: "8ca523f5e9506fed4657c9700eebdbec", with: String(digits)))
            #expect(try !wrong.prove(Self.secret(.md5), method: Array("GET".utf8), using: OpenSSLHashing()))
        }
        let short = try Self.read(
            Self.ofRFC.replacingOccurrences(of: "8ca523f5e9506fed4657c9700eebdbec", with: "8ca523f5"))
        #expect(try !short.prove(Self.secret(.md5), method: Array("GET".utf8), using: OpenSSLHashing()))
        #expect(try right.prove(Self.secret(.md5), method: Array("GET".utf8), using: OpenSSLHashing()))
    }
}
