import CLarder
import COpenSSL

/// How the certificates of clients are verified (RFC 5280 §6).
package struct ClientVerification: Sendable, Equatable {
    /// PEM: the authorities that are trusted.
    package var authorities: [UInt8]
    /// PEM: revocation lists of these authorities. Nil: no certificate is revoked.
    package var revocations: [UInt8]?
    /// Whether the handshake fails without a certificate.
    package var isRequired: Bool

    package init(authorities: [UInt8], revocations: [UInt8]?, isRequired: Bool) {
        self.authorities = authorities
        self.revocations = revocations
        self.isRequired = isRequired
    }
}

extension TLSServerContext {
    /// Asks clients for a certificate. One that is not accepted fails the handshake, even if none is required.
    func ask(_ clients: ClientVerification) throws(TLSContextError) {
        guard let store = unsafe SSL_CTX_get_cert_store(raw) else { throw .outOfMemory }
        guard let authorities = Certificate.all(inPEM: clients.authorities), !authorities.isEmpty else {
            throw .authoritiesUnreadable(reason: "there is no certificate in PEM")
        }
        for authority in authorities {
            guard unsafe X509_STORE_add_cert(store, authority.raw) == 1,
                unsafe SSL_CTX_add_client_CA(raw, authority.raw) == 1
            else { throw .authoritiesUnreadable(reason: ErrorQueue.takeText()) }
        }
        if let revocations = clients.revocations { try unsafe add(revocations, to: store) }
        let mode = SSL_VERIFY_PEER | (clients.isRequired ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0)
        unsafe SSL_CTX_set_verify(raw, mode, nil)
        ErrorQueue.clear()
    }

    private func add(_ revocations: [UInt8], to store: OpaquePointer) throws(TLSContextError) {
        let bio = unsafe memoryBIO(revocations)
        defer { unsafe BIO_free(bio) }
        var count = 0
        while let list = unsafe PEM_read_bio_X509_CRL(bio, nil, nil, nil) {
            defer { unsafe X509_CRL_free(list) }
            guard unsafe X509_STORE_add_crl(store, list) == 1 else {
                throw .authoritiesUnreadable(reason: ErrorQueue.takeText())
            }
            count += 1
        }
        guard count > 0 else { throw .authoritiesUnreadable(reason: "there is no revocation list in PEM") }
        _ = unsafe X509_STORE_set_flags(store, CUnsignedLong(X509_V_FLAG_CRL_CHECK))
    }
}

/// The names in the certificate of a client.
package struct CertificateNames: Sendable, Equatable {
    /// RFC 4514.
    package var subject = ""
    /// The last common name of the subject. Nil if there is none.
    package var commonName: String?
    /// Of the extension subjectAltName (RFC 5280 §4.2.1.6).
    package var dnsNames: [String] = []
    package var mailboxes: [String] = []
    package var uris: [String] = []
    /// When the certificate expires, in seconds since 1970.
    package var notAfter = Int64.max

    package init() {}
}

/// A certificate that a client has shown, with those that it has sent along.
package final class ShownCertificate: Sendable {
    fileprivate let certificate: Certificate
    fileprivate let chain: CertificateStack

    fileprivate init(_ certificate: Certificate, _ chain: CertificateStack) {
        self.certificate = certificate
        self.chain = chain
    }

    package var names: CertificateNames { certificate.names }
}

extension TLSServerSession {
    /// The certificate that the client has shown, and that was accepted. Nil without one.
    package var clientCertificate: ShownCertificate? {
        guard let raw = unsafe SSL_get1_peer_certificate(session) else { return nil }
        let certificate = unsafe Certificate(adopting: raw)
        guard unsafe SSL_get_verify_result(session) == X509_V_OK else { return nil }
        var along: [Certificate] = []
        // A session that is resumed with a ticket has none of them.
        if let sent = unsafe SSL_get_peer_cert_chain(session) {
            for index in 0..<(unsafe OPENSSL_sk_num(sent)) {
                guard let one = unsafe OPENSSL_sk_value(sent, index) else { continue }
                let raw = OpaquePointer(one)
                if unsafe X509_up_ref(raw) == 1 { along.append(unsafe Certificate(adopting: raw)) }
            }
        }
        return ShownCertificate(certificate, CertificateStack(along))
    }
}

extension TLSServerContext {
    /// Whether a client could log in with the certificate now: its authority is still trusted, and it has neither expired nor been revoked.
    package func accepts(_ shown: ShownCertificate) -> Bool {
        defer { ErrorQueue.clear() }
        guard let store = unsafe SSL_CTX_get_cert_store(raw), let check = unsafe X509_STORE_CTX_new() else {
            return false
        }
        defer { unsafe X509_STORE_CTX_free(check) }
        guard unsafe X509_STORE_CTX_init(check, store, shown.certificate.raw, shown.chain.raw) == 1,
            unsafe X509_STORE_CTX_set_default(check, "ssl_client") == 1
        else { return false }
        return unsafe X509_verify_cert(check) == 1
    }
}

extension Certificate {
    var names: CertificateNames {
        var result = CertificateNames()
        result.subject = subject
        result.commonName = commonName
        result.notAfter = notAfter
        guard let names = unsafe X509_get_ext_d2i(raw, NID_subject_alt_name, nil, nil) else { return result }
        defer { unsafe clarder_free_general_names(names) }
        var kind: CInt = 0
        var bytes: UnsafePointer<UInt8>?
        var count: CInt = 0
        var index: CInt = 0
        while unsafe clarder_general_name(names, index, &kind, &bytes, &count) == 1 {
            index += 1
            // These are IA5Strings. One with other bytes might look like another name.
            let text = unsafe UnsafeBufferPointer(start: bytes, count: Int(count))
            guard unsafe text.allSatisfy({ (0x21...0x7E).contains($0) }) else { continue }
            let name = unsafe String(decoding: text, as: UTF8.self)
            switch kind {
            case GEN_DNS: result.dnsNames.append(name)
            case GEN_EMAIL: result.mailboxes.append(name)
            case GEN_URI: result.uris.append(name)
            default: break
            }
        }
        return result
    }

    private var commonName: String? {
        let name = unsafe X509_get_subject_name(raw)
        var place: CInt = -1
        while true {
            let next = unsafe X509_NAME_get_index_by_NID(name, NID_commonName, place)
            guard next >= 0 else { break }
            place = next
        }
        guard place >= 0 else { return nil }
        let entry = unsafe X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, place))
        var text: UnsafeMutablePointer<UInt8>?
        let count = unsafe ASN1_STRING_to_UTF8(&text, entry)
        guard count >= 0, let text = unsafe text else { return nil }
        defer { unsafe clarder_openssl_free(text) }
        let bytes = unsafe UnsafeBufferPointer(start: text, count: Int(count))
        // A control character may hide the rest of a name.
        guard unsafe bytes.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else { return nil }
        return unsafe String(validating: bytes, as: UTF8.self)
    }
}
