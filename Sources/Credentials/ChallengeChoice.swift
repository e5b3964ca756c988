import Message

/// The schemes with which Larder answers a challenge, the weakest first.
package enum ChallengeScheme: Int, CaseIterable, Comparable, Sendable, CustomStringConvertible {
    /// RFC 7617: the password itself.
    case basic
    /// RFC 7616.
    case digest
    /// [MS-NLMP] over HTTP ([MS-NTHT]).
    case ntlm
    /// RFC 4559: Kerberos, as a rule.
    case negotiate

    /// Whether it logs in a connection, and not a request (RFC 4559 §6).
    package var isOfConnection: Bool {
        switch self {
        case .basic, .digest: false
        case .ntlm, .negotiate: true
        }
    }

    /// As in the configuration.
    package var description: String {
        switch self {
        case .basic: "basic"
        case .digest: "digest"
        case .ntlm: "ntlm"
        case .negotiate: "negotiate"
        }
    }

    package static func < (a: ChallengeScheme, b: ChallengeScheme) -> Bool { a.rawValue < b.rawValue }
}

/// A challenge with all that its scheme demands.
package enum AnswerableChallenge: Equatable, Sendable {
    case basic(realm: [UInt8])
    case digest(DigestChallenge)
    /// The message of the server, decoded. Nil if the server begins and has not said anything yet.
    case ntlm([UInt8]?)
    /// As with `ntlm`.
    case negotiate([UInt8]?)

    package var scheme: ChallengeScheme {
        switch self {
        case .basic: .basic
        case .digest: .digest
        case .ntlm: .ntlm
        case .negotiate: .negotiate
        }
    }

    /// Returns nil for another scheme, and for a challenge that lacks what its scheme demands.
    package init?(_ challenge: Challenge) {
        if equalsIgnoringCase(challenge.scheme, "basic") {
            guard case .parameters = challenge.content else { return nil }
            // RFC 7617 §2 demands a realm. Some devices send none, and all clients answer them.
            self = .basic(realm: challenge.value("realm") ?? [])
        } else if equalsIgnoringCase(challenge.scheme, "digest") {
            guard let digest = DigestChallenge(challenge) else { return nil }
            self = .digest(digest)
        } else if equalsIgnoringCase(challenge.scheme, "ntlm") {
            guard let message = serverMessage(challenge) else { return nil }
            self = .ntlm(message.isEmpty ? nil : message)
        } else if equalsIgnoringCase(challenge.scheme, "negotiate") {
            guard let message = serverMessage(challenge) else { return nil }
            self = .negotiate(message.isEmpty ? nil : message)
        } else {
            return nil
        }
    }

    /// A scheme weighs more than the hash function of a digest.
    private var strength: (ChallengeScheme, Int) {
        if case .digest(let challenge) = self { return (.digest, challenge.algorithm.strength) }
        return (scheme, 0)
    }

    fileprivate func isStronger(than other: AnswerableChallenge) -> Bool { strength > other.strength }
}

/// The challenge to answer: the strongest one whose scheme is allowed. The order in the response decides only between equals.
///
/// So an attacker who adds `Basic` to a response in front of `Digest` gets no password, if the credential allows both.
///
/// - Returns: nil if there is none that Larder can answer.
package func strongestChallenge(
    _ challenges: [Challenge], among allowed: Set<ChallengeScheme>
) -> AnswerableChallenge? {
    var strongest: AnswerableChallenge?
    for challenge in challenges {
        guard let candidate = AnswerableChallenge(challenge), allowed.contains(candidate.scheme) else { continue }
        if let best = strongest, !candidate.isStronger(than: best) { continue }
        strongest = candidate
    }
    return strongest
}

/// The decoded token of NTLM and Negotiate. Empty if there is none; nil if it is not base64, or if there are parameters.
private func serverMessage(_ challenge: Challenge) -> [UInt8]? {
    switch challenge.content {
    case .token68(let token): decodeBase64(token)
    case .parameters(let parameters): parameters.isEmpty ? [] : nil
    }
}
