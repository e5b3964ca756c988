import EventLoop
import Glibc
import TLS

/// A socket with TLS on it, and which events its reading and its writing wait for.
final class SecuredChannel {
    let session: TLSSession
    let socket: Descriptor
    /// What a read, or a write, that came back with `.wouldBlock` waits for.
    private(set) var readAwaits: Readiness = .read
    private(set) var writeAwaits: Readiness = .write
    private var saysGoodbye = true

    /// - Parameter session: made for this very socket.
    init(_ session: TLSSession, over socket: consuming Descriptor) {
        self.session = session
        self.socket = socket
    }

    /// The socket is still open here: stored properties go away after the body has run.
    deinit { if saysGoodbye { _ = session.shutdown() } }

    var mustBeDrained: Bool { session.hasPendingBytes }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> IOResult {
        readAwaits = .read
        switch unsafe session.read(into: buffer) {
        case .bytes(let count): return .bytes(count)
        case .wantRead: return .wouldBlock
        case .wantWrite:
            readAwaits = .write
            return .wouldBlock
        case .closed: return .closed
        case .failed: return .failed(errno: ECONNRESET)
        }
    }

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

    /// One piece after the other, until one is not taken whole. A failure behind bytes that were taken shows again at
    /// the next call.
    func writev(_ vectors: UnsafeMutableBufferPointer<iovec>) -> IOResult {
        var taken = 0
        for index in vectors.indices {
            let piece = unsafe UnsafeRawBufferPointer(start: vectors[index].iov_base, count: vectors[index].iov_len)
            guard unsafe !piece.isEmpty else { continue }
            let result = unsafe write(piece)
            guard case .bytes(let count) = result else { return taken > 0 ? .bytes(taken) : result }
            precondition(count <= piece.count, "TLS takes no more than it is offered")
            taken += count
            if count < piece.count { break }
        }
        return .bytes(taken)
    }

    func shutdownWrite() {
        sayGoodbye()
        Sockets.shutdownWrite(socket.rawValue)
    }

    func resetOnClose() {
        saysGoodbye = false
        Sockets.resetOnClose(socket.rawValue)
    }

    private func sayGoodbye() {
        guard saysGoodbye else { return }
        saysGoodbye = false
        _ = session.shutdown()
    }
}
