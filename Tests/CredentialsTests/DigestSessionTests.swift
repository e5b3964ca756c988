import Credentials
import Testing

@Suite("RFC 7616 §3.4, §3.5 One nonce for many requests")
struct DigestSessionTests {
    private static func send(
        _ session: inout DigestSession, _ clientNonce: String = "c"
    ) throws -> [String: String] {
        DigestTests.parameters(
            try session.authorization(
                for: DigestTests.get(), clientNonce: Array(clientNonce.utf8), using: OpenSSLHashing()))
    }

    private static func information(_ text: String) throws -> AuthenticationInfo {
        try #require(AuthenticationInfo(Array(text.utf8)[...]))
    }

    private static func challenge(_ text: String) throws -> DigestChallenge {
        try #require(DigestChallenge(challenges(text)[0]))
    }

    @Test func `every request counts, with a client nonce of its own`() throws {
        var session = try DigestTests.session("Digest realm=r, nonce=n, qop=auth")
        var responses: Set<String?> = []
        for (index, count) in ["00000001", "00000002", "00000003"].enumerated() {
            let sent = try Self.send(&session, "c\(index)")
            #expect(sent["nc"] == count && sent["cnonce"] == "c\(index)" && sent["nonce"] == "n")
            responses.insert(sent["response"])
        }
        #expect(responses.count == 3)
    }

    @Test func `with -sess the first client nonce stays, because the key is made of it`() throws {
        var session = try DigestTests.session("Digest realm=r, nonce=n, qop=auth, algorithm=SHA-256-sess")
        #expect(try Self.send(&session, "first")["cnonce"] == "first")
        let second = try Self.send(&session, "second")
        #expect(second["cnonce"] == "first" && second["nc"] == "00000002")
        #expect(
            session.renew(try Self.challenge("Digest realm=r, nonce=m, qop=auth, algorithm=SHA-256-sess, stale=true"))
                == .sendAgain)
        #expect(try Self.send(&session, "third")["cnonce"] == "third")
    }

    @Test func `a stale nonce is replaced, and its count begins again`() throws {
        var session = try DigestTests.session("Digest realm=r, nonce=n, qop=auth")
        _ = try Self.send(&session)
        #expect(session.renew(try Self.challenge("Digest realm=r, nonce=m, qop=auth, stale=true")) == .sendAgain)
        let sent = try Self.send(&session)
        #expect(sent["nonce"] == "m" && sent["nc"] == "00000001")
    }

    @Test(arguments: ["realm=r, nonce=m", "realm=r, nonce=m, stale=false", "realm=s, nonce=m, stale=true"])
    func `another challenge is a refusal, and changes nothing`(_ parameters: String) throws {
        var session = try DigestTests.session("Digest realm=r, nonce=n, qop=auth")
        _ = try Self.send(&session)
        #expect(session.renew(try Self.challenge("Digest qop=auth, \(parameters)")) == .refused)
        let sent = try Self.send(&session)
        #expect(sent["nonce"] == "n" && sent["nc"] == "00000002")
    }

    @Test func `nextnonce is used from the next request on, except with -sess`() throws {
        let information = try Self.information(#"nextnonce="m""#)
        var session = try DigestTests.session("Digest realm=r, nonce=n, qop=auth")
        _ = try Self.send(&session)
        session.learn(from: information)
        var sent = try Self.send(&session)
        #expect(sent["nonce"] == "m" && sent["nc"] == "00000001")
        // The nonce that is in use is no new one.
        session.learn(from: information)
        #expect(try Self.send(&session)["nc"] == "00000002")
        session.learn(from: try Self.information("qop=auth"))
        #expect(try Self.send(&session)["nc"] == "00000003")

        session = try DigestTests.session("Digest realm=r, nonce=n, qop=auth, algorithm=MD5-sess")
        _ = try Self.send(&session)
        session.learn(from: information)
        sent = try Self.send(&session)
        #expect(sent["nonce"] == "n" && sent["nc"] == "00000002")
    }

    /// Values of §3.9.1; the right proof is computed with Python's hashlib.
    static let proofs: [(String, DigestAuthorization.Proof)] = [
        (
            #"rspauth="9b712497bc9f91499fbcca1dfc5f09a5", qop=auth, nc=00000001, cnonce="\#(DigestTests.clientNonce)""#,
            .right
        ),
        (#"rspauth="9B712497BC9F91499FBCCA1DFC5F09A5""#, .right), (#"nextnonce="m""#, .absent), ("", .absent),
        (#"rspauth="9b712497bc9f91499fbcca1dfc5f09a6""#, .wrong), (#"rspauth="""#, .wrong),
        // The response of the client is no proof.
        (#"rspauth="8ca523f5e9506fed4657c9700eebdbec""#, .wrong),
        (#"rspauth="9b712497bc9f91499fbcca1dfc5f09a5", nc=00000002"#, .wrong),
        (#"rspauth="9b712497bc9f91499fbcca1dfc5f09a5", cnonce="x""#, .wrong),
    ]
    @Test(arguments: proofs) func `rspauth proves that the server knows the password`(
        _ row: (String, DigestAuthorization.Proof)
    ) throws {
        var session = try DigestTests.session(
            #"Digest realm="http-auth@example.org", nonce="\#(DigestTests.nonce)", qop="auth,auth-int""#)
        let sent = try session.authorization(
            for: DigestTests.get(), clientNonce: Array(DigestTests.clientNonce.utf8), using: OpenSSLHashing())
        #expect(try sent.proof(in: try Self.information(row.0), using: OpenSSLHashing()) == row.1)
    }

    @Test(arguments: ["nextnonce", "a=b, a=c", #"nextnonce="m"#, "Digest nextnonce=m"])
    func `a malformed Authentication-Info is nothing`(_ value: String) {
        #expect(AuthenticationInfo(Array(value.utf8)[...]) == nil)
    }
}
