/// A duration in whole seconds, the unit of lifetimes and ages in HTTP (RFC 9111 §1.2.2, delta-seconds).
@usableFromInline
package struct Seconds: Sendable, Hashable, Comparable {
    @usableFromInline package var count: Int64
    @inlinable
    package init(_ count: Int64) { self.count = count }

    @inlinable
    package static var zero: Seconds { Seconds(0) }
    /// The value for a delta-seconds that is too large (RFC 9111 §1.2.2).
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

/// A duration in 1/1024 s. Ages are calculated in it, so that a full second that passes in between adds no more than the time itself.
///
/// The fractions are binary, so that a hit rounds to whole seconds with a shift in place of a division.
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
    /// The whole seconds of the duration, without its fraction.
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

/// A time in 1/1024 s. Times in fields have whole seconds; times of a clock do not.
@usableFromInline
package struct WallTime: Sendable, Hashable, Comparable {
    /// 1/1024 s since 1970-01-01T00:00:00Z.
    @usableFromInline package var ticks: Int64
    @inlinable
    package init(ticks: Int64) { self.ticks = ticks }
    @inlinable
    package init(secondsSinceEpoch: Int64) { ticks = ticksOfSeconds(secondsSinceEpoch) }
    /// The seconds since 1970 that a time can have. Differences of such numbers fit in 64 bits.
    package static let secondsBounds: ClosedRange<Int64> = -(1 << 53)...(1 << 53 - 1)

    /// By how much a time may be later than now and still be one of the past: the clocks of two threads differ by what one turn of a loop takes. What is further in the
    /// future is from before the clock was set back.
    @inlinable
    package static var tolerance: Seconds { Seconds(5) }

    /// Rounded down.
    @inlinable
    package var secondsSinceEpoch: Int64 { ticks >> ticksShift }
    /// The second in which the time lies, as a field would give it.
    @inlinable
    package var wholeSecond: WallTime { WallTime(ticks: ticks & ~(ticksPerSecond - 1)) }
    /// The time since the beginning of that second.
    @inlinable
    package var fraction: TimeSpan { TimeSpan(ticks: ticks & (ticksPerSecond - 1)) }

    @inlinable
    package func span(since earlier: WallTime) -> TimeSpan {
        TimeSpan(ticks: ticks.saturatingSubtract(earlier.ticks))
    }

    @inlinable
    package static func < (a: WallTime, b: WallTime) -> Bool { a.ticks < b.ticks }
    /// The whole seconds between two times, rounded down. For dates in fields; ages are calculated with `span(since:)`.
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

/// The result, or the nearest bound if it does not fit in 64 bits.
@inlinable
package func ticksOfSeconds(_ seconds: Int64) -> Int64 {
    let (ticks, overflow) = seconds.multipliedReportingOverflow(by: ticksPerSecond)
    return overflow ? (seconds < 0 ? .min : .max) : ticks
}

extension Int64 {
    // Arithmetic on numbers from a peer: results beyond the bounds become the nearest bound, and do not trap.
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
