import JSON
import Message

/// A key that verifies signatures (RFC 7517 §4): a public key, or one that is shared with the signer.
package struct JSONWebKey: Sendable, Equatable {
    /// The kind of key, as far as algorithms depend on it.
    enum Family: Sendable, Equatable { case rsa, curve(Curve), ed25519, shared }

    /// The curves of RFC 7518 §6.2.1.1.
    package enum Curve: String, Sendable, CaseIterable {
        case p256 = "P-256"
        case p384 = "P-384"
        case p521 = "P-521"

        /// The length of a coordinate, and of each half of a signature, in bytes.
        package var coordinateBytes: Int {
            switch self {
            case .p256: 32
            case .p384: 48
            case .p521: 66
            }
        }
    }

    /// What a signature is verified with. Numbers are big-endian.
    package enum Material: Sendable, Equatable {
        case rsa(modulus: [UInt8], exponent: [UInt8])
        case curve(Curve, x: [UInt8], y: [UInt8])
        case ed25519([UInt8])
        case shared([UInt8])
    }

    /// `kid`: which of several keys a token is signed with. Nil if the key has no name.
    package let identifier: String?
    /// `alg`: the only algorithm for which the key may be used. Nil: any that its kind allows.
    package let algorithm: SignatureAlgorithm?
    package let material: Material

    package init(_ material: Material, identifier: String? = nil, algorithm: SignatureAlgorithm? = nil) {
        self.material = material
        self.identifier = identifier
        self.algorithm = algorithm
    }

    var family: Family {
        switch material {
        case .rsa: .rsa
        case .curve(let curve, _, _): .curve(curve)
        case .ed25519: .ed25519
        case .shared: .shared
        }
    }

    /// Whether the key may verify signatures of an algorithm: the kind fits, and the key says nothing else.
    package func serves(_ algorithm: SignatureAlgorithm) -> Bool {
        family == algorithm.family && (self.algorithm == nil || self.algorithm == algorithm)
    }

    /// RSA keys have at least 2048 bits (RFC 7518 §3.3). The most bounds how long a signature takes.
    static let modulusBytes = 256...1024
    /// A shared key is at least as long as the hash (RFC 7518 §3.2).
    static let sharedBytes = 32...1024

    /// Reads a member of `keys`.
    ///
    /// - Returns: nil for a key that is for something else, which is not an error (RFC 7517 §5): an unknown kind or curve, or a use other than
    ///   signatures.
    init?(_ value: JSONValue) throws(KeySetFault.Problem) {
        guard value.members != nil, let kind = try value.string("kty") else { throw .missing("kty") }
        if let use = try value.string("use"), use != "sig" { return nil }
        if let operations = value["key_ops"] {
            guard let words = operations.elements else { throw .wrongType("key_ops") }
            guard words.contains(.string("verify")) else { return nil }
        }
        identifier = try value.string("kid")
        if let name = try value.string("alg") {
            guard let known = SignatureAlgorithm(rawValue: name) else { return nil }
            algorithm = known
        } else {
            algorithm = nil
        }
        guard let material = try JSONWebKey.material(kind, value) else { return nil }
        self.material = material
        // A key that serves no algorithm contradicts itself.
        if let algorithm, algorithm.family != family { throw .algorithmOfOtherKind }
    }

    private static func material(_ kind: String, _ value: JSONValue) throws(KeySetFault.Problem) -> Material? {
        switch kind {
        case "RSA":
            let modulus = try value.bytes("n").trimmingZeros
            guard modulusBytes.contains(modulus.count), modulus[0] >= 0x80 || modulus.count > modulusBytes.lowerBound
            else { throw .modulusLength }
            let exponent = try value.bytes("e").trimmingZeros
            // Even exponents and 1 are no keys; long ones only take time.
            guard (1...4).contains(exponent.count), exponent.last.map({ $0 & 1 == 1 }) == true, exponent != [1] else {
                throw .exponent
            }
            return .rsa(modulus: modulus, exponent: exponent)
        case "EC":
            guard let name = try value.string("crv") else { throw .missing("crv") }
            guard let curve = Curve(rawValue: name) else { return nil }
            let (x, y) = (try value.bytes("x"), try value.bytes("y"))
            guard x.count == curve.coordinateBytes, y.count == curve.coordinateBytes else { throw .coordinateLength }
            return .curve(curve, x: x, y: y)
        case "OKP":
            guard let name = try value.string("crv") else { throw .missing("crv") }
            guard name == "Ed25519" else { return nil }
            let point = try value.bytes("x")
            guard point.count == 32 else { throw .coordinateLength }
            return .ed25519(point)
        case "oct":
            let secret = try value.bytes("k")
            guard sharedBytes.contains(secret.count) else { throw .sharedLength }
            return .shared(secret)
        default: return nil
        }
    }
}

extension JSONValue {
    /// A member that is a string. Nil if there is none.
    fileprivate func string(_ name: String) throws(KeySetFault.Problem) -> String? {
        guard let member = self[name] else { return nil }
        guard let text = member.text else { throw .wrongType(name) }
        return text
    }

    fileprivate func bytes(_ name: String) throws(KeySetFault.Problem) -> [UInt8] {
        guard let text = try string(name) else { throw .missing(name) }
        guard let bytes = decodeBase64URL(text.utf8) else { throw .notBase64URL(name) }
        return bytes
    }
}

extension [UInt8] {
    /// Some writers put a zero before a number, although RFC 7518 §6.3.1.1 forbids it.
    fileprivate var trimmingZeros: [UInt8] { Array(drop { $0 == 0 }) }
}
