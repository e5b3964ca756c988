package import Credentials
package import Rules

/// The schemes that this proxy offers, in the order of its configuration. Immutable; a reload makes a new one.
package struct Authenticator: Sendable {
    private let schemes: [any AuthenticationScheme]

    /// - Returns: nil if no scheme is offered: then clients need not prove who they are.
    ///
    /// - Parameter tools: what the core does not compute itself.
    package init?(
        _ settings: AuthenticationSettings, _ material: AuthenticationMaterial, _ tools: AuthenticationTools
    ) {
        let schemes = settings.offered.map { name -> any AuthenticationScheme in
            switch name {
            case .negotiate: NegotiateAcceptor(settings.negotiate)
            case .bearer:
                Bearer(settings.bearer, material, offersBasic: !settings.offered.contains(.basic), tools)
            case .basic:
                Basic(
                    realm: settings.basic.realm, users: material.users, groups: material.groups,
                    directory: settings.directory.isConfigured ? settings.directory : nil)
            case .digest: DigestScheme(settings.digest, material.digestUsers, material.groups, tools)
            case .certificate: preconditionFailure("no request carries a certificate")
            }
        }
        guard !schemes.isEmpty else { return nil }
        self.init(schemes)
    }

    package init(_ schemes: [any AuthenticationScheme]) {
        precondition(!schemes.isEmpty, "authentication without a scheme would let nobody in")
        self.schemes = schemes
    }

    /// The values of `Proxy-Authenticate` of a 407: the challenges of the schemes, in order (RFC 9110 §11.7.1).
    ///
    /// Each is for a line of its own. Many clients do not split a line into challenges: the parameters of Digest have commas too.
    package func challenges(at now: Duration, after failure: AuthenticationFailure? = nil) -> [[UInt8]] {
        schemes.flatMap { $0.challenges(at: now, after: failure) }
    }

    /// What becomes of a request.
    package enum Decision: Sendable, Equatable {
        case known(Identity, reply: AuthenticationReply? = nil)
        case refused(AuthenticationFailure)
        /// A helper thread answers the question; `conclude` goes on from there.
        case ask(Pending)
        case more(challenge: [UInt8])
    }

    /// A question on its way to a helper thread.
    package struct Pending: Sendable, Equatable {
        package let question: AuthenticationQuestion
        fileprivate let scheme: Int
    }

    /// The first scheme that finds something of its own in the request decides.
    package func examine(_ attempt: AuthenticationAttempt, _ memory: inout VerifiedCredentials) -> Decision {
        for (index, scheme) in schemes.enumerated() {
            if let step = scheme.examine(attempt, &memory) { return decision(step, scheme: index) }
        }
        return .refused(.missing)
    }

    /// - Parameter attempt: the one that was examined, with the time of the answer.
    package func conclude(
        _ pending: Pending, _ answer: AuthenticationAnswer, _ attempt: AuthenticationAttempt,
        _ memory: inout VerifiedCredentials
    ) -> Decision {
        precondition(schemes.indices.contains(pending.scheme), "an answer to another authenticator's question")
        let step = schemes[pending.scheme].conclude(pending.question, answer, attempt, &memory)
        return decision(step, scheme: pending.scheme)
    }

    /// Whether credentials cover the body of their request, which has to be known before they are examined.
    package func coverBody(_ value: [UInt8]) -> Bool {
        schemes.contains { ($0 as? DigestScheme)?.coversBody(value) ?? false }
    }

    /// What requests that follow one with Digest are checked with (`DigestScheme.proven`). Nil if they have to be examined.
    package func provenDigest<Hash: RunningHash>(
        _ value: ArraySlice<UInt8>, as identity: Identity, now: Duration, _ hash: Hash.Type
    ) -> ProvenDigest<Hash>? {
        for case let scheme as DigestScheme in schemes {
            return scheme.proven(value, as: identity, now: now, hash)
        }
        return nil
    }

    private func decision(_ step: AuthenticationStep, scheme: Int) -> Decision {
        switch step {
        case .known(let identity, let reply): .known(identity, reply: reply)
        case .refused(let failure): .refused(failure)
        case .ask(let question): .ask(Pending(question: question, scheme: scheme))
        case .more(let challenge): .more(challenge: challenge)
        }
    }
}
