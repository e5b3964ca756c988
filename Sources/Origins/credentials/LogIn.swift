package import Credentials

/// The machine of logging in to one origin, or to one next proxy, with one credential.
///
/// ```
///    ┌──────────accepted elsewhere─────────────┐
///    │                                         ▼
/// unknown ──challenge──▶ learning ──accepted──▶ known
///    ▲                    ▲    │ refused          │ expired
///    │                    │    ▼                  │
///    └────────────────────┼─ unknown              │
///                         └───────────────────────┘
/// ```
///
/// One request at a time tries the credentials, and the others wait for it. So wrong credentials are sent once, not by every request.
///
/// Each challenge has a number, from 1. A request remembers with which one it was sent (`Proof`), so that what comes back about an old one is
/// not taken for a verdict about the present one.
///
/// A server may accept each nonce once (RFC 7616 §5.4). The one who meets the end of a challenge first replaces it for all; the others answer
/// the challenge that each of them got. If they shared its successor, all but one of them would be asked again, for ever.
package struct LogIn: Equatable, Sendable {
    /// The number of the challenge that a request has answered: 0 if it was sent with credentials before there was any, nil if it had none.
    package typealias Proof = Int?

    /// What happens to one request.
    package enum Event: Equatable, Sendable {
        /// The request is about to be sent. `onlyOnce`: it cannot be sent again, because its body is not kept. `elsewhere`: how the origin has
        /// accepted the same credentials from another worker.
        case sending(onlyOnce: Bool, elsewhere: Acceptance? = nil)
        /// The response asks for credentials. Nil: in no way that the credential allows.
        case challenged(AnswerableChallenge?, Proof)
        /// Any other final response.
        case answered(Proof)
        /// The connection ended before a final response, or the request was given up.
        case broke(Proof)
    }

    /// What credentials answered when they were accepted, if it holds for others as well.
    package struct Acceptance: Equatable, Sendable {
        /// Nil: they were sent without being asked for.
        let challenge: AnswerableChallenge?

        /// Returns nil for a digest: its nonce counts requests, and no two counts may be the same (RFC 7616 §3.4). Each worker gets a nonce of
        /// its own.
        package init?(answering challenge: AnswerableChallenge?) {
            if let challenge, challenge.isOnceOnly { return nil }
            self.challenge = challenge
        }
    }

    package enum Action: Equatable, Sendable {
        case sendAsItIs
        /// Send credentials. They answer the challenge, or are sent before there is one.
        case sendWithCredentials(AnswerableChallenge?, number: Int)
        /// Wait: another request is trying the credentials.
        case wait
        /// Pass the response on to the client.
        case passOn
        /// As `passOn`. The credentials were accepted for the first time since they were learnt, or refused.
        case accepted
        /// Send the request again, with another `sending`.
        case askAgain
        /// Send the request again with an answer to its own challenge, which nobody else answers. The credentials are not in question.
        case answerAlone
        /// The credentials were refused.
        case refused
        case nothing
    }

    private enum State: Equatable, Sendable {
        case unknown
        case learning(AnswerableChallenge, isProving: Bool)
        /// Nil: credentials are sent without being asked for.
        case known(AnswerableChallenge?)
    }
    private var state: State
    /// What is known before anybody has said anything, and after a refusal.
    private let initial: State
    /// The number of the present challenge.
    private var number = 0
    private let needsChallenge: Bool
    /// Known credentials were refused since they were accepted last. It may have been for one resource only.
    private var isDoubted = false

    /// - Parameters:
    ///   - needsChallenge: without a challenge there is nothing to send.
    ///   - isUnasked: credentials go with the first request already. Only if no challenge is needed.
    package init(needsChallenge: Bool, isUnasked: Bool = false) {
        precondition(!(needsChallenge && isUnasked), "what answers a challenge cannot be sent before")
        self.needsChallenge = needsChallenge
        initial = isUnasked ? .known(nil) : .unknown
        state = initial
    }

    /// A log-in whose challenge is known before anybody has sent one: the protocol has no other.
    package init(to challenge: AnswerableChallenge) {
        needsChallenge = false
        initial = .learning(challenge, isProving: false)
        state = initial
    }

    /// Credentials go out without having been asked for.
    package var isUnasked: Bool { state == .known(nil) }

    /// A request is trying the credentials: what comes of it decides about those that wait.
    package var isProving: Bool { if case .learning(_, isProving: true) = state { true } else { false } }

    package mutating func on(_ event: Event) -> Action {
        switch event {
        case .sending(let onlyOnce, let elsewhere): sending(onlyOnce: onlyOnce, elsewhere)
        case .challenged(let challenge, let proof): challenged(challenge, proof)
        case .answered(let proof): answered(proof)
        case .broke(let proof): broke(proof)
        }
    }

    private mutating func sending(onlyOnce: Bool, _ elsewhere: Acceptance?) -> Action {
        switch state {
        case .unknown:
            if let elsewhere {
                number += 1
                state = .known(elsewhere.challenge)
                return .sendWithCredentials(elsewhere.challenge, number: number)
            }
            // The body would be gone if it were sent in vain.
            return onlyOnce && !needsChallenge ? .sendWithCredentials(nil, number: 0) : .sendAsItIs
        case .learning(let challenge, isProving: false):
            state = .learning(challenge, isProving: true)
            return .sendWithCredentials(challenge, number: number)
        case .learning(_, isProving: true): return .wait
        case .known(let challenge): return .sendWithCredentials(challenge, number: number)
        }
    }

    private mutating func challenged(_ challenge: AnswerableChallenge?, _ proof: Proof) -> Action {
        let isAnswer = proof == number
        if proof != nil, !isAnswer, let challenge, challenge.isStale { return .answerAlone }
        switch state {
        case .unknown:
            if isAnswer { return .refused }
            guard let challenge else { return .passOn }
            return learn(challenge)
        case .learning(_, isProving: false):
            // Sent before the challenge was known. Theirs is newer.
            guard let challenge else { return .passOn }
            return learn(challenge)
        case .learning(_, isProving: true):
            guard isAnswer else { return .askAgain }
            if let challenge, challenge.isStale { return learn(challenge) }
            state = initial
            return .refused
        case .known:
            guard isAnswer else { return .askAgain }
            guard let challenge, challenge.isStale || challenge.isOnceOnly else {
                isDoubted = true
                return .refused
            }
            return learn(challenge)
        }
    }

    private mutating func answered(_ proof: Proof) -> Action {
        guard let proof, proof == number else { return .passOn }
        switch state {
        case .unknown:
            state = .known(nil)
            return .accepted
        case .learning(let challenge, isProving: true):
            state = .known(challenge)
            return .accepted
        case .known where isDoubted:
            isDoubted = false
            return .accepted
        case .learning(_, isProving: false), .known: return .passOn
        }
    }

    private mutating func broke(_ proof: Proof) -> Action {
        // Nothing is known about the credentials: the next request tries them.
        if case .learning(let challenge, isProving: true) = state, proof == number {
            state = .learning(challenge, isProving: false)
        }
        return .nothing
    }

    private mutating func learn(_ challenge: AnswerableChallenge) -> Action {
        number += 1
        state = .learning(challenge, isProving: false)
        return .askAgain
    }
}

extension AnswerableChallenge {
    /// The server says that it did not judge the credentials: its earlier challenge has expired (RFC 7616 §3.3).
    fileprivate var isStale: Bool { if case .digest(let digest) = self { digest.isStale } else { false } }

    /// Each challenge must be answered anew. So one that comes after accepted answers says only that theirs has expired, whether it is
    /// called stale or not.
    package var isOnceOnly: Bool { if case .digest = self { true } else { false } }
}
