import Message

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
