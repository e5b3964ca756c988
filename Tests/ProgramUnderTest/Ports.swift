import EventLoop
import Glibc

/// A TCP socket that listens on a loopback port of the kernel's choice.
package final class LoopbackListener: Sendable {
    package let fd: CInt
    package let port: UInt16

    package init() throws {
        fd = socket(AF_INET, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        guard fd >= 0, bindLoopback(fd, port: 0), listen(fd, 128) == 0 else {
            throw Failure(description: "no loopback port: errno \(errno)")
        }
        port = boundPort(fd)
    }

    deinit { close(fd) }
}

package func bindLoopback(_ fd: CInt, port: UInt16) -> Bool {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return unsafe withUnsafeBytes(of: &address) {
        unsafe bind(fd, $0.baseAddress!.assumingMemoryBound(to: sockaddr.self), socklen_t($0.count)) == 0
    }
}

/// The port of a socket of IPv4.
package func boundPort(_ fd: CInt) -> UInt16 {
    var address = sockaddr_in()
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    _ = unsafe withUnsafeMutableBytes(of: &address) {
        unsafe getsockname(fd, $0.baseAddress!.assumingMemoryBound(to: sockaddr.self), &length)
    }
    return UInt16(bigEndian: address.sin_port)
}

/// Connects to a loopback port; −1 where nobody listens.
package func connectLoopback(_ port: UInt16) -> CInt {
    let fd = socket(AF_INET, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    let isConnected = unsafe withUnsafeBytes(of: &address) {
        unsafe connect(fd, $0.baseAddress!.assumingMemoryBound(to: sockaddr.self), socklen_t($0.count)) == 0
    }
    guard isConnected else {
        close(fd)
        return -1
    }
    return fd
}

/// Ports for those who can neither inherit a socket nor tell which port they took. They lie below the range that
/// the kernel gives to outgoing connections, so that nobody else is given them meanwhile.
package enum FreePort {
    private static let next = Locked(UInt16.random(in: 12_000..<30_000))

    package static func take() -> UInt16 {
        while true {
            let port = next.withLock {
                $0 = $0 >= 32_000 ? 12_000 : $0 + 1
                return $0
            }
            let fd = socket(AF_INET, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
            defer { close(fd) }
            if bindLoopback(fd, port: port) { return port }
        }
    }
}
