import EventLoop
import Glibc
import Message
import TLS
import Transport

/// Why a command gets no answer from a Redis or a node of a fleet.
package enum ProbeFailure: Error, Sendable, Equatable {
    case name(String)
    case connection(String)
    case tls(String)
    /// The server refuses the log-in: its text.
    case logIn(String)
    /// The server refuses the database of the URL: its text.
    case database(String)
    /// The server closed the connection.
    case closed
    /// The server did not answer within 2 seconds.
    case silence
    /// What answers does not speak the protocol.
    case nonsense(String)
}

/// A connection that waits for whatever it does. For commands, which have nothing else to do.
final class ProbeConnection {
    let transport: Transport
    private let descriptor: CInt
    private static let wait = Duration.seconds(2)

    /// Connects. Blocks until the deadline at most, and as long again for TLS.
    ///
    /// - Parameters:
    ///   - deadline: that of the look-up, if the addresses come from a name.
    ///   - tls: with the name that the certificate must have. Nil: plain text.
    init(
        to addresses: [SocketAddress], by deadline: MonotonicTime,
        tls: (context: TLSClientContext, serverName: String)?, loop: EventLoop
    ) throws(ProbeFailure) {
        let socket = try ProbeConnection.connect(addresses, by: deadline, loop)
        descriptor = socket.rawValue
        Sockets.setNoDelay(descriptor)
        guard let tls else {
            transport = Transport(plain: socket)
            return
        }
        do throws(TLSContextError) {
            transport = try Transport(securing: socket, with: tls.context, serverName: tls.serverName)
        } catch { throw .tls("TLS cannot be used: \(error)") }
        try shakeHands()
    }

    static var deadline: MonotonicTime { MonotonicTime.read().advanced(by: wait) }

    static func addresses(
        of host: String, port: UInt16, by deadline: MonotonicTime, loop: EventLoop, resolver: Resolver
    ) throws(ProbeFailure) -> [SocketAddress] {
        if let address = IPAddress(strict: host.utf8) { return [SocketAddress(address, port: port)] }
        var outcome: Resolver.Outcome?
        _ = resolver.resolve(host, by: deadline) {
            outcome = $0
            loop.stop()
        }
        loop.run()
        switch outcome {
        case .success(let found):
            return found.addresses.compactMap { IPAddress($0) }.map { SocketAddress($0, port: port) }
        case .failure(let error): throw .name("\(error)")
        case nil: throw .name("no answer")
        }
    }

    private static func connect(
        _ addresses: [SocketAddress], by deadline: MonotonicTime, _ loop: EventLoop
    ) throws(ProbeFailure) -> Descriptor {
        // The attempt calls back from the loop, never from within `start`.
        var socket: Descriptor?
        var failure: ConnectError?
        _ = ConnectAttempt.start(
            addresses, ConnectOptions(sources: [], device: nil, fastOpen: false, keepAlive: nil), loop: loop,
            attemptDelay: .milliseconds(250), by: deadline, history: ConnectHistory()
        ) { outcome in
            switch consume outcome {
            case .connected(let descriptor, _): socket = consume descriptor
            case .failed(let error): failure = error
            }
            loop.stop()
        }
        loop.run()
        guard let socket = socket.take() else { throw .connection("\(failure ?? .timedOut)") }
        return socket
    }

    private func shakeHands() throws(ProbeFailure) {
        let deadline = ProbeConnection.deadline
        while true {
            switch transport.handshake() {
            case .done: return
            case .failed(let failure): throw .tls(failure.details)
            case .wantRead: try pause(for: CShort(POLLIN), until: deadline)
            case .wantWrite: try pause(for: CShort(POLLOUT), until: deadline)
            }
        }
    }

    private func pause(for events: CShort, until deadline: MonotonicTime) throws(ProbeFailure) {
        let left = deadline.duration(since: MonotonicTime.read())
        guard left > .zero else { throw .silence }
        var watched = pollfd(fd: descriptor, events: events, revents: 0)
        let milliseconds = CInt(
            clamping: left.components.seconds * 1000 + left.components.attoseconds / 1_000_000_000_000_000 + 1)
        _ = unsafe poll(&watched, 1, milliseconds)
    }

    // MARK: bytes

    func send(_ bytes: [UInt8], until deadline: MonotonicTime) throws(ProbeFailure) {
        var sent = 0
        while sent < bytes.count {
            let result = unsafe bytes.withUnsafeBytes {
                unsafe transport.write(UnsafeRawBufferPointer(rebasing: $0[sent...]))
            }
            switch result {
            case .bytes(let count): sent += count
            case .wouldBlock: try awaitBytes(toRead: false, until: deadline)
            case .closed: throw .closed
            case .failed(let code): throw ProbeConnection.failure(code)
            }
        }
    }

    /// The next bytes, at least one.
    func receive(until deadline: MonotonicTime) throws(ProbeFailure) -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            switch unsafe buffer.withUnsafeMutableBytes({ unsafe transport.read(into: $0) }) {
            case .bytes(0), .closed: throw .closed
            case .bytes(let count): return Array(buffer.prefix(count))
            case .wouldBlock: try awaitBytes(toRead: true, until: deadline)
            case .failed(let code): throw ProbeConnection.failure(code)
            }
        }
    }

    private static func failure(_ code: CInt) -> ProbeFailure {
        code == ECONNRESET || code == EPIPE ? .closed : .connection(systemErrorText(code))
    }

    /// TLS may have to read in order to write, and the reverse.
    private func awaitBytes(toRead: Bool, until deadline: MonotonicTime) throws(ProbeFailure) {
        let reads = transport.awaits(.read, toRead: toRead, toWrite: !toRead)
        let writes = transport.awaits(.write, toRead: toRead, toWrite: !toRead)
        try pause(for: CShort((reads ? POLLIN : 0) | (writes ? POLLOUT : 0)), until: deadline)
    }
}
