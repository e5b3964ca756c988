@testable import EventLoop
import Testing

/// A judge that permits what the test says, and keeps what it is told.
private final class ScriptedJudge: NameServerJudge {
    private let state = Locked((permit: NameServerPermit.ask, notes: [String](), servers: Set<String>()))

    var permit: NameServerPermit {
        get { state.withLock { $0.permit } }
        set { state.withLock { $0.permit = newValue } }
    }

    /// What was told since the last call.
    func takeNotes() -> [String] {
        state.withLock { state in
            defer { state.notes = [] }
            return state.notes
        }
    }

    var servers: Set<String> { state.withLock { $0.servers } }

    func permit(_ host: String, of servers: String, at now: MonotonicTime) -> NameServerPermit { permit }

    func note(_ outcome: NameServerOutcome, of host: String, by servers: String, at now: MonotonicTime) {
        state.withLock {
            $0.notes.append("\(outcome) \(host)")
            $0.servers.insert(servers)
        }
    }
}

@Suite("Names: what a judge of name servers hears, and what it decides")
struct ResolverJudgeTests {
    private static let address = SocketAddress(v4: 0xc000_0207, port: 0)
    private static let answer = ScriptedNameServer.Answer.addresses([[192, 0, 2, 7]], ttl: 60)

    private struct Bench {
        let loop: EventLoop
        let server: ScriptedNameServer
        let resolver: Resolver
        let judge = ScriptedJudge()

        init(
            _ script: @escaping ScriptedNameServer.Script, adjust: (inout Resolver.Options) -> Void = { _ in }
        ) throws {
            loop = try EventLoop()
            server = try ScriptedNameServer(loop, script)
            var options = server.options
            (options.timeout, options.refreshWait, options.ttlMin) = (.seconds(600), .seconds(600), .zero)
            options.negativeTTL = .zero
            options.silence = .milliseconds(50)
            options.judge = judge
            adjust(&options)
            resolver = try Resolver(loop: loop, options: options)
        }

        func outcome(_ name: String = "one.test", within limit: Duration = .seconds(600)) throws -> Resolver.Outcome {
            var result: Resolver.Outcome?
            resolver.resolve(name, by: loop.now.advanced(by: limit)) { result = $0 }
            #expect(result == nil, "never from inside resolve")
            runLoop(loop) { result != nil }
            return try #require(result)
        }
    }

    @Test(arguments: [answer, .noSuchName])
    func `an answer is one, whatever it says`(_ answer: ScriptedNameServer.Answer) throws {
        let bench = try Bench { _, _ in answer }
        _ = try bench.outcome()
        #expect(bench.judge.takeNotes() == ["partialAnswer one.test", "answer one.test"])
        #expect(bench.judge.servers == ["127.0.0.1:\(bench.server.port)"])
    }

    @Test func `a failure that comes at once costs no time`() throws {
        let bench = try Bench({ _, _ in .serverFailure }) { $0.silence = .seconds(600) }
        _ = try bench.outcome()
        #expect(bench.judge.takeNotes() == ["quickFailure one.test"])
    }

    @Test func `servers are silent when all rounds have passed without an answer`() throws {
        let bench = try Bench({ _, _ in .silence }) { $0.timeout = .milliseconds(100) }
        #expect(try bench.outcome() == .failure(.timedOut))
        #expect(bench.judge.takeNotes() == ["silence one.test"])
    }

    @Test func `and when somebody has waited in vain`() throws {
        let bench = try Bench { _, _ in .held }
        #expect(try bench.outcome(within: .milliseconds(60)) == .failure(.timedOut))
        #expect(bench.judge.takeNotes() == ["silence one.test"])
        bench.server.answerHeld { _, _ in Self.answer }
        runLoop(bench.loop) { bench.resolver.openQueryCount == 0 }
        #expect(bench.judge.takeNotes() == ["partialAnswer one.test", "answer one.test"])
    }

    @Test func `not when nobody has waited for long`() throws {
        let bench = try Bench({ _, _ in .held }) { $0.silence = .seconds(600) }
        #expect(try bench.outcome(within: .milliseconds(1)) == .failure(.timedOut))
        #expect(bench.judge.takeNotes().isEmpty)
    }

    @Test func `and when expired addresses take the place of an answer`() throws {
        var isSilent = false
        let bench = try Bench({ _, _ in isSilent ? .held : .addresses([[192, 0, 2, 7]], ttl: 0) }) {
            $0.refreshWait = .milliseconds(60)
        }
        _ = try bench.outcome()
        _ = bench.judge.takeNotes()
        isSilent = true
        #expect(try bench.outcome().get().isStale)
        #expect(bench.judge.takeNotes() == ["silence one.test"])
    }

    @Test func `silence about one family is not silence about the name where the other one has addresses`() throws {
        let bench = try Bench({ _, type in type == 1 ? Self.answer : .silence }) {
            $0.timeout = .milliseconds(100)
            $0.resolutionDelay = .zero
        }
        _ = try bench.outcome().get()
        runLoop(bench.loop) { bench.resolver.openQueryCount == 0 }
        #expect(bench.judge.takeNotes() == ["partialAnswer one.test", "answer one.test"])
    }

    @Test func `but it is where the other one has none`() throws {
        let bench = try Bench({ _, type in type == 1 ? .noSuchName : .silence }) { $0.timeout = .milliseconds(100) }
        #expect(try bench.outcome() == .failure(.timedOut))
        #expect(bench.judge.takeNotes() == ["partialAnswer one.test", "silence one.test"])
    }

    @Test func `a refusal asks nobody`() throws {
        let bench = try Bench { _, _ in Self.answer }
        bench.judge.permit = .refusal
        #expect(try bench.outcome() == .failure(.unasked))
        #expect(bench.server.udpQuestions.isEmpty && bench.judge.takeNotes().isEmpty)
        #expect(bench.resolver.stats.unasked == 1 && bench.resolver.stats.queries == 0)
    }

    @Test func `nor does it join a query that is under way`() throws {
        let bench = try Bench { _, _ in .held }
        bench.resolver.resolve("one.test", by: .never) { _ in }
        bench.judge.permit = .refusal
        #expect(try bench.outcome() == .failure(.unasked))
    }

    @Test func `expired addresses come at once then`() throws {
        let bench = try Bench { _, _ in .addresses([[192, 0, 2, 7]], ttl: 0) }
        _ = try bench.outcome()
        bench.judge.permit = .refusal
        let stale = try bench.outcome().get()
        #expect(stale.isStale && stale.addresses == [Self.address] && bench.resolver.stats.queries == 1)
    }

    @Test func `what needs no server needs no judge`() throws {
        let bench = try Bench { _, _ in Self.answer }
        _ = try bench.outcome()
        bench.judge.permit = .refusal
        for name in ["one.test", "192.0.2.7", "localhost"] { _ = try bench.outcome(name).get() }
    }

    @Test func `an attempt waits for a moment, and asks anew what has been asked`() throws {
        let bench = try Bench { _, _ in .held }
        var first: Resolver.Outcome?
        bench.resolver.resolve("one.test", by: .never) { first = $0 }
        #expect(try bench.outcome(within: .milliseconds(60)) == .failure(.timedOut))
        _ = bench.judge.takeNotes()
        bench.judge.permit = .attempt
        #expect(try bench.outcome() == .failure(.timedOut), "long before its deadline")
        #expect(bench.server.udpQuestions.count == 4 && first == nil)
        #expect(bench.judge.takeNotes() == ["silence one.test"])
        bench.server.answerHeld { _, _ in Self.answer }
        // Who has waited for the first query gets the answer as well.
        runLoop(bench.loop) { first != nil && bench.resolver.openQueryCount == 0 }
        #expect(try first?.get().addresses == [Self.address])
        #expect(bench.loop.timers.count == 0)
    }

    @Test func `an attempt joins what has just been asked`() throws {
        let bench = try Bench({ _, _ in .held }) { $0.silence = .seconds(600) }
        bench.judge.permit = .attempt
        var count = 0
        for _ in 1...3 { bench.resolver.resolve("one.test", by: .never) { _ in count += 1 } }
        runLoop(bench.loop) { bench.server.udpQuestions.count == 2 }
        bench.server.answerHeld { _, _ in Self.answer }
        runLoop(bench.loop) { count == 3 }
        #expect(bench.resolver.stats.queries == 1)
    }

    @Test func `the answer to a query that was replaced is an answer, and its failure is none`() throws {
        var fails = true
        let bench = try Bench({ _, _ in .held }) { $0.silence = .milliseconds(500) }
        #expect(try bench.outcome(within: .milliseconds(510)) == .failure(.timedOut))
        bench.judge.permit = .attempt
        var second: Resolver.Outcome?
        bench.resolver.resolve("one.test", by: .never) { second = $0 }
        runLoop(bench.loop) { bench.server.udpQuestions.count == 4 }
        // The first two questions fail, and the later ones are answered.
        var count = 0
        bench.server.answerHeld { _, _ in
            count += 1
            fails = count <= 2
            return fails ? .serverFailure : Self.answer
        }
        runLoop(bench.loop) { second != nil && bench.resolver.openQueryCount == 0 }
        #expect(try second?.get().addresses == [Self.address])
        #expect(!bench.judge.takeNotes().contains("quickFailure one.test"))
    }
}
