import Limiting
import Testing

@Suite("limits.rules: requests, a rate with a burst") struct TokenRateTests {
    private static let second: UInt64 = 1_000_000_000
    private static let start: UInt64 = 77 * second

    /// How many tokens are taken at each of the times, in milliseconds.
    private func taken(_ rate: TokenRate, at times: [(time: UInt64, wanted: Int)]) -> [Int] {
        var full: UInt64 = 0
        return times.map { time, wanted in
            (0..<wanted).reduce(0) { count, _ in
                guard let next = rate.taking(from: full, now: Self.start + time * 1_000_000) else { return count }
                full = next
                return count + 1
            }
        }
    }

    @Test func `as many as the burst at once, and the rate afterwards`() {
        let rate = TokenRate(10, per: .second, burst: 3)
        #expect(taken(rate, at: [(0, 5), (99, 5), (100, 5), (200, 5), (10_000, 9)]) == [3, 0, 1, 1, 3])
    }

    @Test func `without a burst as many at once as come back in the period`() {
        #expect(taken(TokenRate(4, per: .minute), at: [(0, 9), (14_999, 9), (15_000, 9)]) == [4, 0, 1])
    }

    @Test(arguments: TokenRate.Period.allCases) func `over a long time the rate is exact`(_ period: TokenRate.Period) {
        let rate = TokenRate(100, per: period, burst: 1)
        let milliseconds = period.nanoseconds / 1_000_000
        let times = (0..<UInt64(1000)).map { (time: $0 * milliseconds / 200, wanted: 3) }
        let count = taken(rate, at: times).reduce(0, +)
        #expect((499...501).contains(count))
    }

    @Test func `the wait is until the next token`() {
        let rate = TokenRate(2, per: .second, burst: 1)
        let full = rate.taking(from: 0, now: Self.start)
        #expect(full == Self.start + 500_000_000)
        #expect(rate.wait(full: full!, now: Self.start) == 500_000_000)
        #expect(rate.wait(full: full!, now: Self.start + 400_000_000) == 100_000_000)
        #expect(rate.wait(full: full!, now: Self.start + 500_000_000) == 0)
        #expect(rate.taking(from: full!, now: Self.start + 499_999_999) == nil)
        #expect(rate.taking(from: full!, now: Self.start + 500_000_000) != nil)
    }

    @Test func `what is left is counted in whole tokens`() {
        let rate = TokenRate(10, per: .second, burst: 5)
        #expect(rate.left(full: 0, now: Self.start) == 5)
        #expect(rate.left(full: Self.start + 100_000_000, now: Self.start) == 4)
        #expect(rate.left(full: Self.start + 450_000_000, now: Self.start) == 0)
        #expect(rate.left(full: Self.start + 500_000_000, now: Self.start) == 0)
    }

    @Test func `a token that is given back can be taken again`() {
        let rate = TokenRate(1, per: .day, burst: 1)
        let full = rate.taking(from: 0, now: Self.start)!
        #expect(rate.taking(from: full, now: Self.start) == nil)
        #expect(rate.taking(from: full - rate.step, now: Self.start) != nil)
    }

    static let shares: [(burst: UInt64, shares: UInt64, atOnce: Int, seconds: UInt64)] = [
        (10, 1, 10, 1), (10, 2, 5, 2), (10, 3, 3, 3), (1, 4, 1, 4), (3, 4, 1, 4),
    ]
    @Test(arguments: shares) func `a share has so many fewer at once, but one, and they come back so much later`(
        _ row: (burst: UInt64, shares: UInt64, atOnce: Int, seconds: UInt64)
    ) {
        let (rate, second) = (TokenRate(1, per: .second, burst: row.burst), UInt64(1_000_000_000))
        var full: UInt64 = 0
        var count = 0
        #expect(rate.left(full: full, now: 0, shares: row.shares) == UInt64(row.atOnce))
        while let next = rate.taking(from: full, now: 0, shares: row.shares) {
            full = next
            count += 1
        }
        #expect(count == row.atOnce)
        #expect(rate.left(full: full, now: 0, shares: row.shares) == 0)
        let wait = rate.wait(full: full, now: 0, shares: row.shares)
        #expect(wait > 0 && wait <= row.seconds * second)
        #expect(rate.taking(from: full, now: wait, shares: row.shares) != nil)
        #expect(rate.taking(from: full, now: wait - 1, shares: row.shares) == nil)
    }

    @Test func `the highest rate and the longest period do not overflow`() {
        let rate = TokenRate(TokenRate.countMax, per: .second, burst: TokenRate.countMax)
        #expect(taken(rate, at: [(0, 2_000_000)]) == [Int(TokenRate.countMax)])
        let slow = TokenRate(1, per: .day, burst: TokenRate.countMax)
        #expect(taken(slow, at: [(0, 1000)]) == [1000])
    }
}

@Suite("limits.rules: bandwidth, a rate that flows share") struct PacedRateTests {
    private let rate = PacedRate(1_000_000)

    @Test func `a flow pays for what it moves, and the next one waits`() {
        let now: UInt64 = 5_000_000_000
        let first = rate.start(due: 0, now: now)
        #expect(first == now - PacedRate.credit)
        let due = rate.after(first, count: 200_000)
        #expect(due == now + 100_000_000)
        #expect(rate.start(due: due, now: now) == due)
        #expect(!rate.mayMove(due: due, now: now) && rate.mayMove(due: due, now: due))
    }

    @Test func `many flows take little at once, and never nothing`() {
        #expect(rate.quantity(flows: 1) == 50_000)
        #expect(rate.quantity(flows: 10) == 5000)
        #expect(rate.quantity(flows: 1_000_000) == 500)
        #expect(PacedRate(1024).quantity(flows: 9) == 256)
        #expect(PacedRate(1 << 40).quantity(flows: 1) == 64 << 10)
    }

    @Test func `the time of very many bytes does not overflow`() {
        #expect(PacedRate(1).time(of: 1 << 33) == UInt64(1 << 33) * 1_000_000_000)
        #expect(PacedRate(1 << 40).time(of: 1 << 50) == 1024 * 1_000_000_000)
    }
}
