/// The present time, by both clocks.
///
/// How long something lasts is measured by the clock that never goes back. The wall clock dates what people and other programs see, and what outlives the process; somebody may
/// set it at any time.
package struct Moment: Sendable, Hashable {
    /// By the clock that never goes back, since any moment.
    package let uptime: Duration
    package let wallTime: WallTime

    package init(uptime: Duration, wallTime: WallTime) {
        self.uptime = uptime
        self.wallTime = wallTime
    }
}

/// When something ends that holds for a time: as soon as either clock says so.
///
/// By the clock that never goes back, nothing holds for longer than it was granted for, even if the wall clock is set back. By the wall clock, it is over at the time that
/// people were told, even if the clock was set forward or the machine has slept.
package struct Expiry: Sendable, Hashable {
    /// As people are told.
    package let wallTime: WallTime
    package let uptime: Duration

    /// What holds for so long from now on.
    package init(after lifetime: Seconds, from now: Moment) {
        wallTime = now.wallTime + lifetime
        uptime = now.uptime + Expiry.duration(lifetime)
    }

    /// What somebody else has dated.
    package init(at wallTime: WallTime, seen now: Moment) {
        self.wallTime = wallTime
        uptime = now.uptime + Expiry.duration(wallTime - now.wallTime)
    }

    /// The same end as it was dated when it was first seen. Another end that is dated otherwise is no earlier sight of this one.
    ///
    /// What is seen again after the wall clock was set back would otherwise hold for longer.
    package func asSeen(first: Expiry?) -> Expiry { first.flatMap { $0.wallTime == wallTime ? $0 : nil } ?? self }

    package func isOver(at now: Moment) -> Bool { hasBeenOver(for: .zero, at: now) }

    /// Whether it has been over for so long.
    package func hasBeenOver(for time: Seconds, at now: Moment) -> Bool {
        now.wallTime >= wallTime + time || now.uptime >= uptime + Expiry.duration(time)
    }

    /// How long it holds from now on; zero if it is over.
    package func left(at now: Moment) -> Seconds {
        max(.zero, min(wallTime - now.wallTime, Seconds((uptime - now.uptime).components.seconds)))
    }

    /// Bounded as times are, so that sums and differences fit.
    private static func duration(_ seconds: Seconds) -> Duration {
        let bounds = WallTime.secondsBounds
        return .seconds(min(max(seconds.count, bounds.lowerBound), bounds.upperBound))
    }
}

/// Notices that the wall clock was set, which no clock tells anybody. Asked about once a second.
package struct ClockWatch: Sendable {
    /// By how much the wall clock is ahead of the one that never goes back.
    private var offset: Duration?

    package init() {}

    /// By how much the wall clock was set since the last time: forward if it is more than zero. Nil: it was not, or by `WallTime.tolerance` at most, as time services do it.
    package mutating func change(at now: Moment) -> Seconds? {
        let present = now.wallTime.sinceEpoch - now.uptime
        guard let offset else {
            offset = present
            return nil
        }
        let change = present - offset
        guard abs(change.components.seconds) > WallTime.tolerance.count else { return nil }
        self.offset = present
        return Seconds(change.components.seconds)
    }
}

extension WallTime {
    fileprivate var sinceEpoch: Duration {
        .seconds(secondsSinceEpoch) + .nanoseconds(fraction.ticks * 1_000_000_000 / ticksPerSecond)
    }
}
