import Authentication
import TLS
import Tokens

extension SignedToken {
    /// Whether one of the keys has signed the token. Takes some ten microseconds for each key that is tried.
    var isSigned: Bool { candidates.contains { $0.hasSigned(token) } }
}

extension JSONWebKey {
    fileprivate func hasSigned(_ token: JSONWebToken) -> Bool {
        precondition(serves(token.algorithm), "a key is used with the algorithms of its kind")
        if case .shared(let secret) = material {
            return Digest.areEqual(Digest.hmacSHA256(key: secret, token.signingInput), token.signature)
        }
        guard let key = VerificationKey(material), let scheme = VerificationKey.Scheme(token.algorithm) else {
            return false
        }
        return key.verifies(token.signature, of: token.signingInput, by: scheme)
    }
}

extension VerificationKey {
    fileprivate convenience init?(_ material: JSONWebKey.Material) {
        switch material {
        case .rsa(let modulus, let exponent): self.init(modulus: modulus, exponent: exponent)
        case .curve(_, let x, let y): self.init(x: x, y: y)
        case .ed25519(let point): self.init(ed25519: point)
        case .shared: return nil
        }
    }
}

extension VerificationKey.Scheme {
    /// Nil for HS256, which needs no public key.
    fileprivate init?(_ algorithm: SignatureAlgorithm) {
        switch algorithm {
        case .rs256: self = .rsa(.sha256)
        case .rs384: self = .rsa(.sha384)
        case .rs512: self = .rsa(.sha512)
        case .ps256: self = .pss(.sha256)
        case .es256: self = .ecdsa(.sha256, coordinateBytes: 32)
        case .es384: self = .ecdsa(.sha384, coordinateBytes: 48)
        case .es512: self = .ecdsa(.sha512, coordinateBytes: 66)
        case .edDSA: self = .ed25519
        case .hs256: return nil
        }
    }
}
