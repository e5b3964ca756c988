import CLarder
import COpenSSL
import Glibc

/// What came of one attempt to bring a handshake forward.
package enum TLSHandshake: Equatable, Sendable {
    case done
    /// Try again when the descriptor is readable, or writable.
    case wantRead, wantWrite
    case failed(TLSFailure)
}

/// What came of one attempt to move bytes.
package enum TLSResult: Equatable, Sendable {
    case bytes(Int)
    /// Try again when the descriptor is readable, or writable; either may be asked for in either direction.
    case wantRead, wantWrite
    /// The peer said that nothing more comes (`close_notify`, RFC 8446 §6.1).
    case closed
    /// `.truncated` when the connection ended without that word.
    case failed(TLSFailure)
}

/// One TLS connection over a non-blocking descriptor, which it does not own and which must stay open longer.
///
/// After a failure the session is of no further use: close the descriptor.
@safe package final class TLSSession {
    private let raw: OpaquePointer
    private let client: (context: TLSClientContext, serverName: String)?
    private var hasFailed = false

    /// Our side of a connection to a server. Offers an earlier session for resumption, and `http/1.1` (RFC 7301).
    /// - Parameter serverName: a DNS name, which is sent (RFC 6066 §3) and must be in the certificate; or an IP address
    ///   without brackets, which is not sent and must be.
    package init(_ context: TLSClientContext, fd: CInt, serverName: String) throws(TLSContextError) {
        guard let session = unsafe SSL_new(context.raw) else { throw .outOfMemory }
        unsafe raw = unsafe session
        client = (context, serverName)
        unsafe SSL_set_fd(raw, fd)
        unsafe SSL_set_ex_data(raw, 0, Unmanaged.passUnretained(self).toOpaque())
        unsafe SSL_set_connect_state(raw)
        guard expect(serverName) else { throw .outOfMemory }
        let protocols: [UInt8] = [8] + Array("http/1.1".utf8)
        unsafe SSL_set_alpn_protos(raw, protocols, CUnsignedInt(protocols.count))
        if let earlier = context.sessions.take(for: serverName) {
            unsafe SSL_set_session(raw, earlier.raw)
        }
    }

    /// Our side of a connection from a client.
    package init(_ context: TLSServerContext, fd: CInt) throws(TLSContextError) {
        guard let session = unsafe SSL_new(context.raw) else { throw .outOfMemory }
        unsafe raw = unsafe session
        client = nil
        unsafe SSL_set_fd(raw, fd)
        unsafe SSL_set_accept_state(raw)
    }

    deinit {
        // OpenSSL forbids resuming a session whose connection ended without ceremony. Ours end so whenever the peer
        // closes first, and truncation has been told by `read`.
        if !hasFailed { unsafe SSL_set_shutdown(raw, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN) }
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

    /// Called by OpenSSL when the server offers a session; owns the reference.
    func remember(_ resumable: OpaquePointer) {
        let session = unsafe TLSSessionCache.Resumable(adopting: resumable)
        guard let client else { return }
        client.context.sessions.store(session, for: client.serverName)
    }

    /// Goes on with the handshake. Reading and writing before it is done is not allowed.
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

    /// A certificate we refuse shows as a protocol error; the reason is kept elsewhere.
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

    /// May take a part only. After `.wantRead` or `.wantWrite` the same bytes (or more, beginning with them) are to be
    /// offered again, from any place in memory.
    package func write(_ bytes: UnsafeRawBufferPointer) -> TLSResult {
        guard !hasFailed else { return .failed(.truncated) }
        guard unsafe !bytes.isEmpty else { return .bytes(0) }
        ErrorQueue.clear()
        let count = unsafe SSL_write(raw, bytes.baseAddress, CInt(clamping: bytes.count))
        return count > 0 ? .bytes(Int(count)) : outcome(of: count)
    }

    /// Decrypted or received bytes wait inside: read again without waiting for the descriptor.
    package var hasPendingBytes: Bool { unsafe SSL_pending(raw) > 0 }

    /// Whether an earlier session was resumed.
    package var isResumed: Bool { unsafe SSL_session_reused(raw) == 1 }

    /// `TLSv1.3`, for the log.
    package var version: String { unsafe String(cString: SSL_get_version(raw)) }

    /// Says that nothing more comes from us. The peer's own word is not waited for.
    package func shutdown() -> TLSHandshake {
        guard !hasFailed else { return .done }
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

    private func outcome(of status: CInt) -> TLSResult {
        let code = errno
        switch unsafe SSL_get_error(raw, status) {
        case SSL_ERROR_WANT_READ: return .wantRead
        case SSL_ERROR_WANT_WRITE: return .wantWrite
        case SSL_ERROR_ZERO_RETURN: return .closed
        case SSL_ERROR_SYSCALL:
            hasFailed = true
            ErrorQueue.clear()
            return .failed(code == 0 ? .truncated : .connectionFailed(errno: code))
        default:
            hasFailed = true
            return .failed(ErrorQueue.takeFailure())
        }
    }
}
