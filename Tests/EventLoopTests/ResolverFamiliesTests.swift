@testable import EventLoop
import Testing

private typealias Answer = ScriptedNameServer.Answer

private let v4: [UInt8] = [192, 0, 2, 7]
private let v6: [UInt8] = [0x20, 1, 0x0d, 0xb8] + Array(repeating: 0, count: 11) + [9]
private let v4Address = SocketAddress(v4: 0xc000_0207, port: 0)
private let v6Address = SocketAddress(v6: 0x2001_0db8_0000_0000, low: 9, port: 0)
private let both = Answer.addresses([v4, v6], ttl: 60)
/// The types of questions (RFC 3596).
private let (typeA, typeAAAA): (UInt16, UInt16) = (1, 28)

/// A scripted server, and a resolver that waits for each answer, and for the second family, beyond the time of the test.
private struct Bench {
    let loop: EventLoop
    let server: ScriptedNameServer
    let resolver: Resolver

    init(
        _ script: @escaping ScriptedNameServer.Script, adjust: (inout Resolver.Options) -> Void = { _ in }
    ) throws {
        loop = try EventLoop()
        server = try ScriptedNameServer(loop) { name, type in name == "marker.test" ? both : script(name, type) }
        var options = server.options
        (options.timeout, options.resolutionDelay) = (.seconds(600), .seconds(600))
        adjust(&options)
        resolver = try Resolver(loop: loop, options: options)
    }

    func outcome(_ name: String = "one.test") throws -> Resolver.Outcome {
        var result: Resolver.Outcome?
        resolver.resolve(name, by: .never) { result = $0 }
        runLoop(loop) { result != nil }
        return try #require(result)
    }

    /// Turns the loop until the resolver has read all that the server has sent: the answer for another name comes behind it.
    func settle() throws { _ = try outcome("marker.test") }
}

@Suite("RFC 8305 §3 Two families of a name")
struct ResolverFamiliesTests {
    struct Order: Sendable {
        var family: Resolver.FamilyPreference
        /// The type whose answer comes first.
        var first: UInt16
        var addresses: [SocketAddress]
    }
    static let orders = [typeA, typeAAAA].flatMap { first in
        [
            Order(family: .preferIPv6, first: first, addresses: [v6Address, v4Address]),
            Order(family: .preferIPv4, first: first, addresses: [v4Address, v6Address]),
        ]
    }

    /// What a server does that answers for A, and later for nothing.
    private static func lateAAAA(adjust: @escaping (inout Resolver.Options) -> Void) throws -> (Bench, () -> Void) {
        final class State { var holdsA = false }
        let state = State()
        let bench = try Bench({ _, type in
            type == typeA && !state.holdsA ? .addresses([v4], ttl: 0) : .held
        }) {
            ($0.ttlMin, $0.family) = (.zero, .preferIPv4)
            adjust(&$0)
        }
        return (bench, { state.holdsA = true })
    }

    @Test func `expired addresses of one family are used in time while the other one is still awaited`() throws {
        let (bench, holdA) = try Self.lateAAAA { ($0.resolutionDelay, $0.refreshWait) = (.zero, .milliseconds(1)) }
        #expect(try bench.outcome().get().addresses == [v4Address])
        holdA()
        let outcome = try bench.outcome().get()
        #expect(outcome.isStale && outcome.addresses == [v4Address])
    }

    @Test func `a family that was late once does not make the other one late`() throws {
        let (bench, holdA) = try Self.lateAAAA {
            ($0.resolutionDelay, $0.refreshWait) = (.milliseconds(500), .seconds(600))
        }
        #expect(try bench.outcome().get().addresses == [v4Address])
        holdA()
        var outcome: Resolver.Outcome?
        bench.resolver.resolve("one.test", by: .never) { outcome = $0 }
        runLoop(bench.loop) { bench.server.udpQuestions.count == 3 }
        // AAAA first, and A behind it.
        bench.server.answerHeld { _, _ in both }
        runLoop(bench.loop) { outcome != nil }
        #expect(try outcome?.get().addresses == [v4Address, v6Address])
    }

    @Test func `whoever owns a name cannot make it cost more than so many addresses of each family`() throws {
        let many = (0..<9).map { [192, 0, 2, UInt8($0)] as [UInt8] }
        let bench = try Bench({ _, type in .addresses(type == typeA ? many : [v6], ttl: 60) }) { $0.addressesMax = 4 }
        let addresses = try bench.outcome().get().addresses
        #expect(addresses.count == 5 && addresses.contains(v6Address), "\(addresses)")
    }

    @Test(arguments: orders) func `the preferred one comes first if it comes within the delay`(_ row: Order) throws {
        let bench = try Bench({ $1 == row.first ? both : .held }) { $0.family = row.family }
        var result: Resolver.Outcome?
        bench.resolver.resolve("one.test", by: .never) { result = $0 }
        try bench.settle()
        #expect(result == nil, "it waits for the other family")
        bench.server.answerHeld { _, _ in both }
        runLoop(bench.loop) { result != nil }
        #expect(try result?.get().addresses == row.addresses)
        #expect(bench.server.udpQuestions.count == 4, "two for each name")
        #expect(bench.loop.timers.count == 0)
    }

    @Test(arguments: orders) func `what comes later is for the next look-up`(_ row: Order) throws {
        let bench = try Bench({ $1 == row.first ? both : .held }) {
            ($0.family, $0.resolutionDelay) = (row.family, .milliseconds(1))
        }
        let first = row.first == typeA ? v4Address : v6Address
        #expect(try bench.outcome().get().addresses == [first])
        #expect(try bench.resolver.cached("one.test")?.get().addresses == [first])
        #expect(bench.resolver.openQueryCount == 1)
        bench.server.answerHeld { _, _ in both }
        runLoop(bench.loop) { bench.resolver.openQueryCount == 0 }
        #expect(try bench.outcome().get().addresses == row.addresses)
        #expect(bench.server.udpQuestions == ["one.test 1", "one.test 28"])
    }

    @Test func `the delay begins with the first addresses, not with the question`() throws {
        let bench = try Bench({ _, _ in .held }) { ($0.resolutionDelay, $0.family) = (.milliseconds(50), .preferIPv6) }
        var result: Resolver.Outcome?
        bench.resolver.resolve("one.test", by: .never) { result = $0 }
        var hasPassed = false
        let twice = PreciseTimer(bench.loop) { hasPassed = true }
        twice.start(at: bench.loop.now.advanced(by: .milliseconds(100)))
        runLoop(bench.loop) { hasPassed && bench.server.udpQuestions.count == 2 }
        // Both are there when the resolver reads the first of them.
        bench.server.answerHeld { _, _ in both }
        runLoop(bench.loop) { result != nil }
        #expect(try result?.get().addresses == [v6Address, v4Address])
        #expect(bench.server.udpQuestions.count == 2)
    }

    struct Failure: Sendable, CustomStringConvertible {
        var description: String
        fileprivate var answer: Answer
    }
    static let failures = [
        Failure(description: "SERVFAIL", answer: .serverFailure), Failure(description: "REFUSED", answer: .refusal),
        Failure(description: "NXDOMAIN", answer: .noSuchName),
        Failure(description: "no address", answer: .addresses([], ttl: 60)),
        Failure(description: "malformed", answer: .malformed),
    ]

    /// Nothing ends the wait but the failure: the delay is beyond the time of the test.
    @Test(arguments: failures, [typeA, typeAAAA])
    func `a failure for one family says nothing about the other, whichever comes first`(
        _ failure: Failure, _ failing: UInt16
    ) throws {
        for held in [typeA, typeAAAA] {
            func answer(_ type: UInt16) -> Answer { type == failing ? failure.answer : both }
            let bench = try Bench({ $1 == held ? .held : answer($1) })
            var result: Resolver.Outcome?
            bench.resolver.resolve("one.test", by: .never) { result = $0 }
            try bench.settle()
            #expect(result == nil)
            bench.server.answerHeld { answer($1) }
            runLoop(bench.loop) { result != nil }
            #expect(try result?.get().addresses == [failing == typeA ? v6Address : v4Address], "\(held) comes last")
        }
    }

    @Test(arguments: [typeA, typeAAAA])
    func `without addresses, a failure of the server counts for more than an answer that there are none`(
        _ failing: UInt16
    ) throws {
        for held in [typeA, typeAAAA] {
            var hasAddresses = true
            func answer(_ type: UInt16) -> Answer { type == failing ? .serverFailure : .addresses([], ttl: 60) }
            let bench = try Bench({ hasAddresses ? .addresses([v4, v6], ttl: 0) : $1 == held ? .held : answer($1) }) {
                ($0.ttlMin, $0.refreshWait) = (.zero, .seconds(600))
            }
            #expect(try bench.outcome().get().addresses.count == 2)
            hasAddresses = false
            var result: Resolver.Outcome?
            bench.resolver.resolve("one.test", by: .never) { result = $0 }
            runLoop(bench.loop) { bench.server.udpQuestions.count == 4 }
            try bench.settle()
            bench.server.answerHeld { answer($1) }
            runLoop(bench.loop) { result != nil }
            #expect(try result?.get().isStale == true, "\(held) comes last")
        }
    }

    @Test(arguments: [typeA, typeAAAA])
    func `a name that does not exist is not found when both say so`(_ held: UInt16) throws {
        let bench = try Bench({ $1 == held ? .held : .noSuchName })
        var result: Resolver.Outcome?
        bench.resolver.resolve("one.test", by: .never) { result = $0 }
        try bench.settle()
        #expect(result == nil)
        bench.server.answerHeld { _, _ in .noSuchName }
        runLoop(bench.loop) { result != nil }
        #expect(result == .failure(.notFound) && bench.resolver.cached("one.test") == .failure(.notFound))
    }

    @Test(arguments: [[typeA], [typeAAAA], [typeA, typeAAAA]])
    func `what is too long for UDP comes over TCP, for each family`(_ long: [UInt16]) throws {
        let bench = try Bench({ long.contains($1) ? .truncated([v4, v6], ttl: 60) : both })
        #expect(Set(try bench.outcome().get().addresses) == [v4Address, v6Address])
        #expect(Set(bench.server.tcpQuestions) == Set(long.map { "one.test \($0)" }))
    }
}

@Suite("RFC 1035 names: odd answers")
struct ResolverOddAnswerTests {
    private static let chain: [ScriptedNameServer.Record] = [
        .alias("one.test", of: "a.test", ttl: 30), .alias("a.test", of: "b.test"), .address("b.test", v4),
    ]

    @Test(arguments: [[0, 1, 2], [1, 2, 0]])
    func `an address behind the aliases that lead to it is found`(_ order: [Int]) throws {
        let bench = try Bench({ $1 == typeA ? .records(order.map { Self.chain[$0] }) : .addresses([], ttl: 60) })
        let found = try bench.outcome().get()
        #expect(found.addresses == [v4Address])
        #expect(found.expires.duration(since: bench.loop.now) <= .seconds(30))
    }

    /// c-ares 1.18 reads the records once, as other resolvers do.
    @Test(arguments: [[0, 2, 1], [1, 0, 2], [2, 0, 1], [2, 1, 0]])
    func `records in another order are no address, and the other family counts`(_ order: [Int]) throws {
        let records = order.map { Self.chain[$0] }
        let alone = try Bench({ $1 == typeA ? .records(records) : .addresses([], ttl: 60) })
        #expect(try alone.outcome() == .failure(.notFound))
        let besides = try Bench({ $1 == typeA ? .records(records) : both })
        #expect(try besides.outcome().get().addresses == [v6Address])
    }

    @Test(arguments: [typeA, typeAAAA]) func `an alias may lead to one family alone`(_ type: UInt16) throws {
        let alias = ScriptedNameServer.Record.alias("one.test", of: "a.test")
        let address = ScriptedNameServer.Record.address("a.test", type == typeA ? v4 : v6)
        let bench = try Bench({ .records($1 == type ? [alias, address] : [alias]) })
        #expect(try bench.outcome().get().addresses == [type == typeA ? v4Address : v6Address])
    }

    @Test func `an alias that leads nowhere, or in a circle, is no address`() throws {
        let circle: [ScriptedNameServer.Record] = [
            .alias("one.test", of: "a.test"), .alias("a.test", of: "one.test"),
        ]
        for records in [Array(circle.prefix(1)), circle] {
            let bench = try Bench({ _, _ in .records(records) })
            #expect(try bench.outcome() == .failure(.notFound))
        }
    }

    @Test func `answers that nobody asked for do not count, and a second one does no harm`() throws {
        let wrong = Answer.addresses([[203, 0, 113, 1], Array(repeating: 1, count: 16)], ttl: 60)
        let bench = try Bench({ _, _ in
            .several([.otherNumber(wrong), .otherName(wrong), both, both, wrong])
        })
        #expect(Set(try bench.outcome().get().addresses) == [v4Address, v6Address])
        try bench.settle()
        #expect(Set(try bench.outcome().get().addresses) == [v4Address, v6Address])
        #expect(bench.resolver.stats.queries == 2, "one for the marker")
    }

    @Test func `an answer after the resolver has given up does no harm`() throws {
        let bench = try Bench({ _, _ in .held }) { ($0.timeout, $0.ttlMin) = (.milliseconds(10), .zero) }
        #expect(try bench.outcome() == .failure(.timedOut))
        #expect(bench.resolver.openQueryCount == 0)
        bench.server.answerHeld { _, _ in both }
        try bench.settle()
        #expect(bench.resolver.cached("one.test") == nil)
    }

    @Test func `when the first server is silent, the second one answers`() throws {
        let loop = try EventLoop()
        let silent = try ScriptedNameServer(loop) { _, _ in .silence }
        let answering = try ScriptedNameServer(loop) { _, _ in both }
        var options = silent.options
        options.servers = [silent, answering].map { "127.0.0.1:\($0.port)" }
        options.timeout = .milliseconds(20)
        let resolver = try Resolver(loop: loop, options: options)
        var result: Resolver.Outcome?
        resolver.resolve("one.test", by: .never) { result = $0 }
        runLoop(loop) { result != nil }
        #expect(Set(try #require(result).get().addresses) == [v4Address, v6Address])
        #expect(Set(silent.udpQuestions) == Set(answering.udpQuestions))
    }
}
