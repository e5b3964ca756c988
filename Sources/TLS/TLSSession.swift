import CLarder
import COpenSSL
import Glibc

/// The result of one step of a handshake.
package enum TLSHandshake: Equatable, Sendable {
    case done
    /// Try again when the descriptor is readable, or writable.
    case wantRead, wantWrite
    case failed(TLSFailure)
}

/// The result of one attempt to read or write.
package enum TLSResult: Equatable, Sendable {
    case bytes(Int)
    /// Try again when the descriptor is readable, or writable. Reading and writing may each return either.
    case wantRead, wantWrite
    /// The peer has announced the end of its data (`close_notify`, RFC 8446 §6.1).
    case closed
    /// `.truncated` if the connection ended without `close_notify`.
    case failed(TLSFailure)
}

/// One TLS connection over a non-blocking descriptor. It does not own the descriptor, which must stay open for longer.
///
/// After a failure the session must not be used: close the descriptor. One thing may: when the connection broke while something was written, what had
/// arrived before can be read.
@safe package final class TLSSession {
    let raw: OpaquePointer
    private let client: (context: TLSClientContext, serverName: String)?
    /// The session whose bytes carry this one. Nil if a descriptor does.
    private let carrier: TLSSession?
    private var hasFailed = false
    /// Why nothing more can be written, while reading goes on.
    private var brokenBy: TLSFailure?
    /// Whether the server has asked for a certificate (RFC 8446 §4.3.2), and got none: there is none, or none of a kind that it accepts.
    package private(set) var isAskedForCertificate = false
    /// Whether the server has asked for a certificate, and was shown one.
    private var hasShownCertificate = false
    /// Whether the server ended the connection because of the certificate that it was shown. With TLS 1.3 it says so after the handshake.
    package private(set) var isCertificateRefused = false

    /// The client's side of a connection. Offers an earlier session for resumption, and `http/1.1` by ALPN (RFC 7301).
    ///
    /// - Parameter serverName: a DNS name or an IP address without brackets. The certificate must have it, unless the context verifies
    ///   nothing. A name is also sent as SNI (RFC 6066 §3).
    package convenience init(_ context: TLSClientContext, fd: CInt, serverName: String) throws(TLSContextError) {
        try self.init(context, serverName: serverName, inside: nil)
        unsafe SSL_set_fd(raw, fd)
    }

    /// The client's side of a connection that passes through another TLS connection, as through a tunnel that a next proxy opened.
    ///
    /// - Parameter carrier: its handshake is done, and nobody else reads or writes it. What one session waits for, the other does.
    package convenience init(
        _ context: TLSClientContext, inside carrier: TLSSession, serverName: String
    ) throws(TLSContextError) {
        try self.init(context, serverName: serverName, inside: Optional(carrier))
        guard unsafe clarder_ssl_set_carrier(raw, carrier.raw) == 1 else { throw .outOfMemory }
    }

    private init(
        _ context: TLSClientContext, serverName: String, inside carrier: TLSSession?
    ) throws(TLSContextError) {
        guard let session = unsafe SSL_new(context.raw) else { throw .outOfMemory }
        unsafe raw = unsafe session
        client = (context, serverName)
        self.carrier = carrier
        unsafe SSL_set_ex_data(raw, 0, Unmanaged.passUnretained(self).toOpaque())
        unsafe SSL_set_connect_state(raw)
        guard expect(serverName) else { throw .outOfMemory }
        let protocols: [UInt8] = [8] + Array("http/1.1".utf8)
        unsafe SSL_set_alpn_protos(raw, protocols, CUnsignedInt(protocols.count))
        if let earlier = context.sessions.take(for: serverName) {
            unsafe SSL_set_session(raw, earlier.raw)
        }
    }

    /// The server's side of a connection.
    package init(_ context: TLSServerContext, fd: CInt) throws(TLSContextError) {
        guard let session = unsafe SSL_new(context.raw) else { throw .outOfMemory }
        unsafe raw = unsafe session
        client = nil
        carrier = nil
        unsafe SSL_set_fd(raw, fd)
        unsafe SSL_set_accept_state(raw)
    }

    deinit {
        // OpenSSL refuses to resume a session whose connection ended without `close_notify`. That happens whenever the peer
        // closes first, and `read` has reported truncation.
        if !hasFailed, brokenBy == nil { unsafe SSL_set_shutdown(raw, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN) }
        unsafe SSL_free(raw)
    }

    private func expect(_ serverName: String) -> Bool {
        let parameters = unsafe SSL_get0_param(raw)
        if unsafe X509_VERIFY_PARAM_set1_ip_asc(parameters, serverName) == 1 { return true }
        ErrorQueue.clear()
        unsafe SSL_set_hostflags(raw, CUnsignedInt(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS))
        let name = serverName.utf8.last == UInt8(ascii: ".") ? String(serverName.dropLast()) : serverName
        guard unsafe SSL_set1_host(raw, name) == 1 else { return false }
        return unsafe clarder_ssl_set_server_name(raw, name) == 1
    }

    /// Called by OpenSSL when the server offers a session. Owns the reference.
    func remember(_ resumable: OpaquePointer) {
        let session = unsafe TLSSessionCache.Resumable(adopting: resumable)
        guard let client else { return }
        client.context.sessions.store(session, for: client.serverName)
    }

    /// Whether the server has proved its name. False if the context does not ask for that.
    package var isVerified: Bool { client.map { $0.context.verification == .required } ?? true }

    /// Called by OpenSSL within a handshake: first when the server asks for a certificate, then if there is none to show.
    func noteCertificateRequest() { hasShownCertificate = true }
    func noteMissingCertificate() {
        hasShownCertificate = false
        isAskedForCertificate = true
    }

    /// Goes on with the handshake. Nothing may be read or written before it has succeeded.
    package func handshake() -> TLSHandshake {
        ErrorQueue.clear()
        let status = unsafe SSL_do_handshake(raw)
        if status == 1 { return .done }
        switch outcome(of: status) {
        case .wantRead, .bytes: return .wantRead
        case .wantWrite: return .wantWrite
        case .closed: return .failed(.truncated)
        case .failed(let failure): return .failed(explained(failure))
        }
    }

    /// OpenSSL reports a refused certificate as a protocol error. The reason is the result of verification.
    private func explained(_ failure: TLSFailure) -> TLSFailure {
        let verified = unsafe SSL_get_verify_result(raw)
        guard verified != Int(X509_V_OK), case .protocolError = failure else { return failure }
        return .certificate(.init(verifyResult: verified))
    }

    package func read(into buffer: UnsafeMutableRawBufferPointer) -> TLSResult {
        guard !hasFailed else { return .failed(.truncated) }
        ErrorQueue.clear()
        let count = unsafe SSL_read(raw, buffer.baseAddress, CInt(clamping: buffer.count))
        return count > 0 ? .bytes(Int(count)) : outcome(of: count)
    }

    /// Writes some of the bytes. After `.wantRead` or `.wantWrite` the same bytes must be offered again, from any place in memory; more may
    /// follow them.
    package func write(_ bytes: UnsafeRawBufferPointer) -> TLSResult {
        guard !hasFailed else { return .failed(.truncated) }
        if let brokenBy { return .failed(brokenBy) }
        guard unsafe !bytes.isEmpty else { return .bytes(0) }
        ErrorQueue.clear()
        let count = unsafe SSL_write(raw, bytes.baseAddress, CInt(clamping: bytes.count))
        if count > 0 { return .bytes(Int(count)) }
        let result = unsafe Outcome.of(count, raw)
        // The socket says so, and OpenSSL has found nothing wrong with the session.
        if case .failed(.connectionFailed) = result, case .failed(let failure) = result {
            brokenBy = failure
            return result
        }
        return noted(result)
    }

    /// Whether bytes were received that no event of the descriptor will announce: read until `.wantRead`.
    package var hasPendingBytes: Bool { unsafe SSL_has_pending(raw) == 1 || carrier?.hasPendingBytes == true }

    /// Whether an earlier session was resumed.
    package var isResumed: Bool { unsafe SSL_session_reused(raw) == 1 }

    /// When the first certificate of the server's verified chain ends, in seconds since 1970. Nil if none was verified in this handshake.
    package var chainEnd: Int64? {
        guard let chain = unsafe SSL_get0_verified_chain(raw) else { return nil }
        let ends = (0..<(unsafe OPENSSL_sk_num(chain))).compactMap { index -> Int64? in
            guard let certificate = unsafe OPENSSL_sk_value(chain, index) else { return nil }
            unsafe X509_up_ref(OpaquePointer(certificate))
            return unsafe Certificate(adopting: OpaquePointer(certificate)).notAfter
        }
        return ends.min()
    }

    /// `TLSv1.3`, for the log.
    package var version: String { unsafe String(cString: SSL_get_version(raw)) }

    /// Sends `close_notify`. Does not wait for that of the peer.
    package func shutdown() -> TLSHandshake {
        guard !hasFailed, brokenBy == nil else { return .done }
        ErrorQueue.clear()
        let status = unsafe SSL_shutdown(raw)
        if status >= 0 { return .done }
        switch outcome(of: status) {
        case .wantWrite: return .wantWrite
        case .wantRead: return .wantRead
        case .bytes, .closed: return .done
        case .failed(let failure): return .failed(failure)
        }
    }

    private func outcome(of status: CInt) -> TLSResult { noted(unsafe Outcome.of(status, raw)) }

    private func noted(_ result: TLSResult) -> TLSResult {
        if case .failed(let failure) = result {
            hasFailed = true
            isCertificateRefused = hasShownCertificate && failure.isAboutCertificate
        }
        return result
    }
}

/// What OpenSSL says of a call that did not succeed.
enum Outcome {
    /// Call this at once: it reads `errno`, and the error queue of this thread.
    static func of(_ status: CInt, _ raw: OpaquePointer) -> TLSResult {
        let code = errno
        switch unsafe SSL_get_error(raw, status) {
        case SSL_ERROR_WANT_READ: return .wantRead
        case SSL_ERROR_WANT_WRITE: return .wantWrite
        case SSL_ERROR_ZERO_RETURN: return .closed
        case SSL_ERROR_SYSCALL:
            ErrorQueue.clear()
            return .failed(code == 0 ? .truncated : .connectionFailed(errno: code))
        default:
            return .failed(ErrorQueue.takeFailure())
        }
    }
}
