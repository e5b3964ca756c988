package import Message
package import Rules

/// Credentials that a client has proven on its connection: while they do not change, the next request there has the same identity.
///
/// They are for a connection alone and go with it. Who keeps them says when they no longer count: after a reload, and when a client has
/// to wait because it failed too often. The credentials themselves are not kept, but a digest under a secret key.
package struct ProvenCredentials: Sendable {
    private let digest: SipHash.Digest
    private let hash: SipHash
    package let identity: Identity
    private let expiry: Duration

    /// - Parameters:
    ///   - value: the value of the one `Proxy-Authorization`.
    ///   - hash: with a key that no other program knows.
    /// - Returns: nil for an identity that does not say when the client must authenticate again.
    package init?(_ value: ArraySlice<UInt8>, of identity: Identity, _ hash: SipHash) {
        guard let expiry = identity.expiry else { return nil }
        digest = hash.digest(of: value.span, 0..<value.count)
        self.hash = hash
        self.identity = identity
        self.expiry = expiry
    }

    /// Whether a request carries these credentials: exactly one `Proxy-Authorization`, with the same bytes.
    ///
    /// How long it takes tells nothing of the credentials: digests are compared, whose key is secret.
    ///
    /// - Parameters:
    ///   - bytes: the head that the ranges of `fields` refer to.
    ///   - now: the monotonic clock.
    package func areIn(_ fields: FieldSection, _ bytes: borrowing Span<UInt8>, now: Duration) -> Bool {
        guard now < expiry else { return false }
        var areIn = false
        for line in fields.lines where line.name == .proxyAuthorization {
            guard !areIn, hash.digest(of: bytes, line.valueRange) == digest else { return false }
            areIn = true
        }
        return areIn
    }
}
