import EventLoop
import Glibc
import TLS

/// The socket of a client in an opened tunnel, with its TLS session.
final class OpenedChannel {
    let session: TLSServerSession
    let socket: Descriptor
    /// Whether `close_notify` is still to be sent (RFC 8446 §6.1).
    private var sendsCloseNotify = true

    /// - Parameter session: the session that was made for this socket.
    init(_ session: TLSServerSession, over socket: consuming Descriptor) {
        self.session = session
        self.socket = socket
    }

    /// The socket is still open here: stored properties are destroyed after this body.
    deinit { if sendsCloseNotify { session.shutdown() } }

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

    func write(_ bytes: UnsafeRawBufferPointer) -> IOResult {
        var piece = unsafe iovec(iov_base: .init(mutating: bytes.baseAddress), iov_len: bytes.count)
        return unsafe withUnsafeMutablePointer(to: &piece) { unsafe writev($0, 1) }
    }

    func writev(_ vectors: UnsafeMutablePointer<iovec>, _ count: Int) -> IOResult {
        switch unsafe session.write(vectors, count) {
        case .bytes(let count): return .bytes(count)
        case .wantRead, .wantWrite: return .wouldBlock
        case .closed: return .closed
        case .failed(.connectionFailed(let code)): return .failed(errno: code)
        case .failed: return .failed(errno: ECONNRESET)
        }
    }

    func flush() -> IOResult {
        switch session.flush() {
        case .done: .bytes(0)
        case .wantRead, .wantWrite: .wouldBlock
        case .failed: .failed(errno: ECONNRESET)
        }
    }

    func shutdownWrite() {
        sendCloseNotify()
        Sockets.shutdownWrite(socket.rawValue)
    }

    func resetOnClose() {
        sendsCloseNotify = false
        Sockets.resetOnClose(socket.rawValue)
    }

    private func sendCloseNotify() {
        guard sendsCloseNotify else { return }
        sendsCloseNotify = false
        session.shutdown()
    }
}
