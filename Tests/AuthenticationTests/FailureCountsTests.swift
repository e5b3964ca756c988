import Authentication
import Message
import Testing

@Suite("Failures to authenticate")
struct FailureCountsTests {
    static func make(_ change: (inout FailureCounts.Bounds) -> Void = { _ in }) -> FailureCounts {
        var bounds = FailureCounts.Bounds()
        bounds.perSourceMax = 3
        bounds.perNameMax = 4
        change(&bounds)
        return FailureCounts(bounds)
    }

    @Test func `an address that fails too often waits for the end of its window`() {
        var counts = Self.make()
        for second in 0..<3 {
            #expect(counts.wait(of: ip("192.0.2.1"), as: "ann", now: .seconds(second)) == nil)
            counts.failed(ip("192.0.2.1"), as: nil, now: .seconds(second))
        }
        #expect(counts.wait(of: ip("192.0.2.1"), as: "ann", now: .seconds(3)) == .seconds(7))
        #expect(counts.wait(of: ip("192.0.2.2"), as: "ann", now: .seconds(3)) == nil)
        #expect(counts.wait(of: ip("192.0.2.1"), as: "ann", now: .seconds(10)) == nil)
        #expect(counts.waitsBegun == 1)
    }

    @Test func `a name that fails from many addresses waits, wherever it is tried next`() {
        var counts = Self.make()
        for number in 1...4 { counts.failed(ip("192.0.2.\(number)"), as: "ann", now: .zero) }
        #expect(counts.wait(of: ip("192.0.2.9"), as: "ann", now: .seconds(1)) == .seconds(59))
        #expect(counts.wait(of: ip("192.0.2.9"), as: "bob", now: .seconds(1)) == nil)
        #expect(counts.wait(of: ip("192.0.2.9"), as: "ann", now: .seconds(60)) == nil)
        #expect(counts.waitsBegun == 1)
    }

    @Test func `guesses of others do not lock out an address from which the name proved right`() {
        var counts = Self.make()
        counts.succeeded(ip("192.0.2.9"), as: "ann", now: .zero)
        for number in 1...4 { counts.failed(ip("192.0.2.\(number)"), as: "ann", now: .zero) }
        #expect(counts.wait(of: ip("192.0.2.9"), as: "ann", now: .seconds(1)) == nil)
        #expect(counts.wait(of: ip("192.0.2.8"), as: "ann", now: .seconds(1)) != nil)
        // Its own failures count all the same.
        for _ in 0..<3 { counts.failed(ip("192.0.2.9"), as: "ann", now: .seconds(1)) }
        #expect(counts.wait(of: ip("192.0.2.9"), as: "ann", now: .seconds(1)) == .seconds(10))
    }

    @Test func `each failure is answered later, up to a bound`() {
        var counts = Self.make()
        let delays = (0..<8).map { _ in counts.failed(ip("192.0.2.1"), as: nil, now: .zero) }
        #expect(delays == [0, 50, 100, 200, 400, 800, 1000, 1000].map { .milliseconds($0) })
        #expect(counts.failed(ip("192.0.2.2"), as: nil, now: .zero) == .zero)
        #expect(counts.failed(ip("192.0.2.1"), as: nil, now: .seconds(10)) == .zero)
    }

    @Test func `the tables are bounded, and so is what they keep of a name`() {
        var counts = Self.make { $0.countMax = 2 }
        for number in 1...3 {
            for _ in 0..<3 { counts.failed(ip("192.0.2.\(number)"), as: nil, now: .seconds(number)) }
        }
        #expect(counts.wait(of: ip("192.0.2.1"), as: nil, now: .seconds(4)) == nil)
        #expect(counts.wait(of: ip("192.0.2.3"), as: nil, now: .seconds(4)) != nil)
        let long = String(repeating: "x", count: 200)
        for number in 1...4 { counts.failed(ip("198.51.100.\(number)"), as: long + "\(number)", now: .seconds(4)) }
        #expect(counts.wait(of: ip("198.51.100.9"), as: long, now: .seconds(4)) != nil)
    }

    @Test func `clients of Unix sockets share one count`() {
        var counts = Self.make()
        for _ in 0..<3 { counts.failed(nil, as: "ann", now: .zero) }
        #expect(counts.wait(of: nil, as: "bob", now: .zero) == .seconds(10))
    }

    // MARK: a fleet

    /// Two nodes, of which one tells the other.
    private static func nodes() -> (there: FailureCounts, here: FailureCounts) {
        var (there, here) = (FailureCounts(), FailureCounts())
        there.share(SipHash(key: (1, 2)))
        here.share(SipHash(key: (1, 2)))
        return (there, here)
    }

    private static func tell(_ there: inout FailureCounts, _ here: inout FailureCounts, now: Duration) {
        for failure in there.takeUntold(100) { here.count(failure, now: now) }
    }

    @Test func `failures on another node count, and end with their window`() {
        var (there, here) = Self.nodes()
        let client = ip("192.0.2.1")
        for _ in 0..<6 { there.failed(client, as: "ann", now: .zero) }
        for _ in 0..<3 { here.failed(client, as: "ann", now: .zero) }
        Self.tell(&there, &here, now: .seconds(1))
        #expect(here.wait(of: client, as: "ann", now: .seconds(1)) == nil && here.waitsBegun == 0)
        there.failed(client, as: "ann", now: .seconds(1))
        Self.tell(&there, &here, now: .seconds(1))
        #expect(here.wait(of: client, as: "bob", now: .seconds(1)) == .seconds(9))
        #expect(here.waitsBegun == 1, "who keeps an earlier answer asks again")
        #expect(here.wait(of: ip("192.0.2.2"), as: "ann", now: .seconds(1)) == nil)
        #expect(here.wait(of: client, as: "ann", now: .seconds(11)) == nil)
    }

    @Test func `a name that is guessed at on several nodes waits, but where it proved right`() {
        var (there, here) = Self.nodes()
        let home = ip("192.0.2.1")
        here.succeeded(home, as: "ann", now: .zero)
        for host in 0..<50 { there.failed(ip("10.0.0.\(host)"), as: "ann", now: .zero) }
        Self.tell(&there, &here, now: .zero)
        #expect(here.wait(of: ip("192.0.2.9"), as: "ann", now: .zero) != nil)
        #expect(here.wait(of: home, as: "ann", now: .zero) == nil)
    }

    @Test func `the answer to a failure is held back as if all had been on one node`() {
        var (there, here) = Self.nodes()
        let client = ip("192.0.2.1")
        for _ in 0..<3 { there.failed(client, as: nil, now: .zero) }
        Self.tell(&there, &here, now: .zero)
        let delay = here.failed(client, as: nil, now: .zero)
        #expect(delay == .milliseconds(200))
    }

    @Test func `what is told once is not told again, and a node with another key learns nothing`() {
        var there = FailureCounts()
        let untold = there.takeUntold(10)
        #expect(untold.isEmpty)
        there.share(SipHash(key: (1, 2)))
        let client = ip("192.0.2.1")
        for _ in 0..<20 { there.failed(client, as: "ann", now: .zero) }
        // Clients of this machine's sockets are no other node's.
        there.failed(nil, as: nil, now: .zero)
        let told = there.takeUntold(10)
        #expect(told.map(\.count) == [20, 20] && Set(told.map(\.isOfUser)) == [true, false])
        let again = there.takeUntold(10)
        #expect(again.isEmpty)
        var stranger = FailureCounts()
        stranger.share(SipHash(key: (3, 4)))
        for failure in told { stranger.count(failure, now: .zero) }
        #expect(stranger.wait(of: client, as: "ann", now: .zero) == nil)
    }
}
