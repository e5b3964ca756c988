import Glibc
import ProgramUnderTest

/// Why bytes did not come or go.
enum SocketError: Error, Equatable {
    /// The peer closed, or is not there.
    case gone
    case timedOut
    case failed(errno: CInt)
}

/// One blocking stream socket; closed when it goes away. Used by one thread at a time, but for `shutDown`.
@safe final class Stream: @unchecked Sendable {
    let fd: CInt
    private var buffer: [UInt8] = []
    private var bufferStart = 0
    private let scratch = UnsafeMutableRawBufferPointer.allocate(byteCount: 128 << 10, alignment: 16)

    init(adopting fd: CInt) {
        self.fd = fd
        setTimeout(seconds: 20)
    }

    deinit {
        close(fd)
        unsafe scratch.deallocate()
    }

    /// Ends all that waits on it.
    func shutDown() { _ = shutdown(fd, CInt(SHUT_RDWR)) }

    func setTimeout(seconds: Int) {
        var time = timeval(tv_sec: seconds, tv_usec: 0)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            _ = unsafe setsockopt(fd, SOL_SOCKET, option, &time, socklen_t(MemoryLayout<timeval>.size))
        }
    }

    // MARK: making one

    static func connect(port: UInt16) throws(SocketError) -> Stream {
        let fd = socket(AF_INET, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        guard fd >= 0 else { throw .failed(errno: errno) }
        let stream = Stream(adopting: fd)
        var address = loopback(port)
        let status = unsafe withUnsafeBytes(of: &address) {
            unsafe Glibc.connect(
                fd, $0.baseAddress!.assumingMemoryBound(to: sockaddr.self), socklen_t($0.count))
        }
        guard status == 0 else { throw errno == ECONNREFUSED ? .gone : .failed(errno: errno) }
        var on: CInt = 1
        _ = unsafe setsockopt(fd, CInt(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<CInt>.size))
        return stream
    }

    static func connect(unix path: String) throws(SocketError) -> Stream {
        let fd = socket(AF_UNIX, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        guard fd >= 0 else { throw .failed(errno: errno) }
        let stream = Stream(adopting: fd)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: path.utf8.prefix(107)) }
        let status = unsafe withUnsafeBytes(of: &address) {
            unsafe Glibc.connect(
                fd, $0.baseAddress!.assumingMemoryBound(to: sockaddr.self), socklen_t($0.count))
        }
        guard status == 0 else {
            throw errno == ECONNREFUSED || errno == ENOENT ? .gone : .failed(errno: errno)
        }
        return stream
    }

    // MARK: writing

    func send(_ text: String) throws(SocketError) { try send(Array(text.utf8)[...]) }

    func send(_ bytes: ArraySlice<UInt8>) throws(SocketError) {
        var rest = bytes
        while !rest.isEmpty {
            let count = unsafe rest.withUnsafeBytes {
                unsafe Glibc.send(fd, $0.baseAddress!, $0.count, CInt(MSG_NOSIGNAL))
            }
            guard count > 0 else { throw lastError() }
            rest = rest.dropFirst(count)
        }
    }

    // MARK: reading

    /// Up to and with the empty line; nil where the peer closed before its first byte.
    func readHead() throws(SocketError) -> String? {
        try readThrough([13, 10, 13, 10])
    }

    func readLine() throws(SocketError) -> String? {
        try readThrough([13, 10])
    }

    private func readThrough(_ end: [UInt8]) throws(SocketError) -> String? {
        while true {
            let found = firstPlace(of: end[...], in: buffer, from: bufferStart)
            if let found {
                let text = String(decoding: buffer[bufferStart..<found + end.count], as: UTF8.self)
                bufferStart = found + end.count
                return text
            }
            guard buffer.count - bufferStart < 65_536 else { throw .failed(errno: EMSGSIZE) }
            do { try fill() } catch {
                if error == .gone, buffer.count == bufferStart { return nil }
                throw error
            }
        }
    }

    private func fill() throws(SocketError) {
        if bufferStart > 0 {
            buffer.removeFirst(bufferStart)
            bufferStart = 0
        }
        guard try receive(into: &buffer, 16_384) > 0 else { throw .gone }
    }

    /// Appends what comes.
    private func receive(into bytes: inout [UInt8], _ count: Int) throws(SocketError) -> Int {
        let received = unsafe recv(fd, scratch.baseAddress!, min(count, scratch.count), 0)
        if received < 0 { throw lastError() }
        unsafe bytes.append(contentsOf: UnsafeRawBufferPointer(rebasing: scratch[..<received]))
        return received
    }

    /// Appends up to `count` bytes to `body`, as they come; `told` hears after each piece. Throws when the peer is gone before.
    func read(_ count: Int, into body: inout [UInt8], told: (Int) -> Void = { _ in }) throws(SocketError) {
        var rest = count
        let atHand = min(rest, buffer.count - bufferStart)
        if atHand > 0 {
            body += buffer[bufferStart..<bufferStart + atHand]
            bufferStart += atHand
            rest -= atHand
            told(body.count)
        }
        while rest > 0 {
            let received = try receive(into: &body, rest)
            guard received > 0 else { throw .gone }
            rest -= received
            told(body.count)
        }
    }

    private func lastError() -> SocketError {
        switch errno {
        case EPIPE, ECONNRESET, 0: .gone
        case EAGAIN: .timedOut
        case let code: .failed(errno: code)
        }
    }
}

private func loopback(_ port: UInt16) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return address
}

/// A loopback socket that listens on a port the kernel chose.
final class Listener: Sendable {
    let fd: CInt
    let port: UInt16

    init() throws(SocketError) {
        let fd = socket(AF_INET, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        guard fd >= 0 else { throw .failed(errno: errno) }
        self.fd = fd
        var address = loopback(0)
        let isListening = unsafe withUnsafeBytes(of: &address) {
            unsafe bind(fd, $0.baseAddress!.assumingMemoryBound(to: sockaddr.self), socklen_t($0.count)) == 0
                && listen(fd, 256) == 0
        }
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        _ = unsafe withUnsafeMutableBytes(of: &address) {
            unsafe getsockname(fd, $0.baseAddress!.assumingMemoryBound(to: sockaddr.self), &length)
        }
        port = UInt16(bigEndian: address.sin_port)
        guard isListening else {
            close(fd)
            throw .failed(errno: errno)
        }
    }

    deinit { close(fd) }

    /// nil: it was shut down.
    func accept() -> Stream? {
        let connection = Glibc.accept(fd, nil, nil)
        guard connection >= 0 else { return nil }
        _ = fcntl(connection, F_SETFD, FD_CLOEXEC)
        var on: CInt = 1
        _ = unsafe setsockopt(connection, CInt(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<CInt>.size))
        return Stream(adopting: connection)
    }

    func shutDown() { _ = shutdown(fd, CInt(SHUT_RDWR)) }
}
