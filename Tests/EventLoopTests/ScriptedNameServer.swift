import CAres
import CLarder
import EventLoop
import Glibc
import Testing

/// A name server on loopback that answers as the test says, over UDP and TCP, driven by the test's own loop.
final class ScriptedNameServer {
    enum Answer {
        /// For A questions four bytes, for AAAA sixteen; any other length is an empty answer.
        case addresses([[UInt8]], ttl: UInt32)
        /// A CNAME with its own lifetime, then addresses of the target.
        case alias(ttl: UInt32, [[UInt8]], addressTTL: UInt32)
        case noSuchName
        case serverFailure
        case refusal
        case silence
        /// Over UDP "ask over TCP"; over TCP the addresses.
        case truncated([[UInt8]], ttl: UInt32)
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
        options.familyWait = .seconds(600)
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
            guard count > 0, let reply = reply(to: Array(packet.prefix(count)), overTCP: false) else { return }
            _ = unsafe sendto(udp, reply, reply.count, 0, address, length)
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
            if let reply = reply(to: Array(rest[2..<2 + length]), overTCP: true) {
                sendAll(fd, be16(UInt16(reply.count)) + reply)
            }
            rest.removeFirst(2 + length)
        }
    }

    // MARK: Messages (RFC 1035 §4)

    private func reply(to question: [UInt8], overTCP: Bool) -> [UInt8]? {
        var labels: [String] = []
        var end = 12
        while end < question.count, question[end] != 0 {
            let length = Int(question[end])
            labels.append(String(decoding: question[end + 1..<end + 1 + length], as: UTF8.self))
            end += 1 + length
        }
        let name = labels.joined(separator: ".")
        let type = UInt16(question[end + 1]) << 8 | UInt16(question[end + 2])
        let section = Array(question[12..<end + 5])
        if overTCP { tcpQuestions.append("\(name) \(type)") } else { udpQuestions.append("\(name) \(type)") }
        let size = type == 1 ? 4 : 16
        func records(_ owner: [UInt8], _ addresses: [[UInt8]], _ ttl: UInt32) -> [[UInt8]] {
            addresses.filter { $0.count == size }.map { record(owner, type, ttl, $0) }
        }
        func message(_ flags: UInt16, _ answers: [[UInt8]]) -> [UInt8] {
            Array(question[0..<2]) + be16(flags) + be16(1) + be16(UInt16(answers.count)) + be16(0) + be16(0) + section
                + answers.flatMap { $0 }
        }
        let pointer: [UInt8] = [0xc0, 12]
        switch script(name, type) {
        case .addresses(let addresses, let ttl): return message(0x8180, records(pointer, addresses, ttl))
        case .alias(let ttl, let addresses, let addressTTL):
            let target: [UInt8] = [6] + Array("target".utf8) + [4] + Array("test".utf8) + [0]
            return message(0x8180, [record(pointer, 5, ttl, target)] + records(target, addresses, addressTTL))
        case .noSuchName: return message(0x8183, [])
        case .serverFailure: return message(0x8182, [])
        case .refusal: return message(0x8185, [])
        case .silence: return nil
        case .truncated(let addresses, let ttl):
            return overTCP ? message(0x8180, records(pointer, addresses, ttl)) : message(0x8380, [])
        }
    }

    private func record(_ owner: [UInt8], _ type: UInt16, _ ttl: UInt32, _ data: [UInt8]) -> [UInt8] {
        owner + be16(type) + be16(1) + be16(UInt16(ttl >> 16)) + be16(UInt16(ttl & 0xffff)) + be16(UInt16(data.count))
            + data
    }
}

private func be16(_ number: UInt16) -> [UInt8] { [UInt8(number >> 8), UInt8(number & 0xff)] }

private func server(_ context: UnsafeMutableRawPointer?) -> ScriptedNameServer {
    unsafe Unmanaged<ScriptedNameServer>.fromOpaque(context!).takeUnretainedValue()
}
