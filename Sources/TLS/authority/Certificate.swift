import CLarder
import COpenSSL
import Glibc

/// Owns one reference to an `X509`, which is not changed once it is signed.
@safe final class Certificate: @unchecked Sendable {  // OpenSSL locks what it caches in an X509
    let raw: OpaquePointer

    init(adopting raw: OpaquePointer) { unsafe self.raw = unsafe raw }

    deinit { unsafe X509_free(raw) }

    /// All certificates of a PEM text, in their order. Returns nil if one of them cannot be read.
    static func all(inPEM text: [UInt8]) -> [Certificate]? {
        ErrorQueue.clear()
        defer { ErrorQueue.clear() }
        var certificates: [Certificate] = []
        unsafe withBIO(of: text) { bio in
            while let raw = unsafe PEM_read_bio_X509(bio, nil, nil, nil) {
                certificates.append(unsafe Certificate(adopting: raw))
            }
        }
        return ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE ? certificates : nil
    }

    // Encodings

    var der: [UInt8] { unsafe encoded { unsafe i2d_X509(raw, $0) } }

    var pem: [UInt8] { unsafe writtenToMemory { unsafe PEM_write_bio_X509($0, raw) } }

    var keyKind: String { unsafe PrivateKey.Kind(of: X509_get0_pubkey(raw)).description }

    // Names and times

    var subject: String { unsafe nameText(unsafe X509_get_subject_name(raw)) }

    @unsafe private func nameText(_ name: OpaquePointer?) -> String {
        let bytes = unsafe writtenToMemory { unsafe X509_NAME_print_ex($0, name, 0, clarder_name_flags()) }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Seconds since 1970; likewise `notAfter`.
    var notBefore: Int64 { unsafe Certificate.seconds(X509_get0_notBefore(raw)) }
    var notAfter: Int64 { unsafe Certificate.seconds(X509_get0_notAfter(raw)) }

    @unsafe private static func seconds(_ time: UnsafePointer<ASN1_TIME>?) -> Int64 {
        var parts = unsafe tm()
        guard unsafe ASN1_TIME_to_tm(time, &parts) == 1 else { return 0 }
        return unsafe Int64(timegm(&parts))
    }

    // What it may be used for

    private var flags: UInt32 { unsafe X509_get_extension_flags(raw) }
    var isReadable: Bool { flags & UInt32(EXFLAG_INVALID) == 0 }
    var isAuthority: Bool { flags & UInt32(EXFLAG_CA) != 0 }
    var isSelfIssued: Bool { flags & UInt32(EXFLAG_SS) != 0 }

    /// Nil if the certificate does not restrict the use of its key.
    var mayUseKeyToSignCertificates: Bool? {
        guard flags & UInt32(EXFLAG_KUSAGE) != 0 else { return nil }
        return unsafe X509_get_key_usage(raw) & UInt32(KU_KEY_CERT_SIGN) != 0
    }

    /// False if the certificate lists extended uses of its key, and servers are not among them.
    var isForServers: Bool { isFor(XKU_SSL_SERVER) }
    /// Likewise for clients.
    var isForClients: Bool { isFor(XKU_SSL_CLIENT) }

    private func isFor(_ use: CInt) -> Bool {
        guard flags & UInt32(EXFLAG_XKUSAGE) != 0 else { return true }
        return unsafe X509_get_extended_key_usage(raw) & UInt32(use | XKU_ANYEKU) != 0
    }

    var isBasicConstraintsCritical: Bool {
        let index = unsafe X509_get_ext_by_NID(raw, NID_basic_constraints, -1)
        return unsafe index >= 0 && X509_EXTENSION_get_critical(X509_get_ext(raw, index)) == 1
    }

    /// As it is stored. Nil if the certificate has none.
    var subjectKeyIdentifier: [UInt8]? {
        guard let value = unsafe X509_get0_subject_key_id(raw) else { return nil }
        return unsafe octets(of: value)
    }

    /// Method 1 of RFC 5280 §4.2.1.2: SHA-1 of the public key.
    var computedKeyIdentifier: [UInt8] {
        var digest = [UInt8](repeating: 0, count: 20)
        var count: CUnsignedInt = 20
        _ = unsafe X509_pubkey_digest(raw, EVP_sha1(), &digest, &count)
        return digest
    }

    /// Whether the public key is that of `key`.
    func hasKey(_ key: PrivateKey) -> Bool {
        defer { ErrorQueue.clear() }
        return unsafe X509_check_private_key(raw, key.raw) == 1
    }

    /// Whether `issuer` has signed this certificate.
    func isIssued(by issuer: Certificate) -> Bool {
        defer { ErrorQueue.clear() }
        guard unsafe X509_check_issued(issuer.raw, raw) == X509_V_OK else { return false }
        return unsafe X509_verify(raw, X509_get0_pubkey(issuer.raw)) == 1
    }
}

/// The bytes of an ASN.1 string.
@unsafe func octets(of string: UnsafePointer<ASN1_STRING>) -> [UInt8] {
    unsafe Array(UnsafeBufferPointer(start: ASN1_STRING_get0_data(string), count: Int(ASN1_STRING_length(string))))
}

/// What an `i2d` function of OpenSSL writes: DER.
///
/// - Parameter write: called twice. The first time it gets nil and returns the number of bytes.
@unsafe func encoded(_ write: (UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?) -> CInt) -> [UInt8] {
    let count = write(nil)
    precondition(count > 0, "what was read has an encoding")
    var bytes = [UInt8](repeating: 0, count: Int(count))
    unsafe bytes.withUnsafeMutableBufferPointer { buffer in
        var cursor = buffer.baseAddress
        _ = unsafe write(&cursor)
    }
    return bytes
}

/// Lets OpenSSL read `bytes` where they are.
@unsafe func withBIO<Result>(of bytes: [UInt8], _ body: (OpaquePointer) -> Result) -> Result {
    unsafe bytes.withUnsafeBytes { buffer in
        guard let bio = unsafe BIO_new_mem_buf(buffer.baseAddress, CInt(clamping: buffer.count)) else {
            preconditionFailure("no memory for a BIO")
        }
        defer { unsafe BIO_free(bio) }
        return unsafe body(bio)
    }
}

/// What `write` writes to a BIO in memory.
@unsafe func writtenToMemory(_ write: (OpaquePointer?) -> CInt) -> [UInt8] {
    let bio = unsafe BIO_new(BIO_s_mem())
    precondition(unsafe bio != nil, "no memory for a BIO")
    defer { unsafe BIO_free(bio) }
    _ = unsafe write(bio)
    var text = [UInt8](repeating: 0, count: unsafe BIO_ctrl_pending(bio))
    let count = unsafe BIO_read(bio, &text, CInt(text.count))
    return Array(text.prefix(Int(max(count, 0))))
}
