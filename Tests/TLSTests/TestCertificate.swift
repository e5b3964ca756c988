import COpenSSL
import Glibc
import TLS

/// A certificate made for a test, its key, and who signed it.
@safe final class TestCertificate: @unchecked Sendable {  // not changed after init
    let certificate: OpaquePointer
    let key: OpaquePointer

    /// - Parameters:
    ///   - alternativeNames: as OpenSSL's configuration spells them: `DNS:a.test,IP:127.0.0.1`.
    ///   - validFrom: seconds from now; likewise `validUntil`.
    ///   - issuer: nil signs itself, as an authority.
    ///   - mayIssue: whether it is that of an authority; nil if it has no issuer.
    ///   - use: its extended key usage, such as `serverAuth`.
    init(
        _ commonName: String, _ alternativeNames: String? = nil, validFrom: Int = -3600, validUntil: Int = 3600,
        issuer: TestCertificate? = nil, mayIssue: Bool? = nil, use: String? = nil
    ) {
        unsafe key = TestCertificate.makeKey()
        unsafe certificate = X509_new()
        unsafe X509_set_version(certificate, 2)
        unsafe ASN1_INTEGER_set(X509_get_serialNumber(certificate), Int.random(in: 1...Int(Int32.max)))
        unsafe X509_gmtime_adj(X509_getm_notBefore(certificate), validFrom)
        unsafe X509_gmtime_adj(X509_getm_notAfter(certificate), validUntil)
        unsafe X509_set_pubkey(certificate, key)
        let name = unsafe X509_get_subject_name(certificate)
        unsafe X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, commonName, -1, -1, 0)
        unsafe X509_set_issuer_name(certificate, issuer.map { unsafe X509_get_subject_name($0.certificate) } ?? name)
        if let alternativeNames { add(NID_subject_alt_name, alternativeNames) }
        if let use { add(NID_ext_key_usage, use) }
        if mayIssue ?? (issuer == nil) { add(NID_basic_constraints, "critical,CA:TRUE") }
        unsafe X509_sign(certificate, issuer?.key ?? key, EVP_sha256())
    }

    deinit {
        unsafe X509_free(certificate)
        unsafe EVP_PKEY_free(key)
    }

    private static func makeKey() -> OpaquePointer {
        let context = unsafe EVP_PKEY_CTX_new_id(EVP_PKEY_EC, nil)
        defer { unsafe EVP_PKEY_CTX_free(context) }
        var key: OpaquePointer?
        unsafe EVP_PKEY_keygen_init(context)
        unsafe EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context, NID_X9_62_prime256v1)
        unsafe EVP_PKEY_keygen(context, &key)
        return unsafe key!
    }

    private func add(_ kind: CInt, _ value: String) {
        let item = unsafe X509V3_EXT_conf_nid(nil, nil, kind, value)
        unsafe X509_add_ext(certificate, item, -1)
        unsafe X509_EXTENSION_free(item)
    }

    var certificatePEM: [UInt8] { unsafe TestCertificate.pem { unsafe PEM_write_bio_X509($0, certificate) } }
    var keyPEM: [UInt8] {
        unsafe TestCertificate.pem { unsafe PEM_write_bio_PrivateKey($0, key, nil, nil, 0, nil, nil) }
    }

    private static func pem(_ write: (OpaquePointer?) -> CInt) -> [UInt8] {
        let bio = unsafe BIO_new(BIO_s_mem())
        defer { unsafe BIO_free(bio) }
        _ = unsafe write(bio)
        var text = [UInt8](repeating: 0, count: 16384)
        let count = unsafe BIO_read(bio, &text, CInt(text.count))
        return Array(text.prefix(Int(count)))
    }

    func serverContext() throws -> TLSServerContext {
        try TLSServerContext(certificates: certificatePEM, privateKey: keyPEM)
    }

    /// A client that believes this certificate alone.
    ///
    /// - Parameter change: what else it wants.
    func clientContext(_ change: (inout TLSClientOptions) -> Void = { _ in }) throws -> TLSClientContext {
        let path = "/tmp/larder-test-\(getpid())-\(UInt64.random(in: 0...UInt64.max)).pem"
        let fd = unsafe open(path, O_WRONLY | O_CREAT | O_EXCL, 0o600)
        let text = certificatePEM
        _ = unsafe write(fd, text, text.count)
        close(fd)
        defer { _ = unsafe unlink(path) }
        var options = TLSClientOptions()
        options.authorities = .file(path)
        change(&options)
        return try TLSClientContext(options)
    }
}
