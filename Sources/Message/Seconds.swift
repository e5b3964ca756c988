/// A span of time in whole seconds: the unit of every lifetime and age in HTTP (RFC 9111 §1.2.2, delta-seconds).
@usableFromInline
package struct Seconds: Sendable, Hashable, Comparable {
    @usableFromInline package var count: Int64
    @inlinable
    package init(_ count: Int64) { self.count = count }

    @inlinable
    package static var zero: Seconds { Seconds(0) }
    /// What a delta-seconds too large to hold is taken for (RFC 9111 §1.2.2).
    @inlinable
    package static var deltaMax: Seconds { Seconds(1 << 31) }

    @inlinable
    package static func == (a: Seconds, b: Seconds) -> Bool { a.count == b.count }
    @inlinable
    package static func < (a: Seconds, b: Seconds) -> Bool { a.count < b.count }
    @inlinable
    package static func + (a: Seconds, b: Seconds) -> Seconds { Seconds(a.count.saturatingAdd(b.count)) }
    @inlinable
    package static func - (a: Seconds, b: Seconds) -> Seconds { Seconds(a.count.saturatingSubtract(b.count)) }
}

/// A span of time to 1/1024 of a second: what an age is worked out in, so that a second that turns on the way adds nothing to it.
///
/// Binary fractions, because the path of a hit rounds to whole seconds: a shift in place of a division.
@usableFromInline
package struct TimeSpan: Sendable, Hashable, Comparable {
    /// In 1/1024 s.
    @usableFromInline package var ticks: Int64
    @inlinable
    package init(ticks: Int64) { self.ticks = ticks }
    @inlinable
    package init(_ seconds: Seconds) { ticks = ticksOfSeconds(seconds.count) }

    @inlinable
    package static var zero: TimeSpan { TimeSpan(ticks: 0) }
    /// Rounded down.
    @inlinable
    package var seconds: Seconds { Seconds(ticks >> ticksShift) }
    /// Without what is less than a second.
    @inlinable
    package var wholeSeconds: TimeSpan { TimeSpan(ticks: ticks & ~(ticksPerSecond - 1)) }

    @inlinable
    package static func < (a: TimeSpan, b: TimeSpan) -> Bool { a.ticks < b.ticks }
    @inlinable
    package static func + (a: TimeSpan, b: TimeSpan) -> TimeSpan { TimeSpan(ticks: a.ticks.saturatingAdd(b.ticks)) }
    @inlinable
    package static func - (a: TimeSpan, b: TimeSpan) -> TimeSpan {
        TimeSpan(ticks: a.ticks.saturatingSubtract(b.ticks))
    }
}

/// A point in time to 1/1024 of a second. What a field of HTTP names is whole seconds; what a clock says is not.
@usableFromInline
package struct WallTime: Sendable, Hashable, Comparable {
    /// 1/1024 s since 1970-01-01T00:00:00Z.
    @usableFromInline package var ticks: Int64
    @inlinable
    package init(ticks: Int64) { self.ticks = ticks }
    @inlinable
    package init(secondsSinceEpoch: Int64) { ticks = ticksOfSeconds(secondsSinceEpoch) }

    /// Rounded down.
    @inlinable
    package var secondsSinceEpoch: Int64 { ticks >> ticksShift }
    /// The second that it lies in, as a field would name it.
    @inlinable
    package var wholeSecond: WallTime { WallTime(ticks: ticks & ~(ticksPerSecond - 1)) }
    /// How far into that second it is.
    @inlinable
    package var fraction: TimeSpan { TimeSpan(ticks: ticks & (ticksPerSecond - 1)) }

    @inlinable
    package func span(since earlier: WallTime) -> TimeSpan {
        TimeSpan(ticks: ticks.saturatingSubtract(earlier.ticks))
    }

    @inlinable
    package static func < (a: WallTime, b: WallTime) -> Bool { a.ticks < b.ticks }
    /// Whole seconds between, rounded down: for dates that fields name. An age is worked out with `span(since:)`.
    @inlinable
    package static func - (a: WallTime, b: WallTime) -> Seconds { a.span(since: b).seconds }
    @inlinable
    package static func + (a: WallTime, b: Seconds) -> WallTime { a + TimeSpan(b) }
    @inlinable
    package static func + (a: WallTime, b: TimeSpan) -> WallTime { WallTime(ticks: a.ticks.saturatingAdd(b.ticks)) }
    @inlinable
    package static func - (a: WallTime, b: TimeSpan) -> WallTime {
        WallTime(ticks: a.ticks.saturatingSubtract(b.ticks))
    }
}

@inlinable
package var ticksPerSecond: Int64 { 1 << ticksShift }
@inlinable
package var ticksShift: Int64 { 10 }

/// The nearest bound where there are more than 64 bits hold.
@inlinable
package func ticksOfSeconds(_ seconds: Int64) -> Int64 {
    let (ticks, overflow) = seconds.multipliedReportingOverflow(by: ticksPerSecond)
    return overflow ? (seconds < 0 ? .min : .max) : ticks
}

extension Int64 {
    /// Arithmetic on numbers a peer supplied: the nearest bound in place of a trap.
    @inlinable
    package func saturatingAdd(_ other: Int64) -> Int64 {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? (other < 0 ? .min : .max) : sum
    }

    @inlinable
    package func saturatingSubtract(_ other: Int64) -> Int64 {
        let (difference, overflow) = subtractingReportingOverflow(other)
        return overflow ? (other < 0 ? .max : .min) : difference
    }
}
