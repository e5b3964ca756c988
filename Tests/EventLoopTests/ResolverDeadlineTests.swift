@testable import EventLoop
import Testing

@Suite("Names: the deadline of a look-up")
struct ResolverDeadlineTests {
    private static let address = SocketAddress(v4: 0xc000_0207, port: 0)
    private static let answer = ScriptedNameServer.Answer.addresses([[192, 0, 2, 7]], ttl: 60)

    /// A server that holds its answers back, and a resolver that waits for them beyond the time of the test: nothing but a deadline ends a look-up.
    private struct Bench {
        let loop: EventLoop
        let server: ScriptedNameServer
        let resolver: Resolver

        init(
            _ script: @escaping ScriptedNameServer.Script = { _, _ in .held },
            adjust: (inout Resolver.Options) -> Void = { _ in }
        ) throws {
            loop = try EventLoop()
            server = try ScriptedNameServer(loop, script)
            var options = server.options
            (options.timeout, options.refreshWait) = (.seconds(600), .seconds(600))
            adjust(&options)
            resolver = try Resolver(loop: loop, options: options)
        }

        func outcome(within limit: Duration) throws -> Resolver.Outcome {
            var result: Resolver.Outcome?
            resolver.resolve("one.test", by: loop.now.advanced(by: limit)) { result = $0 }
            #expect(result == nil, "never from inside resolve")
            runLoop(loop) { result != nil }
            return try #require(result)
        }
    }

    @Test func `it ends the look-up, and the query goes on for the cache`() throws {
        let bench = try Bench()
        #expect(try bench.outcome(within: .milliseconds(1)) == .failure(.timedOut))
        #expect(bench.resolver.openQueryCount == 1)
        // The next look-up joins it.
        #expect(try bench.outcome(within: .milliseconds(1)) == .failure(.timedOut))
        #expect(bench.server.udpQuestions.count == 2)
        bench.server.answerHeld { _, _ in Self.answer }
        runLoop(bench.loop) { bench.resolver.openQueryCount == 0 }
        #expect(try bench.resolver.cached("one.test")?.get().addresses == [Self.address])
        #expect(bench.loop.timers.count == 0)
    }

    @Test func `one that has passed leaves no time to ask, and none to a later turn`() throws {
        let bench = try Bench()
        #expect(try bench.outcome(within: .seconds(-5)) == .failure(.timedOut))
    }

    @Test func `each look-up has its own, and an answer ends them`() throws {
        let bench = try Bench()
        var outcomes: [String: Resolver.Outcome] = [:]
        let now = bench.loop.now
        bench.resolver.resolve("one.test", by: now) { outcomes["short"] = $0 }
        bench.resolver.resolve("one.test", by: now.advanced(by: .seconds(600))) { outcomes["long"] = $0 }
        bench.resolver.resolve("one.test", by: .never) { outcomes["never"] = $0 }
        runLoop(bench.loop) { outcomes.count == 1 }
        #expect(outcomes == ["short": .failure(.timedOut)])
        bench.server.answerHeld { _, _ in Self.answer }
        runLoop(bench.loop) { outcomes.count == 3 }
        for name in ["long", "never"] { #expect(try outcomes[name]?.get().addresses == [Self.address]) }
        #expect(bench.loop.timers.count == 0)
    }

    @Test func `what is known needs none`() throws {
        let bench = try Bench(adjust: { $0.hostsFile = nil })
        var count = 0
        for host in ["localhost", "192.0.2.7"] {
            bench.resolver.resolve(host, by: MonotonicTime(nanoseconds: 0)) { if case .success = $0 { count += 1 } }
        }
        runLoop(bench.loop) { count == 2 }
        #expect(count == 2 && bench.server.udpQuestions.isEmpty)
    }

    @Test func `expired addresses come while there is time to connect to them`() throws {
        var isSilent = false
        let bench = try Bench({ _, _ in isSilent ? .held : .addresses([[192, 0, 2, 7]], ttl: 0) }) { $0.ttlMin = .zero }
        #expect(try bench.outcome(within: .seconds(600)).get().addresses == [Self.address])
        isSilent = true
        #expect(try bench.outcome(within: .milliseconds(400)).get().isStale)
    }

    @Test func `one whose time is nearly over takes nothing from the others that wait`() throws {
        var isSilent = false
        let bench = try Bench({ _, _ in isSilent ? .held : .addresses([[192, 0, 2, 7]], ttl: 0) }) { $0.ttlMin = .zero }
        #expect(try bench.outcome(within: .seconds(600)).get().addresses == [Self.address])
        isSilent = true
        var patient: Resolver.Outcome?
        bench.resolver.resolve("one.test", by: .never) { patient = $0 }
        #expect(try bench.outcome(within: .milliseconds(2)).get().isStale)
        #expect(patient == nil)
        bench.server.answerHeld { _, _ in .addresses([[192, 0, 2, 8]], ttl: 60) }
        runLoop(bench.loop) { patient != nil }
        #expect(try patient?.get().addresses == [SocketAddress(v4: 0xc000_0208, port: 0)])
    }

    @Test func `a look-up that is cancelled, or whose resolver is released, leaves no timer`() throws {
        let loop = try EventLoop()
        let server = try ScriptedNameServer(loop) { _, _ in .held }
        do {
            let resolver = try Resolver(loop: loop, options: server.options)
            let ticket = resolver.resolve("one.test", by: .never) { _ in Issue.record("cancelled") }
            ticket.cancel()
            resolver.resolve("one.test", by: .never) { _ in Issue.record("nobody is left to answer") }
        }
        #expect(loop.timers.count == 0)
    }
}
