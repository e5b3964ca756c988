public import EventLoop
public import Glibc
import TLS

/// A socket with a TLS session, and the events that its reading and writing wait for.
///
/// TLS may have to read in order to write, and the reverse, for messages of its own. So each direction may wait for either event.
@usableFromInline
final class SecuredChannel {
    let session: TLSSession
    /// Nil if the session is inside another one, which owns the socket.
    private let ownSocket: Descriptor?
    private let carrier: SecuredChannel?
    /// The number of the socket that carries the bytes.
    let descriptor: CInt
    /// The event that reading waits for after `.wouldBlock`.
    @usableFromInline private(set) var readAwaits: Readiness = .read
    /// The event that writing waits for after `.wouldBlock`.
    @usableFromInline private(set) var writeAwaits: Readiness = .write
    /// Whether `close_notify` is still to be sent (RFC 8446 §6.1).
    private var sendsCloseNotify = true

    /// - Parameter session: the session that was made for this socket.
    init(_ session: TLSSession, over socket: consuming Descriptor) {
        self.session = session
        descriptor = socket.rawValue
        ownSocket = consume socket
        carrier = nil
    }

    /// - Parameter session: the session that was made for the bytes of `carrier`.
    init(_ session: TLSSession, inside carrier: SecuredChannel) {
        self.session = session
        self.carrier = carrier
        descriptor = carrier.descriptor
        ownSocket = nil
    }

    /// The socket is still open here: stored properties are destroyed after this body.
    deinit { if sendsCloseNotify { _ = session.shutdown() } }

    @usableFromInline
    var mustBeDrained: Bool { session.hasPendingBytes }

    @usableFromInline
    func read(into buffer: UnsafeMutableRawBufferPointer) -> IOResult {
        readAwaits = .read
        switch unsafe session.read(into: buffer) {
        case .bytes(let count):
            precondition(count <= buffer.count, "TLS returned more bytes than there is room for")
            return .bytes(count)
        case .wantRead: return .wouldBlock
        case .wantWrite:
            readAwaits = .write
            return .wouldBlock
        case .closed: return .closed
        case .failed: return .failed(errno: ECONNRESET)
        }
    }

    @usableFromInline
    func write(_ bytes: UnsafeRawBufferPointer) -> IOResult {
        writeAwaits = .write
        switch unsafe session.write(bytes) {
        case .bytes(let count): return .bytes(count)
        case .wantWrite: return .wouldBlock
        case .wantRead:
            writeAwaits = .read
            return .wouldBlock
        case .closed: return .closed
        case .failed: return .failed(errno: ECONNRESET)
        }
    }

    /// Writes one piece after the other, until one is not accepted whole. A failure after accepted bytes is returned by the next call.
    @usableFromInline
    func writev(_ vectors: UnsafeMutableBufferPointer<iovec>) -> IOResult {
        var taken = 0
        for index in vectors.indices {
            let piece = unsafe UnsafeRawBufferPointer(start: vectors[index].iov_base, count: vectors[index].iov_len)
            guard unsafe !piece.isEmpty else { continue }
            let result = unsafe write(piece)
            guard case .bytes(let count) = result else { return taken > 0 ? .bytes(taken) : result }
            precondition(count <= piece.count, "TLS accepted more bytes than it was offered")
            taken += count
            if count < piece.count { break }
        }
        return .bytes(taken)
    }

    func shutdownWrite() {
        sendCloseNotify()
        if let carrier { return carrier.shutdownWrite() }
        Sockets.shutdownWrite(descriptor)
    }

    func resetOnClose() {
        sendsCloseNotify = false
        if let carrier { return carrier.resetOnClose() }
        Sockets.resetOnClose(descriptor)
    }

    private func sendCloseNotify() {
        guard sendsCloseNotify else { return }
        sendsCloseNotify = false
        _ = session.shutdown()
    }
}
