import Credentials
import Testing

@Suite("RFC 7616 Digest, as Larder answers it")
struct DigestTests {
    static let nonce = "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v"
    static let clientNonce = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ"

    static func session(
        _ challenge: String, user: String = "Mufasa", password: String = "Circle of Life"
    ) throws -> DigestSession {
        let challenge = try #require(DigestChallenge(challenges(challenge)[0]))
        return try DigestSession(challenge, user: user, password: Secret(password))
    }

    static func get(_ uri: String = "/dir/index.html", body: DigestBody = .unknown) -> DigestRequest {
        DigestRequest(method: Array("GET".utf8), uri: Array(uri.utf8), body: body)
    }

    /// The parameters of an authorization.
    static func parameters(_ authorization: DigestAuthorization) -> [String: String] {
        guard case .parameters(let list) = challenges(text(authorization.value)).first?.content else { return [:] }
        return Dictionary(uniqueKeysWithValues: list.map { (text($0.name), text($0.value)) })
    }

    @Test func `the example of §3.9.1`() throws {
        let opaque = "FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"
        for (name, response) in [
            ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
            ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
        ] {
            var session = try Self.session(
                #"Digest realm="http-auth@example.org", qop="auth, auth-int", algorithm=\#(name), nonce="\#(Self.nonce)", opaque="\#(opaque)""#
            )
            let sent = try session.authorization(
                for: Self.get(), clientNonce: Array(Self.clientNonce.utf8), using: OpenSSLHashing())
            #expect(
                text(sent.value) == """
                    Digest username="Mufasa", realm="http-auth@example.org", nonce="\(Self.nonce)", uri="/dir/index.html", \
                    algorithm=\(name), response="\(response)", qop=auth, nc=00000001, cnonce="\(Self.clientNonce)", \
                    opaque="\(opaque)"
                    """)
        }
    }

    /// The RFC prints other hashes, which are not those of SHA-512/256. Erratum 4897 has these.
    @Test func `the example of §3.9.2, with userhash and without`() throws {
        for (hashesUser, user) in [
            (true, #"username="793263caabb707a56211940d90411ea4a575adeccb7e360aeb624ed06ece9b0b""#),
            (false, "username*=UTF-8''J%C3%A4s%C3%B8n%20Doe"),
        ] {
            var session = try Self.session(
                #"Digest realm="api@example.org", qop=auth, algorithm=SHA-512-256, nonce="5TsQWLVdgBdmrQ0XsxbDODV+57QdFR34I9HAbC/RVvkK", opaque="HRPCssKJSGjCrkzDg8OhwpzCiGPChXYjwrI2QmXDnsOS", charset=UTF-8, userhash=\#(hashesUser)"#,
                user: "Jäsøn Doe", password: "Secret, or not?")
            let sent = try session.authorization(
                for: Self.get("/doe.json"), clientNonce: Array("NTg6RKcb9boFIAS3KrFK9BGeh+iDa/sm6jUMp2wds69v".utf8),
                using: OpenSSLHashing())
            let response = "3798d4131c277846293534c3edc11bd8a5e4cdcbff78b05db9d95eeb1cec68a5"
            #expect(text(sent.value).hasPrefix("Digest \(user), realm="))
            #expect(Self.parameters(sent)["response"] == response)
            #expect(text(sent.value).hasSuffix(", userhash=true") == hashesUser)
        }
    }

    @Test func `the examples of RFC 2617 and, without qop, RFC 2069 (erratum 749)`() throws {
        let challenge =
            #"Digest realm="testrealm@host.com", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093", opaque="5ccc069c403ebaf9f0171e9517f40e41""#
        var session = try Self.session(challenge + #", qop="auth,auth-int""#, password: "Circle Of Life")
        let sent = try session.authorization(
            for: Self.get(), clientNonce: Array("0a4f113b".utf8), using: OpenSSLHashing())
        #expect(Self.parameters(sent)["response"] == "6629fae49393a05397450978507c4ef1")
        #expect(Self.parameters(sent)["algorithm"] == nil)

        session = try Self.session(challenge, password: "CircleOfLife")
        let old = try session.authorization(for: Self.get(), clientNonce: [0x61], using: OpenSSLHashing())
        #expect(Self.parameters(old)["response"] == "1949323746fe6a43ef61f9606e7febea")
        #expect(Set(Self.parameters(old).keys) == ["username", "realm", "nonce", "uri", "response", "opaque"])
    }

    /// Computed with Python's hashlib for the parameters of §3.9.1 and an empty body. The second value is the answer of the server.
    static let rows: [(algorithm: String, qop: String, response: String, proof: String)] = [
        ("MD5", "auth", "8ca523f5e9506fed4657c9700eebdbec", "9b712497bc9f91499fbcca1dfc5f09a5"),
        ("MD5", "auth-int", "8804a53d3640a40a4f73cea12c5ba451", "90784b078730942b2d8829a8635a46c5"),
        ("MD5-sess", "auth", "e783283f46242139c486a698fec7211d", "b9bdf5673282d64412df46ad40660539"),
        ("MD5-sess", "auth-int", "200cda1c37eb927016d1f97f2c0f04f6", "4cfe516f23437b1ed42a41e10f185481"),
        ("MD5-sess", "", "37a7f42db2090a3fcac4e26e747d4fc8", "c65f1e29e2e8a98517f3e75f4fe1ac40"),
        (
            "SHA-256", "auth", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1",
            "86d3b25618d41854ca5039a5d7e53ff6355d5134a9b1fb088a78ac3c462195a0"
        ),
        (
            "SHA-256-sess", "auth-int", "3c19fbb1d58d0c5baff1a2ef49d847b5d0dfd7e3252b355d978d3af7d895912b",
            "e0542942acf081666f74667a1b781d2fcedf5b2023f1d5cbda3a85d0269cc1e5"
        ),
        (
            "SHA-512-256", "", "93e9122020ea0624d2ca801426d5bfbeb93d10ff4cc24cb410af3920fa4730e7",
            "bf02b3a75574da03a1dcee7cbbfe770c43a604a3d0410d43adbb9b97ac0e5bac"
        ),
        (
            "SHA-512-256-sess", "auth", "3f2a34f923c38b0fb26dce2fdfc2ce326c23cecf86fbb1444f3e51fbbc2cb92e",
            "98012a4e63fae2aea13adaa3410368ef7278c87ca0acbd3c941ca5fe3dceeb86"
        ),
    ]
    @Test(arguments: rows) func `both sides compute the same for every algorithm and protection`(
        _ row: (algorithm: String, qop: String, response: String, proof: String)
    ) throws {
        let qop = row.qop.isEmpty ? "" : ", qop=\(row.qop)"
        var session = try Self.session(
            #"Digest realm="http-auth@example.org", nonce="\#(Self.nonce)", algorithm=\#(row.algorithm)\#(qop)"#)
        #expect(session.needsBody == (row.qop == "auth-int"))
        let sent = try session.authorization(
            for: Self.get(body: .empty), clientNonce: Array(Self.clientNonce.utf8), using: OpenSSLHashing())
        #expect(Self.parameters(sent)["response"] == row.response)
        #expect(Self.parameters(sent)["qop"] ?? "" == row.qop)
        let right = try #require(AuthenticationInfo(Array(#"rspauth="\#(row.proof)"\#(qop)"#.utf8)[...]))
        #expect(try sent.proof(in: right, body: .empty, using: OpenSSLHashing()) == .right)
    }

    @Test func `the body of the request and of the response take part in auth-int`() throws {
        var session = try Self.session(
            #"Digest realm="http-auth@example.org", nonce="\#(Self.nonce)", qop=auth-int"#)
        #expect(throws: DigestFailure.bodyIsNeeded) {
            try session.authorization(for: Self.get(), clientNonce: [0x61], using: OpenSSLHashing())
        }
        let hash = try OpenSSLHashing().hash(session.hash, Array("body".utf8))
        let responses = try [DigestBody.empty, .hashed(hash), .content(Array("body".utf8))].map { body in
            var copy = session
            return Self.parameters(
                try copy.authorization(for: Self.get(body: body), clientNonce: [0x61], using: OpenSSLHashing()))[
                    "response"]
        }
        #expect(responses[0] != responses[1])
        #expect(responses[1] == responses[2])
        let empty = try OpenSSLHashing().hash(session.hash, [])
        var copy = session
        let same = try copy.authorization(
            for: Self.get(body: .hashed(empty)), clientNonce: [0x61], using: OpenSSLHashing())
        #expect(Self.parameters(same)["response"] == responses[0])
        let claim = try #require(AuthenticationInfo(Array("qop=auth-int, rspauth=\"00\"".utf8)[...]))
        #expect(try same.proof(in: claim, using: OpenSSLHashing()) == .needsBody)
        #expect(try same.proof(in: claim, body: .empty, using: OpenSSLHashing()) == .wrong)
    }

    @Test(arguments: ["a\r\nX: y", "\u{7F}"]) func `a user with control characters is refused`(_ user: String) {
        #expect(throws: CredentialFault.userHasControlCharacter) {
            try Self.session("Digest realm=r, nonce=n", user: user)
        }
    }

    @Test func `a quoted-string is escaped, and hashed without its escapes`() throws {
        var session = try Self.session(#"Digest realm="a\"b\\", nonce=n"#, user: #"u"v"#, password: "p")
        let sent = try session.authorization(for: Self.get("/"), clientNonce: [0x61], using: OpenSSLHashing())
        #expect(text(sent.value).hasPrefix(#"Digest username="u\"v", realm="a\"b\\", nonce="n""#))
        func hash(_ text: String) throws -> String { hexText(try OpenSSLHashing().hash(.md5, Array(text.utf8))) }
        #expect(Self.parameters(sent)["response"] == (try hash("\(hash(#"u"v:a"b\:p"#)):n:\(hash("GET:/"))")))
    }

    /// Servers that do not announce UTF-8 do not know `username*` either.
    @Test func `without charset, a name beyond ASCII is sent as its bytes`() throws {
        var session = try Self.session("Digest realm=r, nonce=n", user: "Jäsøn", password: "p")
        let sent = try session.authorization(for: Self.get("/"), clientNonce: [0x61], using: OpenSSLHashing())
        #expect(text(sent.value).hasPrefix(#"Digest username="Jäsøn", realm="r""#))
    }

    @Test func `a hash that the installation lacks is an error, and costs no use of the nonce`() throws {
        struct NoHashing: Hashing {
            func hash(_ algorithm: HashAlgorithm, _ bytes: [UInt8]) throws(HashUnavailable) -> [UInt8] {
                throw HashUnavailable(algorithm)
            }
            func hmac(_ algorithm: HashAlgorithm, key: [UInt8], _ bytes: [UInt8]) throws(HashUnavailable) -> [UInt8] {
                throw HashUnavailable(algorithm)
            }
        }
        var session = try Self.session("Digest realm=r, nonce=n, qop=auth")
        #expect(throws: DigestFailure.hashUnavailable(.md5)) {
            try session.authorization(for: Self.get(), clientNonce: [0x61], using: NoHashing())
        }
        let sent = try session.authorization(for: Self.get(), clientNonce: [0x61], using: OpenSSLHashing())
        #expect(Self.parameters(sent)["nc"] == "00000001")
    }
}
