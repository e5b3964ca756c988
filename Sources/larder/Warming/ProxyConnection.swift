import EventLoop
import Glibc

/// One connection to the proxy. Blocks, but no call waits longer than `ProxyClient.silenceSecondsMax`.
final class ProxyConnection {
    private let socket: Descriptor
    /// The proxy closed the connection in an orderly way.
    private(set) var hasClosed = false

    /// Connects to the first of the addresses that accepts.
    init(_ addresses: [SocketAddress]) throws(ProxyClient.Failure) {
        var reason = "it has no address"
        for address in addresses {
            let raw = Glibc.socket(address.domain, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
            guard raw >= 0 else { throw .cannotConnect(systemErrorText(errno)) }
            let descriptor = Descriptor(adopting: raw)
            var limit = timeval(tv_sec: ProxyClient.silenceSecondsMax, tv_usec: 0)
            for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
                _ = unsafe setsockopt(raw, SOL_SOCKET, option, &limit, socklen_t(MemoryLayout<timeval>.size))
            }
            let isConnected = unsafe address.withSockaddr {
                unsafe Glibc.connect(raw, $0.assumingMemoryBound(to: sockaddr.self), $1) == 0
            }
            guard isConnected else {
                reason = "\(address): \(systemErrorText(errno))"
                continue
            }
            if address.family != .unix { Sockets.setNoDelay(raw) }
            socket = descriptor
            return
        }
        throw .cannotConnect(reason)
    }

    /// Receives at least one byte.
    func receive(into buffer: inout [UInt8]) throws(ProxyClient.Failure) -> ArraySlice<UInt8> {
        let fd = socket.rawValue
        switch unsafe buffer.withUnsafeMutableBytes({ unsafe IO.read(fd, into: $0) }) {
        case .bytes(let count): return buffer[..<count]
        case .closed:
            hasClosed = true
            throw .broken
        case .wouldBlock: throw .timeout
        case .failed: throw .broken
        }
    }

    /// The socket, for a TLS session on it. Nil if there are no descriptors left.
    func duplicateSocket() -> Descriptor? {
        let copy = fcntl(socket.rawValue, F_DUPFD_CLOEXEC, 0)
        return copy < 0 ? nil : Descriptor(adopting: copy)
    }

    func send(_ bytes: [UInt8]) throws(ProxyClient.Failure) {
        var bytes = bytes
        if let code = writeAll(&bytes, to: socket.rawValue) { throw code == EAGAIN ? .timeout : .broken }
    }
}

extension SocketAddress {
    fileprivate var domain: CInt {
        switch family {
        case .v4: AF_INET
        case .v6: AF_INET6
        case .unix: AF_UNIX
        }
    }
}
