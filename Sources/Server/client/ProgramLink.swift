package import EventLoop
import Transaction
package import Rules
import Transport

/// A connection of this process with its own proxy: the program holds the client's end.
///
/// What crosses it is HTTP like everywhere. What Larder itself answers is told here as well, beside the bytes: an origin can send any field,
/// but it cannot call `refused`. So the program can tell a refusal from an answer.
package final class ProgramLink: Sendable {
    /// An answer of Larder's own, because there is none of an origin.
    package struct Notice: Sendable, Equatable {
        /// As in `docs/troubleshooting.md`.
        package let name: String
        package let status: Int
        /// The error type of RFC 9209.
        package let error: String
        /// What the client is told beyond the name.
        package let details: String
    }

    /// As whom the program asks. Nil: as nobody in particular.
    let identity: Identity?
    private let noted = Locked<Notice?>(nil)

    /// - Parameter identity: as whom the program asks. Nobody checks it.
    package init(as identity: Identity?) { self.identity = identity }

    /// Notes that the answer which follows is a refusal. Called on the worker's thread before a byte of it is sent.
    func refused(_ notice: Notice) { noted.withLock { $0 = notice } }

    /// The refusal that the head which has just been received belongs to. Nil: the answer is not Larder's own.
    package func takeNotice() -> Notice? { noted.withLock { $0.take() } }
}

extension ProgramLink.Notice {
    init(_ refusal: Refusal, details: String) {
        self.init(
            name: refusal.name, status: Int(refusal.status), error: "\(refusal.proxyStatusError)", details: details)
    }
}

/// One end of a connection on its way to the thread that owns it. It closes if it does not arrive.
private final class HandedSocket: Sendable {
    private let socket: Locked<CInt?>

    init(_ socket: consuming Descriptor) { self.socket = Locked(socket.release()) }

    deinit { _ = take() }

    func take() -> Descriptor? { socket.withLock { $0.take() }.map { Descriptor(adopting: $0) } }
}

extension Proxy {
    /// Connects this process with a worker, as a client like those of a Unix socket: without an address. Workers take turns.
    ///
    /// - Returns: the client's end. Nil if the proxy has stopped, or if there are no descriptors.
    package func connect(_ link: ProgramLink) -> Descriptor? {
        guard let worker = nextWorker(), var pair = SocketPair() else { return nil }
        let handed = HandedSocket(pair.takeEnd())
        worker.inbox.post {
            guard let socket = handed.take() else { return }
            worker.worker.value.accept(Transport(plain: socket), of: link)
        }
        return pair.takeEnd()
    }
}
