import Message

/// A public key that a certificate must have: SHA-256 of its SubjectPublicKeyInfo, written `sha256/BASE64`. RFC 7469 §2.4 computes it
/// likewise, and curl writes it with two slashes.
package struct PublicKeyPin: Hashable, Sendable, CustomStringConvertible {
    private static let prefix = "sha256/"
    /// 32 bytes.
    package let digest: [UInt8]

    /// Returns nil unless the text is `sha256/` and the base 64 of 32 bytes, 44 characters with the padding.
    package init?(_ text: String) {
        guard text.hasPrefix(Self.prefix) else { return nil }
        let digits = Array(text.utf8.dropFirst(Self.prefix.utf8.count))
        // The encoding of the same bytes: other text for them is a mistake in copying.
        guard let digest = decodeBase64(digits), digest.count == 32, encodeBase64(digest) == digits else { return nil }
        self.digest = digest
    }

    package var description: String { Self.prefix + String(decoding: encodeBase64(digest), as: UTF8.self) }
}
