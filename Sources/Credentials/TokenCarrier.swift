/// What carries one token of a log-in that belongs to a connection.
package enum TokenCarrier: Equatable, Sendable {
    /// The request itself. Its content waits until the server has accepted the token.
    case request
    /// A HEAD for the same target, whose answer the client does not get.
    ///
    /// Before the last token a request with content would have to go out without its content, and a server that does not care for the log-in would do
    /// what it says. A HEAD does nothing.
    case probe

    /// - Parameters:
    ///   - tokensSent: in this log-in.
    ///   - hasContent: the request has content.
    ///   - takesSeveral: the server is known to want more tokens than the scheme needs.
    package init(_ scheme: ChallengeScheme, tokensSent: Int, hasContent: Bool, takesSeveral: Bool) {
        let mayBeLast = tokensSent + 1 >= scheme.tokensMin && !takesSeveral
        self = !hasContent || mayBeLast ? .request : .probe
    }
}

extension ChallengeScheme {
    /// Tokens that a client sends before a server can know who it is. A server that answers earlier has not asked for the log-in.
    package var tokensMin: Int {
        switch self {
        case .ntlm: 2
        case .basic, .digest, .negotiate: 1
        }
    }

    /// Whether a connection remains logged in after the response that has accepted the log-in ([MS-N2HT] §3.2.5).
    ///
    /// - Parameter persistentAuth: the value of `Persistent-Auth` in it.
    package func staysLoggedIn(_ persistentAuth: ArraySlice<UInt8>?) -> Bool {
        if let persistentAuth {
            if persistentAuth.elementsEqual("true".utf8, by: { $0 | 0x20 == $1 }) { return true }
            if persistentAuth.elementsEqual("false".utf8, by: { $0 | 0x20 == $1 }) { return false }
        }
        return self == .ntlm
    }

    /// The token of the server in its challenge, decoded. Nil if there is none.
    package func token(in challenges: [Challenge]) -> [UInt8]? {
        switch strongestChallenge(challenges, among: [self]) {
        case .ntlm(let token), .negotiate(let token): token
        case .basic, .digest, nil: nil
        }
    }
}
