import EventLoop
import Glibc
import Message
import Redis
import Settings
import TLS

/// A connection to Redis that waits for each reply. For commands, which have nothing else to do.
final class RedisProbe {
    private let terms: FleetTerms
    private let transport: Transport
    private let descriptor: CInt
    private let reader = RedisReader()
    private static let wait = Duration.seconds(2)

    /// Connects. Blocks for some seconds at most.
    init(_ terms: FleetTerms, to addresses: [SocketAddress], loop: EventLoop) throws(RedisFacts.Failure) {
        self.terms = terms
        let socket = try RedisProbe.connect(addresses, loop)
        descriptor = socket.rawValue
        Sockets.setNoDelay(descriptor)
        guard let tls = terms.tls else {
            transport = Transport(plain: socket)
            return
        }
        do throws(TLSContextError) {
            transport = try Transport(securing: socket, with: tls, serverName: terms.url.host)
        } catch { throw .tls("TLS cannot be used: \(error)") }
        try shakeHands()
    }

    var chainEnd: Int64? { transport.chainEnd }

    // MARK: connecting

    static func addresses(
        of url: RedisURL, loop: EventLoop, resolver: Resolver
    ) throws(RedisFacts.Failure) -> [SocketAddress] {
        if let address = IPAddress(strict: url.host.utf8) { return [SocketAddress(address, port: url.port)] }
        var outcome: Resolver.Outcome?
        _ = resolver.resolve(url.host) {
            outcome = $0
            loop.stop()
        }
        loop.run()
        switch outcome {
        case .success(let found):
            return found.addresses.compactMap { IPAddress($0) }.map { SocketAddress($0, port: url.port) }
        case .failure(let error): throw .name("\(error)")
        case nil: throw .name("no answer")
        }
    }

    private static func connect(
        _ addresses: [SocketAddress], _ loop: EventLoop
    ) throws(RedisFacts.Failure) -> Descriptor {
        // The attempt calls back from the loop, never from within `start`.
        var socket: Descriptor?
        var failure: ConnectError?
        _ = ConnectAttempt.start(
            addresses, ConnectOptions(sources: [], device: nil, fastOpen: false, keepAlive: nil), loop: loop,
            attemptDelay: .milliseconds(250), timeout: wait, history: ConnectHistory()
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

    private func shakeHands() throws(RedisFacts.Failure) {
        let deadline = MonotonicTime.read().advanced(by: RedisProbe.wait)
        while true {
            switch transport.handshake() {
            case .done: return
            case .failed(let failure): throw .tls(failure.details)
            case .wantRead: try pause(for: CShort(POLLIN), until: deadline)
            case .wantWrite: try pause(for: CShort(POLLOUT), until: deadline)
            }
        }
    }

    private func pause(for events: CShort, until deadline: MonotonicTime) throws(RedisFacts.Failure) {
        let left = deadline.duration(since: MonotonicTime.read())
        guard left > .zero else { throw .silence }
        var watched = pollfd(fd: descriptor, events: events, revents: 0)
        let milliseconds = CInt(
            clamping: left.components.seconds * 1000 + left.components.attoseconds / 1_000_000_000_000_000 + 1)
        _ = unsafe poll(&watched, 1, milliseconds)
    }

    // MARK: commands

    /// Sends a command, and waits for its reply.
    func ask(_ words: [[UInt8]]) throws(RedisFacts.Failure) -> RedisReply {
        let deadline = MonotonicTime.read().advanced(by: RedisProbe.wait)
        var output: [UInt8] = []
        RedisCommand.append(words, to: &output)
        var sent = 0
        while sent < output.count {
            let result = unsafe output.withUnsafeBytes {
                unsafe transport.write(UnsafeRawBufferPointer(rebasing: $0[sent...]))
            }
            switch result {
            case .bytes(let count): sent += count
            case .wouldBlock: try awaitBytes(toRead: false, until: deadline)
            case .closed: throw .closed
            case .failed(let code): throw RedisProbe.failure(code)
            }
        }
        return try reply(until: deadline)
    }

    private func reply(until deadline: MonotonicTime) throws(RedisFacts.Failure) -> RedisReply {
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            do throws(RedisProtocolError) {
                if let reply = try reader.next() { return reply }
            } catch { throw .nonsense("\(error)") }
            let result = unsafe buffer.withUnsafeMutableBytes { unsafe transport.read(into: $0) }
            switch result {
            case .bytes(0), .closed: throw .closed
            case .bytes(let count):
                unsafe buffer.withUnsafeBytes { unsafe reader.feed(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
            case .wouldBlock: try awaitBytes(toRead: true, until: deadline)
            case .failed(let code): throw RedisProbe.failure(code)
            }
        }
    }

    private static func failure(_ code: CInt) -> RedisFacts.Failure {
        code == ECONNRESET || code == EPIPE ? .closed : .connection(systemErrorText(code))
    }

    /// TLS may have to read in order to write, and the reverse.
    private func awaitBytes(toRead: Bool, until deadline: MonotonicTime) throws(RedisFacts.Failure) {
        let reads = transport.awaits(.read, toRead: toRead, toWrite: !toRead)
        let writes = transport.awaits(.write, toRead: toRead, toWrite: !toRead)
        try pause(for: CShort((reads ? POLLIN : 0) | (writes ? POLLOUT : 0)), until: deadline)
    }
}
