import Message
import Testing

@Suite("clocks: what a clock that is set does to an end") struct ExpiryTests {
    static let start = Moment(uptime: .seconds(100), wallTime: WallTime(secondsSinceEpoch: 1_000_000))
    static let day: Int64 = 86_400

    /// - Parameter change: by how much the wall clock was set meanwhile.
    static func later(_ seconds: Int64, clockAhead change: Int64 = 0) -> Moment {
        Moment(
            uptime: start.uptime + .seconds(seconds), wallTime: start.wallTime + Seconds(seconds) + Seconds(change))
    }

    static let both = [Expiry(after: Seconds(60), from: start), Expiry(at: start.wallTime + Seconds(60), seen: start)]

    @Test(arguments: both) func `as long as nobody sets a clock, both say the same`(_ end: Expiry) {
        #expect(!end.isOver(at: Self.later(59)) && end.isOver(at: Self.later(60)))
        #expect(end.left(at: Self.later(20)) == Seconds(40) && end.left(at: Self.later(70)) == .zero)
        #expect(!end.hasBeenOver(for: Seconds(5), at: Self.later(64)))
        #expect(end.hasBeenOver(for: Seconds(5), at: Self.later(65)))
    }

    @Test(arguments: both) func `set back, it ends after its time nevertheless`(_ end: Expiry) {
        #expect(!end.isOver(at: Self.later(59, clockAhead: -Self.day)))
        #expect(end.isOver(at: Self.later(60, clockAhead: -Self.day)))
        #expect(end.left(at: Self.later(50, clockAhead: -Self.day)) == Seconds(10))
    }

    @Test(arguments: both) func `set forward, it ends at the time that people were told`(_ end: Expiry) {
        #expect(end.isOver(at: Self.later(1, clockAhead: Self.day)))
        #expect(end.left(at: Self.later(1, clockAhead: Self.day)) == .zero)
        #expect(!end.isOver(at: Self.later(29, clockAhead: 30)) && end.isOver(at: Self.later(30, clockAhead: 30)))
    }

    @Test func `what is seen again after the clock was set back ends as it was dated at first`() {
        let end = Self.later(0).wallTime + Seconds(600)
        let first = Expiry(at: end, seen: Self.later(0))
        // Ten minutes later, with a clock that shows the time of the beginning.
        let again = Self.later(600, clockAhead: -600)
        #expect(!Expiry(at: end, seen: again).isOver(at: again), "by itself it would hold for ten minutes more")
        #expect(Expiry(at: end, seen: again).asSeen(first: first).isOver(at: again))
        let other = Expiry(at: end + Seconds(1), seen: again)
        #expect(other.asSeen(first: first) == other, "another end is no earlier sight of this one")
        #expect(other.asSeen(first: nil) == other)
    }

    @Test(arguments: [.min, -1, 0, 1, .max] as [Int64]) func `lifetimes and times at their bounds do not trap`(
        _ seconds: Int64
    ) {
        for now in [Self.start, Moment(uptime: .zero, wallTime: WallTime(ticks: .min))] {
            for end in [Expiry(after: Seconds(seconds), from: now), Expiry(at: WallTime(ticks: seconds), seen: now)] {
                _ = (end.isOver(at: Self.start), end.left(at: Self.start))
                _ = end.hasBeenOver(for: Seconds(seconds), at: Self.start)
            }
        }
    }
}

@Suite("clocks: a clock that was set is noticed") struct ClockWatchTests {
    @Test func `what a time service does is not, a jump is, once`() {
        var watch = ClockWatch()
        let steps: [(second: Int64, ahead: Int64, says: Int64?)] = [
            (0, 0, nil), (1, 5, nil), (2, -5, nil), (3, 86_400, 86_400), (4, 86_400, nil), (5, 86_406, 6),
            (6, 0, -86_406), (7, 0, nil), (8, 6, 6),
        ]
        for step in steps {
            #expect(
                watch.change(at: ExpiryTests.later(step.second, clockAhead: step.ahead))?.count == step.says,
                "\(step)")
        }
    }

    /// A clock that drifts away second by second is noticed as soon as it is further away than the tolerance.
    @Test func `so is one that was moved in small steps`() {
        var watch = ClockWatch()
        let changes = (0...20).compactMap { watch.change(at: ExpiryTests.later($0, clockAhead: $0))?.count }
        #expect(changes == [6, 6, 6])
    }
}
