import Foundation
import Glibc
import ProgramUnderTest

/// A name server on loopback that knows every name: each has the address 127.0.0.1, and no other. It answers over UDP, on a thread of its own.
///
/// Clients treat `localhost` and its addresses specially: many ask them without a proxy. With this, Larder finds an origin by a name that no client
/// takes for its own machine. The client need not resolve it, since it only tells the proxy.
final class LoopbackNames: Sendable {
    private let fd: CInt
    let port: UInt16

    init() throws {
        fd = socket(AF_INET, CInt(SOCK_DGRAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        guard fd >= 0, bindLoopback(fd, port: 0) else { throw Failure(description: "no UDP port: errno \(errno)") }
        port = boundPort(fd)
        Thread.detachNewThread { [fd] in LoopbackNames.serve(fd) }
    }

    /// The thread reads nothing more, and closes the socket.
    deinit { _ = shutdown(fd, CInt(SHUT_RD)) }

    private static func serve(_ fd: CInt) {
        defer { close(fd) }
        var packet = [UInt8](repeating: 0, count: 512)
        while true {
            var client = sockaddr_in()
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            let count = unsafe withUnsafeMutablePointer(to: &client) {
                unsafe $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { [capacity = packet.count] address in
                    unsafe recvfrom(fd, &packet, capacity, 0, address, &length)
                }
            }
            guard count > 0 else { return }
            guard let reply = answer(to: Array(packet.prefix(count))) else { continue }
            _ = unsafe withUnsafePointer(to: &client) {
                unsafe $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                    unsafe sendto(fd, reply, reply.count, 0, address, length)
                }
            }
        }
    }

    /// RFC 1035 §4.1: the header with one question, the question as it came, and for type A one address. Nil if the question is cut off.
    private static func answer(to question: [UInt8]) -> [UInt8]? {
        var end = 12
        while end < question.count, question[end] != 0 { end += Int(question[end]) + 1 }
        guard end + 5 <= question.count else { return nil }
        let isAddress = question[end + 1] == 0 && question[end + 2] == 1
        let header: [UInt8] = question[..<2] + [0x81, 0x80, 0, 1, 0, isAddress ? 1 : 0, 0, 0, 0, 0]
        // The name is the one at offset 12; class IN; a minute; four bytes.
        let record: [UInt8] = [0xC0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1]
        return header + question[12..<end + 5] + (isAddress ? record : [])
    }
}
