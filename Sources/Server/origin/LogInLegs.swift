import Credentials

/// The legs of the log-in that one request takes part in, over the connection that carries it (NTLM, Negotiate: RFC 4559).
///
/// ```
/// none ─▶ making ─▶ sent ─▶ reading ─▶ making …
///                    └────▶ proving ─▶ proven ─▶ over
/// ```
///
/// The log-in itself belongs to the connection (`LinkLogIn`). For the machine of the retrieval, all legs are one question.
final class LogInLegs {
    enum State {
        /// The connection is logged in, as far as anybody knows, or there is none.
        case none
        /// A token is being made. All that was sent has been answered.
        case making
        /// A token was sent, and a final head is awaited.
        case sent
        /// The origin asks for another token. The body of its response is read over.
        case reading([Challenge])
        /// The head that accepts the log-in is held back until it is known that the origin has proven itself.
        case proving
        case proven
        /// The response that comes, or has come, is the one to the request.
        case over(Outcome)
    }
    enum Outcome {
        /// The desk is told of the response, as it is for other schemes.
        case judged
        /// The response says nothing about the credentials, which it has not seen.
        case unjudged
    }
    var state = State.none
    /// What the connection is logged in with: at the origin, or at the next proxy that reads the request.
    private(set) var use: CredentialUse
    private(set) var scheme: ChallengeScheme
    /// Of the token that was sent last.
    private(set) var carrier = TokenCarrier.request
    private(set) var tokensSent = 0
    /// What the request, or the probe, has as `Authorization` or `Proxy-Authorization`. Nil if the connection is logged in.
    private(set) var authorization: [UInt8]?
    /// The origin wants several tokens of a scheme that mostly needs one.
    var takesSeveral = false
    /// The origin has answered the probe and does not care for the log-in: the request goes out as it is.
    var isUnwanted = false

    init(_ use: CredentialUse, _ scheme: ChallengeScheme) {
        self.use = use
        self.scheme = scheme
    }

    /// The request has a connection, which is logged in or not.
    func begin(_ use: CredentialUse, _ scheme: ChallengeScheme) {
        self.use = use
        self.scheme = scheme
        state = .none
        carrier = .request
        tokensSent = 0
        authorization = nil
        isUnwanted = false
    }

    func willSend(_ authorization: [UInt8], hasContent: Bool) {
        carrier = TokenCarrier(scheme, tokensSent: tokensSent, hasContent: hasContent, takesSeveral: takesSeveral)
        tokensSent += 1
        self.authorization = authorization
        state = .sent
    }

    /// The probes are over, and the request follows without a token.
    func endProbing() {
        carrier = .request
        authorization = nil
        takesSeveral = false
    }

    /// A probe is under way, and nothing of the request has been sent.
    var isProbing: Bool { carrier == .probe }
}
