import FuzzSupport
import Glibc

@testable import EventLoop

/// The input is what a name server answers, behind the number of the query: flags, counts and, where the second byte is even, the question as it was
/// asked. A plain "no such name" follows, which ends the query if the input does not.
///
/// Each look-up ends once; what it finds has addresses and a lifetime within the bounds.
private final class NameServer: Sendable {
    let port: UInt16
    let answer = Locked<[UInt8]>([])
    private let socket: CInt

    init() {
        let socket = Glibc.socket(AF_INET, CInt(SOCK_DGRAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = unsafe withUnsafeMutablePointer(to: &address) { address in
            unsafe address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe bind(socket, $0, length) == 0 && getsockname(socket, $0, &length) == 0
            }
        }
        precondition(isBound, "a socket on loopback")
        self.socket = socket
        port = UInt16(bigEndian: address.sin_port)
    }

    func serve() {
        var query = [UInt8](repeating: 0, count: 512)
        while true {
            var client = sockaddr_in()
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            let count = unsafe withUnsafeMutablePointer(to: &client) { client in
                unsafe client.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    unsafe recvfrom(socket, &query, query.count, 0, $0, &length)
                }
            }
            guard count > 12 else { continue }
            let question = Array(query[12..<count])
            let text = answer.withLock { $0 }
            let asAsked = text.count < 2 || text[1] % 2 == 0
            let head = text.prefix(10) + [UInt8](repeating: 0, count: max(0, 10 - text.count))
            let replies = [
                query[..<2] + head + (asAsked ? question : []) + text.dropFirst(10),
                query[..<2] + [0x81, 0x83, 0, 1, 0, 0, 0, 0, 0, 0] + question,
            ]
            for reply in replies {
                _ = unsafe withUnsafePointer(to: &client) { client in
                    unsafe client.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                        unsafe sendto(socket, Array(reply), reply.count, 0, $0, length)
                    }
                }
            }
        }
    }
}

private final class Bench {
    let server: NameServer
    let loop: EventLoop
    let resolver: Resolver
    var number = 0
    /// It runs as long as the process.
    private let thread: ThreadHandle

    init() {
        let server = NameServer()
        self.server = server
        do {
            thread = try startThread(name: "name-server") { server.serve() }
            loop = try EventLoop()
            var options = Resolver.Options()
            options.servers = ["127.0.0.1:\(server.port)"]
            options.hostsFile = nil
            options.timeout = .milliseconds(200)
            options.tries = 1
            options.stale = .zero
            options.entriesMax = 16
            resolver = try Resolver(loop: loop, options: options)
        } catch { fatalError("\(error)") }
    }
}

nonisolated(unsafe) private var theBench: Bench?

@_cdecl("FuzzDNSAnswer_main")
public func entry(_ count: CInt, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> CInt {
    unsafe fuzz(count, arguments) { start, count in
        let text = unsafe input(start, count)
        let bench = unsafe theBench ?? Bench()
        unsafe theBench = bench
        bench.number += 1
        bench.server.answer.withLock { $0 = text }
        var outcomes: [Resolver.Outcome] = []
        bench.resolver.resolve("n\(bench.number).test", by: .never) { outcome in
            outcomes.append(outcome)
            bench.loop.stop()
        }
        bench.loop.run()
        precondition(outcomes.count == 1, "a look-up ends once")
        guard case .success(let found) = outcomes[0] else { return 0 }
        precondition(
            !found.addresses.isEmpty && found.addresses.allSatisfy { $0.port == 0 }, "found without an address")
        let lifetime = found.expires.duration(since: bench.loop.now)
        precondition(lifetime > .zero && lifetime <= .seconds(3600), "a lifetime of \(lifetime)")
        return 0
    }
}
