import Message

/// Why a user, a password or a token cannot be sent. It is a mistake of the configuration.
package enum CredentialFault: Error, Equatable, CaseIterable, Sendable {
    /// Basic ends the user at the first colon (RFC 7617 §2).
    case userHasColon
    /// A control character in the user (RFC 7617 §2).
    case userHasControlCharacter
    /// A control character in the password (RFC 7617 §2).
    case passwordHasControlCharacter
    /// A token of Bearer is a token68 (RFC 6750 §2.1).
    case tokenIsNoToken68
}

/// The value of `Authorization` or `Proxy-Authorization` for Basic (RFC 7617 §2), in UTF-8 (§2.1).
///
/// - Parameters:
///   - user: may be empty, as the password may.
package func basicAuthorization(user: String, password: Secret) throws(CredentialFault) -> Secret {
    guard !user.utf8.contains(UInt8(ascii: ":")) else { throw .userHasColon }
    guard !user.utf8.contains(where: isControl) else { throw .userHasControlCharacter }
    guard !password.bytes.contains(where: isControl) else { throw .passwordHasControlCharacter }
    return Secret(Array("Basic ".utf8) + encodeBase64(Array(user.utf8) + [UInt8(ascii: ":")] + password.bytes))
}

/// The value of `Authorization` for a bearer token (RFC 6750 §2.1).
package func bearerAuthorization(token: Secret) throws(CredentialFault) -> Secret {
    guard isToken68(token.bytes) else { throw .tokenIsNoToken68 }
    return Secret(Array("Bearer ".utf8) + token.bytes)
}

/// `CTL` (RFC 5234 appendix B.1).
private func isControl(_ byte: UInt8) -> Bool { byte < 0x20 || byte == 0x7F }
