@testable import EventLoop
import Testing

@Suite("RFC 1035 names: the resolver")
struct ResolverTests {
    static let v4: [UInt8] = [192, 0, 2, 7]
    static let v6: [UInt8] = [0x20, 1, 0x0d, 0xb8] + Array(repeating: 0, count: 11) + [9]
    static let v4Address = SocketAddress(v4: 0xc000_0207, port: 0)
    static let v6Address = SocketAddress(v6: 0x2001_0db8_0000_0000, low: 9, port: 0)

    private func outcome(_ resolver: Resolver, _ loop: EventLoop, _ name: String) throws -> Resolver.Outcome {
        var result: Resolver.Outcome?
        resolver.resolve(name, by: .never) { result = $0 }
        #expect(result == nil, "never from inside resolve")
        runLoop(loop) { result != nil }
        return try #require(result)
    }

    /// One question to a scripted server: what came of it.
    private func ask(
        _ answer: ScriptedNameServer.Answer, adjust: (inout Resolver.Options) -> Void = { _ in }
    ) throws -> (outcome: Resolver.Outcome, lifetime: Duration?, server: ScriptedNameServer) {
        let loop = try EventLoop()
        let server = try ScriptedNameServer(loop) { _, _ in answer }
        var options = server.options
        adjust(&options)
        let resolver = try Resolver(loop: loop, options: options)
        let result = try outcome(resolver, loop, "one.test")
        let lifetime = try? result.get().expires.duration(since: loop.now)
        return (result, lifetime, server)
    }

    @Test func `A and AAAA are asked for together`() throws {
        let (outcome, _, server) = try ask(.addresses([Self.v4, Self.v6], ttl: 60))
        #expect(Set(try outcome.get().addresses) == [Self.v4Address, Self.v6Address])
        #expect(Set(server.udpQuestions) == ["one.test 1", "one.test 28"])
    }

    /// The type of question that the server never answers, and the address that is left.
    static let silences: [(silent: UInt16, address: SocketAddress)] = [(28, v4Address), (1, v6Address)]

    @Test(arguments: silences)
    func `a server that is silent about one family holds up nobody (RFC 8305 §3)`(
        _ row: (silent: UInt16, address: SocketAddress)
    ) throws {
        let loop = try EventLoop()
        let server = try ScriptedNameServer(loop) { _, type in
            type == row.silent ? .silence : .addresses([Self.v4, Self.v6], ttl: 60)
        }
        var options = server.options
        // Far beyond the time that the test takes: it would fail if anybody waited for it.
        (options.timeout, options.tries, options.resolutionDelay) = (.seconds(600), 1, .milliseconds(10))
        let resolver = try Resolver(loop: loop, options: options)
        #expect(try outcome(resolver, loop, "one.test").get().addresses == [row.address])
        // The next look-up needs no server.
        let asked = server.udpQuestions.count
        #expect(try outcome(resolver, loop, "one.test").get().addresses == [row.address])
        #expect(server.udpQuestions.count == asked)
    }

    @Test func `nor when its addresses expire while the other family is still awaited`() throws {
        let loop = try EventLoop()
        let server = try ScriptedNameServer(loop) { _, type in type == 28 ? .silence : .addresses([Self.v4], ttl: 0) }
        var options = server.options
        (options.timeout, options.tries, options.resolutionDelay) = (.seconds(600), 1, .milliseconds(10))
        (options.ttlMin, options.stale) = (.zero, .zero)
        let resolver = try Resolver(loop: loop, options: options)
        for _ in 0..<3 { #expect(try outcome(resolver, loop, "one.test").get().addresses == [Self.v4Address]) }
        #expect(resolver.openQueryCount == 1)
    }

    @Test func `what comes for both families in time needs no further question`() throws {
        let (outcome, _, server) = try ask(.addresses([Self.v4, Self.v6], ttl: 60)) {
            $0.resolutionDelay = .seconds(600)
        }
        #expect(try outcome.get().addresses.count == 2)
        #expect(server.udpQuestions.count == 2)
    }

    @Test func `addresses of one family stay when the question for both fails`() throws {
        let loop = try EventLoop()
        var isSilent = true
        let server = try ScriptedNameServer(loop) { _, type in
            if type == 1 { return .addresses([Self.v4], ttl: 60) }
            return isSilent ? .silence : .serverFailure
        }
        var options = server.options
        (options.timeout, options.tries, options.resolutionDelay) = (.milliseconds(300), 1, .milliseconds(10))
        let resolver = try Resolver(loop: loop, options: options)
        #expect(try outcome(resolver, loop, "one.test").get().addresses == [Self.v4Address])
        isSilent = false
        runLoop(loop) { resolver.openQueryCount == 0 }
        #expect(try outcome(resolver, loop, "one.test").get().addresses == [Self.v4Address])
    }

    @Test func `one family is enough`() throws {
        #expect(try ask(.addresses([Self.v6], ttl: 60)).outcome.get().addresses == [Self.v6Address])
    }

    struct Lifetime: Sendable { var ttl: UInt32; var believed: ClosedRange<Int64> }
    static let lifetimes = [
        Lifetime(ttl: 0, believed: 0...1), Lifetime(ttl: 60, believed: 59...60),
        Lifetime(ttl: 86_400, believed: 3599...3600),
    ]

    @Test(arguments: lifetimes) func `the time-to-live is respected within its bounds`(_ row: Lifetime) throws {
        let lifetime = try #require(try ask(.addresses([Self.v4], ttl: row.ttl)).lifetime)
        #expect(lifetime > .seconds(row.believed.lowerBound))
        #expect(lifetime <= .seconds(row.believed.upperBound))
    }

    @Test func `an alias is used no longer than its own time-to-live`() throws {
        let (outcome, lifetime, _) = try ask(.alias(ttl: 30, [Self.v4], addressTTL: 600))
        #expect(try outcome.get().addresses == [Self.v4Address])
        #expect(try #require(lifetime) <= .seconds(30))
    }

    @Test func `an answer that is too long for UDP is fetched over TCP`() throws {
        let (outcome, _, server) = try ask(.truncated([Self.v4], ttl: 60))
        #expect(try outcome.get().addresses == [Self.v4Address])
        #expect(!server.tcpQuestions.isEmpty)
    }

    @Test func `each kind of failure is reported as such`() throws {
        #expect(try ask(.noSuchName).outcome == .failure(.notFound))
        #expect(try ask(.addresses([], ttl: 60)).outcome == .failure(.notFound))
        #expect(try ask(.serverFailure).outcome == .failure(.serverUnreachable))
        #expect(try ask(.silence).outcome == .failure(.timedOut))
    }

    @Test func `many look-ups of one name send one query, then the cache answers`() throws {
        let loop = try EventLoop()
        let server = try ScriptedNameServer(loop) { _, _ in .addresses([Self.v4], ttl: 60) }
        let resolver = try Resolver(loop: loop, options: server.options)
        var answers = 0
        for _ in 0..<10 { resolver.resolve("one.test", by: .never) { _ in answers += 1 } }
        let ticket = resolver.resolve("one.test", by: .never) { _ in Issue.record("cancelled") }
        ticket.cancel()
        #expect(resolver.cached("one.test") == nil)
        runLoop(loop) { answers == 10 }
        #expect(server.udpQuestions.count == 2)
        #expect(try resolver.cached("one.test")?.get().addresses == [Self.v4Address])
        #expect(resolver.stats == .with(queries: 1, cacheHits: 1, joined: 10))
    }

    @Test func `the absence of a name is cached`() throws {
        let loop = try EventLoop()
        let server = try ScriptedNameServer(loop) { _, _ in .noSuchName }
        let resolver = try Resolver(loop: loop, options: server.options)
        _ = try outcome(resolver, loop, "no.test")
        #expect(resolver.cached("no.test") == .failure(.notFound))
        #expect(resolver.stats.failures == 1)
    }

    @Test func `the hosts file and literals need no server`() throws {
        let loop = try EventLoop()
        let server = try ScriptedNameServer(loop) { _, _ in .serverFailure }
        let resolver = try Resolver(loop: loop, options: server.options)
        #expect(try outcome(resolver, loop, "localhost").get().addresses.contains { $0.isLoopback })
        #expect(try outcome(resolver, loop, "192.0.2.7").get().addresses == [Self.v4Address])
        #expect(try outcome(resolver, loop, "2001:db8::9").get().addresses == [Self.v6Address])
        #expect(server.udpQuestions.isEmpty)
    }

    @Test func `invalid names and queries beyond the bound are refused`() throws {
        let loop = try EventLoop()
        let server = try ScriptedNameServer(loop) { _, _ in .silence }
        var options = server.options
        options.queriesMax = 1
        let resolver = try Resolver(loop: loop, options: options)
        #expect(try outcome(resolver, loop, "") == .failure(.badName))
        #expect(try outcome(resolver, loop, String(repeating: "a.", count: 130)) == .failure(.badName))
        resolver.resolve("first.test", by: .never) { _ in }
        #expect(try outcome(resolver, loop, "second.test") == .failure(.tooManyQueries))
    }

    @Test func `nobody has more queries than are left for others, be it that nobody waits for them any more`() throws {
        let loop = try EventLoop()
        let server = try ScriptedNameServer(loop) { _, _ in .held }
        var options = server.options
        (options.queriesMax, options.timeout, options.ttlMin) = (4, .seconds(600), .zero)
        let resolver = try Resolver(loop: loop, options: options)
        func outcome(_ name: String, of client: UInt32) throws -> Resolver.Outcome {
            var result: Resolver.Outcome?
            let asker = SocketAddress(v4: client, port: 0)
            resolver.resolve(name, by: loop.now.advanced(by: .milliseconds(1)), for: asker) { result = $0 }
            runLoop(loop) { result != nil }
            return try #require(result)
        }
        for name in ["a.test", "b.test"] { #expect(try outcome(name, of: 1) == .failure(.timedOut)) }
        #expect(try outcome("c.test", of: 1) == .failure(.tooManyQueries))
        #expect(try outcome("b.test", of: 1) == .failure(.timedOut), "what is asked already needs no place")
        #expect(try outcome("c.test", of: 2) == .failure(.timedOut))
        server.answerHeld { _, _ in .noSuchName }
        runLoop(loop) { resolver.openQueryCount == 0 }
        for name in ["d.test", "e.test"] { #expect(try outcome(name, of: 1) == .failure(.timedOut)) }
    }

    @Test func `a resolver may be released with open queries`() throws {
        let loop = try EventLoop()
        let server = try ScriptedNameServer(loop) { _, _ in .silence }
        do {
            let resolver = try Resolver(loop: loop, options: server.options)
            resolver.resolve("one.test", by: .never) { _ in Issue.record("nobody is left to answer") }
        }
        loop.afterTurn { loop.stop() }
        loop.run()
        #expect(throws: ResolverError.self) {
            var options = server.options
            options.servers = ["nonsense"]
            _ = try Resolver(loop: loop, options: options)
        }
    }

    @Test func `the cache is bounded and keeps names in use`() {
        var cache = ResolverCache(entriesMax: 100)
        let start = MonotonicTime(nanoseconds: 0)
        let later = start.advanced(by: .seconds(10))
        cache.store(.failure(.notFound), for: "kept", expires: later)
        for number in 0..<1000 {
            cache.store(.failure(.notFound), for: "\(number)", expires: later)
            #expect(cache.outcome(for: "kept", at: start) != nil)
        }
        #expect(cache.count <= 100)
        #expect(cache.outcome(for: "0", at: start) == nil)
        #expect(cache.outcome(for: "kept", at: later) == nil)
    }
}

extension Resolver.Stats {
    fileprivate static func with(queries: UInt64, cacheHits: UInt64, joined: UInt64) -> Resolver.Stats {
        var stats = Resolver.Stats()
        (stats.queries, stats.cacheHits, stats.joined) = (queries, cacheHits, joined)
        return stats
    }
}
