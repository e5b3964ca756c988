import CLarder
import COpenSSL

/// PKCS#12 (RFC 7292): certificate, key and issuers in one encrypted file, as browsers and Windows export them.
extension ClientIdentity {
    /// - Parameter passphrase: nil if the file has none.
    package convenience init(pkcs12 bytes: [UInt8], passphrase: [UInt8]?) throws(ClientIdentityError) {
        try self.init(pkcs12: bytes, passphrase: passphrase, legacy: .shared)
    }

    /// - Parameter legacy: for files of older programs, most of which encrypt with RC2.
    convenience init(
        pkcs12 bytes: [UInt8], passphrase: [UInt8]?, legacy: LegacyAlgorithms
    ) throws(ClientIdentityError) {
        // OpenSSL takes the passphrase as a C string.
        guard passphrase?.contains(0) != true else { throw .passphraseWrong }
        var content = try BundleContent(bytes, passphrase)
        if content == nil {
            guard let library = unsafe legacy.context else { throw .bundleOutdated }
            // The library context of this thread alone, for the time of the call.
            let usual = unsafe OSSL_LIB_CTX_set0_default(library)
            defer { _ = unsafe OSSL_LIB_CTX_set0_default(usual) }
            content = try BundleContent(bytes, passphrase)
        }
        guard let content else { throw .bundleOutdated }
        // Read again from their encodings: these objects belong to the usual library context, and TLS can use them.
        guard let certificates = Certificate.all(inPEM: content.certificates), let own = certificates.first else {
            throw .bundleIncomplete
        }
        try self.init(
            own, issuers: Array(certificates.dropFirst()), key: ClientIdentity.readKey(content.key, nil))
    }
}

/// What is in a PKCS#12 file, in PEM.
private struct BundleContent {
    let key: [UInt8]
    /// The certificate of the key first.
    let certificates: [UInt8]

    /// Returns nil if the content is encrypted in a way that the library context of this thread does not know.
    init?(_ bytes: [UInt8], _ passphrase: [UInt8]?) throws(ClientIdentityError) {
        ErrorQueue.clear()
        let read = unsafe withBIO(of: bytes) { bio in unsafe d2i_PKCS12_bio(bio, nil) }
        guard let bundle = unsafe read else { throw .bundleUnreadable(reason: ErrorQueue.takeText()) }
        defer { unsafe PKCS12_free(bundle) }
        var key: OpaquePointer?
        var own: OpaquePointer?
        var others: OpaquePointer?
        let text = passphrase.map { $0.map { CChar(bitPattern: $0) } + [0] }
        let status = unsafe PKCS12_parse(bundle, text, &key, &own, &others)
        defer {
            unsafe EVP_PKEY_free(key)
            unsafe X509_free(own)
            unsafe clarder_free_certificates(others)
        }
        guard status == 1 else {
            let code = ERR_peek_error()
            let isMAC = ERR_GET_LIB(code) == ERR_LIB_PKCS12 && ERR_GET_REASON(code) == PKCS12_R_MAC_VERIFY_FAILURE
            ErrorQueue.clear()
            if isMAC { throw passphrase == nil ? .passphraseMissing : .passphraseWrong }
            return nil
        }
        guard let key = unsafe key, let own = unsafe own else { throw .bundleIncomplete }
        self.key = unsafe writtenToMemory { unsafe PEM_write_bio_PrivateKey($0, key, nil, nil, 0, nil, nil) }
        certificates = unsafe writtenToMemory { bio in
            _ = unsafe PEM_write_bio_X509(bio, own)
            // -1 if there are none.
            for index in 0..<max(0, unsafe OPENSSL_sk_num(others)) {
                _ = unsafe PEM_write_bio_X509(bio, OpaquePointer(OPENSSL_sk_value(others, index)))
            }
            return 1
        }
    }
}
