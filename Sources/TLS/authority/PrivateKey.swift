import CLarder
import COpenSSL

/// Owns one reference to an `EVP_PKEY` with a private part.
@safe final class PrivateKey: @unchecked Sendable {  // not changed after init; OpenSSL locks what it caches
    enum Kind: Equatable {
        /// An elliptic curve, and the number of its bits: 256, 384 or 521.
        case ellipticCurve(bits: Int)
        case rsa(bits: Int)
        /// Neither a curve of NIST nor plain RSA: as OpenSSL names it.
        case other(String)
    }

    /// Why a PEM text gives no key.
    enum Failure: Error {
        case unreadable(reason: String)
        /// The key needs a passphrase, and there is none.
        case encrypted
        case passphraseWrong

        var reason: String {
            switch self {
            case .unreadable(let reason): reason
            case .encrypted: "it is encrypted with a passphrase"
            case .passphraseWrong: "the passphrase is wrong"
            }
        }
    }

    /// What OpenSSL asks for while it reads an encrypted key.
    private struct Question {
        let passphrase: [UInt8]?
        var wasAsked = false

        /// Returns the number of bytes that were written to `answer`. -1 if there is no passphrase, or if it is too long.
        mutating func answer(_ answer: UnsafeMutablePointer<CChar>?, _ room: CInt) -> CInt {
            wasAsked = true
            guard let passphrase, let answer = unsafe answer, passphrase.count <= Int(room) else { return -1 }
            for (index, byte) in passphrase.enumerated() { unsafe answer[index] = CChar(bitPattern: byte) }
            return CInt(passphrase.count)
        }
    }

    let raw: OpaquePointer

    private init(adopting raw: OpaquePointer) { unsafe self.raw = unsafe raw }

    deinit { unsafe EVP_PKEY_free(raw) }

    /// A new key on the curve P-256 that many certificates are made for.
    static func makeForLeaves() -> PrivateKey {
        guard let key = unsafe clarder_new_p256_key() else { preconditionFailure("OpenSSL could not make a P-256 key") }
        return unsafe PrivateKey(adopting: key)
    }

    /// A new key on the curve P-256.
    static func makeP256() -> PrivateKey {
        guard let context = unsafe EVP_PKEY_CTX_new_id(EVP_PKEY_EC, nil) else {
            preconditionFailure("no memory for a key")
        }
        defer { unsafe EVP_PKEY_CTX_free(context) }
        var key: OpaquePointer?
        let isMade =
            unsafe EVP_PKEY_keygen_init(context) == 1
            && EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context, NID_X9_62_prime256v1) == 1
            && EVP_PKEY_keygen(context, &key) == 1
        guard isMade, let key = unsafe key else { preconditionFailure("OpenSSL could not make a P-256 key") }
        return unsafe PrivateKey(adopting: key)
    }

    /// Reads a key from PEM. Never asks on the terminal.
    ///
    /// - Parameter passphrase: nil if there is none. It is not used for a key that is not encrypted.
    init(pem: [UInt8], passphrase: [UInt8]? = nil) throws(Failure) {
        ErrorQueue.clear()
        var question = Question(passphrase: passphrase)
        let key = unsafe withUnsafeMutablePointer(to: &question) { question in
            unsafe withBIO(of: pem) { bio in
                unsafe PEM_read_bio_PrivateKey(
                    bio, nil,
                    { answer, room, _, question in
                        guard let question = unsafe question?.assumingMemoryBound(to: Question.self) else { return -1 }
                        return unsafe question.pointee.answer(answer, room)
                    }, question)
            }
        }
        guard let key = unsafe key else {
            let reason = ErrorQueue.takeText()
            guard question.wasAsked else { throw .unreadable(reason: reason) }
            throw passphrase == nil ? .encrypted : .passphraseWrong
        }
        unsafe raw = unsafe key
    }

    /// PKCS#8, without a passphrase.
    var pem: [UInt8] { unsafe writtenToMemory { unsafe PEM_write_bio_PrivateKey($0, raw, nil, nil, 0, nil, nil) } }

    /// SHA-256 of the public key, cut to 160 bits (RFC 7093 §2 method 1): names the key in certificates.
    var identifier: [UInt8] {
        var point = [UInt8](repeating: 0, count: 600)
        var count = 0
        let status = unsafe EVP_PKEY_get_octet_string_param(
            raw, "pub", &point, point.count, &count)
        precondition(status == 1, "a P-256 key has a public point")
        return Array(Digest.sha256(point.prefix(count)).prefix(20))
    }

    var kind: Kind { unsafe Kind(of: raw) }
}

extension PrivateKey.Kind {
    /// - Parameter raw: `EVP_PKEY *`, with or without the private part.
    @unsafe init(of raw: OpaquePointer?) {
        let bits = Int(unsafe EVP_PKEY_get_bits(raw))
        let curve = unsafe Self.curve(of: raw)
        switch unsafe EVP_PKEY_get_base_id(raw) {
        case EVP_PKEY_EC where [256, 384, 521].contains(bits) && curve.hasPrefix("P-"):
            self = .ellipticCurve(bits: bits)
        case EVP_PKEY_EC: self = .other("EC on \(curve)")
        case EVP_PKEY_RSA: self = .rsa(bits: bits)
        default:
            let name = unsafe EVP_PKEY_get0_type_name(raw)
            self = .other(unsafe name.map { unsafe String(cString: $0) } ?? "unknown")
        }
    }

    /// `P-256`, or what OpenSSL calls a curve that is not one of NIST.
    @unsafe private static func curve(of raw: OpaquePointer?) -> String {
        var name = [CChar](repeating: 0, count: 80)
        var count = 0
        guard unsafe EVP_PKEY_get_group_name(raw, &name, name.count, &count) == 1 else { return "an unnamed curve" }
        let text = String(decoding: name.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return ["prime256v1": "P-256", "secp384r1": "P-384", "secp521r1": "P-521"][text] ?? text
    }
}

extension PrivateKey.Kind: CustomStringConvertible {
    var description: String {
        switch self {
        case .ellipticCurve(let bits): "P-\(bits)"
        case .rsa(let bits): "RSA \(bits)"
        case .other(let name): name
        }
    }
}
