import CAres
import CLarder
import EventLoop
import Glibc
import Testing

/// A name server on loopback that answers as the test says, over UDP and TCP, driven by the test's own loop.
final class ScriptedNameServer {
    indirect enum Answer: Sendable {
        /// For A questions four bytes, for AAAA sixteen; any other length is an empty answer.
        case addresses([[UInt8]], ttl: UInt32)
        /// A CNAME with its own lifetime, then addresses of the target.
        case alias(ttl: UInt32, [[UInt8]], addressTTL: UInt32)
        case noSuchName
        case serverFailure
        case refusal
        case silence
        /// None yet: `answerHeld` gives it.
        case held
        /// One message after the other.
        case several([Answer])
        /// Of a message that somebody else has asked for: it has another number.
        case otherNumber(Answer)
        /// To a question for another name.
        case otherName(Answer)
        /// One record is announced, and none follows.
        case malformed
        case records([Record])
        /// Over UDP "ask over TCP"; over TCP the addresses.
        case truncated([[UInt8]], ttl: UInt32)
    }

    /// RFC 1035 §3.2.1. Type 1 is A, 5 is CNAME, 28 is AAAA.
    struct Record: Sendable {
        var owner: String
        var type: UInt16
        var ttl: UInt32 = 60
        var data: [UInt8]

        static func alias(_ owner: String, of target: String, ttl: UInt32 = 60) -> Record {
            Record(owner: owner, type: 5, ttl: ttl, data: encoded(target))
        }

        /// An A record for four bytes, AAAA for sixteen.
        static func address(_ owner: String, _ bytes: [UInt8], ttl: UInt32 = 60) -> Record {
            Record(owner: owner, type: bytes.count == 4 ? 1 : 28, ttl: ttl, data: bytes)
        }
    }

    /// A question, as it came over UDP.
    private struct Question {
        var bytes: [UInt8]
        var client: sockaddr_in
    }

    /// Type 1 is A, 28 is AAAA (RFC 3596).
    typealias Script = (_ name: String, _ type: UInt16) -> Answer

    private let script: Script
    private let udp: Descriptor
    private let tcp: Descriptor
    private var client: Descriptor?
    private var udpEvent = IOEvent()
    private var tcpEvent = IOEvent()
    private var clientEvent = IOEvent()
    private let loop: EventLoop
    let port: UInt16
    private(set) var udpQuestions: [String] = []
    private(set) var tcpQuestions: [String] = []
    private var held: [Question] = []

    init(_ loop: EventLoop, _ script: @escaping Script) throws {
        self.script = script
        self.loop = loop
        tcp = try Sockets.listen(loopback(), reusePort: false, backlog: 8)
        let address = try Sockets.localAddress(tcp.rawValue)
        port = address.port
        udp = Descriptor(adopting: clarder_socket(AF_INET, CInt(SOCK_DGRAM.rawValue)))
        let status = unsafe address.withSockaddr { raw, length in
            unsafe bind(udp.rawValue, raw.assumingMemoryBound(to: sockaddr.self), length)
        }
        guard status == 0 else { throw TestFailure(what: "the UDP port is taken") }
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        unsafe udpEvent.assign(loop, fd: udp.rawValue, .read, { _, _, c in unsafe server(c).answerDatagram() }, context)
        unsafe tcpEvent.assign(loop, fd: tcp.rawValue, .read, { _, _, c in unsafe server(c).accept() }, context)
        udpEvent.add()
        tcpEvent.add()
    }

    var options: Resolver.Options {
        var options = Resolver.Options()
        options.servers = ["127.0.0.1:\(port)"]
        options.timeout = .milliseconds(200)
        // Tests that count questions do not depend on how busy the machine is.
        options.resolutionDelay = .seconds(600)
        options.tries = 1
        return options
    }

    private func answerDatagram() {
        var peer = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        var packet = [UInt8](repeating: 0, count: 2048)
        let udp = udp.rawValue
        unsafe withUnsafeMutablePointer(to: &peer) { peer in
            let address = unsafe UnsafeMutableRawPointer(peer).assumingMemoryBound(to: sockaddr.self)
            let count = unsafe recvfrom(udp, &packet, packet.count, 0, address, &length)
            packet.removeLast(packet.count - max(0, count))
        }
        guard !packet.isEmpty else { return }
        let question = Question(bytes: packet, client: peer)
        let (name, type) = note(packet, overTCP: false)
        let answer = script(name, type)
        if case .held = answer { held.append(question) } else { send(answer, to: question) }
    }

    /// Answers the questions that were held, the first one first.
    func answerHeld(_ script: Script) {
        let questions = held
        held = []
        for question in questions {
            let (name, type, _) = ScriptedNameServer.parts(of: question.bytes)
            send(script(name, type), to: question)
        }
    }

    private func send(_ answer: Answer, to question: Question) {
        var client = question.client
        for reply in replies(answer, to: question.bytes, overTCP: false) {
            _ = unsafe withUnsafeMutablePointer(to: &client) { client in
                let address = unsafe UnsafeMutableRawPointer(client).assumingMemoryBound(to: sockaddr.self)
                return unsafe sendto(
                    udp.rawValue, reply, reply.count, 0, address, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }

    private func accept() {
        guard case .accepted(let descriptor, _) = Sockets.accept(tcp.rawValue) else { return }
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        unsafe clientEvent.assign(
            loop, fd: descriptor.rawValue, .read, { _, _, c in unsafe server(c).answerStream() }, context)
        clientEvent.add()
        client = consume descriptor
    }

    private func answerStream() {
        var bytes = [UInt8](repeating: 0, count: 2048)
        guard let fd = client?.rawValue else { return }
        guard case .bytes(let count) = unsafe bytes.withUnsafeMutableBytes({ unsafe IO.receive(fd, into: $0) }) else {
            clientEvent.clear()
            client = nil
            return
        }
        var rest = Array(bytes.prefix(count))
        while rest.count >= 2, case let length = Int(rest[0]) << 8 | Int(rest[1]), rest.count >= 2 + length {
            let question = Array(rest[2..<2 + length])
            let (name, type) = note(question, overTCP: true)
            for reply in replies(script(name, type), to: question, overTCP: true) {
                sendAll(fd, be16(UInt16(reply.count)) + reply)
            }
            rest.removeFirst(2 + length)
        }
    }

    // MARK: Messages (RFC 1035 §4)

    private static func parts(of question: [UInt8]) -> (name: String, type: UInt16, section: [UInt8]) {
        var labels: [String] = []
        var end = 12
        while end < question.count, question[end] != 0 {
            let length = Int(question[end])
            labels.append(String(decoding: question[end + 1..<end + 1 + length], as: UTF8.self))
            end += 1 + length
        }
        let type = UInt16(question[end + 1]) << 8 | UInt16(question[end + 2])
        return (labels.joined(separator: "."), type, Array(question[12..<end + 5]))
    }

    private func note(_ question: [UInt8], overTCP: Bool) -> (name: String, type: UInt16) {
        let (name, type, _) = ScriptedNameServer.parts(of: question)
        if overTCP { tcpQuestions.append("\(name) \(type)") } else { udpQuestions.append("\(name) \(type)") }
        return (name, type)
    }

    private func replies(_ answer: Answer, to question: [UInt8], overTCP: Bool) -> [[UInt8]] {
        let (_, type, section) = ScriptedNameServer.parts(of: question)
        let size = type == 1 ? 4 : 16
        func records(_ owner: [UInt8], _ addresses: [[UInt8]], _ ttl: UInt32) -> [[UInt8]] {
            addresses.filter { $0.count == size }.map { record(owner, type, ttl, $0) }
        }
        func message(_ flags: UInt16, _ answers: [[UInt8]], count: Int? = nil) -> [UInt8] {
            Array(question[0..<2]) + be16(flags) + be16(1) + be16(UInt16(count ?? answers.count)) + be16(0) + be16(0)
                + section + answers.flatMap { $0 }
        }
        let pointer: [UInt8] = [0xc0, 12]
        switch answer {
        case .addresses(let addresses, let ttl): return [message(0x8180, records(pointer, addresses, ttl))]
        case .alias(let ttl, let addresses, let addressTTL):
            let target = encoded("target.test")
            return [message(0x8180, [record(pointer, 5, ttl, target)] + records(target, addresses, addressTTL))]
        case .records(let records):
            return [message(0x8180, records.map { record(encoded($0.owner), $0.type, $0.ttl, $0.data) })]
        case .noSuchName: return [message(0x8183, [])]
        case .serverFailure: return [message(0x8182, [])]
        case .refusal: return [message(0x8185, [])]
        case .malformed: return [message(0x8180, [], count: 1)]
        case .silence, .held: return []
        case .several(let answers): return answers.flatMap { replies($0, to: question, overTCP: overTCP) }
        case .otherNumber(let answer):
            return replies(answer, to: [question[0] ^ 0xff] + question.dropFirst(), overTCP: overTCP)
        case .otherName(let answer):
            let other = question[..<12] + encoded("other.test") + section.suffix(4)
            return replies(answer, to: Array(other), overTCP: overTCP)
        case .truncated(let addresses, let ttl):
            return [overTCP ? message(0x8180, records(pointer, addresses, ttl)) : message(0x8380, [])]
        }
    }

    private func record(_ owner: [UInt8], _ type: UInt16, _ ttl: UInt32, _ data: [UInt8]) -> [UInt8] {
        owner + be16(type) + be16(1) + be16(UInt16(ttl >> 16)) + be16(UInt16(ttl & 0xffff)) + be16(UInt16(data.count))
            + data
    }
}

/// A name as labels, without compression.
private func encoded(_ name: String) -> [UInt8] {
    name.split(separator: ".").flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) } + [0]
}

private func be16(_ number: UInt16) -> [UInt8] { [UInt8(number >> 8), UInt8(number & 0xff)] }

private func server(_ context: UnsafeMutableRawPointer?) -> ScriptedNameServer {
    unsafe Unmanaged<ScriptedNameServer>.fromOpaque(context!).takeUnretainedValue()
}
