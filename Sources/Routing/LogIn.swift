/// The machine of logging in to one origin (401) or one next proxy (407).
///
/// ```
/// unknown ──challenge──▶ learning ──accepted──▶ known
///                         ▲   │ refused           │ challenge
///                         │   ▼                   │
///                         │ given up              │
///                         └───────────────────────┘
/// ```
///
/// One request at a time tries the credentials, and the others wait for it. So wrong credentials are sent once, not by every
/// request.
package struct LogIn: Equatable, Sendable {
    /// What happens to one request. `proves`: the request carried credentials.
    package enum Event: Equatable, Sendable {
        /// The request is about to be sent.
        case sending
        /// The response asks for credentials. The bytes are the challenge.
        case challenged([UInt8], proves: Bool)
        /// Any other final response.
        case answered(proves: Bool)
        /// The connection ended before a final response.
        case broke(proves: Bool)
    }

    package enum Action: Equatable, Sendable {
        case sendAsItIs
        case sendWithCredentials(challenge: [UInt8])
        /// Wait: another request is trying the credentials.
        case wait
        /// Pass the response on to the client.
        case passOn
        /// Send the request again, with another `sending`.
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
        // These requests were sent before the challenge was known. Theirs may be newer, unless credentials are being tried.
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
        // The challenge has expired, as a nonce does (RFC 7616 §3.3).
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
