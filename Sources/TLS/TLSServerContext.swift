import CLarder
import COpenSSL
import Glibc

/// The settings of TLS connections from clients.
@safe package final class TLSServerContext: @unchecked Sendable {  // not changed after init; OpenSSL locks its own
    let raw: OpaquePointer

    /// - Parameters:
    ///   - certificates: PEM. The server's own certificate first, then those of the authorities in between.
    ///   - privateKey: PEM, without a passphrase.
    package init(certificates: [UInt8], privateKey: [UInt8]) throws(TLSContextError) {
        ignoreBrokenPipes()
        ErrorQueue.clear()
        guard let context = unsafe SSL_CTX_new(TLS_server_method()) else { throw .outOfMemory }
        unsafe raw = unsafe context
        guard unsafe clarder_ssl_ctx_prepare(raw) == 1 else { throw .outOfMemory }
        try useCertificates(certificates)
        try usePrivateKey(privateKey)
    }

    /// How long a session can be resumed, in seconds (RFC 8446 §4.6.1). The key of the tickets lives as long as this context.
    static let ticketSeconds = 7200

    /// For a listener: its own certificate, and what it asks of clients.
    ///
    /// - Parameters:
    ///   - certificates, privateKey: as above.
    ///   - clients: nil if clients are not asked for a certificate.
    package init(
        certificates: [UInt8], privateKey: [UInt8], clients: ClientVerification?
    ) throws(TLSContextError) {
        ignoreBrokenPipes()
        ErrorQueue.clear()
        guard let context = unsafe SSL_CTX_new(TLS_server_method()) else { throw .outOfMemory }
        unsafe raw = unsafe context
        guard unsafe clarder_ssl_ctx_prepare(raw) == 1,
            unsafe clarder_ssl_ctx_prepare_server(raw, TLSServerContext.ticketSeconds) == 1
        else { throw .outOfMemory }
        speakHTTP1()
        try useCertificates(certificates)
        try usePrivateKey(privateKey)
        // OpenSSL resumes no session of a client with a certificate unless the sessions have a name.
        let name: [UInt8] = Array("larder".utf8)
        guard unsafe SSL_CTX_set_session_id_context(raw, name, CUnsignedInt(name.count)) == 1 else {
            throw .outOfMemory
        }
        if let clients { try ask(clients) }
    }

    /// For opened tunnels: each connection gets a certificate of its own (`TLSServerSession`).
    package init() throws(TLSContextError) {
        ignoreBrokenPipes()
        ErrorQueue.clear()
        guard let context = unsafe SSL_CTX_new(TLS_server_method()) else { throw .outOfMemory }
        unsafe raw = unsafe context
        guard unsafe clarder_ssl_ctx_prepare(raw) == 1,
            unsafe clarder_ssl_ctx_prepare_server(raw, TLSServerContext.ticketSeconds) == 1
        else { throw .outOfMemory }
        speakHTTP1()
    }

    /// Chooses http/1.1 among the protocols that a client offers (RFC 7301 §3.2). A client that offers others alone is refused.
    func speakHTTP1() {
        unsafe SSL_CTX_set_alpn_select_cb(
            raw,
            { _, selected, selectedLength, offered, offeredLength, _ in
                // What is selected points into this text, or into what the client offered.
                let wanted: StaticString = "\u{8}http/1.1"
                var choice: UnsafeMutablePointer<UInt8>?
                let status = unsafe SSL_select_next_proto(
                    &choice, selectedLength!, wanted.utf8Start, CUnsignedInt(wanted.utf8CodeUnitCount), offered!,
                    offeredLength)
                unsafe selected!.pointee = unsafe UnsafePointer(choice)
                return status == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL
            }, nil)
    }

    deinit { unsafe SSL_CTX_free(raw) }

    func useCertificates(_ pem: [UInt8]) throws(TLSContextError) {
        let bio = unsafe memoryBIO(pem)
        defer { unsafe BIO_free(bio) }
        guard let own = unsafe PEM_read_bio_X509(bio, nil, nil, nil) else {
            throw .certificateUnusable(reason: ErrorQueue.takeText())
        }
        defer { unsafe X509_free(own) }
        guard unsafe SSL_CTX_use_certificate(raw, own) == 1 else {
            throw .certificateUnusable(reason: ErrorQueue.takeText())
        }
        while let issuer = unsafe PEM_read_bio_X509(bio, nil, nil, nil) {
            // The call takes over the reference.
            guard unsafe SSL_CTX_ctrl(raw, SSL_CTRL_EXTRA_CHAIN_CERT, 0, UnsafeMutableRawPointer(issuer)) == 1 else {
                unsafe X509_free(issuer)
                throw .certificateUnusable(reason: ErrorQueue.takeText())
            }
        }
        ErrorQueue.clear()  // OpenSSL reports the end of the file as an error
    }

    func usePrivateKey(_ pem: [UInt8]) throws(TLSContextError) {
        let key: PrivateKey
        do throws(PrivateKey.Failure) { key = try PrivateKey(pem: pem) } catch {
            throw .privateKeyUnusable(reason: error.reason)
        }
        guard unsafe SSL_CTX_use_PrivateKey(raw, key.raw) == 1, unsafe SSL_CTX_check_private_key(raw) == 1 else {
            throw .privateKeyUnusable(reason: ErrorQueue.takeText())
        }
    }
}

/// A BIO with a copy of `bytes`. Nil only if there is no memory.
@unsafe func memoryBIO(_ bytes: [UInt8]) -> OpaquePointer? {
    guard let bio = unsafe BIO_new(BIO_s_mem()) else { return nil }
    _ = unsafe bytes.withUnsafeBytes { unsafe BIO_write(bio, $0.baseAddress, CInt($0.count)) }
    return unsafe bio
}

/// Ignores SIGPIPE, once for the process. OpenSSL writes with write(2), and a peer that is gone would end the process.
func ignoreBrokenPipes() { _ = brokenPipesIgnored }
private let brokenPipesIgnored: Bool = {
    _ = signal(SIGPIPE, SIG_IGN)
    return true
}()
