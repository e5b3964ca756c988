import Glibc
import ProgramUnderTest
import Settings
import TLS
import Testing

@testable import EventLoop
@testable import Server

/// The name of a Redis, with a name server that never answers. The resolver would wait for it beyond the time of the test.
@Suite("Fleet: slow name servers")
struct FleetNameTests {
    private final class SilentNameServer {
        private let socket: Descriptor
        let port: UInt16

        init() throws {
            socket = Descriptor(
                adopting: Glibc.socket(AF_INET, CInt(SOCK_DGRAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0))
            port = try Unanswering.bindToLoopback(socket.rawValue)
        }

        var options: Resolver.Options {
            var options = Resolver.Options()
            options.servers = ["127.0.0.1:\(port)"]
            options.hostsFile = nil
            options.timeout = .seconds(600)
            return options
        }
    }

    private func terms(_ url: String) throws -> FleetTerms {
        try FleetTerms(
            url: try #require(RedisURL(url)), password: nil, authorities: .system, node: "a", secret: [1, 2, 3])
    }

    /// Turns the loop until it is stopped, for 20 seconds at most.
    private func run(_ loop: EventLoop) {
        let limit = Timer { loop.stop() }
        loop.timers.schedule(limit, after: .seconds(20))
        loop.run()
        loop.timers.cancel(limit)
    }

    @Test func `a link to Redis fails, and tries again`() throws {
        let server = try SilentNameServer()
        let loop = try EventLoop()
        let resolver = try Resolver(loop: loop, options: server.options)
        let link = RedisLink(try terms("redis://redis.test"), loop: loop, resolver: resolver)
        var failures: [String] = []
        link.start(
            RedisLink.Events(
                opened: { _ in Issue.record("there is nothing") },
                failed: {
                    failures.append($0)
                    if failures.count == 2 { loop.stop() }
                }))
        run(loop)
        #expect(
            failures == Array(repeating: "its name cannot be resolved: no name server has answered in time", count: 2))
        #expect(resolver.openQueryCount == 1, "one question for both")
        link.stop()
    }

    @Test func `the look at a Redis or a node ends`() throws {
        let server = try SilentNameServer()
        let loop = try EventLoop()
        let resolver = try Resolver(loop: loop, options: server.options)
        // The loop would turn for ever.
        let limit = Timer { loop.stop() }
        loop.timers.schedule(limit, after: .seconds(20))
        #expect(throws: ProbeFailure.name("no name server has answered in time")) {
            try ProbeConnection.addresses(
                of: "node.test", port: 1, by: ProbeConnection.deadline, loop: loop, resolver: resolver)
        }
        loop.timers.cancel(limit)
    }
}
