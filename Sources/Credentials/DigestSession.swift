import Message

/// The log-in to one protection space with Digest (RFC 7616): user and password, the nonce of the server, and how often it was used.
///
/// ```
/// challenge ──▶ DigestSession ──authorization──▶ request … response ──proof──▶ the server knows the password
///                    ▲                                       │
///                    └──── renew (stale), learn (nextnonce) ─┘
/// ```
///
/// It does not know how often a request is repeated: whoever sends the requests bounds that.
package struct DigestSession: Sendable {
    private let user: [UInt8]
    private let password: Secret
    private var challenge: DigestChallenge
    private var nonce: [UInt8]
    /// How many requests have used the nonce.
    private var count: UInt32 = 0
    /// For `-sess`: the first client nonce since the challenge (§3.4.2).
    private var sessionNonce: [UInt8]?

    /// - Parameter user: without control characters: it may go out as it is.
    package init(_ challenge: DigestChallenge, user: String, password: Secret) throws(CredentialFault) {
        guard !user.utf8.contains(where: isControl) else { throw .userHasControlCharacter }
        self.user = Array(user.utf8)
        self.password = password
        self.challenge = challenge
        nonce = challenge.nonce
    }

    package var realm: [UInt8] { challenge.realm }
    /// The hash function for bodies (`auth-int`).
    package var hash: HashAlgorithm { challenge.algorithm.hash }
    /// `authorization` needs the hash of the body, because the server offers nothing but `auth-int`.
    package var needsBody: Bool { challenge.needsBody }

    /// What becomes of a request that carried an authorization of this session, and was challenged again.
    package enum Renewal: Equatable, Sendable {
        /// The nonce was too old. The new one is known: send the request once more.
        case sendAgain
        /// User or password are wrong, or the server asks for another realm.
        case refused
    }

    package mutating func renew(_ challenge: DigestChallenge) -> Renewal {
        guard challenge.isStale, challenge.realm == self.challenge.realm else { return .refused }
        self.challenge = challenge
        nonce = challenge.nonce
        count = 0
        sessionNonce = nil
        return .sendAgain
    }

    /// Uses the nonce that the server announces for the next request (§3.5).
    ///
    /// Not for `-sess`: the RFC leaves open from which nonce the session's key is derived afterwards. The old nonce stays valid until the
    /// server says `stale`.
    package mutating func learn(from information: AuthenticationInfo) {
        guard let next = information.nextNonce, next != nonce, !challenge.algorithm.isSession else { return }
        nonce = next
        count = 0
    }

    /// The authorization of a request.
    ///
    /// - Parameter clientNonce: fresh random text of letters and digits, of at least 64 bits.
    package mutating func authorization(
        for request: DigestRequest, clientNonce: [UInt8], using hashing: some Hashing
    ) throws(DigestFailure) -> DigestAuthorization {
        let (newCount, overflow) = count.addingReportingOverflow(1)
        guard !overflow else { throw .nonceIsUsedUp }
        let protection = try protection(for: request)
        let keyNonce = challenge.algorithm.isSession ? sessionNonce ?? clientNonce : clientNonce
        do {
            let hash = DigestHash(challenge.algorithm.hash, hashing)
            var secret = try hash([user, challenge.realm, password.bytes])
            if challenge.algorithm.isSession { secret = try hash([secret, nonce, keyNonce]) }
            let exchange = DigestExchange(
                secret: Secret(secret), nonce: nonce, count: newCount, clientNonce: keyNonce, uri: request.uri,
                protection: protection)
            let response = try exchange.response(request.method, request.body, hash)
            let value = text(exchange, response, user: challenge.hashesUser ? try hash([user, challenge.realm]) : nil)
            count = newCount
            sessionNonce = keyNonce
            return DigestAuthorization(value: value, exchange: exchange, algorithm: challenge.algorithm.hash)
        } catch {
            throw .hashUnavailable(error.algorithm)
        }
    }

    /// `auth` if it is offered: `auth-int` needs the whole body before the first byte is sent.
    private func protection(for request: DigestRequest) throws(DigestFailure) -> DigestProtection? {
        if challenge.protections.isEmpty { return nil }
        if challenge.protections.contains(.authentication) { return .authentication }
        guard request.body != .unknown else { throw .bodyIsNeeded }
        return .integrity
    }

    /// The field value (§3.4).
    ///
    /// - Parameter user: the hash of the user. Nil if the name itself goes out.
    private func text(_ exchange: DigestExchange, _ response: [UInt8], user hashed: [UInt8]?) -> [UInt8] {
        var text = AuthorizationText(scheme: "Digest")
        if let hashed {
            text.add("username", quoted: hashed)
        } else if challenge.isUTF8, user.contains(where: { $0 >= 0x80 }) {
            text.add("username*", Array("UTF-8''".utf8) + percentEncoded(user))
        } else {
            text.add("username", quoted: user)
        }
        text.add("realm", quoted: challenge.realm)
        text.add("nonce", quoted: exchange.nonce)
        text.add("uri", quoted: exchange.uri)
        if let name = challenge.algorithmName { text.add("algorithm", name) }
        text.add("response", quoted: response)
        if let protection = exchange.protection {
            text.add("qop", protection.name)
            text.add("nc", exchange.countText)
        }
        if exchange.protection != nil || challenge.algorithm.isSession {
            text.add("cnonce", quoted: exchange.clientNonce)
        }
        if let opaque = challenge.opaque { text.add("opaque", quoted: opaque) }
        if hashed != nil { text.add("userhash", Array("true".utf8)) }
        return text.bytes
    }
}
