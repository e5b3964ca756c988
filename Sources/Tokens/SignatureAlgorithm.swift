/// How a token is signed: the values of `alg` that this proxy verifies (RFC 7518 §3.1, RFC 8037 §3.1).
///
/// `none` is not among them, and no algorithm that nobody asked for.
package enum SignatureAlgorithm: String, Sendable, CaseIterable {
    case rs256 = "RS256"
    case rs384 = "RS384"
    case rs512 = "RS512"
    case ps256 = "PS256"
    case es256 = "ES256"
    case es384 = "ES384"
    case es512 = "ES512"
    /// With the curve Ed25519 alone.
    case edDSA = "EdDSA"
    case hs256 = "HS256"

    /// Those that are accepted where the configuration names none. HS256 is not among them: whoever can verify with a shared key can sign too.
    package static let usual: [SignatureAlgorithm] = [.rs256, .es256, .edDSA]

    /// The only kind of key that the algorithm is used with. A key of another kind is never tried, so a public key is no secret of HS256.
    var family: JSONWebKey.Family {
        switch self {
        case .rs256, .rs384, .rs512, .ps256: .rsa
        case .es256: .curve(.p256)
        case .es384: .curve(.p384)
        case .es512: .curve(.p521)
        case .edDSA: .ed25519
        case .hs256: .shared
        }
    }
}
