import CLarder
import COpenSSL
import Glibc

/// The server's side of TLS with a client, in an opened tunnel or of a listener, over a non-blocking socket. It does not own the socket.
///
/// A client that speaks TLS with the proxy may begin TLS once more in its tunnel: a session can have another one in place of the socket.
///
/// Bytes count as written once they are encrypted. What the socket does not accept waits here (`hasUnsentBytes`), and nothing else is
/// encrypted until it is sent. So reading waits for bytes of the client only, and writing for room in the socket only. The last records of a
/// handshake wait, too, so that they can go out together with the first answer.
///
/// After a failure the session must not be used: close the socket.
@safe package final class TLSServerSession {
    private let raw: OpaquePointer
    var session: OpaquePointer { unsafe raw }
    private let socket: CInt
    /// The session whose content the records of this one are. Nil if the socket carries them.
    private let carrier: TLSServerSession?
    private let records: RecordBuffer
    /// Records that the socket has not accepted yet. OpenSSL calls `queue` alone, and nothing else uses them meanwhile: the unchecked accesses are
    /// exclusive.
    private var unsent: [UInt8] {
        _read { yield unsafe uncheckedUnsent }
        _modify { yield unsafe &uncheckedUnsent }
    }
    @exclusivity(unchecked) private var uncheckedUnsent: [UInt8] = []
    private var unsentStart: Int {
        get { unsafe uncheckedUnsentStart }
        set { unsafe uncheckedUnsentStart = newValue }
    }
    @exclusivity(unchecked) private var uncheckedUnsentStart = 0
    /// The unsent records are the last ones of the handshake, which the socket has not been offered yet.
    private var holdsBack = false
    /// Reads the bytes that were received before the session was made.
    private var readsMemory = true
    /// The place among the sessions that keep OpenSSL's buffers; nil while this one keeps none. Reading and setting it calls nothing: the unchecked
    /// access is exclusive.
    private var holding: Int? {
        get { unsafe uncheckedHolding }
        set { unsafe uncheckedHolding = newValue }
    }
    @exclusivity(unchecked) private var uncheckedHolding: Int?
    /// Why reading or the handshake failed; nil if neither has.
    package private(set) var failure: TLSFailure?

    /// - Parameters:
    ///   - leaf: the certificate for the host that the client asked for. A session is resumed only for the same host. Nil: the context has the
    ///     certificate.
    ///   - received: what was read from the socket before, from the first byte on.
    ///   - records: the buffer of the thread on which the session is used.
    package convenience init(
        _ context: TLSServerContext, fd: CInt, leaf: Leaf?, received: [UInt8], records: RecordBuffer
    ) throws(TLSContextError) {
        try self.init(context, fd: fd, inside: nil, leaf: leaf, received: received, records: records)
    }

    /// TLS inside of TLS.
    ///
    /// - Parameters:
    ///   - carrier: its handshake is done, and nobody else reads or writes it.
    ///   - received: what was read from the carrier before.
    package convenience init(
        _ context: TLSServerContext, inside carrier: TLSServerSession, leaf: Leaf, received: [UInt8]
    ) throws(TLSContextError) {
        // A buffer holds the records of one call, and within a call of this session there are calls of its carrier.
        try self.init(
            context, fd: carrier.socket, inside: carrier, leaf: leaf, received: received, records: carrier.records.inner
        )
    }

    private init(
        _ context: TLSServerContext, fd: CInt, inside carrier: TLSServerSession?, leaf: Leaf?, received: [UInt8],
        records: RecordBuffer
    ) throws(TLSContextError) {
        ErrorQueue.clear()
        guard let session = unsafe SSL_new(context.raw) else { throw .outOfMemory }
        unsafe raw = unsafe session
        socket = fd
        self.carrier = carrier
        self.records = records
        unsafe SSL_set_accept_state(raw)
        guard leaf.map(show) ?? true else { throw .certificateUnusable(reason: ErrorQueue.takeText()) }
        guard let input = unsafe memoryBIO(received), let output = unsafe RecordBIO.make(for: self) else {
            throw .outOfMemory
        }
        unsafe SSL_set_bio(raw, input, output)
    }

    deinit {
        if let holding { records.holders.remove(holding) }
        // OpenSSL forgets a session whose connection ended without `close_notify`, and the client could not resume it.
        if failure == nil { unsafe SSL_set_shutdown(raw, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN) }
        unsafe SSL_free(raw)
    }

    private func show(_ leaf: Leaf) -> Bool {
        // One call for certificate, key and chain: OpenSSL looks up the kind of the key in each.
        unsafe SSL_use_cert_and_key(raw, leaf.certificate, leaf.key, leaf.chain, 1) == 1
            && SSL_set_session_id_context(raw, leaf.nameDigest, CUnsignedInt(leaf.nameDigest.count)) == 1
    }

    /// Called by OpenSSL with records to send.
    fileprivate func queue(_ bytes: UnsafeRawBufferPointer) {
        // A long message of a handshake may not fit behind what is waiting.
        if unsafe !unsent.isEmpty || !records.append(bytes) { unsafe unsent.append(contentsOf: bytes) }
    }

    // MARK: OpenSSL's buffers

    /// Whether the buffers of OpenSSL are kept from one call to the next.
    package var keepsBuffers: Bool { holding != nil }

    /// Called before OpenSSL reads or writes.
    @inline(__always)
    private func keepBuffers() {
        if holding == nil { holding = records.holders.insert(self) }
    }

    /// Another session has taken the place. A buffer with part of a record stays.
    func giveBuffersBack() {
        holding = nil
        _ = unsafe clarder_ssl_free_idle_buffers(raw)
    }

    // MARK: sending

    /// Whether encrypted bytes wait for room in the socket.
    package var hasUnsentBytes: Bool { hasUnsentRecords || carrier?.hasUnsentBytes == true }

    /// Whether records of this session wait.
    private var hasUnsentRecords: Bool { unsentStart < unsent.count }

    /// Sends what is encrypted. Returns `.wantWrite` if the socket does not accept all of it.
    package func flush() -> TLSHandshake {
        holdsBack = false
        if records.count > 0 {
            let sent = unsafe send(records.bytes)
            switch sent {
            case .accepted(let count):
                let rest = unsafe records.bytes[count...]
                if unsafe !rest.isEmpty { unsafe unsent.insert(contentsOf: rest, at: 0) }
                records.removeAll()
            case .failed(let code):
                records.removeAll()
                return .failed(.connectionFailed(errno: code))
            }
        }
        guard hasUnsentRecords else { return carrier?.flush() ?? .done }
        let sent = unsafe unsent.withUnsafeBytes { unsafe send(UnsafeRawBufferPointer(rebasing: $0[unsentStart...])) }
        switch sent {
        case .accepted(let count): unsentStart += count
        case .failed(let code): return .failed(.connectionFailed(errno: code))
        }
        guard !hasUnsentRecords else { return .wantWrite }
        unsent = []
        unsentStart = 0
        return carrier?.flush() ?? .done
    }

    private enum Sent {
        case accepted(Int)
        case failed(errno: CInt)
    }

    private func send(_ bytes: UnsafeRawBufferPointer) -> Sent {
        if let carrier { return unsafe send(bytes, through: carrier) }
        var sent = 0
        while sent < bytes.count {
            let count = unsafe Glibc.send(socket, bytes.baseAddress! + sent, bytes.count - sent, CInt(MSG_NOSIGNAL))
            if count >= 0 {
                sent += count
            } else if errno == EAGAIN {
                break
            } else if errno != EINTR {
                return .failed(errno: errno)
            }
        }
        return .accepted(sent)
    }

    private func send(_ bytes: UnsafeRawBufferPointer, through carrier: TLSServerSession) -> Sent {
        guard carrier.failure == nil else { return .failed(errno: ECONNRESET) }
        var sent = 0
        while sent < bytes.count {
            var piece = unsafe iovec(
                iov_base: .init(mutating: bytes.baseAddress! + sent), iov_len: bytes.count - sent)
            switch unsafe carrier.write(&piece, 1) {
            case .bytes(let count): sent += count
            case .wantRead, .wantWrite: return .accepted(sent)
            case .closed: return .failed(errno: EPIPE)
            case .failed(.connectionFailed(let code)): return .failed(errno: code)
            case .failed: return .failed(errno: ECONNRESET)
            }
        }
        return .accepted(sent)
    }

    // MARK: the handshake

    /// Goes on with the handshake. Nothing may be read or written before it has succeeded.
    ///
    /// Its last records, which are session tickets or the `Finished` of TLS 1.2, are sent by the first `write` or by `flush`: the caller calls
    /// `flush` unless it has an answer at once.
    package func handshake() -> TLSHandshake {
        if hasUnsentBytes {
            let flushed = flush()
            guard flushed == .done else { return flushed }
        }
        keepBuffers()
        while true {
            ErrorQueue.clear()
            let status = unsafe SSL_do_handshake(raw)
            if status == 1 {
                holdBack()
                return .done
            }
            let result = unsafe Outcome.of(status, raw)
            let isAnswered = records.count > 0
            // An alert that OpenSSL sends about a failure goes out as well.
            let flushed = flush()
            switch result {
            // What the client has sent may go on in the socket, but not what it sends to an answer that has just left.
            case .wantRead where readOn() && !isAnswered: continue
            case .wantRead: return flushed == .done ? .wantRead : flushed
            case .wantWrite: return .wantWrite
            case .closed, .bytes: return fail(.truncated)
            case .failed(let failure): return fail(certificateProblem ?? failure)
            }
        }
    }

    private func holdBack() {
        guard records.count > 0 else { return }
        unsafe unsent.append(contentsOf: records.bytes)
        records.removeAll()
        holdsBack = true
    }

    /// What is wrong with the certificate of a client that is asked for one. Nil if that is not why the handshake failed.
    private var certificateProblem: TLSFailure? {
        let result = unsafe SSL_get_verify_result(raw)
        if result != Int(X509_V_OK) { return .certificate(.init(verifyResult: result)) }
        return nil
    }

    private func fail(_ failure: TLSFailure) -> TLSHandshake {
        self.failure = failure
        return .failed(failure)
    }

    /// Reads from the socket, or the carrier, from now on. Returns false if it does so already.
    private func readOn() -> Bool {
        guard readsMemory else { return false }
        let made = unsafe carrier.map { unsafe CarrierBIO.make(for: $0) } ?? BIO_new_socket(socket, BIO_NOCLOSE)
        guard let input = unsafe made else { return false }
        readsMemory = false
        unsafe SSL_set0_rbio(raw, input)
        return true
    }

    /// Whether the client resumed an earlier session (RFC 8446 §2.2).
    package var isResumed: Bool { unsafe SSL_session_reused(raw) == 1 }

    // MARK: bytes

    /// Whether bytes were received that no event of the socket will announce: read until `.wantRead`.
    package var hasPendingBytes: Bool {
        unsafe readsMemory || SSL_has_pending(raw) == 1 || carrier?.hasPendingBytes == true
    }

    /// Whether the client has sent its last byte: `close_notify`, or the end of the connection without.
    fileprivate var hasInputEnded: Bool {
        unsafe failure == .truncated || SSL_get_shutdown(raw) & SSL_RECEIVED_SHUTDOWN != 0
    }

    package func read(into buffer: UnsafeMutableRawBufferPointer) -> TLSResult {
        keepBuffers()
        while true {
            ErrorQueue.clear()
            let count = unsafe SSL_read(raw, buffer.baseAddress, CInt(clamping: buffer.count))
            let result = unsafe count > 0 ? .bytes(Int(count)) : Outcome.of(count, raw)
            // Reading may have made messages of TLS itself, such as a key update.
            if records.count > 0 { _ = flush() }
            switch result {
            case .wantRead where readOn(): continue
            case .failed(let failure):
                self.failure = failure
                return result
            case .bytes, .wantRead, .wantWrite, .closed: return result
            }
        }
    }

    /// Encrypts and sends the pieces, at most `RecordBuffer.contentOfCallMax` of them. Returns how many bytes were taken.
    ///
    /// - Parameter vectors: an array of `count` values of type `iovec`.
    package func write(_ vectors: UnsafeMutableRawPointer, _ count: Int) -> TLSResult {
        let pieces = unsafe UnsafeBufferPointer(start: vectors.assumingMemoryBound(to: iovec.self), count: count)
        if holdsBack {
            // Before this answer, and with the same system call.
            holdsBack = false
            if unsafe unsent.withUnsafeBytes({ unsafe records.append($0) }) { unsent = [] }
        }
        if hasUnsentBytes {
            switch flush() {
            case .done: break
            case .wantRead, .wantWrite: return .wantWrite
            case .failed(let failure): return .failed(failure)
            }
        }
        keepBuffers()
        var taken = 0
        var joined = 0
        for index in pieces.indices {
            var rest = unsafe UnsafeRawBufferPointer(start: pieces[index].iov_base, count: pieces[index].iov_len)
            let room = RecordBuffer.contentOfCallMax - taken
            if rest.count > room { unsafe rest = UnsafeRawBufferPointer(rebasing: rest[..<room]) }
            taken += rest.count
            while unsafe !rest.isEmpty {
                if joined == 0, rest.count >= RecordBuffer.contentMax {
                    guard unsafe encrypt(rest.baseAddress!, RecordBuffer.contentMax) else { return broken() }
                    unsafe rest = UnsafeRawBufferPointer(rebasing: rest[RecordBuffer.contentMax...])
                    continue
                }
                let count = min(rest.count, RecordBuffer.contentMax - joined)
                unsafe memcpy(records.content.baseAddress! + joined, rest.baseAddress!, count)
                joined += count
                unsafe rest = UnsafeRawBufferPointer(rebasing: rest[count...])
                if joined == RecordBuffer.contentMax {
                    guard unsafe encrypt(records.content.baseAddress!, joined) else { return broken() }
                    joined = 0
                }
            }
            if taken == RecordBuffer.contentOfCallMax { break }
        }
        if joined > 0 {
            guard unsafe encrypt(records.content.baseAddress!, joined) else { return broken() }
        }
        if case .failed(let failure) = flush() { return .failed(failure) }
        return .bytes(taken)
    }

    /// Encrypts one record. The output never blocks, so either all of it is taken or the session has failed.
    private func encrypt(_ content: UnsafeRawPointer, _ count: Int) -> Bool {
        ErrorQueue.clear()
        return unsafe SSL_write(raw, content, CInt(count)) == CInt(count)
    }

    private func broken() -> TLSResult {
        records.removeAll()
        return .failed(ErrorQueue.takeFailure())
    }

    /// Sends `close_notify` (RFC 8446 §6.1), as far as the socket accepts it. Does not wait for that of the client.
    package func shutdown() {
        guard failure == nil else { return }
        ErrorQueue.clear()
        _ = unsafe SSL_shutdown(raw)
        _ = flush()
    }
}

/// The BIO into which OpenSSL writes the records of a session.
private enum RecordBIO {
    /// - Parameter session: owns the BIO, and so outlives it.
    @unsafe static func make(for session: TLSServerSession) -> OpaquePointer? {
        guard let method = unsafe method, let bio = unsafe BIO_new(method) else { return nil }
        unsafe BIO_set_data(bio, Unmanaged.passUnretained(session).toOpaque())
        unsafe BIO_set_init(bio, 1)
        return unsafe bio
    }

    nonisolated(unsafe) private static let method: OpaquePointer? = {
        guard let method = unsafe BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "records") else {
            return nil
        }
        unsafe BIO_meth_set_write(method) { bio, bytes, count in
            guard let session = unsafe BIO_get_data(bio), count > 0 else { return 0 }
            let records = unsafe UnsafeRawBufferPointer(start: bytes, count: Int(count))
            unsafe Unmanaged<TLSServerSession>.fromOpaque(session)._withUnsafeGuaranteedRef { unsafe $0.queue(records) }
            return count
        }
        unsafe BIO_meth_set_ctrl(method) { _, command, _, _ in command == BIO_CTRL_FLUSH ? 1 : 0 }
        return unsafe method
    }()
}

/// The BIO from which OpenSSL reads the records of a session inside another one.
private enum CarrierBIO {
    /// - Parameter carrier: outlives the session that owns the BIO.
    @unsafe static func make(for carrier: TLSServerSession) -> OpaquePointer? {
        guard let method = unsafe method, let bio = unsafe BIO_new(method) else { return nil }
        unsafe BIO_set_data(bio, Unmanaged.passUnretained(carrier).toOpaque())
        unsafe BIO_set_init(bio, 1)
        return unsafe bio
    }

    nonisolated(unsafe) private static let method: OpaquePointer? = {
        guard let method = unsafe BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "carrier") else {
            return nil
        }
        unsafe BIO_meth_set_read(method) { bio, bytes, room in
            guard let bio = unsafe bio, let carrier = unsafe BIO_get_data(bio), room > 0 else { return 0 }
            let buffer = unsafe UnsafeMutableRawBufferPointer(start: bytes, count: Int(room))
            let result = unsafe Unmanaged<TLSServerSession>.fromOpaque(carrier)._withUnsafeGuaranteedRef {
                unsafe read(from: $0, into: buffer)
            }
            unsafe BIO_clear_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY)
            switch result {
            case .bytes(let count): return CInt(count)
            case .wouldBlock: unsafe BIO_set_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY)
            case .ended: return 0
            case .failed(let code): errno = code
            }
            return -1
        }
        unsafe BIO_meth_set_ctrl(method) { bio, command, _, _ in
            guard command == BIO_CTRL_EOF, let carrier = unsafe BIO_get_data(bio) else { return 0 }
            let hasEnded = unsafe Unmanaged<TLSServerSession>.fromOpaque(carrier)._withUnsafeGuaranteedRef {
                $0.hasInputEnded
            }
            return hasEnded ? 1 : 0
        }
        return unsafe method
    }()

    private enum Got {
        case bytes(Int), wouldBlock, ended
        case failed(errno: CInt)
    }

    private static func read(from carrier: TLSServerSession, into buffer: UnsafeMutableRawBufferPointer) -> Got {
        // A session that has failed must not be used.
        if carrier.failure == nil {
            switch unsafe carrier.read(into: buffer) {
            case .bytes(let count): return .bytes(count)
            case .wantRead, .wantWrite: return .wouldBlock
            case .closed: return .ended
            case .failed: break
            }
        }
        switch carrier.failure {
        case .truncated: return .ended
        case .connectionFailed(let code): return .failed(errno: code)
        case .certificate, .protocolError, .alertReceived, nil: return .failed(errno: ECONNRESET)
        }
    }
}
