/// The machine of a log-in that belongs to one connection: NTLM, and Negotiate (RFC 4559 §6). It serves origins and next proxies alike.
///
/// ```
/// ready ──asked──▶ making ──made──▶ sent ──continued──▶ making
///   ▲                │ failed          ├──accepted──▶ accepted ──asked──▶ making, once
///   │                ▼                 │                  │ disproved
///   └── a new one   ended ◀────────────┴ refused, broke ──┘
/// ```
///
/// All legs go over one connection. A log-in that has begun is worth nothing on another one, so if its connection ends, it ends.
package struct ConnectionLogIn: Equatable, Sendable {
    package enum Event: Equatable, Sendable {
        /// The peer asks for a log-in: 401 or 407 with the scheme and without a token.
        case asked
        /// The token was made. Empty: nothing is left to say.
        case made([UInt8])
        /// No token can be made. `isRefusal`: the credentials are wrong.
        case failed(isRefusal: Bool)
        /// 401 or 407 with a token.
        case continued([UInt8])
        /// Any other final response. `token`: the peer's last one, with which it proves itself. Nil if it sent none.
        case accepted(token: [UInt8]?)
        /// The peer's last token does not prove who it is.
        case disproved
        /// The connection has ended, or will end after this response, before the log-in was accepted.
        case broke
    }

    package enum Action: Equatable, Sendable {
        /// Make the next token. Nil: the first one.
        case makeToken(received: [UInt8]?)
        /// Send a request with this token on the connection.
        case send([UInt8])
        /// The connection is logged in. `proof`: the peer's last token, which the driver verifies before it uses anything that came with it.
        case accepted(proof: [UInt8]?)
        /// Nothing new is known: the response is an ordinary one of a connection that is logged in.
        case passOn
        case fail(Failure)
    }

    package enum Failure: Equatable, Sendable, CaseIterable {
        /// The peer, or whoever issues tickets, does not accept the credentials.
        case refused
        /// No token can be made, for a reason that has nothing to do with the credentials.
        case noToken
        /// The connection did not persist between two legs.
        case connectionEnded
        /// The peer goes on for ever.
        case tooManyLegs
        /// The peer breaks the order of the log-in.
        case outOfOrder
        /// The peer does not prove who it is.
        case unproven
    }

    /// Tokens that are sent in one log-in. NTLM needs two, and Negotiate one or two; some have a leg more.
    package static let legsMax = 5

    private enum State: Equatable, Sendable {
        case ready
        case making(legs: Int)
        case sent(legs: Int)
        case accepted
        case ended
    }
    private var state = State.ready
    /// The peer has asked again on a connection that was logged in. It may do so once.
    private var isRepeated = false

    package init() {}

    /// Whether requests of this credential may go out without a token: the connection is logged in.
    package var isAccepted: Bool { state == .accepted }

    /// Whether the body of a request must wait: a request that is answered by another leg is sent again.
    package var withholdsBodies: Bool { state != .accepted }

    package mutating func on(_ event: Event) -> Action {
        switch event {
        case .asked: asked()
        case .made(let token): made(token)
        case .failed(let isRefusal): failed(isRefusal)
        case .continued(let token): continued(token)
        case .accepted(let token): accepted(token)
        case .disproved: disproved()
        case .broke: broke()
        }
    }

    private mutating func asked() -> Action {
        switch state {
        case .ready:
            state = .making(legs: 0)
            return .makeToken(received: nil)
        case .accepted where !isRepeated:
            isRepeated = true
            state = .making(legs: 0)
            return .makeToken(received: nil)
        case .accepted, .sent: return end(.refused)
        case .making, .ended: preconditionFailure("no request is under way")
        }
    }

    private mutating func made(_ token: [UInt8]) -> Action {
        switch state {
        case .making(let legs):
            // The peer waits for a token, and there is none: the two do not agree on where they are.
            guard !token.isEmpty else { return end(.outOfOrder) }
            guard legs < ConnectionLogIn.legsMax else { return end(.tooManyLegs) }
            state = .sent(legs: legs + 1)
            return .send(token)
        case .ready, .sent, .accepted, .ended: preconditionFailure("no token was asked for")
        }
    }

    private mutating func failed(_ isRefusal: Bool) -> Action {
        switch state {
        case .making: return end(isRefusal ? .refused : .noToken)
        case .ready, .sent, .accepted, .ended: preconditionFailure("no token was asked for")
        }
    }

    private mutating func continued(_ token: [UInt8]) -> Action {
        switch state {
        case .sent(let legs):
            state = .making(legs: legs)
            return .makeToken(received: token)
        // A token answers one of Larder's, and there was none on this connection.
        case .ready, .accepted: return end(.outOfOrder)
        case .making, .ended: preconditionFailure("no request is under way")
        }
    }

    private mutating func accepted(_ token: [UInt8]?) -> Action {
        switch state {
        case .sent:
            state = .accepted
            return .accepted(proof: token)
        case .ready, .accepted: return .passOn
        case .making, .ended: preconditionFailure("no request is under way")
        }
    }

    private mutating func disproved() -> Action {
        switch state {
        case .accepted: return end(.unproven)
        case .ready, .making, .sent, .ended: preconditionFailure("a proof comes with an acceptance")
        }
    }

    private mutating func broke() -> Action {
        switch state {
        case .making, .sent: return end(.connectionEnded)
        case .ready, .accepted:
            state = .ended
            return .passOn
        case .ended: preconditionFailure("a log-in ends once")
        }
    }

    private mutating func end(_ failure: Failure) -> Action {
        state = .ended
        return .fail(failure)
    }
}

/// For the log.
extension ConnectionLogIn.Failure: CustomStringConvertible {
    package var description: String {
        switch self {
        case .refused: "the credentials are refused"
        case .noToken: "there is no token"
        case .connectionEnded: "the connection ended in the middle of the log-in"
        case .tooManyLegs: "the log-in has not ended after \(ConnectionLogIn.legsMax) tokens"
        case .outOfOrder: "the peer breaks the order of the log-in"
        case .unproven: "the peer does not prove who it is"
        }
    }
}
