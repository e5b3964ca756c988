// Which of these modules a C type belongs to depends on which is loaded first: all are named.
import CAres
import CLarder
import CLibevent
import Glibc

/// The world's fault: the system call that failed and what the kernel said.
package enum SocketError: Error, Equatable, CustomStringConvertible {
    package enum Call: String, Sendable { case socket, bind, listen, connect, chmod, option, name }

    case failed(Call, errno: CInt)
    case addressInUse
    case pathTooLong
    case emptyPath

    package var description: String {
        switch self {
        case .failed(let call, let code): "\(call.rawValue): \(systemErrorText(code))"
        case .addressInUse: "the address is in use"
        case .pathTooLong: "the path of a Unix socket has at most \(SocketAddress.unixPathBytesMax) bytes"
        case .emptyPath: "the path of a Unix socket is empty or holds a NUL"
        }
    }
}

/// The C library's words for an `errno`.
package func systemErrorText(_ code: CInt) -> String {
    unsafe String(cString: strerror(code))
}

/// What came of one `accept`.
package enum AcceptResult: ~Copyable {
    case accepted(Descriptor, SocketAddress)
    case wouldBlock
    /// The process or the machine has none left: stop accepting until some are closed.
    case outOfDescriptors
    /// This client is gone already; the next may be there.
    case aborted
    case failed(errno: CInt)
}

/// What came of starting a connection.
package enum ConnectStart: ~Copyable {
    case connected(Descriptor)
    /// Writable means decided: ask `pendingError`.
    case inProgress(Descriptor)
}

/// Sockets as the proxy wants them: non-blocking, closed on exec, `TCP_NODELAY` where it matters.
package enum Sockets {
    /// Makes a listening socket.
    ///
    /// The socket file of a Unix address is removed first if nobody answers on it, and `.addressInUse` thrown if
    /// somebody does.
    /// - Parameters:
    ///   - reusePort: each worker listens by itself and the kernel spreads the clients.
    ///   - backlog: connections the kernel holds until they are accepted.
    ///   - unixMode: permissions of the socket file; nil leaves them to the umask.
    package static func listen(
        _ address: SocketAddress, reusePort: Bool, backlog: Int, unixMode: UInt32? = nil
    ) throws(SocketError) -> Descriptor {
        let socket = try open(address)
        if address.family == .unix {
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

    /// Takes one waiting client.
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
            // accept(2): errors already pending on the new socket are to be treated like a client that left.
            case ECONNABORTED, ENETDOWN, EPROTO, ENOPROTOOPT, EHOSTDOWN, ENONET, EHOSTUNREACH, EOPNOTSUPP, ENETUNREACH:
                return .aborted
            default: return .failed(errno: errno)
            }
        }
    }

    /// Starts connecting. On loopback and Unix sockets that is often all.
    package static func connect(_ address: SocketAddress) throws(SocketError) -> ConnectStart {
        let socket = try open(address)
        var isAskingAgain = false
        while true {
            let status = unsafe address.withSockaddr { address, length in
                unsafe Glibc.connect(socket.rawValue, address.assumingMemoryBound(to: sockaddr.self), length)
            }
            if status == 0 {
                return .connected(socket)
            }
            if errno == EINTR { continue }
            // A loopback peer answers inside the first call, and asking again costs less than going through epoll.
            if errno == EINPROGRESS && address.isLoopback && !isAskingAgain {
                isAskingAgain = true
                continue
            }
            if errno == EALREADY { return .inProgress(socket) }
            // A Unix socket whose backlog is full says EAGAIN and would never become writable: that is a failure.
            if errno == EINPROGRESS { return .inProgress(socket) }
            throw .failed(.connect, errno: errno)
        }
    }

    /// Sends small writes at once (no Nagle). Not an error on a Unix socket.
    package static func setNoDelay(_ fd: CInt) { setIgnoring(fd, CInt(IPPROTO_TCP), TCP_NODELAY, 1) }

    /// The next close is a reset: what was sent and has not arrived may be lost, and the other side knows that it was cut off.
    package static func resetOnClose(_ fd: CInt) {
        var option = linger(l_onoff: 1, l_linger: 0)
        _ = unsafe setsockopt(fd, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    }

    /// The connection is over in both directions: reset, or both ends have closed. Tells a peer that is gone from one that has only
    /// sent its last byte.
    package static func isHungUp(_ fd: CInt) -> Bool {
        var entry = pollfd(fd: fd, events: 0, revents: 0)
        guard unsafe poll(&entry, 1, 0) > 0 else { return false }
        return entry.revents & Int16(POLLHUP | POLLERR) != 0
    }

    /// The error a socket was left with, zero for none: how a connection attempt ended.
    package static func pendingError(_ fd: CInt) -> CInt {
        var code: CInt = 0
        var length = socklen_t(MemoryLayout<CInt>.size)
        return unsafe getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &length) == 0 ? code : errno
    }

    /// Where this end of the socket is: after `listen` on port zero, which port it got.
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

    /// Tells the peer that no more bytes come; reading goes on.
    package static func shutdownWrite(_ fd: CInt) {
        _ = shutdown(fd, CInt(SHUT_WR))  // fails only when the connection is gone, which reading will tell
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
            _ = unsafe unlink(name)  // what can not be removed makes bind fail, which says so
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
