import EventLoop
import Glibc
import ProgramUnderTest

/// A connected stream socket that blocks. One thread reads and writes it; any thread may shut it down.
final class Socket: Sendable {
    let fd: CInt
    private let isClosed = Locked(false)

    /// What a read brought.
    enum Received: Equatable {
        case bytes(Int)
        case end
        case reset
        case timedOut
    }

    init(adopting fd: CInt) {
        self.fd = fd
        var on: CInt = 1
        _ = unsafe setsockopt(fd, CInt(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<CInt>.size))
    }

    deinit { close() }

    /// Connects to a loopback port. Returns nil if nobody listens.
    /// - Parameter receiveBuffer: bytes that the kernel holds for a reader that is behind; nil leaves it to the kernel.
    static func connect(port: UInt16, receiveBuffer: CInt? = nil) -> Socket? {
        let fd = socket(AF_INET, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        guard fd >= 0 else { return nil }
        let result = Socket(adopting: fd)
        if var size = receiveBuffer {
            _ = unsafe setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<CInt>.size))
        }
        var address = loopback(port)
        let status = unsafe withUnsafeBytes(of: &address) {
            unsafe Glibc.connect(fd, $0.baseAddress!.assumingMemoryBound(to: sockaddr.self), socklen_t($0.count))
        }
        return status == 0 ? result : nil
    }

    /// Connects to a Unix socket. Returns nil if nobody listens.
    static func connect(unix path: String) -> Socket? {
        let fd = socket(AF_UNIX, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        guard fd >= 0 else { return nil }
        let result = Socket(adopting: fd)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: path.utf8.prefix(107)) }
        let status = unsafe withUnsafeBytes(of: &address) {
            unsafe Glibc.connect(fd, $0.baseAddress!.assumingMemoryBound(to: sockaddr.self), socklen_t($0.count))
        }
        return status == 0 ? result : nil
    }

    func setPatience(seconds: Int) {
        var time = timeval(tv_sec: seconds, tv_usec: 0)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            _ = unsafe setsockopt(fd, SOL_SOCKET, option, &time, socklen_t(MemoryLayout<timeval>.size))
        }
    }

    // MARK: bytes

    /// - Returns: false if the peer left first.
    @discardableResult
    func send(_ bytes: ArraySlice<UInt8>) -> Bool {
        unsafe bytes.withUnsafeBytes { all in
            var sent = 0
            while sent < all.count {
                let count = unsafe Glibc.send(fd, all.baseAddress! + sent, all.count - sent, CInt(MSG_NOSIGNAL))
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { return false }
                sent += count
            }
            return true
        }
    }

    @discardableResult
    func send(_ text: String) -> Bool { send(Array(text.utf8)[...]) }

    /// Appends what comes, `countMax` bytes at most.
    func receive(into bytes: inout [UInt8], _ countMax: Int) -> Received {
        var count = 0
        repeat {
            let piece = unsafe [UInt8](unsafeUninitializedCapacity: countMax) { room, filled in
                count = unsafe recv(fd, room.baseAddress!, countMax, 0)
                filled = max(0, count)
            }
            bytes += piece
        } while count < 0 && errno == EINTR
        if count > 0 { return .bytes(count) }
        if count == 0 { return .end }
        return errno == EAGAIN || errno == EWOULDBLOCK ? .timedOut : .reset
    }

    /// - Returns: true if bytes, or the end, can be read within the time.
    func isReadable(withinMilliseconds time: CInt) -> Bool {
        var entry = pollfd(fd: fd, events: Int16(POLLIN), revents: 0)
        return unsafe poll(&entry, 1, time) > 0
    }

    // MARK: ends

    /// Half-closes: nothing more is sent, the answer is still read.
    func finishWriting() { _ = shutdown(fd, CInt(SHUT_WR)) }

    /// Ends whatever waits on the socket, from any thread.
    func shutDown() {
        isClosed.withLock { if !$0 { _ = shutdown(fd, CInt(SHUT_RDWR)) } }
    }

    func close() {
        isClosed.withLock {
            if !$0 { _ = Glibc.close(fd) }
            $0 = true
        }
    }

    /// Closes with RST: the peer's reads fail.
    func reset() {
        isClosed.withLock {
            guard !$0 else { return }
            var linger = linger(l_onoff: 1, l_linger: 0)
            let size = socklen_t(MemoryLayout.size(ofValue: linger))
            _ = unsafe setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, size)
            _ = Glibc.close(fd)
            $0 = true
        }
    }
}

/// A loopback socket that listens on a port that the kernel chose.
final class ListeningSocket: Sendable {
    private let fd: CInt
    let port: UInt16

    init() throws {
        let fd = socket(AF_INET, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        var address = loopback(0)
        let isListening = unsafe withUnsafeBytes(of: &address) {
            unsafe bind(fd, $0.baseAddress!.assumingMemoryBound(to: sockaddr.self), socklen_t($0.count)) == 0
                && listen(fd, 512) == 0
        }
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        _ = unsafe withUnsafeMutableBytes(of: &address) {
            unsafe getsockname(fd, $0.baseAddress!.assumingMemoryBound(to: sockaddr.self), &length)
        }
        guard fd >= 0, isListening else { throw Failure(description: "no loopback port: errno \(errno)") }
        self.fd = fd
        port = UInt16(bigEndian: address.sin_port)
    }

    deinit { close(fd) }

    /// Returns nil after `shutDown`.
    func accept() -> Socket? {
        while true {
            let connection = Glibc.accept(fd, nil, nil)
            if connection >= 0 {
                _ = fcntl(connection, F_SETFD, FD_CLOEXEC)
                return Socket(adopting: connection)
            }
            guard errno == EINTR || errno == ECONNABORTED else { return nil }
        }
    }

    func shutDown() { _ = shutdown(fd, CInt(SHUT_RDWR)) }
}

private func loopback(_ port: UInt16) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return address
}
