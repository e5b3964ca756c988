/// What is known of the log-in that one origin asks for (401), or one next proxy (407).
///
/// ```
/// unknown ──challenge──▶ learning ──accepted──▶ known
///                         ▲   │ refused           │ challenge
///                         │   ▼                   │
///                         │ given up              │
///                         └───────────────────────┘
/// ```
///
/// One request at a time proves that the credentials are right; the others wait for it, so that wrong credentials are
/// shown once and not by everybody who asks.
package struct LogIn: Equatable, Sendable {
    /// What happens to one request; `proves` says that it carried credentials.
    package enum Event: Equatable, Sendable {
        /// It is about to be sent.
        case sending
        /// The answer asks for credentials; the bytes are the challenge that we can answer.
        case challenged([UInt8], proves: Bool)
        /// The answer is any other final response.
        case answered(proves: Bool)
        /// The connection broke before there was an answer.
        case broke(proves: Bool)
    }

    package enum Action: Equatable, Sendable {
        case sendAsItIs
        case sendWithCredentials(challenge: [UInt8])
        /// Another request is proving the credentials.
        case wait
        /// The response is for the client.
        case passOn
        /// Send the request again; `sending` says how.
        case askAgain
        case nothing
    }

    private enum State: Equatable {
        case unknown
        case learning(challenge: [UInt8], isProving: Bool)
        case known(challenge: [UInt8])
        case givenUp
    }
    private var state = State.unknown

    package init() {}

    package mutating func on(_ event: Event) -> Action {
        switch (state, event) {
        case (.unknown, .sending): return .sendAsItIs
        case (.unknown, .challenged(let challenge, false)): return learn(challenge)
        case (.unknown, .answered(false)): return .passOn
        case (.unknown, .broke(false)): return .nothing
        case (.unknown, .challenged(_, true)), (.unknown, .answered(true)), (.unknown, .broke(true)):
            preconditionFailure("no request has carried credentials yet")

        case (.learning(let challenge, false), .sending):
            state = .learning(challenge: challenge, isProving: true)
            return .sendWithCredentials(challenge: challenge)
        case (.learning(_, true), .sending): return .wait
        case (.learning(_, true), .challenged(_, true)):
            state = .givenUp
            return .passOn
        // Requests that were sent before: their challenge may be newer, unless one is being tried.
        case (.learning(_, false), .challenged(let challenge, _)): return learn(challenge)
        case (.learning(_, true), .challenged(_, false)): return .askAgain
        case (.learning(let challenge, true), .answered(true)):
            state = .known(challenge: challenge)
            return .passOn
        case (.learning(_, false), .answered), (.learning(_, true), .answered(false)): return .passOn
        case (.learning(let challenge, true), .broke(true)):
            state = .learning(challenge: challenge, isProving: false)
            return .nothing
        case (.learning(_, false), .broke), (.learning(_, true), .broke(false)): return .nothing

        case (.known(let challenge), .sending): return .sendWithCredentials(challenge: challenge)
        // What the challenge was good for has run out (a nonce of RFC 7616 §3.3, a ticket).
        case (.known, .challenged(let challenge, true)): return learn(challenge)
        case (.known, .challenged(_, false)): return .askAgain
        case (.known, .answered): return .passOn
        case (.known, .broke): return .nothing

        case (.givenUp, .sending): return .sendAsItIs
        case (.givenUp, .challenged), (.givenUp, .answered): return .passOn
        case (.givenUp, .broke): return .nothing
        }
    }

    private mutating func learn(_ challenge: [UInt8]) -> Action {
        state = .learning(challenge: challenge, isProving: false)
        return .askAgain
    }
}
