import TLS
import Tokens

func bytes(_ base64URL: String) -> [UInt8] { decodeBase64URL(base64URL.utf8) ?? [] }

/// A token that nobody signed.
func unsigned(header: String = #"{"alg":"HS256"}"#, claims: String, signature: String = "c2ln") -> [UInt8] {
    encodeBase64URL(header.utf8) + Array(".".utf8) + encodeBase64URL(claims.utf8) + Array(".\(signature)".utf8)
}

/// What the driver does with a signature.
func verifies(_ token: JSONWebToken, with key: JSONWebKey) -> Bool {
    let (scheme, made): (VerificationKey.Scheme, VerificationKey?)
    switch key.material {
    case .rsa(let modulus, let exponent):
        (scheme, made) = (.rsa(.sha256), VerificationKey(modulus: modulus, exponent: exponent))
    case .curve(let curve, let x, let y):
        let hash: VerificationKey.Hash = curve == .p256 ? .sha256 : curve == .p384 ? .sha384 : .sha512
        (scheme, made) = (.ecdsa(hash, coordinateBytes: curve.coordinateBytes), VerificationKey(x: x, y: y))
    case .ed25519(let point): (scheme, made) = (.ed25519, VerificationKey(ed25519: point))
    case .shared(let secret):
        return Digest.hmacSHA256(key: secret, token.signingInput) == token.signature
    }
    return made?.verifies(token.signature, of: token.signingInput, by: scheme) ?? false
}
