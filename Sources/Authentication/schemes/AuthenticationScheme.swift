package import Rules
package import Credentials
package import Message
package import Tokens

/// One way in which a client can prove who it is (RFC 9110 §11): a value of the configuration.
///
/// A scheme decides and does nothing else. What takes long, such as hashing a password, it returns as a question; the driver has a
/// helper thread answer it and brings the answer back. `Authenticator` asks the schemes in order.
package protocol AuthenticationScheme: Sendable {
    var name: AuthenticationSchemeName { get }

    /// What a 407 offers for this scheme: values of `Proxy-Authenticate`, each for a line of its own. Most schemes have one.
    ///
    /// - Parameters:
    ///   - now: the monotonic clock.
    ///   - failure: why the client gets a challenge. Nil: it has not been looked at.
    func challenges(at now: Duration, after failure: AuthenticationFailure?) -> [[UInt8]]

    /// Looks at a request.
    ///
    /// - Parameter memory: what this worker knows about credentials it has seen before.
    /// - Returns: nil if the request has nothing for this scheme, so that the next one is asked.
    func examine(_ attempt: AuthenticationAttempt, _ memory: inout VerifiedCredentials) -> AuthenticationStep?

    /// Goes on from a question that this scheme asked.
    func conclude(
        _ question: AuthenticationQuestion, _ answer: AuthenticationAnswer, _ attempt: AuthenticationAttempt,
        _ memory: inout VerifiedCredentials
    ) -> AuthenticationStep
}

/// What of a request the schemes look at.
package struct AuthenticationAttempt: Sendable {
    /// The value of `Proxy-Authorization`; nil if the request has none.
    package let credentials: [UInt8]?
    /// The method as sent.
    package let method: [UInt8]
    /// The request target as sent (RFC 9112 §3.2).
    package let target: [UInt8]
    /// Known where `Authenticator.coverBody` says that it is covered, if it is not too long.
    package let body: DigestBody
    /// Nil for a client of a Unix socket.
    package let client: IPAddress?
    /// The monotonic clock.
    package let now: Duration
    /// The time of day, for what says until when it holds.
    package let wallTime: WallTime

    package init(
        credentials: [UInt8]?, method: [UInt8] = [], target: [UInt8] = [], body: DigestBody = .unknown,
        client: IPAddress?, now: Duration, wallTime: WallTime = WallTime(secondsSinceEpoch: 0)
    ) {
        self.credentials = credentials
        self.method = method
        self.target = target
        self.body = body
        self.client = client
        self.now = now
        self.wallTime = wallTime
    }

    /// The same attempt later: an answer took its time.
    package func at(_ now: Duration) -> AuthenticationAttempt {
        AuthenticationAttempt(
            credentials: credentials, method: method, target: target, body: body, client: client, now: now,
            wallTime: wallTime)
    }
}

/// What a scheme makes of a request.
package enum AuthenticationStep: Sendable, Equatable {
    case known(Identity, reply: AuthenticationReply? = nil)
    case refused(AuthenticationFailure)
    /// A helper thread has to answer this first.
    case ask(AuthenticationQuestion)
    /// The scheme takes several requests: the 407 carries this challenge alone, and the client answers it with its next request.
    case more(challenge: [UInt8])
}

/// What the response to a request that was let in says about its authentication: the proof that the proxy knows the secret too.
package enum AuthenticationReply: Sendable, Equatable {
    /// The value of `Proxy-Authentication-Info` (RFC 9110 §11.7.3).
    case information([UInt8])
    /// The value of `Proxy-Authenticate` in a response that is no 407, where Negotiate has its last token (RFC 4559 §4.2).
    case challenge([UInt8])
}

/// Why a client is not let in.
package enum AuthenticationFailure: Sendable, Equatable {
    /// There are no credentials for any scheme that is offered.
    case missing
    /// The credentials are not right.
    case wrong
    /// The client knows its secret, but has to send its request again with the new challenge (`stale`, RFC 7616 §3.3).
    case stale
    /// The credentials cover a body that is too long to be read first, or whose length is not known. The client has to send others.
    case bodyNotCovered
    /// This client failed too often; it has to wait, right or wrong.
    case tooManyFailures
    /// The token is not accepted.
    case token(TokenFault)
    /// Nobody can tell now whether the credentials are right: what is needed for it cannot be reached. This is no fault of the client.
    case unavailable
    /// The same for a user who may be in the directory.
    case directoryUnavailable
}

/// What a helper thread is asked, with all that it needs.
package enum AuthenticationQuestion: Sendable, Equatable {
    /// Does the password match the hash?
    ///
    /// - Parameter hash: nil if there is no such user. The helper then verifies against a hash that nobody has, so that the time
    ///   it takes does not tell whether the user exists.
    case password(BasicCredentials, hash: String?)
    /// Is the token signed with one of the keys?
    case signature(SignedToken)
    /// What does the security context of the client's connection make of this token? (RFC 2743 §2.2.2)
    case negotiation([UInt8])
    /// Does the directory accept this user and password?
    case directory(DirectoryQuestion)
}

/// A token whose claims are in order, and the keys that its signature may be of.
package struct SignedToken: Sendable, Equatable {
    package let token: JSONWebToken
    package let candidates: [JSONWebKey]
    /// Whom the token is about, if it is signed.
    package let subject: TokenSubject
    /// Under which the token is remembered.
    let key: [UInt8]
}

/// What a helper thread found.
package enum AuthenticationAnswer: Sendable, Equatable {
    case password(isRight: Bool)
    case signature(isRight: Bool)
    case negotiation(NegotiationAnswer)
    case directory(DirectoryAnswer)
}
