/// Why a credential cannot be sent. It is a mistake of the configuration.
package enum CredentialFault: Error, Equatable, CaseIterable, Sendable {
    /// Basic ends the user at the first colon (RFC 7617 §2).
    case userHasColon
    case userHasControlCharacter
    case passwordHasControlCharacter
    case realmHasControlCharacter
    /// A token of Bearer is a token68 (RFC 6750 §2.1).
    case tokenIsNoToken68
    /// The access key, region or service of AWS is empty, or has a character that ends it in the field: a space, a control character, one
    /// beyond ASCII, or one of `/`, `,`, `=`.
    case keyIsMalformed
    /// The session token of AWS is empty, or has a space, a control character or one beyond ASCII.
    case sessionTokenIsMalformed

    /// What to say after the name of the credential.
    package var text: String {
        switch self {
        case .userHasColon: "the user contains a colon, which Basic cannot send"
        case .userHasControlCharacter: "the user contains a control character"
        case .passwordHasControlCharacter: "the password contains a control character"
        case .realmHasControlCharacter: "the realm contains a control character"
        case .tokenIsNoToken68: "the token contains a character that Bearer cannot send, or is empty"
        case .keyIsMalformed:
            "the access key, the region and the service must be ASCII without spaces, \"/\", \",\" and \"=\", and not empty"
        case .sessionTokenIsMalformed: "the session token must be ASCII without spaces, and not empty"
        }
    }
}

/// `CTL` (RFC 5234 appendix B.1).
func isControl(_ byte: UInt8) -> Bool { byte < 0x20 || byte == 0x7F }
