import EventLoop
import Glibc
import TLS

/// What went wrong on a connection of the kit; each says enough to start looking.
struct WireError: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

/// Every wait of the kit ends after this.
let patience: CInt = 60_000  // ms

/// A connected socket, read with a deadline and written whole. Used by both ends of a scenario.
final class Wire: @unchecked Sendable {  // one thread at a time uses it
    let fd: CInt
    private let who: String
    /// Bytes go through it, once there is one.
    private(set) var session: TLSSession?

    init(adopting fd: CInt, _ who: String) {
        self.fd = fd
        self.who = who
        Sockets.setNoDelay(fd)
    }

    deinit { close(fd) }

    /// - Parameter source: the address of ours that the other side sees; any of 127.0.0.0/8.
    static func connect(port: UInt16, receiveBuffer: CInt? = nil, from source: UInt32? = nil) throws -> Wire {
        let fd = socket(AF_INET, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        let wire = Wire(adopting: fd, "client")
        if var bytes = receiveBuffer { _ = unsafe setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, 4) }
        if let source {
            let status = unsafe SocketAddress(v4: source, port: 0).withSockaddr {
                unsafe Glibc.bind(fd, $0.assumingMemoryBound(to: sockaddr.self), $1)
            }
            guard status == 0 else { throw WireError("bind: \(systemErrorText(errno))") }
        }
        let status = unsafe SocketAddress(v4: 0x7F00_0001, port: port).withSockaddr {
            unsafe Glibc.connect(fd, $0.assumingMemoryBound(to: sockaddr.self), $1)
        }
        guard status == 0 else { throw WireError("connect to port \(port): \(systemErrorText(errno))") }
        return wire
    }

    private func wait(for events: Int32) throws {
        var entry = pollfd(fd: fd, events: Int16(events), revents: 0)
        var count: CInt
        repeat { count = unsafe poll(&entry, 1, patience) } while count < 0 && errno == EINTR
        guard count > 0 else { throw WireError("\(who): nothing happened within \(patience) ms") }
    }

    /// Keeps what is written until it is told otherwise, so that it leaves in one segment (TCP_CORK of tcp(7): for 200 ms at most).
    func holdSegments(_ holds: Bool) throws {
        var value: CInt = holds ? 1 : 0
        guard unsafe setsockopt(fd, CInt(IPPROTO_TCP), TCP_CORK, &value, 4) == 0 else {
            throw WireError("\(who): TCP_CORK: \(systemErrorText(errno))")
        }
    }

    /// Speaks TLS from now on, as a client: inside of TLS if it does so already.
    func secure(_ context: TLSClientContext, name: String) throws {
        try shakeHands(
            session.map { try TLSSession(context, inside: $0, serverName: name) }
                ?? TLSSession(context, fd: fd, serverName: name))
    }

    /// Speaks TLS from now on, as a server.
    func secure(_ context: TLSServerContext) throws { try shakeHands(TLSSession(context, fd: fd)) }

    private func shakeHands(_ session: TLSSession) throws {
        guard clearBlocking(fd) else { throw WireError("\(who): fcntl: \(systemErrorText(errno))") }
        self.session = session
        while true {
            switch session.handshake() {
            case .done: return
            case .wantRead: try wait(for: POLLIN)
            case .wantWrite: try wait(for: POLLOUT)
            case .failed(let failure): throw TLSProblem(failure: failure)
            }
        }
    }

    struct TLSProblem: Error, Equatable { let failure: TLSFailure }

    /// What is there, decrypted; empty at `close_notify`.
    private func read(_ session: TLSSession, max: Int) throws -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: max)
        while true {
            switch unsafe buffer.withUnsafeMutableBytes({ unsafe session.read(into: $0) }) {
            case .bytes(let count): return Array(buffer[..<count])
            case .wantRead: try wait(for: POLLIN)
            case .wantWrite: try wait(for: POLLOUT)
            case .closed: return []
            case .failed(let failure): throw TLSProblem(failure: failure)
            }
        }
    }

    private func write(_ bytes: [UInt8], _ session: TLSSession) throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            switch unsafe rest.withUnsafeBytes({ unsafe session.write($0) }) {
            case .bytes(let count): rest = rest.dropFirst(count)
            case .wantRead: try wait(for: POLLIN)
            case .wantWrite: try wait(for: POLLOUT)
            case .closed: throw WireError("\(who): TLS is closed")
            case .failed(let failure): throw TLSProblem(failure: failure)
            }
        }
    }

    func write(_ bytes: [UInt8]) throws {
        if let session { return try write(bytes, session) }
        var sent = 0
        while sent < bytes.count {
            try wait(for: POLLOUT)
            let count = unsafe bytes.withUnsafeBytes {
                unsafe send(
                    fd, $0.baseAddress! + sent, $0.count - sent, CInt(MSG_NOSIGNAL | MSG_DONTWAIT))
            }
            if count < 0 {
                if errno == EAGAIN || errno == EINTR { continue }
                throw WireError("\(who): write: \(systemErrorText(errno))")
            }
            sent += count
        }
    }

    /// What is there, at most `max` bytes; empty at the end of the stream.
    func read(max: Int = 65536) throws -> [UInt8] {
        if let session { return try read(session, max: max) }
        try wait(for: POLLIN)
        let bytes = unsafe [UInt8](unsafeUninitializedCapacity: max) { buffer, count in
            let got = unsafe recv(fd, buffer.baseAddress!, max, 0)
            count = Swift.max(got, 0)
            if got < 0 { errno = errno == 0 ? EIO : errno } else { errno = 0 }
        }
        if bytes.isEmpty && errno != 0 { throw WireError("\(who): read: \(systemErrorText(errno))") }
        return bytes
    }

    /// No more will be written; reading goes on.
    func finishWriting() { _ = shutdown(fd, CInt(SHUT_WR)) }

    /// No more will be written, and the other side is to know that it has all: with `close_notify`, if there is TLS.
    func finishInOrder() throws {
        if let session, session.shutdown() != .done { throw WireError("\(who): close_notify did not leave") }
        finishWriting()
    }

    /// Leaves at once, with a RST: nothing that comes will be read.
    func reset() {
        var nobody = sockaddr()
        nobody.sa_family = sa_family_t(AF_UNSPEC)
        _ = unsafe Glibc.connect(fd, &nobody, socklen_t(MemoryLayout<sockaddr>.size))
    }

    /// Wakes the threads that read or write here.
    func hangUp() { _ = shutdown(fd, CInt(SHUT_RDWR)) }
}

private func clearBlocking(_ fd: CInt) -> Bool {
    let flags = fcntl(fd, F_GETFL)
    return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0
}
