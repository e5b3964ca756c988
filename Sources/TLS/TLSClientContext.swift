import CLarder
import COpenSSL

/// How connections to servers are made secure. The defaults are those of a configuration that says nothing.
package struct TLSClientOptions: Sendable {
    /// The authorities that are trusted to certify servers.
    package enum Authorities: Sendable, Equatable {
        /// The system's bundle, as OpenSSL finds it.
        case system
        /// A PEM file of certificates, in place of the system's bundle. Each of them is trusted for itself: an authority in between,
        /// or the server's own, without the one that signed it.
        case file(String)
        /// The content of such a file.
        case pem([UInt8])
    }

    package enum Version: Sendable, Comparable { case tls12, tls13 }

    package enum Verification: Sendable {
        /// The server proves its name with a certificate of a trusted authority.
        case required
        /// Any certificate is accepted. Whoever is on the way can read and change everything, unless public keys are pinned.
        case none
    }

    package var authorities: Authorities = .system
    package var versions: ClosedRange<Version> = .tls12 ... .tls13
    package var verification: Verification = .required
    /// SHA-256 of a SubjectPublicKeyInfo each (RFC 7469 §2.4). If there are any, a certificate of the verified chain must have one of these
    /// keys. Without verification there is no such chain, and the server's own certificate must.
    package var pinnedKeys: [[UInt8]] = []
    /// What is shown to servers that ask for a certificate.
    package var identity: ClientIdentity?

    package init() {}
}

/// The settings of TLS connections to servers, and the sessions that they may resume. A session never passes from one context to another:
/// it stands for what its own context has verified and shown.
///
/// All threads use the same context.
@safe package final class TLSClientContext: @unchecked Sendable {
    // Sendable: OpenSSL locks what it changes in a context, and `sessions` has a lock of its own.

    let raw: OpaquePointer
    let sessions = TLSSessionCache()
    package let verification: TLSClientOptions.Verification
    private let pinnedKeys: Set<[UInt8]>

    package convenience init(authorities: TLSClientOptions.Authorities) throws(TLSContextError) {
        var options = TLSClientOptions()
        options.authorities = authorities
        try self.init(options)
    }

    package init(_ options: TLSClientOptions = TLSClientOptions()) throws(TLSContextError) {
        ignoreBrokenPipes()
        ErrorQueue.clear()
        guard let context = unsafe SSL_CTX_new(TLS_client_method()) else { throw .outOfMemory }
        unsafe raw = unsafe context
        verification = options.verification
        pinnedKeys = Set(options.pinnedKeys)
        guard unsafe clarder_ssl_ctx_prepare(raw) == 1,
            unsafe clarder_ssl_ctx_limit_versions(
                raw, options.versions.lowerBound.number, options.versions.upperBound.number) == 1
        else { throw .outOfMemory }
        unsafe clarder_ssl_ctx_set_read_buffer(raw, TLSClientContext.readBytes)
        try trust(options.authorities)
        if let identity = options.identity { try show(identity) }
        setCallbacks()
    }

    /// Four whole records, so that a long body takes a quarter of the reads. OpenSSL allocates the buffer to read, and frees it when what was read
    /// is used up.
    private static let readBytes = 66 << 10

    deinit { unsafe SSL_CTX_free(raw) }

    private func trust(_ authorities: TLSClientOptions.Authorities) throws(TLSContextError) {
        let status: CInt
        switch authorities {
        case .system: status = unsafe SSL_CTX_set_default_verify_paths(raw)
        case .file(let path): status = unsafe SSL_CTX_load_verify_file(raw, path)
        case .pem(let text):
            guard let certificates = Certificate.all(inPEM: text) else {
                throw .authoritiesUnreadable(reason: "a certificate cannot be read")
            }
            guard !certificates.isEmpty else {
                throw .authoritiesUnreadable(reason: "there is no certificate in PEM")
            }
            let store = unsafe SSL_CTX_get_cert_store(raw)
            let isComplete = certificates.allSatisfy { unsafe X509_STORE_add_cert(store, $0.raw) == 1 }
            status = isComplete ? 1 : 0
        }
        guard status == 1 else { throw .authoritiesUnreadable(reason: ErrorQueue.takeText()) }
        guard authorities != .system else { return }
        let isSet = unsafe X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(raw), UInt(X509_V_FLAG_PARTIAL_CHAIN)) == 1
        precondition(isSet, "OpenSSL knows partial chains")
    }

    private func show(_ identity: ClientIdentity) throws(TLSContextError) {
        let issuers = CertificateStack(identity.issuers)
        let isTaken = withExtendedLifetime(issuers) {
            unsafe SSL_CTX_use_certificate(raw, identity.certificate.raw) == 1
                && clarder_ssl_ctx_set_chain(raw, issuers.raw) == 1
        }
        guard isTaken else { throw .certificateUnusable(reason: ErrorQueue.takeText()) }
        guard unsafe SSL_CTX_use_PrivateKey(raw, identity.key.raw) == 1 else {
            throw .privateKeyUnusable(reason: ErrorQueue.takeText())
        }
    }

    private func setCallbacks() {
        unsafe SSL_CTX_set_verify(raw, SSL_VERIFY_PEER, nil)
        // The context outlives its sessions, and so this pointer.
        unsafe SSL_CTX_set_cert_verify_callback(
            raw,
            { chain, context in
                guard let chain = unsafe chain, let context = unsafe context else { return 0 }
                let own = unsafe Unmanaged<TLSClientContext>.fromOpaque(context).takeUnretainedValue()
                return unsafe own.accepts(chain) ? 1 : 0
            }, Unmanaged.passUnretained(self).toOpaque())
        unsafe clarder_ssl_ctx_external_client_sessions(raw)
        unsafe SSL_CTX_sess_set_new_cb(raw) { session, resumable in
            guard let session = unsafe session, let resumable = unsafe resumable,
                let owner = unsafe SSL_get_ex_data(session, 0)
            else { return 0 }
            unsafe Unmanaged<TLSSession>.fromOpaque(owner).takeUnretainedValue().remember(resumable)
            return 1  // this code owns the reference from here on
        }
        // Called when a server asks for a certificate.
        unsafe SSL_CTX_set_cert_cb(
            raw,
            { session, _ in
                if let session = unsafe session, let owner = unsafe SSL_get_ex_data(session, 0) {
                    unsafe Unmanaged<TLSSession>.fromOpaque(owner).takeUnretainedValue().noteCertificateRequest()
                }
                return 1
            }, nil)
        // Called then if there is none that the server accepts. The handshake goes on without it.
        unsafe SSL_CTX_set_client_cert_cb(raw) { session, _, _ in
            if let session = unsafe session, let owner = unsafe SSL_get_ex_data(session, 0) {
                unsafe Unmanaged<TLSSession>.fromOpaque(owner).takeUnretainedValue().noteMissingCertificate()
            }
            return 0
        }
    }

    /// Verifies the certificates of a server within the handshake, before the session can be resumed or used.
    ///
    /// - Parameter chain: `X509_STORE_CTX *`. Keeps the reason of a refusal.
    private func accepts(_ chain: OpaquePointer) -> Bool {
        if verification == .required {
            guard unsafe X509_verify_cert(chain) == 1 else { return false }
        }
        guard !pinnedKeys.isEmpty else { return true }
        let keys = unsafe verification == .required ? verifiedKeys(chain) : [publicKey(X509_STORE_CTX_get0_cert(chain))]
        if keys.contains(where: { pinnedKeys.contains($0) }) { return true }
        unsafe X509_STORE_CTX_set_error(chain, X509_V_ERR_APPLICATION_VERIFICATION)
        return false
    }

    @unsafe private func verifiedKeys(_ chain: OpaquePointer) -> [[UInt8]] {
        let certificates = unsafe X509_STORE_CTX_get0_chain(chain)
        return unsafe (0..<max(0, OPENSSL_sk_num(certificates))).map { index in
            unsafe publicKey(OpaquePointer(OPENSSL_sk_value(certificates, index)))
        }
    }

    @unsafe private func publicKey(_ certificate: OpaquePointer?) -> [UInt8] {
        unsafe Digest.sha256(encoded { unsafe i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), $0) })
    }
}

extension TLSClientOptions.Version {
    fileprivate var number: CInt {
        switch self {
        case .tls12: TLS1_2_VERSION
        case .tls13: TLS1_3_VERSION
        }
    }
}
