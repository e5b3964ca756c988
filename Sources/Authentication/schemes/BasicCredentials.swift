import Message

/// What a client sends in `Proxy-Authorization: Basic` (RFC 7617 §2).
package struct BasicCredentials: Sendable, Equatable {
    /// The user-id: UTF-8 without colons and control characters.
    package let user: String
    /// UTF-8 without control characters. It stays in bytes because it is hashed and never shown.
    package let password: [UInt8]

    package init(user: String, password: [UInt8]) {
        self.user = user
        self.password = password
    }

    /// Reads a field value strictly: the scheme name, spaces, and a token68 that is canonical base64 with padding and decodes to valid
    /// UTF-8. Returns nil for anything else, including other schemes.
    package init?(fieldValue: some Collection<UInt8>) {
        let parts = fieldValue.split(separator: UInt8(ascii: " "), maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, isBasic(parts[0]) else { return nil }
        let token = parts[1].drop { $0 == UInt8(ascii: " ") }
        guard let bytes = decodeStrictBase64(token), let colon = bytes.firstIndex(of: UInt8(ascii: ":")) else {
            return nil
        }
        guard bytes.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else { return nil }
        guard String(validating: bytes, as: UTF8.self) != nil else { return nil }
        user = String(decoding: bytes[..<colon], as: UTF8.self)
        password = Array(bytes[(colon + 1)...])
    }
}

/// The value of `Proxy-Authenticate` for a realm (RFC 7617 §2 and §2.1): the realm as quoted-string, UTF-8 announced.
package func basicChallenge(realm: String) -> [UInt8] {
    Array("Basic realm=".utf8) + quoted(realm) + Array(", charset=\"UTF-8\"".utf8)
}

/// A text as quoted-string (RFC 9110 §5.6.4), without its control characters.
func quoted(_ text: String) -> [UInt8] {
    var value: [UInt8] = []
    appendQuotedString(text.utf8, to: &value)
    return value
}

/// Scheme names compare without regard to case (RFC 9110 §11.1).
private func isBasic(_ name: some Collection<UInt8>) -> Bool {
    name.map { $0 | 0x20 } == Array("basic".utf8) && name.allSatisfy { $0 > 0x40 }
}

/// Decodes base64 (RFC 4648 §4) with its padding (§3.2) and without stray bits (§3.5), so that each value has one encoding. Returns nil
/// for anything else.
private func decodeStrictBase64(_ text: some Collection<UInt8>) -> [UInt8]? {
    guard let bytes = decodeBase64(text), encodeBase64(bytes).elementsEqual(text) else { return nil }
    return bytes
}
