import Authentication
import Message
import Rules
import Testing

@Suite("RFC 4559 Negotiate: what becomes of tokens")
struct NegotiateAcceptorTests {
    static func make(realm: String? = nil) throws -> Authenticator {
        var settings = AuthenticationSettings()
        settings.negotiate.keytab = "keytab"
        settings.negotiate.ownRealm = realm
        settings.basic.usersFile = "users"
        return try #require(
            Authenticator(
                settings, AuthenticationMaterial(),
                AuthenticationTools(hashing: OpenSSLHashing(), nonceHash: SipHash(key: (1, 2)), random: { 1 })))
    }

    static let rows: [(credentials: String, decision: String)] = [
        ("Negotiate YIIB", "ask negotiation"), ("negotiate  YIIB", "ask negotiation"),
        ("Negotiate", "refused(missing)"), ("Negotiate ", "refused(missing)"), ("Negotiate ?", "refused(wrong)"),
        ("NegotiateYIIB", "refused(missing)"),
        // NTLM without SPNEGO.
        ("Negotiate TlRMTVNTUAABAAAA", "refused(wrong)"), ("NTLM TlRMTVNTUAABAAAA", "refused(missing)"),
        ("Negotiate " + String(repeating: "A", count: 100_000), "refused(wrong)"),
    ]
    @Test(arguments: rows) func `a token goes to the security context of its connection`(
        _ row: (credentials: String, decision: String)
    ) throws {
        var memory = VerifiedCredentialsTests.make()
        let decision = try Self.make().examine(BearerTests.attempt(row.credentials), &memory)
        #expect(AuthenticatorTests.text(decision) == row.decision)
    }

    private static func conclusion(
        _ answer: NegotiationAnswer, realm: String? = nil, _ memory: inout VerifiedCredentials
    ) throws -> Authenticator.Decision {
        let authenticator = try make(realm: realm)
        let attempt = BearerTests.attempt("Negotiate YIIB")
        guard case .ask(let pending) = authenticator.examine(attempt, &memory) else { return .refused(.missing) }
        return authenticator.conclude(pending, .negotiation(answer), attempt, &memory)
    }

    static let names: [(realm: String?, principal: String, name: String)] = [
        (nil, "ann@A.EXAMPLE", "ann@A.EXAMPLE"), ("A.EXAMPLE", "ann@A.EXAMPLE", "ann"),
        ("A.EXAMPLE", "ann/admin@A.EXAMPLE", "ann/admin"),
        // Somebody else, who has the same name elsewhere.
        ("A.EXAMPLE", "ann@B.EXAMPLE", "ann@B.EXAMPLE"), ("EXAMPLE", "ann@A.EXAMPLE", "ann@A.EXAMPLE"),
    ]
    @Test(arguments: names) func `the connection is that of the principal until its ticket expires`(
        _ row: (realm: String?, principal: String, name: String)
    ) throws {
        var memory = VerifiedCredentialsTests.make()
        let answer = NegotiationAnswer.accepted(principal: row.principal, lifetime: .seconds(60), token: [1, 2, 3])
        #expect(
            try Self.conclusion(answer, realm: row.realm, &memory)
                == .known(
                    Identity(name: row.name, scheme: .negotiate, expiry: .seconds(160), scope: .connection),
                    reply: .challenge(Array("Negotiate AQID".utf8))))
    }

    @Test func `other answers`() throws {
        var memory = VerifiedCredentialsTests.make { $0.perSourceMax = 1 }
        #expect(try Self.conclusion(.more([1, 2, 3]), &memory) == .more(challenge: Array("Negotiate AQID".utf8)))
        #expect(try Self.conclusion(.unavailable, &memory) == .refused(.unavailable))
        // A ticket that never expires, and no proof of the service.
        let endless = NegotiationAnswer.accepted(principal: "a@B", lifetime: nil, token: [])
        #expect(
            try Self.conclusion(endless, &memory)
                == .known(
                    Identity(name: "a@B", scheme: .negotiate, expiry: .seconds(100 + 36_000), scope: .connection)))
        #expect(try Self.conclusion(.refused, &memory) == .refused(.wrong))
        #expect(
            try Self.make().examine(BearerTests.attempt("Negotiate YIIB"), &memory) == .refused(.tooManyFailures))
        #expect(
            BearerTests.challenges(try Self.make(), nil) == ["Negotiate", #"Basic realm="larder", charset="UTF-8""#])
    }
}
