import CLarder
import COpenSSL

/// What a new certificate will say. `signed` makes the certificate.
struct CertificateDraft {
    /// The attributes of the subject, such as `(NID_commonName, "a.example")`. Empty: the certificate has no subject.
    var subject: [(kind: CInt, value: String)]
    /// Nil if the certificate is signed with its own key.
    var issuer: Certificate?
    /// Seconds since 1970; likewise `notAfter`.
    var notBefore: Int64
    var notAfter: Int64
    var extensions: [CertificateExtension]

    /// Signs with SHA-256.
    ///
    /// - Parameters:
    ///   - key: the key whose public part is certified.
    ///   - signer: the issuer's key.
    func signed(certifying key: PrivateKey, by signer: PrivateKey) throws(AuthorityError) -> Certificate {
        ErrorQueue.clear()
        guard let raw = unsafe X509_new() else { throw .signingFailed(reason: "out of memory") }
        let certificate = unsafe Certificate(adopting: raw)
        let isMade =
            unsafe X509_set_version(raw, CLong(X509_VERSION_3)) == 1
            && setSerial(raw) && setNames(raw)
            // UTCTime until 2049, GeneralizedTime from then on (RFC 5280 §4.1.2.5).
            && ASN1_TIME_set(X509_getm_notBefore(raw), time_t(notBefore)) != nil
            && ASN1_TIME_set(X509_getm_notAfter(raw), time_t(notAfter)) != nil
            && X509_set_pubkey(raw, key.raw) == 1
            && extensions.allSatisfy { unsafe add($0, to: raw) }
            && X509_sign(raw, signer.raw, EVP_sha256()) > 0
        guard isMade else { throw .signingFailed(reason: ErrorQueue.takeText()) }
        return certificate
    }

    /// 16 random octets: positive, and in practice never used twice. NSS refuses a serial number that it has seen from the same issuer.
    @unsafe private func setSerial(_ raw: OpaquePointer) -> Bool {
        var octets = [UInt8](repeating: 0, count: 16)
        guard unsafe clarder_random(&octets, octets.count) == 0 else { return false }
        octets[0] = octets[0] & 0x3F | 0x40
        guard let number = unsafe BN_bin2bn(octets, CInt(octets.count), nil) else { return false }
        defer { unsafe BN_free(number) }
        return unsafe BN_to_ASN1_INTEGER(number, X509_get_serialNumber(raw)) != nil
    }

    @unsafe private func setNames(_ raw: OpaquePointer) -> Bool {
        let name = unsafe X509_get_subject_name(raw)
        for (kind, value) in subject {
            let text = Array(value.utf8)
            guard unsafe X509_NAME_add_entry_by_NID(name, kind, V_ASN1_UTF8STRING, text, CInt(text.count), -1, 0) == 1
            else { return false }
        }
        return unsafe X509_set_issuer_name(raw, issuer.map { unsafe X509_get_subject_name($0.raw) } ?? name) == 1
    }

    @unsafe private func add(_ item: CertificateExtension, to raw: OpaquePointer) -> Bool {
        let der = item.der
        guard let value = unsafe ASN1_OCTET_STRING_new() else { return false }
        defer { unsafe ASN1_OCTET_STRING_free(value) }
        guard unsafe ASN1_OCTET_STRING_set(value, der, CInt(der.count)) == 1,
            let made = unsafe X509_EXTENSION_create_by_NID(nil, item.kind, item.isCritical ? 1 : 0, value)
        else { return false }
        defer { unsafe X509_EXTENSION_free(made) }
        return unsafe X509_add_ext(raw, made, -1) == 1
    }
}
