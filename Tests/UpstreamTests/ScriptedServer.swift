import EventLoop
import Glibc
import Synchronization

struct PeerGone: Error {}

/// One connection of a scripted server. Blocks, at most five minutes.
final class Peer {
    private let socket: Descriptor
    private var input: [UInt8] = []

    init(_ socket: consuming Descriptor) {
        let flags = fcntl(socket.rawValue, F_GETFL)
        _ = fcntl(socket.rawValue, F_SETFL, flags & ~O_NONBLOCK)
        var limit = timeval(tv_sec: 300, tv_usec: 0)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            _ = unsafe setsockopt(
                socket.rawValue, SOL_SOCKET, option, &limit, socklen_t(MemoryLayout<timeval>.size))
        }
        self.socket = socket
    }

    /// The next head, without the empty line.
    func head() throws -> String {
        while true {
            if let end = input.indices.dropLast(3).first(where: {
                input[$0..<($0 + 4)].elementsEqual([13, 10, 13, 10])
            }) {
                defer { input.removeFirst(end + 4) }
                return String(decoding: input[..<end], as: UTF8.self)
            }
            try receive()
        }
    }

    func bytes(_ count: Int) throws -> [UInt8] {
        while input.count < count { try receive() }
        defer { input.removeFirst(count) }
        return Array(input.prefix(count))
    }

    /// Reads and drops so many bytes.
    func skip(_ count: Int) throws {
        var left = count
        while left > 0 {
            if input.isEmpty { try receive() }
            let taken = min(left, input.count)
            left -= taken
            input.removeFirst(taken)
        }
    }

    /// Waits until the client closes.
    func end() { do { while true { try receive() } } catch {} }

    func send(_ text: String) throws { try send(Array(text.utf8)) }

    func send(_ bytes: [UInt8]) throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            switch unsafe rest.withUnsafeBytes({ unsafe IO.send(socket.rawValue, $0) }) {
            case .bytes(let count): rest = rest.dropFirst(count)
            case .wouldBlock, .closed, .failed: throw PeerGone()
            }
        }
    }

    private func receive() throws {
        var buffer = [UInt8](repeating: 0, count: 256 << 10)
        guard
            case .bytes(let count) = unsafe buffer.withUnsafeMutableBytes({
                unsafe IO.receive(socket.rawValue, into: $0)
            })
        else { throw PeerGone() }
        input += buffer[..<count]
    }
}

/// A server that does with each connection what its script says, on a thread of its own for each.
final class ScriptedServer: Sendable {
    let address: SocketAddress
    private let listener: CInt
    private let count = Locked(0)
    private let heads = Locked<[String]>([])
    private let hasEnded = Atomic(false)

    /// - Parameter script: gets each connection and its number, from 0. The connection closes when it returns.
    init(
        on address: SocketAddress = SocketAddress(v4: 0x7F00_0001, port: 0),
        _ script: @escaping @Sendable (Peer, Int) throws -> Void
    ) throws {
        let socket = try Sockets.listen(address, reusePort: false, backlog: 512)
        self.address = address.family == .unix ? address : try Sockets.localAddress(socket.rawValue)
        listener = socket.release()
        _ = try startThread(name: "server") { [self] in accept(script) }
    }

    /// A server that answers each request with the same bytes.
    convenience init(answering text: String, closes: Bool = false) throws {
        try self.init { peer, _ in
            repeat {
                _ = try peer.head()
                try peer.send(text)
            } while !closes
        }
    }

    deinit { end() }

    var connectionCount: Int { count.withLock { $0 } }
    func url(_ path: String = "/") -> String { "http://\(address)\(path)" }

    /// Once: the number of the listener belongs to another socket soon after.
    func end() {
        guard !hasEnded.exchange(true, ordering: .relaxed) else { return }
        _ = shutdown(listener, CInt(SHUT_RDWR))
    }

    private func accept(_ script: @escaping @Sendable (Peer, Int) throws -> Void) {
        let listener = self.listener
        var entry = pollfd(fd: listener, events: Int16(POLLIN), revents: 0)
        while unsafe poll(&entry, 1, -1) > 0 || errno == EINTR {
            guard entry.revents & Int16(POLLHUP) == 0 else { break }
            guard case .accepted(let socket, _) = Sockets.accept(listener) else { continue }
            let number = count.withLock { count in
                defer { count += 1 }
                return count
            }
            let handed = Locked<CInt>(socket.release())
            do {
                _ = try startThread(name: "peer") {
                    let peer = Peer(Descriptor(adopting: handed.withLock { $0 }))
                    // A client that leaves ends its script.
                    do { try script(peer, number) } catch {}
                }
            } catch { preconditionFailure("a thread can be started") }
        }
        close(listener)
    }
}

/// Waits until something holds that another thread brings about. Fails when it has looked 60,000 times, which takes five minutes at least.
///
/// Looks are counted, not time: tests that block threads of the pool can keep this one, and what it waits for, from running for minutes.
func eventually(_ condition: () -> Bool) async throws {
    for _ in 0..<60_000 {
        if condition() { return }
        try await Task.sleep(for: .milliseconds(5))
    }
    throw PeerGone()
}
