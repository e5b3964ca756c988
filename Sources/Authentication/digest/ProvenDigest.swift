package import Credentials
package import Message
package import Rules

/// A log-in by Digest on one connection: checks the requests that follow, without allocating.
///
/// Each of them has a digest of its own, which is computed and compared, and a count that is used up. What differs from `DigestScheme` is how the
/// credentials are read. Who keeps this says when it no longer counts: when the users change, and when a client has to wait.
package struct ProvenDigest<Hash: RunningHash>: Sendable {
    package let identity: Identity
    private let proof: DigestProof<Hash>
    private let nonce: DigestNonce
    private let nonces: DigestNonces
    /// Until when the nonce is valid, and from when on the client gets another one.
    private let expiry, renewal: Duration

    init(identity: Identity, _ proof: DigestProof<Hash>, _ nonce: DigestNonce, of nonces: DigestNonces) {
        self.identity = identity
        self.proof = proof
        self.nonce = nonce
        self.nonces = nonces
        let issued = nonces.issueTime(of: nonce)
        expiry = issued + nonces.lifetime
        renewal = issued + nonces.lifetime * 3 / 4
    }

    /// The credentials of a request, if they prove this identity: exactly one `Proxy-Authorization`, the same nonce, the target of the request, and
    /// the right digest. Their count may have been used.
    ///
    /// - Parameters:
    ///   - bytes: the head that all ranges refer to.
    ///   - now: the monotonic clock.
    /// - Returns: nil if the request has to be examined in full.
    package func claim(
        in fields: FieldSection, method: Range<Int>, target: Range<Int>, _ bytes: borrowing Span<UInt8>, now: Duration
    ) -> DigestClaim? {
        guard now < expiry else { return nil }
        var value: Range<Int>?
        for line in fields.lines where line.name == .proxyAuthorization {
            guard value == nil else { return nil }
            value = line.valueRange
        }
        guard let value, var claim = proof.claim(in: bytes, value),
            DigestScheme.names(bytes.extracting(claim.uri), bytes.extracting(target)),
            proof.isRight(&claim, method: method, bytes)
        else { return nil }
        return claim
    }

    /// Uses up the count of credentials that are right. Returns false if it has been used, or may have been.
    package func use(_ claim: DigestClaim, _ memory: VerifiedCredentials, now: Duration) -> Bool {
        memory.use(claim.count, of: nonce, valid: nonces.valid(now: now))
    }

    /// Adds the value of `Proxy-Authentication-Info` to a text.
    package func addInformation(
        for claim: DigestClaim, _ bytes: borrowing Span<UInt8>, now: Duration, to text: inout [UInt8]
    ) {
        proof.addInformation(for: claim, bytes, to: &text)
        guard now >= renewal else { return }
        text.append(", nextnonce=\"")
        nonces.add(at: now, to: &text)
        text.append("\"")
    }
}
