import Message
package import Rules

/// What the security context of a connection makes of a token.
package enum NegotiationAnswer: Sendable, Equatable {
    /// - Parameters:
    ///   - principal: the client, with its realm.
    ///   - lifetime: until its ticket expires. Nil: it does not.
    ///   - token: for the client, to prove the service. It may be empty.
    case accepted(principal: String, lifetime: Duration?, token: [UInt8])
    /// The client has to answer this token, on the same connection.
    case more([UInt8])
    case refused
    /// The keytab cannot be used.
    case unavailable
}

/// The Negotiate scheme (RFC 4559) with Kerberos within SPNEGO: a token opens a connection for its user.
///
/// The identity is that of the connection: no request after it needs a token. So nothing in front of the proxy may share connections between
/// users. NTLM is refused, alone and within SPNEGO.
package struct NegotiateAcceptor: AuthenticationScheme {
    private let ownRealm: String?

    package var name: AuthenticationSchemeName { .negotiate }
    package func challenges(at now: Duration, after failure: AuthenticationFailure?) -> [[UInt8]] {
        [Array("Negotiate".utf8)]
    }

    /// The longest token, in bytes. Tickets of users in many groups have 12 KiB and more.
    static let tokenBytesMax = 48 << 10
    /// How long a connection is logged in at most, whatever its ticket says.
    static let lifetimeMax = Duration.seconds(10 * 3600)

    init(_ settings: NegotiateSettings) { ownRealm = settings.ownRealm }

    package func examine(
        _ attempt: AuthenticationAttempt, _ memory: inout VerifiedCredentials
    ) -> AuthenticationStep? {
        let scheme = "negotiate "
        guard let value = attempt.credentials, value.count > scheme.utf8.count,
            equalsIgnoringCase(value[..<scheme.utf8.count], "negotiate ")
        else { return nil }
        if memory.wait(of: attempt.client, as: nil, now: attempt.now) != nil { return .refused(.tooManyFailures) }
        let text = value[scheme.utf8.count...].drop { $0 == 0x20 }
        guard text.count <= NegotiateAcceptor.tokenBytesMax * 4 / 3, let token = decodeBase64(text), !token.isEmpty,
            !token.starts(with: "NTLMSSP".utf8)
        else {
            memory.failed(attempt.client, as: nil, now: attempt.now)
            return .refused(.wrong)
        }
        return .ask(.negotiation(token))
    }

    package func conclude(
        _ question: AuthenticationQuestion, _ answer: AuthenticationAnswer, _ attempt: AuthenticationAttempt,
        _ memory: inout VerifiedCredentials
    ) -> AuthenticationStep {
        guard case (.negotiation, .negotiation(let answer)) = (question, answer) else {
            preconditionFailure("Negotiate asks about its tokens alone")
        }
        switch answer {
        case .accepted(let principal, let lifetime, let token):
            let end = attempt.now + min(lifetime ?? NegotiateAcceptor.lifetimeMax, NegotiateAcceptor.lifetimeMax)
            return .known(
                Identity(name: userName(principal), scheme: .negotiate, expiry: end, scope: .connection),
                reply: token.isEmpty ? nil : .challenge(field(token)))
        case .more(let token): return .more(challenge: field(token))
        case .refused:
            memory.failed(attempt.client, as: nil, now: attempt.now)
            return .refused(.wrong)
        case .unavailable: return .refused(.unavailable)
        }
    }

    /// The name in rules and in the log. Users of other realms keep theirs: they are other people.
    private func userName(_ principal: String) -> String {
        guard let ownRealm, principal.hasSuffix("@\(ownRealm)") else { return principal }
        return String(principal.dropLast(ownRealm.count + 1))
    }

    private func field(_ token: [UInt8]) -> [UInt8] { Array("Negotiate ".utf8) + encodeBase64(token) }
}
