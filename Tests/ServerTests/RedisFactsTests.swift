import Fleet
@testable import Server
import Testing

@Suite("larder doctor --server: numbers of a Redis at their bounds") struct RedisNumberTests {
    private static let numbers: [Int64] = [.min, -(1 << 53), -1, 0, 1, 1 << 53 - 1, 1 << 53, .max - 1, .max]
    private static let now: Int64 = 1_767_225_600_000

    @Test func `a clock that is ahead of all times is compared`() {
        for number in Self.numbers {
            for now in [0, Self.now] { #expect(RedisFacts.clockAhead("\(number)", now: now) == number / 1000 - now) }
        }
        #expect(RedisFacts.clockAhead("9223372036854775808", now: 0) == nil)
        #expect(RedisFacts.clockAhead("0", now: .min) == .max && RedisFacts.clockAhead("", now: 0) == nil)
    }

    @Test(arguments: [0, 1 << 53 - 1] as [Int64]) func `so is what a report says`(_ saidAt: Int64) throws {
        let report = try #require(
            NodeReport(node: "a", run: "1f", release: "1.0", startedAt: 0, saidAt: saidAt, number: 1, figures: [:]))
        for left in Self.numbers {
            for now in Self.numbers {
                // For ever, or for less time than a report is kept at first.
                let isSilent = left < Int64(FleetNode.reportSeconds) * 1000 - Int64(SeenNodes.silenceMax / 1_000_000)
                #expect((RedisFacts.Node(report, left: left, now: now) == nil) == isSilent)
            }
        }
        #expect(RedisFacts.Node(report, left: nil, now: Self.now)?.clockAhead == nil)
    }

    @Test func `only times within a minute are of the last minute`() {
        for number in [0, 59, 60, 1 << 53, 1 << 63 - 1, 1 << 63, .max] as [UInt64] {
            let entry = Array("\(number) 1.0".utf8)
            #expect(RedisFacts.isOfLastMinute(entry, now: 0) == (number < 60 || number >= 1 << 63))
            #expect(!RedisFacts.isOfLastMinute(entry, now: Self.now) && !RedisFacts.isOfLastMinute(entry, now: .max))
        }
        #expect(RedisFacts.isOfLastMinute(Array("\(Self.now / 1000 - 59)".utf8), now: Self.now))
        #expect(!RedisFacts.isOfLastMinute(Array("18446744073709551616".utf8), now: Self.now))
    }
}
