import COpenSSL

/// A public key that verifies signatures. Any thread may use it, several at a time.
///
/// Not changed after init; OpenSSL locks what it caches. That is why it is `@unchecked Sendable`.
@safe package final class VerificationKey: @unchecked Sendable {
    /// How a signature is made.
    package enum Scheme: Sendable, Equatable {
        /// RSASSA-PKCS1-v1_5 (RFC 8017 §8.2).
        case rsa(Hash)
        /// RSASSA-PSS (RFC 8017 §8.1) with MGF1 and a salt as long as the hash.
        case pss(Hash)
        /// ECDSA (FIPS 186-5 §6). The signature is r and s, each of this length in bytes, one behind the other.
        case ecdsa(Hash, coordinateBytes: Int)
        /// RFC 8032 §5.1.
        case ed25519
    }

    package enum Hash: Sendable, Equatable {
        case sha256, sha384, sha512

        fileprivate var raw: OpaquePointer? {
            switch self {
            case .sha256: unsafe EVP_sha256()
            case .sha384: unsafe EVP_sha384()
            case .sha512: unsafe EVP_sha512()
            }
        }
    }

    private let raw: OpaquePointer

    /// An RSA key. Numbers are big-endian. Nil if OpenSSL does not take it.
    package convenience init?(modulus: [UInt8], exponent: [UInt8]) {
        self.init(
            algorithm: DER.sequence(DER.identifier(rsaEncryption), DER.null),
            key: DER.sequence(DER.number(modulus), DER.number(exponent)))
    }

    /// A key on the NIST curve with coordinates of this length. Nil if the point is not on the curve.
    package convenience init?(x: [UInt8], y: [UInt8]) {
        guard x.count == y.count, let curve = curves[x.count] else { return nil }
        self.init(
            algorithm: DER.sequence(DER.identifier(ecPublicKey), DER.identifier(curve)), key: [0x04] + x + y)
    }

    /// A key on Ed25519 (RFC 8410 §4).
    package convenience init?(ed25519 point: [UInt8]) {
        guard point.count == 32 else { return nil }
        self.init(algorithm: DER.sequence(DER.identifier(ed25519)), key: point)
    }

    /// Reads a SubjectPublicKeyInfo (RFC 5280 §4.1).
    private init?(algorithm: [UInt8], key: [UInt8]) {
        ErrorQueue.clear()
        let text = DER.sequence(algorithm, DER.bitString(key))
        let made = unsafe text.withUnsafeBufferPointer { text in
            var start = text.baseAddress
            return unsafe d2i_PUBKEY(nil, &start, text.count)
        }
        guard let made = unsafe made else {
            ErrorQueue.clear()
            return nil
        }
        unsafe raw = unsafe made
    }

    deinit { unsafe EVP_PKEY_free(raw) }

    /// Whether the owner of the key has signed the message. A signature of the wrong length is wrong.
    package func verifies(_ signature: [UInt8], of message: [UInt8], by scheme: Scheme) -> Bool {
        defer { ErrorQueue.clear() }
        guard let context = unsafe EVP_MD_CTX_new() else { return false }
        defer { unsafe EVP_MD_CTX_free(context) }
        var keyContext: OpaquePointer?
        var signature = signature
        var hash: Hash?
        switch scheme {
        case .rsa(let used), .pss(let used):
            guard signature.count == Int(unsafe EVP_PKEY_get_size(raw)) else { return false }
            hash = used
        case .ecdsa(let used, let count):
            guard signature.count == 2 * count else { return false }
            signature = DER.sequence(
                DER.number(Array(signature[..<count])), DER.number(Array(signature[count...])))
            hash = used
        case .ed25519: break
        }
        guard unsafe EVP_DigestVerifyInit(context, &keyContext, unsafe hash?.raw, nil, raw) == 1 else { return false }
        if case .pss = scheme {
            guard unsafe EVP_PKEY_CTX_set_rsa_padding(keyContext, RSA_PKCS1_PSS_PADDING) == 1,
                unsafe EVP_PKEY_CTX_set_rsa_pss_saltlen(keyContext, RSA_PSS_SALTLEN_DIGEST) == 1
            else { return false }
        }
        return unsafe EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
    }
}

/// 1.2.840.113549.1.1.1 (RFC 8017 §C)
private let rsaEncryption: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x01]
/// 1.2.840.10045.2.1 (RFC 5480 §2.1.1)
private let ecPublicKey: [UInt8] = [0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01]
/// 1.3.101.112 (RFC 8410 §3)
private let ed25519: [UInt8] = [0x2B, 0x65, 0x70]
/// P-256, P-384 and P-521 (RFC 5480 §2.1.1.1), by the length of a coordinate.
private let curves: [Int: [UInt8]] = [
    32: [0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07],
    48: [0x2B, 0x81, 0x04, 0x00, 0x22],
    66: [0x2B, 0x81, 0x04, 0x00, 0x23],
]
