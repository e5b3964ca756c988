@testable import EventLoop
import Testing

/// A resolver with a scripted server whose answer the test changes.
private final class Fixture {
    let loop: EventLoop
    var answer: ScriptedNameServer.Answer
    private(set) var server: ScriptedNameServer!
    private(set) var resolver: Resolver!

    init(
        _ answer: ScriptedNameServer.Answer, adjust: (inout Resolver.Options) -> Void = { _ in }
    ) throws {
        loop = try EventLoop()
        self.answer = answer
        server = try ScriptedNameServer(loop) { [unowned self] _, _ in self.answer }
        var options = server.options
        options.ttlMin = .zero
        options.negativeTTL = .zero
        adjust(&options)
        resolver = try Resolver(loop: loop, options: options)
    }

    func outcome(_ name: String = "one.test") throws -> Resolver.Outcome {
        var result: Resolver.Outcome?
        resolver.resolve(name, by: .never) { result = $0 }
        runLoop(loop) { result != nil }
        return try #require(result)
    }
}

@Suite("RFC 8767 Serving stale data")
struct ResolverRefreshTests {
    private static let address = SocketAddress(v4: 0xc000_0207, port: 0)
    /// Expires at once.
    private static let answer = ScriptedNameServer.Answer.addresses([[192, 0, 2, 7]], ttl: 0)

    static let failures: [(ScriptedNameServer.Answer, String)] = [
        (.serverFailure, "SERVFAIL"), (.refusal, "REFUSED"), (.silence, "a time-out"),
    ]

    @Test(arguments: failures)
    func `expired addresses are used if the servers fail, for 30 seconds without another query`(
        _ row: (answer: ScriptedNameServer.Answer, name: String)
    ) throws {
        let fixture = try Fixture(Self.answer)
        #expect(try !fixture.outcome().get().isStale)
        #expect(fixture.resolver.cached("one.test") == nil, "expired")
        fixture.answer = row.answer
        let stale = try fixture.outcome().get()
        #expect(stale.isStale && stale.addresses == [Self.address])
        #expect(fixture.resolver.stats.queries == 2, "a refresh was tried")
        let lifetime = stale.expires.duration(since: fixture.loop.now)
        #expect(lifetime > .seconds(20) && lifetime <= .seconds(30))
        #expect(try fixture.outcome().get() == stale)
        #expect(fixture.resolver.stats.queries == 2, "no refresh within 30 seconds")
        #expect(fixture.resolver.stats.stale == 2)
        #expect(fixture.resolver.stats.failures == 0)
    }

    @Test func `an answer that the name does not exist replaces expired addresses`() throws {
        let fixture = try Fixture(Self.answer)
        _ = try fixture.outcome()
        fixture.answer = .noSuchName
        #expect(try fixture.outcome() == .failure(.notFound))
        fixture.answer = .serverFailure
        #expect(try fixture.outcome() == .failure(.serverUnreachable))
        #expect(fixture.resolver.stats.stale == 0)
    }

    @Test func `an answer ends the use of expired addresses`() throws {
        let fixture = try Fixture(Self.answer) { $0.refreshPause = .zero }
        _ = try fixture.outcome()
        fixture.answer = .serverFailure
        #expect(try fixture.outcome().get().isStale)
        fixture.answer = .addresses([[192, 0, 2, 8]], ttl: 60)
        let resolution = try fixture.outcome().get()
        #expect(!resolution.isStale && resolution.addresses == [SocketAddress(v4: 0xc000_0208, port: 0)])
    }

    @Test func `without time for it, expired addresses are not used`() throws {
        let fixture = try Fixture(Self.answer) { $0.stale = .zero }
        _ = try fixture.outcome()
        fixture.answer = .serverFailure
        #expect(try fixture.outcome() == .failure(.serverUnreachable))
    }

    @Test func `look-ups do not wait for slow servers, and the query goes on`() throws {
        let fixture = try Fixture(Self.answer) {
            // The servers have more time than the test: only the wait for a refresh can end a look-up.
            $0.timeout = .seconds(60)
            $0.refreshWait = .milliseconds(50)
        }
        _ = try fixture.outcome()
        fixture.answer = .silence
        var count = 0
        for _ in 0..<2 {
            fixture.resolver.resolve("one.test", by: .never) { if (try? $0.get().isStale) == true { count += 1 } }
        }
        runLoop(fixture.loop) { count == 2 }
        #expect(count == 2)
        #expect(try fixture.outcome().get().isStale)
        #expect(fixture.resolver.stats.queries == 2)
        #expect(fixture.resolver.stats.stale == 3)
    }

    @Test func `addresses are not used beyond the time for stale ones`() {
        var cache = ResolverCache(entriesMax: 10)
        let start = MonotonicTime(nanoseconds: 0)
        func after(_ seconds: Int) -> MonotonicTime { start.advanced(by: .seconds(seconds)) }
        let resolution = Resolver.Resolution(addresses: [Self.address], expires: after(10))
        cache.store(.success(resolution), for: "a", expires: after(10), staleFor: .seconds(100))
        #expect(cache.outcome(for: "a", at: after(10)) == nil)
        #expect(cache.reviveAddresses(of: "a", at: after(100), for: .seconds(30))?.expires == after(110))
        #expect(cache.outcome(for: "a", at: after(109)) != nil)
        #expect(cache.reviveAddresses(of: "a", at: after(110), for: .seconds(30)) == nil)
        #expect(cache.count == 0)
    }
}

@Suite("Address families of names")
struct ResolverFamilyTests {
    private static let v4: [UInt8] = [192, 0, 2, 7]
    private static let v6: [UInt8] = [0x20, 1, 0x0d, 0xb8] + Array(repeating: 0, count: 11) + [9]
    private static let v4Address = SocketAddress(v4: 0xc000_0207, port: 0)
    private static let v6Address = SocketAddress(v6: 0x2001_0db8_0000_0000, low: 9, port: 0)

    static let rows: [(Resolver.FamilyPreference, addresses: [SocketAddress], questions: Set<String>)] = [
        (.ipv4, [v4Address], ["one.test 1"]), (.ipv6, [v6Address], ["one.test 28"]),
        (.preferIPv4, [v4Address, v6Address], ["one.test 1", "one.test 28"]),
        (.preferIPv6, [v6Address, v4Address], ["one.test 1", "one.test 28"]),
    ]

    @Test(arguments: rows) func `the preferred family comes first, an excluded one is not asked for`(
        _ row: (family: Resolver.FamilyPreference, addresses: [SocketAddress], questions: Set<String>)
    ) throws {
        let fixture = try Fixture(.addresses([Self.v4, Self.v6], ttl: 60)) {
            $0.family = row.family
            $0.staticHosts = [.init(pattern: "static.test", addresses: [Self.v6Address, Self.v4Address])]
        }
        #expect(try fixture.outcome().get().addresses == row.addresses)
        #expect(Set(fixture.server.udpQuestions) == row.questions)
        #expect(try fixture.outcome("static.test").get().addresses == row.addresses)
    }

    @Test func `a static entry without an address of the family is no address`() throws {
        let fixture = try Fixture(.addresses([Self.v4, Self.v6], ttl: 60)) {
            $0.family = .ipv6
            $0.staticHosts = [.init(pattern: "static.test", addresses: [Self.v4Address])]
        }
        #expect(try fixture.outcome("static.test") == .failure(.notFound))
        #expect(fixture.server.udpQuestions.isEmpty)
    }
}
