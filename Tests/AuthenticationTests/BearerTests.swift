import Authentication
import Message
import Rules
import Testing
import Tokens

private func digest(_ bytes: [UInt8]) -> [UInt8] { (try? OpenSSLHashing().hash(.sha256, bytes)) ?? [] }

@Suite("RFC 6750 Bearer: opaque tokens")
struct BearerTests {
    static let token = "larder_0123456789abcdefghij"
    static let expiring = "larder_expires-after-second-1000"
    static let tokens = TokenFile.parse(
        Array(
            """
            \(TokenFile.line(.init(name: "ci", groups: ["build"]), digest: digest(Array(token.utf8))))
            \(TokenFile.line(.init(name: "old", expiry: WallTime(secondsSinceEpoch: 1000)), digest: digest(Array(expiring.utf8))))
            """.utf8)
    ).file

    static func make(withBasic: Bool, withKeys: JSONWebKeySet? = nil, signed: Bool = false) throws -> Authenticator {
        var settings = AuthenticationSettings()
        var material = AuthenticationMaterial()
        settings.bearer.tokensFile = "tokens"
        material.tokens = tokens
        if withBasic {
            settings.basic.usersFile = "users"
            material.users = AuthenticatorTests.users
        }
        if signed {
            settings.bearer.keys = .file("keys")
            (settings.bearer.terms.issuer, settings.bearer.terms.audiences) = ("i", ["a"])
            settings.bearer.terms.algorithms = [.hs256, .edDSA]
            material.tokenKeys = withKeys
        }
        return try #require(
            Authenticator(
                settings, material,
                AuthenticationTools(hashing: OpenSSLHashing(), nonceHash: SipHash(key: (1, 2)), random: { 1 })))
    }

    static func attempt(_ credentials: String, wall: Int64 = 990, second: Int = 100) -> AuthenticationAttempt {
        AuthenticationAttempt(
            credentials: Array(credentials.utf8), client: ip("192.0.2.1"), now: .seconds(second),
            wallTime: WallTime(secondsSinceEpoch: wall))
    }

    static func basic(_ user: String, _ password: String) -> String {
        "Basic \(String(decoding: encodeBase64("\(user):\(password)".utf8), as: UTF8.self))"
    }

    static let rows: [(credentials: String, withBasic: Bool, decision: String)] = [
        ("Bearer \(token)", true, "known ci"),
        ("bearer  \(token)", true, "known ci"),
        (basic("ci", token), true, "known ci"),
        (basic("", token), false, "known ci"),
        // The user name is not looked at: the token says who the client is.
        (basic("alice", token), true, "known ci"),
        ("Bearer \(token)x", true, "refused(token(Tokens.TokenFault.unknown))"),
        ("Bearer ", true, "refused(missing)"),
        ("Bearer short", true, "refused(token(Tokens.TokenFault.unknown))"),
        ("Bearer", true, "refused(missing)"),
        ("Bearer \(expiring)", true, "known old"),
        // What is no token may be a password, if there are any.
        (basic("alice", "secret"), true, "ask alice"),
        (basic("alice", "secret"), false, "refused(wrong)"),
        ("Digest x", true, "refused(missing)"),
    ]
    @Test(arguments: rows) func `a token says who the client is`(
        _ row: (credentials: String, withBasic: Bool, decision: String)
    ) throws {
        var memory = VerifiedCredentialsTests.make()
        let authenticator = try Self.make(withBasic: row.withBasic)
        let decision = authenticator.examine(Self.attempt(row.credentials), &memory)
        #expect(AuthenticatorTests.text(decision) == row.decision, "\(row.credentials)")
    }

    /// As an attempt at 990, 100 s after the start, sees it.
    static func end(_ second: Int64) -> Expiry {
        Expiry(
            at: WallTime(secondsSinceEpoch: second),
            seen: Moment(uptime: .seconds(100), wallTime: WallTime(secondsSinceEpoch: 990)))
    }

    @Test func `an identity has the groups of its token, and ends with it`() throws {
        var memory = VerifiedCredentialsTests.make()
        let authenticator = try Self.make(withBasic: true)
        #expect(
            authenticator.examine(Self.attempt("Bearer \(Self.token)"), &memory)
                == .known(Identity(name: "ci", scheme: .bearer, groups: ["build"], expiry: .seconds(3700))))
        #expect(
            authenticator.examine(Self.attempt("Bearer \(Self.expiring)"), &memory)
                == .known(Identity(name: "old", scheme: .bearer, expiry: .seconds(110), end: Self.end(1000))))
        #expect(
            authenticator.examine(Self.attempt("Bearer \(Self.expiring)", wall: 1000), &memory)
                == .refused(.token(.expired)))
    }

    @Test func `unknown tokens are counted, and expired ones are not`() throws {
        var memory = VerifiedCredentialsTests.make { $0.perSourceMax = 2 }
        let authenticator = try Self.make(withBasic: true)
        for _ in 0..<5 { _ = authenticator.examine(Self.attempt("Bearer \(Self.expiring)", wall: 1001), &memory) }
        #expect(
            AuthenticatorTests.text(authenticator.examine(Self.attempt("Bearer \(Self.token)"), &memory)) == "known ci")
        for _ in 0..<2 { _ = authenticator.examine(Self.attempt("Bearer \(Self.token)?"), &memory) }
        for credentials in ["Bearer \(Self.token)", Self.basic("ci", Self.token)] {
            #expect(authenticator.examine(Self.attempt(credentials), &memory) == .refused(.tooManyFailures))
        }
    }

    static func challenges(_ authenticator: Authenticator, _ failure: AuthenticationFailure?) -> [String] {
        authenticator.challenges(at: .zero, after: failure).map { String(decoding: $0, as: UTF8.self) }
    }

    @Test func `the challenge says what is wrong with a token, and Basic is always offered`() throws {
        let basic = #"Basic realm="larder", charset="UTF-8""#
        for withBasic in [true, false] {
            let authenticator = try Self.make(withBasic: withBasic)
            #expect(Self.challenges(authenticator, nil) == [#"Bearer realm="larder""#, basic])
            #expect(Self.challenges(authenticator, .wrong) == [#"Bearer realm="larder""#, basic])
            #expect(
                Self.challenges(authenticator, .token(.expired)) == [
                    #"Bearer realm="larder", error="invalid_token", error_description="the token is not accepted: it has expired""#,
                    basic,
                ])
        }
        for fault in TokenFault.allCases {
            #expect(!fault.text.contains("\"") && !fault.text.contains("\\"), "it stands in a quoted-string")
        }
    }
}

@Suite("RFC 7519 §7.2: signed tokens of Bearer")
struct SignedTokenTests {
    static let keys = JSONWebKeySet([
        JSONWebKey(.shared([UInt8](repeating: 1, count: 32)), identifier: "k"),
        JSONWebKey(.ed25519([UInt8](repeating: 2, count: 32)), identifier: "e"),
    ])

    static func token(
        alg: String = "HS256", kid: String? = "k", aud: String = "a", exp: Int = 2000
    ) -> String {
        let kid = kid.map { ",\"kid\":\"\($0)\"" } ?? ""
        let parts = [
            "{\"alg\":\"\(alg)\"\(kid)}", "{\"iss\":\"i\",\"aud\":\"\(aud)\",\"exp\":\(exp),\"sub\":\"ann\"}", "s",
        ]
        return parts.map { String(decoding: encodeBase64URL($0.utf8), as: UTF8.self) }.joined(separator: ".")
    }

    private static func examine(
        _ credentials: String, keys: JSONWebKeySet? = keys, _ memory: inout VerifiedCredentials, wall: Int64 = 990,
        second: Int = 100
    ) throws -> Authenticator.Decision {
        try BearerTests.make(withBasic: true, withKeys: keys, signed: true)
            .examine(BearerTests.attempt(credentials, wall: wall, second: second), &memory)
    }

    static let refused: [(token: String, fault: TokenFault)] = [
        (token(alg: "none"), .algorithm), (token(alg: "RS256"), .algorithm), (token(aud: "b"), .audience),
        (token(exp: 930), .expired), (token(kid: "unknown"), .unknownKey),
        // The key with that name is a public one: it is no secret of HS256.
        (token(alg: "HS256", kid: "e"), .unknownKey), (token(alg: "EdDSA", kid: "k"), .unknownKey),
    ]
    @Test(arguments: refused) func `no signature is computed for what would not be accepted with it`(
        _ row: (token: String, fault: TokenFault)
    ) throws {
        var memory = VerifiedCredentialsTests.make()
        for credentials in ["Bearer \(row.token)", BearerTests.basic("x", row.token)] {
            #expect(try Self.examine(credentials, &memory) == .refused(.token(row.fault)), "\(row.fault)")
        }
    }

    @Test func `without keys nobody can tell`() throws {
        var memory = VerifiedCredentialsTests.make()
        #expect(try Self.examine("Bearer \(Self.token())", keys: nil, &memory) == .refused(.unavailable))
    }

    private static func pending(_ decision: Authenticator.Decision) throws -> Authenticator.Pending {
        guard case .ask(let pending) = decision, case .signature(let signed) = pending.question else {
            throw TokenFault.malformed
        }
        #expect(signed.candidates.map(\.identifier) == ["k"])
        return pending
    }

    @Test func `a right signature is remembered until the token expires`() throws {
        var memory = VerifiedCredentialsTests.make()
        let authenticator = try BearerTests.make(withBasic: true, withKeys: Self.keys, signed: true)
        let attempt = BearerTests.attempt("Bearer \(Self.token(exp: 1000))")
        let pending = try Self.pending(authenticator.examine(attempt, &memory))
        // 1000 and a minute for the clocks are 70 s from 990.
        let ann = Identity(name: "ann", scheme: .bearer, expiry: .seconds(170), end: BearerTests.end(1060))
        #expect(authenticator.conclude(pending, .signature(isRight: true), attempt, &memory) == .known(ann))
        #expect(authenticator.examine(attempt.at(.seconds(169)), &memory) == .known(ann))
        #expect(
            authenticator.examine(
                BearerTests.attempt("Bearer \(Self.token(exp: 1000))", wall: 1060, second: 170), &memory)
                == .refused(.token(.expired)))
        memory.forgetAll()
        _ = try Self.pending(authenticator.examine(attempt, &memory))
    }

    @Test func `a wrong signature is remembered for a moment, and counted`() throws {
        var memory = VerifiedCredentialsTests.make { $0.perSourceMax = 2 }
        let authenticator = try BearerTests.make(withBasic: true, withKeys: Self.keys, signed: true)
        let attempt = BearerTests.attempt("Bearer \(Self.token())")
        let pending = try Self.pending(authenticator.examine(attempt, &memory))
        #expect(
            authenticator.conclude(pending, .signature(isRight: false), attempt, &memory)
                == .refused(.token(.signature)))
        #expect(authenticator.examine(attempt, &memory) == .refused(.token(.signature)))
        _ = authenticator.conclude(pending, .signature(isRight: false), attempt, &memory)
        #expect(authenticator.examine(attempt, &memory) == .refused(.tooManyFailures))
    }
}
