import Credentials
import Message
package import Rules
import Tokens

/// The Bearer scheme (RFC 6750): a token with every request, either opaque, whose hash is in a file, or signed (JWT, RFC 7519).
///
/// Hardly a client sends Bearer to a proxy, and none from an environment variable. So a token is accepted as the password of Basic too, with
/// any user name: the token says who the client is. It is looked up before any password is hashed, which costs far more.
package struct Bearer: AuthenticationScheme {
    private let challenge: [UInt8]
    private let basicChallenge: [UInt8]?
    private let tokens: TokenFile
    /// Nil if signed tokens are not accepted.
    private let terms: TokenTerms?
    /// Nil if the keys could not be fetched.
    private let keys: JSONWebKeySet?
    private let hashing: any Hashing

    package var name: AuthenticationSchemeName { .bearer }

    /// How long a connection may use an opaque token without its being looked up again.
    private static let remembered = Duration.seconds(3600)

    /// - Parameter offersBasic: whether this scheme offers Basic itself, for clients that send a token as a password. False if Basic is offered
    ///   anyway; then that scheme judges what is no token.
    init(
        _ settings: BearerSettings, _ material: AuthenticationMaterial, offersBasic: Bool, _ tools: AuthenticationTools
    ) {
        challenge = Array("Bearer realm=".utf8) + quoted(settings.realm)
        basicChallenge = offersBasic ? Authentication.basicChallenge(realm: settings.realm) : nil
        tokens = material.tokens
        terms = settings.keys == nil ? nil : settings.terms
        keys = material.tokenKeys
        hashing = tools.hashing
    }

    package func challenges(at now: Duration, after failure: AuthenticationFailure?) -> [[UInt8]] {
        var own = challenge
        if case .token(let fault)? = failure {
            own += Array(", error=\"invalid_token\", error_description=\"\(fault.challengeText)\"".utf8)
        }
        return [own] + (basicChallenge.map { [$0] } ?? [])
    }

    package func examine(
        _ attempt: AuthenticationAttempt, _ memory: inout VerifiedCredentials
    ) -> AuthenticationStep? {
        guard let value = attempt.credentials, let (token, isPassword) = Bearer.token(in: value) else { return nil }
        let isSigned = terms != nil && JSONWebToken.isLike(token)
        let entry = isSigned ? nil : entry(of: token)
        if isPassword, !isSigned, entry == nil, basicChallenge == nil { return nil }
        if memory.wait(of: attempt.client, as: nil, now: attempt.now) != nil { return .refused(.tooManyFailures) }
        if isSigned { return examineSigned(token, attempt, &memory) }
        guard let entry else {
            memory.failed(attempt.client, as: nil, now: attempt.now)
            return .refused(isPassword ? .wrong : .token(.unknown))
        }
        return step(entry, attempt)
    }

    /// - Returns: nil if there is no such token. Something that is too short or too long for one is not hashed.
    private func entry(of token: [UInt8]) -> TokenFile.Entry? {
        Bearer.digest(of: token, hashing).flatMap(tokens.entry)
    }

    /// Under which the file has a token.
    static func digest(of token: [UInt8], _ hashing: any Hashing) -> [UInt8]? {
        TokenFile.tokenBytes.contains(token.count) ? try? hashing.hash(.sha256, token) : nil
    }

    private func step(_ entry: TokenFile.Entry, _ attempt: AuthenticationAttempt) -> AuthenticationStep {
        let end = entry.expiry.map { Expiry(at: $0, seen: attempt.moment) }
        if let end, end.isOver(at: attempt.moment) { return .refused(.token(.expired)) }
        return .known(
            Bearer.identity(entry.name, entry.groups, for: Bearer.remembered, until: end, attempt))
    }

    private static func identity(
        _ name: String, _ groups: [String], for lifetime: Duration, until end: Expiry?, _ attempt: AuthenticationAttempt
    ) -> Identity {
        let expiry = attempt.now + lifetime
        return Identity(
            name: name, scheme: .bearer, groups: groups, expiry: end.map { min(expiry, $0.uptime) } ?? expiry, end: end)
    }

    // MARK: signed tokens

    /// All that is cheap comes first: a signature is verified for tokens alone that would be accepted with it.
    private func examineSigned(
        _ text: [UInt8], _ attempt: AuthenticationAttempt, _ memory: inout VerifiedCredentials
    ) -> AuthenticationStep {
        guard let terms else { preconditionFailure("signed tokens are looked at where they are accepted") }
        let key = memory.tokens.key(text)
        if let identity = memory.tokens.identity(key, now: attempt.now) { return .known(identity) }
        if memory.tokens.isRefused(key, now: attempt.now) { return .refused(.token(.signature)) }
        do throws(TokenFault) {
            let token = try JSONWebToken(text)
            let subject = try terms.judge(token, now: attempt.wallTime)
            guard let keys else { return .refused(.unavailable) }
            let candidates = keys.candidates(for: token.algorithm, identifier: token.keyIdentifier)
            guard !candidates.isEmpty else { throw .unknownKey }
            return .ask(.signature(SignedToken(token: token, candidates: candidates, subject: subject, key: key)))
        } catch {
            // Who has such a token guesses nothing, so it is not counted.
            return .refused(.token(error))
        }
    }

    package func conclude(
        _ question: AuthenticationQuestion, _ answer: AuthenticationAnswer, _ attempt: AuthenticationAttempt,
        _ memory: inout VerifiedCredentials
    ) -> AuthenticationStep {
        guard case (.signature(let signed), .signature(let isRight)) = (question, answer) else {
            preconditionFailure("Bearer asks for signatures alone")
        }
        guard isRight else {
            memory.tokens.record(signed.key, nil, now: attempt.now)
            memory.failed(attempt.client, as: nil, now: attempt.now)
            return .refused(.token(.signature))
        }
        let subject = signed.subject
        let identity = Bearer.identity(
            subject.name, subject.groups, for: VerifiedTokens.remembered,
            until: Expiry(at: subject.expiry, seen: attempt.moment), attempt)
        memory.tokens.record(signed.key, identity, now: attempt.now)
        return .known(identity)
    }

    // MARK: fields

    /// The token in a field value: of Bearer (RFC 6750 §2.1), or the password of Basic. Nil for other schemes.
    static func token(in value: [UInt8]) -> (token: [UInt8], isPassword: Bool)? {
        if let basic = BasicCredentials(fieldValue: value) {
            return basic.password.isEmpty ? nil : (basic.password, true)
        }
        let scheme = Array("bearer ".utf8)
        guard value.count > scheme.count, equalsIgnoringCase(value[..<scheme.count], "bearer ") else { return nil }
        let token = value[scheme.count...].drop { $0 == 0x20 }
        return (Array(token), false)
    }
}

extension TokenFault {
    /// For `error_description` (RFC 6750 §3). It has no quotes.
    fileprivate var challengeText: String { "the token is not accepted: \(text)" }
}

extension AuthenticationAttempt {
    fileprivate var moment: Moment { Moment(uptime: now, wallTime: wallTime) }
}
