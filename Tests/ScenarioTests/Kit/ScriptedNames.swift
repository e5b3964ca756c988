import EventLoop
import Foundation
import ProgramUnderTest

/// A name server on loopback, over UDP, on a thread of its own. It keeps what it was asked.
final class ScriptedNames: @unchecked Sendable {  // the socket is used by the thread, and shut down by whoever ends it
    enum Answer: Sendable, Equatable {
        case noSuchName
        case silence
        /// None until `answerLate` gives it.
        case late
        /// The IPv4 addresses of names, with a lifetime of zero. Of several sets, each is the answer once, and the last from then on. Other names do not
        /// exist.
        case addresses([String: [[UInt32]]])
    }

    private let fd: CInt
    let port: UInt16
    private let state: Locked<State>

    fileprivate struct State {
        var answer: Answer
        var late: [String: [[UInt32]]] = [:]
        var asked: [String] = []
        /// The questions that wait for `answerLate`.
        var held: [(question: [UInt8], client: sockaddr_in)] = []
    }

    init(_ answer: Answer) throws {
        state = Locked(State(answer: answer))
        fd = socket(AF_INET, CInt(SOCK_DGRAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        port = try Unanswering.bindToLoopback(fd)
        Thread.detachNewThread { [fd, state] in ScriptedNames.serve(fd, state) }
    }

    /// The thread reads nothing more, and closes the socket.
    deinit { _ = shutdown(fd, CInt(SHUT_RD)) }

    /// The names that were asked for, in lower case, each question of each kind of address.
    var asked: [String] { state.withLock { $0.asked } }

    /// Answers what was asked for these names, and what will be. Other names stay without an answer.
    func answerLate(_ addresses: [String: [[UInt32]]]) {
        let replies = state.withLock { state in
            state.late = addresses
            defer { state.held = [] }
            return state.held.compactMap { held in state.answer(to: held.question).map { ($0, held.client) } }
        }
        for (reply, client) in replies { ScriptedNames.send(reply, to: client, fd) }
    }

    private static func send(_ reply: [UInt8], to client: sockaddr_in, _ fd: CInt) {
        _ = unsafe withUnsafePointer(to: client) {
            unsafe $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                unsafe sendto(fd, reply, reply.count, 0, address, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }

    private static func serve(_ fd: CInt, _ state: Locked<State>) {
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
            let question = Array(packet.prefix(count))
            guard let reply = state.withLock({ $0.reply(to: question, of: client) }) else { continue }
            send(reply, to: client, fd)
        }
    }
}

extension ScriptedNames.State {
    /// RFC 1035 §4.1: the header, the question as it came, and the addresses.
    fileprivate mutating func reply(to question: [UInt8], of client: sockaddr_in) -> [UInt8]? {
        guard let (name, _) = parts(of: question) else { return nil }
        asked.append(name)
        guard let reply = answer(to: question) else {
            if answer == .late { held.append((question, client)) }
            return nil
        }
        return reply
    }

    private func parts(of question: [UInt8]) -> (name: String, end: Int)? {
        var labels: [String] = []
        var end = 12
        while end < question.count, question[end] != 0 {
            let next = end + 1 + Int(question[end])
            guard next < question.count else { return nil }
            labels.append(String(decoding: question[(end + 1)..<next], as: UTF8.self).lowercased())
            end = next
        }
        guard end + 5 <= question.count else { return nil }
        return (labels.joined(separator: "."), end)
    }

    fileprivate mutating func answer(to question: [UInt8]) -> [UInt8]? {
        guard let (name, end) = parts(of: question) else { return nil }
        var addresses: [UInt32]?
        switch answer {
        case .silence: return nil
        case .noSuchName: break
        case .late:
            guard let known = late[name]?.first else { return nil }
            addresses = question[end + 2] == 1 ? known : []
        case .addresses(var sets):
            addresses = sets[name]?.first
            // Of type A; of another type the name has none.
            if addresses != nil, question[end + 2] != 1 {
                addresses = []
            } else if let known = sets[name], known.count > 1 {
                sets[name] = Array(known.dropFirst())
                answer = .addresses(sets)
            }
        }
        // A response, recursion is available; a name error if there is no such name.
        let header =
            question[..<2] + [0x81, addresses == nil ? 0x83 : 0x80, 0, 1, 0, UInt8(addresses?.count ?? 0), 0, 0, 0, 0]
        let records = (addresses ?? []).flatMap { address -> [UInt8] in
            [0xC0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4] + [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: address >> $0) }
        }
        return header + question[12..<end + 5] + records
    }
}
