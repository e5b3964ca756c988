import EventLoop
import Foundation
import ProgramUnderTest

/// A name server on loopback that gives one answer to all questions, over UDP, on a thread of its own.
final class ScriptedNames: @unchecked Sendable {  // the socket is used by the thread, and shut down by whoever ends it
    enum Answer: Sendable {
        case noSuchName
        case silence
    }

    private let answer: Answer
    private let fd: CInt
    let port: UInt16

    init(_ answer: Answer) throws {
        self.answer = answer
        fd = socket(AF_INET, CInt(SOCK_DGRAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        port = try Unanswering.bindToLoopback(fd)
        Thread.detachNewThread { [fd, answer] in ScriptedNames.serve(fd, answer) }
    }

    /// The thread reads nothing more, and closes the socket.
    deinit { _ = shutdown(fd, CInt(SHUT_RD)) }

    private static func serve(_ fd: CInt, _ answer: Answer) {
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
            guard count >= 12 else { return }
            if answer == .silence { continue }
            // RFC 1035 §4.1.1: a response, recursion is available, name error. The question stands behind the header as it came.
            packet[2] |= 0x80
            packet[3] = 0x83
            _ = unsafe withUnsafePointer(to: &client) {
                unsafe $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                    unsafe sendto(fd, packet, count, 0, address, length)
                }
            }
        }
    }
}
