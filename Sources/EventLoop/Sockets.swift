// Import all of these: which module a C type belongs to depends on which one is loaded first.
import CAres
import CLarder
import CLibevent
import Glibc

/// A system call that failed, and the error of the kernel.
package enum SocketError: Error, Equatable, CustomStringConvertible {
    package enum Call: String, Sendable { case socket, bind, listen, connect, chmod, option, name }

    case failed(Call, errno: CInt)
    case addressInUse
    case pathTooLong
    case emptyPath
    /// The path of a Unix socket is that of a file or a directory.
    case noSocket

    package var description: String {
        switch self {
        case .failed(let call, let code): "\(call.rawValue): \(systemErrorText(code))"
        case .addressInUse: "the address is in use"
        case .pathTooLong: "the path of a Unix socket has at most \(SocketAddress.unixPathBytesMax) bytes"
        case .emptyPath: "the path of a Unix socket is empty or holds a NUL"
        case .noSocket: "there is a file with this path that is no socket"
        }
    }
}

/// The text of the C library for an `errno`.
package func systemErrorText(_ code: CInt) -> String {
    unsafe String(cString: strerror(code))
}

/// The result of one `accept`.
package enum AcceptResult: ~Copyable {
    case accepted(Descriptor, SocketAddress)
    case wouldBlock
    /// The process or the system has no free descriptor. Stop accepting until some are closed.
    case outOfDescriptors
    /// This client is gone already. Others may be waiting.
    case aborted
    case failed(errno: CInt)
}

/// The result of starting a connection.
package enum ConnectStart: ~Copyable {
    case connected(Descriptor)
    /// The connection is being made. When the socket is writable, `pendingError` tells the result.
    case inProgress(Descriptor)
}

/// What is set on a socket before it connects.
package struct ConnectOptions: Sendable {
    /// Own addresses with port zero, at most one of each family. Empty: the kernel chooses.
    package var sources: [SocketAddress] = []
    /// The network interface. Nil: the kernel chooses.
    package var device: String?
    /// TCP Fast Open (RFC 7413). Without effect where the kernel lacks it.
    package var fastOpen = false
    /// After so much silence the kernel asks whether the peer is still there. Nil: never.
    package var keepAlive: Duration?

    package init() {}

    package init(sources: [SocketAddress], device: String?, fastOpen: Bool, keepAlive: Duration?) {
        self.sources = sources
        self.device = device
        self.fastOpen = fastOpen
        self.keepAlive = keepAlive
    }
}

/// Makes and changes sockets: non-blocking, and closed on exec.
package enum Sockets {
    /// How many connections the kernel holds for a listener of clients until they are accepted. Linux lowers it to `net.core.somaxconn`.
    package static let backlog = 4096

    /// Makes a listening socket.
    ///
    /// For a Unix address, removes an old socket file first if no process listens on it. Throws `.addressInUse` if one does.
    ///
    /// - Parameters:
    ///   - reusePort: each worker has a listening socket, and the kernel distributes the clients.
    ///   - backlog: how many connections the kernel holds until they are accepted.
    ///   - unixMode: the permissions of the socket file. Nil: those of the umask.
    package static func listen(
        _ address: SocketAddress, reusePort: Bool, backlog: Int = Sockets.backlog, unixMode: UInt32? = nil
    ) throws(SocketError) -> Descriptor {
        let socket = try open(address)
        if address.family == .unix {
            try checkPlace(address)
            try removeStalePath(address)
        } else {
            try set(socket.rawValue, SOL_SOCKET, SO_REUSEADDR, 1)
            if reusePort { try set(socket.rawValue, SOL_SOCKET, SO_REUSEPORT, 1) }
            if address.family == .v6 { try set(socket.rawValue, CInt(IPPROTO_IPV6), IPV6_V6ONLY, 1) }
        }
        guard
            unsafe address.withSockaddr({ address, length in
                unsafe bind(socket.rawValue, address.assumingMemoryBound(to: sockaddr.self), length)
            }) == 0
        else {
            throw errno == EADDRINUSE ? .addressInUse : .failed(.bind, errno: errno)
        }
        if let unixMode, let path = address.unixPath {
            guard unsafe chmod(String(decoding: path, as: UTF8.self), unixMode) == 0 else {
                throw .failed(.chmod, errno: errno)
            }
        }
        guard Glibc.listen(socket.rawValue, CInt(clamping: backlog)) == 0 else {
            throw errno == EADDRINUSE ? .addressInUse : .failed(.listen, errno: errno)
        }
        return socket
    }

    /// Throws what `listen` would throw for an address that is none of this machine, and for a path where no socket can be made. Nothing is made, and
    /// nothing listens.
    ///
    /// Not found: that another process listens there, and that this user may not listen on the port.
    package static func checkPlace(_ address: SocketAddress) throws(SocketError) {
        guard let path = address.unixPath.map({ String(decoding: $0, as: UTF8.self) }) else {
            let socket = try open(address)
            let status = unsafe address.with(port: 0).withSockaddr { address, length in
                unsafe bind(socket.rawValue, address.assumingMemoryBound(to: sockaddr.self), length)
            }
            guard status == 0 else { throw .failed(.bind, errno: errno) }
            return
        }
        var status = stat()
        if unsafe lstat(path, &status) == 0, status.st_mode & S_IFMT != S_IFSOCK { throw .noSocket }
        if let code = FileCreation.obstacle(path) { throw .failed(.bind, errno: code) }
    }

    /// Accepts one waiting client.
    package static func accept(_ fd: CInt) -> AcceptResult {
        while true {
            var raw = sockaddr_storage()
            var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
            let (client, address) = unsafe withUnsafeMutableBytes(of: &raw) { bytes in
                let pointer = unsafe bytes.baseAddress!.assumingMemoryBound(to: sockaddr.self)
                let client = unsafe clarder_accept4(fd, pointer, &length)
                return (client, client < 0 ? nil : unsafe SocketAddress(pointer, length: Int(length)))
            }
            if client >= 0 {
                let descriptor = Descriptor(adopting: client)
                guard let address else { return .aborted }
                return .accepted(descriptor, address)
            }
            switch errno {
            case EINTR: continue
            case EAGAIN: return .wouldBlock
            case EMFILE, ENFILE, ENOBUFS, ENOMEM: return .outOfDescriptors
            // accept(2): an error that is pending on the new socket means that the client has left.
            case ECONNABORTED, ENETDOWN, EPROTO, ENOPROTOOPT, EHOSTDOWN, ENONET, EHOSTUNREACH, EOPNOTSUPP, ENETUNREACH:
                return .aborted
            default: return .failed(errno: errno)
            }
        }
    }

    /// Starts connecting. On loopback and Unix sockets the connection is often complete at once.
    package static func connect(
        _ address: SocketAddress, _ options: ConnectOptions = ConnectOptions()
    ) throws(SocketError) -> ConnectStart {
        let socket = try open(address)
        try apply(options, to: socket.rawValue, for: address)
        var isAskingAgain = false
        while true {
            let status = unsafe address.withSockaddr { address, length in
                unsafe Glibc.connect(socket.rawValue, address.assumingMemoryBound(to: sockaddr.self), length)
            }
            if status == 0 {
                return .connected(socket)
            }
            if errno == EINTR { continue }
            // A loopback peer answers within the first call, and asking again costs less than waiting with epoll.
            if errno == EINPROGRESS && address.isLoopback && !isAskingAgain {
                isAskingAgain = true
                continue
            }
            if errno == EALREADY { return .inProgress(socket) }
            // A Unix socket whose backlog is full returns EAGAIN and never becomes writable, so this is a failure.
            if errno == EINPROGRESS { return .inProgress(socket) }
            throw .failed(.connect, errno: errno)
        }
    }

    private static func apply(
        _ options: ConnectOptions, to fd: CInt, for address: SocketAddress
    ) throws(SocketError) {
        guard address.family != .unix else { return }
        if let device = options.device {
            let name = Array(device.utf8)
            let status = unsafe name.withUnsafeBytes {
                unsafe setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, $0.baseAddress, socklen_t($0.count))
            }
            guard status == 0 else { throw .failed(.option, errno: errno) }
        }
        if let source = options.sources.first(where: { $0.family == address.family }) {
            // The port is chosen when the socket connects, so that one port can lead to several peers.
            setIgnoring(fd, CInt(IPPROTO_IP), IP_BIND_ADDRESS_NO_PORT, 1)
            let status = unsafe source.withSockaddr { address, length in
                unsafe bind(fd, address.assumingMemoryBound(to: sockaddr.self), length)
            }
            guard status == 0 else { throw .failed(.bind, errno: errno) }
        }
        if options.fastOpen { setIgnoring(fd, CInt(IPPROTO_TCP), TCP_FASTOPEN_CONNECT, 1) }
        if let silence = options.keepAlive {
            setIgnoring(fd, SOL_SOCKET, SO_KEEPALIVE, 1)
            setIgnoring(fd, CInt(IPPROTO_TCP), TCP_KEEPIDLE, CInt(clamping: max(1, silence.components.seconds)))
            setIgnoring(fd, CInt(IPPROTO_TCP), TCP_KEEPINTVL, 15)
            setIgnoring(fd, CInt(IPPROTO_TCP), TCP_KEEPCNT, 4)
        }
    }

    /// Sends small writes at once (no Nagle). Does nothing on a Unix socket.
    package static func setNoDelay(_ fd: CInt) { setIgnoring(fd, CInt(IPPROTO_TCP), TCP_NODELAY, 1) }

    /// Lets the system hold back a connection until its client has sent something (`TCP_DEFER_ACCEPT`, tcp(7)), for some 15 seconds at most.
    package static func deferAccept(_ fd: CInt) { setIgnoring(fd, CInt(IPPROTO_TCP), TCP_DEFER_ACCEPT, 10) }

    /// Makes closing send a reset: bytes that have not arrived may be lost, and the peer can tell that the connection was cut off.
    package static func resetOnClose(_ fd: CInt) {
        var option = linger(l_onoff: 1, l_linger: 0)
        _ = unsafe setsockopt(fd, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    }

    /// Whether the connection has ended in both directions: it was reset, or both sides have closed. Tells a peer that is gone from one
    /// that has only sent its last byte.
    package static func isHungUp(_ fd: CInt) -> Bool {
        var entry = pollfd(fd: fd, events: 0, revents: 0)
        guard unsafe poll(&entry, 1, 0) > 0 else { return false }
        return entry.revents & Int16(POLLHUP | POLLERR) != 0
    }

    /// The bytes of a TCP connection that its peer has acknowledged, since it was opened, and those that it has not. Nil for any other socket.
    package static func delivered(_ fd: CInt) -> (acknowledged: UInt64, waiting: UInt64)? {
        var (acknowledged, waiting) = (UInt64(0), UInt64(0))
        return unsafe clarder_delivered(fd, &acknowledged, &waiting) == 0 ? (acknowledged, waiting) : nil
    }

    /// The pending error of a socket, zero for none: the result of a connection attempt.
    package static func pendingError(_ fd: CInt) -> CInt {
        var code: CInt = 0
        var length = socklen_t(MemoryLayout<CInt>.size)
        return unsafe getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &length) == 0 ? code : errno
    }

    /// The local address of a socket: after `listen` on port zero, with the port that the system chose.
    package static func localAddress(_ fd: CInt) throws(SocketError) -> SocketAddress {
        var raw = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let (status, address) = unsafe withUnsafeMutableBytes(of: &raw) { bytes in
            let pointer = unsafe bytes.baseAddress!.assumingMemoryBound(to: sockaddr.self)
            let status = unsafe getsockname(fd, pointer, &length)
            return (status, status < 0 ? nil : unsafe SocketAddress(pointer, length: Int(length)))
        }
        guard status == 0, let address else { throw .failed(.name, errno: errno) }
        return address
    }

    /// Whether the address is one of this machine: what is sent there comes from there. Nothing is sent to find out. The port does not matter.
    package static func isOfThisMachine(_ address: SocketAddress) -> Bool {
        source(for: address)?.numericHost == address.numericHost
    }

    /// The address from which this machine would reach another one, with port 0. Nil: there is no route. Nothing is sent to find out.
    static func source(for address: SocketAddress) -> SocketAddress? {
        let fd = socket(
            address.family == .v4 ? AF_INET : AF_INET6, CInt(SOCK_DGRAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        guard fd >= 0 else { return nil }
        let probe = Descriptor(adopting: fd)
        let status = unsafe address.withSockaddr { raw, length in
            unsafe Glibc.connect(probe.rawValue, raw.assumingMemoryBound(to: sockaddr.self), length)
        }
        guard status == 0 else { return nil }
        do throws(SocketError) { return try localAddress(probe.rawValue).with(port: 0) } catch { return nil }
    }

    /// Closes the sending side. Reading goes on.
    package static func shutdownWrite(_ fd: CInt) {
        _ = shutdown(fd, CInt(SHUT_WR))  // fails only if the connection is gone, which reading will tell
    }

    // MARK: Helpers

    private static func open(_ address: SocketAddress) throws(SocketError) -> Descriptor {
        let domain =
            switch address.family {
            case .v4: AF_INET
            case .v6: AF_INET6
            case .unix: AF_UNIX
            }
        let fd = clarder_socket(domain, CInt(SOCK_STREAM.rawValue))
        guard fd >= 0 else { throw .failed(.socket, errno: errno) }
        return Descriptor(adopting: fd)
    }

    private static func removeStalePath(_ address: SocketAddress) throws(SocketError) {
        guard let path = address.unixPath else { return }
        let name = String(decoding: path, as: UTF8.self)
        var status = stat()
        guard unsafe lstat(name, &status) == 0, status.st_mode & S_IFMT == S_IFSOCK else { return }
        do {
            _ = try connect(address)
        } catch {
            guard error == .failed(.connect, errno: ECONNREFUSED) else { throw .addressInUse }
            _ = unsafe unlink(name)  // if this fails, bind fails and reports it
            return
        }
        throw .addressInUse
    }

    private static func set(_ fd: CInt, _ level: CInt, _ name: CInt, _ value: CInt) throws(SocketError) {
        var value = value
        guard unsafe setsockopt(fd, level, name, &value, socklen_t(MemoryLayout<CInt>.size)) == 0 else {
            throw .failed(.option, errno: errno)
        }
    }

    private static func setIgnoring(_ fd: CInt, _ level: CInt, _ name: CInt, _ value: CInt) {
        var value = value
        _ = unsafe setsockopt(fd, level, name, &value, socklen_t(MemoryLayout<CInt>.size))
    }
}
