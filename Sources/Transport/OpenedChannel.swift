public import EventLoop
public import Glibc
import TLS

/// The socket of a client of a listener, or in an opened tunnel, with its TLS session.
///
/// Where both have TLS, the session of the tunnel is inside that of the listener: one socket carries both, and a reset of it ends both.
@usableFromInline
final class OpenedChannel {
    let session: TLSServerSession
    /// Nil if the session is inside another one, which owns the socket.
    private let ownSocket: Descriptor?
    private let carrier: OpenedChannel?
    /// The number of the socket that carries the bytes.
    let descriptor: CInt
    /// Whether `close_notify` is still to be sent (RFC 8446 §6.1).
    private var sendsCloseNotify = true

    /// - Parameter session: the session that was made for this socket.
    init(_ session: TLSServerSession, over socket: consuming Descriptor) {
        self.session = session
        descriptor = socket.rawValue
        ownSocket = consume socket
        carrier = nil
    }

    /// - Parameter session: the session that was made for the content of `carrier`.
    init(_ session: TLSServerSession, inside carrier: OpenedChannel) {
        self.session = session
        self.carrier = carrier
        descriptor = carrier.descriptor
        ownSocket = nil
    }

    /// The socket is still open here: stored properties are destroyed after this body.
    deinit { if sendsCloseNotify { session.shutdown() } }

    @usableFromInline var mustBeDrained: Bool { session.hasPendingBytes }
    @usableFromInline var hasUnsentBytes: Bool { session.hasUnsentBytes }

    @usableFromInline
    func read(into buffer: UnsafeMutableRawBufferPointer) -> IOResult {
        switch unsafe session.read(into: buffer) {
        case .bytes(let count):
            precondition(count <= buffer.count, "TLS returned more bytes than there is room for")
            return .bytes(count)
        case .wantRead, .wantWrite: return .wouldBlock
        case .closed: return .closed
        case .failed: return .failed(errno: ECONNRESET)
        }
    }

    @usableFromInline
    func write(_ bytes: UnsafeRawBufferPointer) -> IOResult {
        var piece = unsafe iovec(iov_base: .init(mutating: bytes.baseAddress), iov_len: bytes.count)
        return unsafe withUnsafeMutablePointer(to: &piece) { unsafe writev($0, 1) }
    }

    @usableFromInline
    func writev(_ vectors: UnsafeMutablePointer<iovec>, _ count: Int) -> IOResult {
        switch unsafe session.write(vectors, count) {
        case .bytes(let count): return .bytes(count)
        case .wantRead, .wantWrite: return .wouldBlock
        case .closed: return .closed
        case .failed(.connectionFailed(let code)): return .failed(errno: code)
        case .failed: return .failed(errno: ECONNRESET)
        }
    }

    @usableFromInline
    func flush() -> IOResult {
        switch session.flush() {
        case .done: .bytes(0)
        case .wantRead, .wantWrite: .wouldBlock
        case .failed: .failed(errno: ECONNRESET)
        }
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
        session.shutdown()
    }
}
