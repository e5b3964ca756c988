// Import all of these: which module a C type belongs to depends on which one is loaded first.
import CAres
import CLarder
import CLibevent
import Glibc

/// The address of a socket: IPv4, IPv6 or a path in the file system.
package struct SocketAddress: Sendable, Hashable, CustomStringConvertible {
    package enum Family: Sendable { case v4, v6, unix }

    private enum Storage: Hashable {
        case v4(UInt32, port: UInt16)
        case v6(high: UInt64, low: UInt64, port: UInt16, scope: UInt32)
        case unix(path: [UInt8])
    }
    private let storage: Storage

    private init(_ storage: Storage) { self.storage = storage }

    /// - Parameter v4: the address as a number: 127.0.0.1 is 0x7f000001.
    package init(v4: UInt32, port: UInt16) { self.init(.v4(v4, port: port)) }

    /// - Parameters:
    ///   - high: the first eight bytes of the address as a number.
    ///   - scope: the index of the interface for a link-local address, zero for others.
    package init(v6 high: UInt64, low: UInt64, port: UInt16, scope: UInt32 = 0) {
        self.init(.v6(high: high, low: low, port: port, scope: scope))
    }

    /// Throws `.emptyPath`, or `.pathTooLong` for more than the 107 bytes that the kernel accepts.
    package init(unixPath: String) throws(SocketError) {
        let bytes = Array(unixPath.utf8)
        guard !bytes.isEmpty, !bytes.contains(0) else { throw .emptyPath }
        guard bytes.count <= SocketAddress.unixPathBytesMax else { throw .pathTooLong }
        self.init(.unix(path: bytes))
    }

    /// Parses an address in numeric form, without port, brackets or zone. Returns nil for any other text.
    init?(literal: String) {
        var v4 = in_addr()
        if unsafe inet_pton(AF_INET, literal, &v4) == 1 {
            self.init(v4: UInt32(bigEndian: v4.s_addr), port: 0)
            return
        }
        var raw = sockaddr_in6()
        guard unsafe inet_pton(AF_INET6, literal, &raw.sin6_addr) == 1 else { return nil }
        raw.sin6_family = sa_family_t(AF_INET6)
        let size = MemoryLayout<sockaddr_in6>.size
        unsafe self.init(&raw, length: size)
    }

    /// An address that the kernel or c-ares has written. Nil for another family. An unnamed Unix socket has an empty path.
    package init?(_ address: UnsafeRawPointer, length: Int) {
        guard length >= 2 else { return nil }
        switch unsafe CInt(address.loadUnaligned(as: UInt16.self)) {
        case AF_INET:
            guard length >= MemoryLayout<sockaddr_in>.size else { return nil }
            let raw = unsafe address.loadUnaligned(as: sockaddr_in.self)
            self.init(v4: UInt32(bigEndian: raw.sin_addr.s_addr), port: UInt16(bigEndian: raw.sin_port))
        case AF_INET6:
            guard length >= MemoryLayout<sockaddr_in6>.size else { return nil }
            let raw = unsafe address.loadUnaligned(as: sockaddr_in6.self)
            let bytes = unsafe address + MemoryLayout<sockaddr_in6>.offset(of: \.sin6_addr)!
            self.init(
                v6: UInt64(bigEndian: unsafe bytes.loadUnaligned(as: UInt64.self)),
                low: UInt64(bigEndian: unsafe bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self)),
                port: UInt16(bigEndian: raw.sin6_port), scope: raw.sin6_scope_id)
        case AF_UNIX:
            let bytes = unsafe UnsafeRawBufferPointer(start: address + 2, count: length - 2)
            self.init(.unix(path: unsafe Array(bytes.prefix { $0 != 0 })))
        default:
            return nil
        }
    }

    package var family: Family {
        switch storage {
        case .v4: .v4
        case .v6: .v6
        case .unix: .unix
        }
    }

    /// The port; zero for a Unix socket.
    package var port: UInt16 {
        switch storage {
        case .v4(_, let port), .v6(_, _, let port, _): port
        case .unix: 0
        }
    }

    /// The address as a number. Nil if it is not IPv4.
    package var v4: UInt32? {
        if case .v4(let address, _) = storage { address } else { nil }
    }

    /// The two halves of the address as numbers. Nil if it is not IPv6.
    package var v6: (high: UInt64, low: UInt64)? {
        if case .v6(let high, let low, _, _) = storage { (high, low) } else { nil }
    }

    /// Whether the address is in 127.0.0.0/8, or is ::1.
    package var isLoopback: Bool {
        switch storage {
        case .v4(let address, _): address >> 24 == 127
        case .v6(let high, let low, _, _): high == 0 && low == 1
        case .unix: false
        }
    }

    /// The bytes of the path. Nil if it is not a Unix socket.
    package var unixPath: [UInt8]? {
        if case .unix(let path) = storage { path } else { nil }
    }

    /// The address with another port. A Unix socket does not change.
    package func with(port: UInt16) -> SocketAddress {
        switch storage {
        case .v4(let address, _): SocketAddress(v4: address, port: port)
        case .v6(let high, let low, _, let scope): SocketAddress(v6: high, low: low, port: port, scope: scope)
        case .unix: self
        }
    }

    /// Calls `body` with the address in the kernel's form (`struct sockaddr`) and its length.
    package func withSockaddr<R>(_ body: (UnsafeRawPointer, UInt32) -> R) -> R {
        switch storage {
        case .v4(let address, let port):
            var raw = sockaddr_in()
            raw.sin_family = sa_family_t(AF_INET)
            raw.sin_port = port.bigEndian
            raw.sin_addr.s_addr = address.bigEndian
            return unsafe lend(&raw, MemoryLayout<sockaddr_in>.size, body)
        case .v6(let high, let low, let port, let scope):
            var raw = sockaddr_in6()
            raw.sin6_family = sa_family_t(AF_INET6)
            raw.sin6_port = port.bigEndian
            raw.sin6_scope_id = scope
            unsafe withUnsafeMutableBytes(of: &raw.sin6_addr) { bytes in
                unsafe bytes.storeBytes(of: high.bigEndian, as: UInt64.self)
                unsafe bytes.storeBytes(of: low.bigEndian, toByteOffset: 8, as: UInt64.self)
            }
            return unsafe lend(&raw, MemoryLayout<sockaddr_in6>.size, body)
        case .unix(let path):
            var raw = sockaddr_un()
            raw.sun_family = sa_family_t(AF_UNIX)
            unsafe withUnsafeMutableBytes(of: &raw.sun_path) { unsafe $0.copyBytes(from: path) }
            return unsafe lend(&raw, 2 + path.count + 1, body)
        }
    }

    private func lend<Raw, R>(_ raw: inout Raw, _ size: Int, _ body: (UnsafeRawPointer, UInt32) -> R) -> R {
        unsafe withUnsafeBytes(of: &raw) { bytes in
            unsafe body(bytes.baseAddress!, UInt32(size))
        }
    }

    /// `127.0.0.1:80`, `[::1]:80`, `unix:/run/x`.
    package var description: String {
        switch storage {
        case .v4(_, let port): "\(numericHost):\(port)"
        case .v6(_, _, let port, _): "[\(numericHost)]:\(port)"
        case .unix(let path): "unix:" + String(decoding: path, as: UTF8.self)
        }
    }

    /// The address without the port, in its canonical form. For a Unix socket, the path.
    package var numericHost: String {
        if case .unix(let path) = storage { return String(decoding: path, as: UTF8.self) }
        var text = [UInt8](repeating: 0, count: 64)
        let host = unsafe withSockaddr { address, length in
            unsafe text.withUnsafeMutableBytes { bytes in
                unsafe getnameinfo(
                    address.assumingMemoryBound(to: sockaddr.self), length,
                    bytes.baseAddress!.assumingMemoryBound(to: CChar.self), socklen_t(bytes.count),
                    nil, 0, NI_NUMERICHOST)
            }
        }
        return host == 0 ? String(decoding: text.prefix { $0 != 0 }, as: UTF8.self) : "?"
    }

    /// The size of `sun_path` without its terminating zero.
    static let unixPathBytesMax = 107
}
