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

/// A point in time as HTTP knows it: whole seconds since 1970-01-01T00:00:00Z.
@usableFromInline
package struct WallTime: Sendable, Hashable, Comparable {
    @usableFromInline package var secondsSinceEpoch: Int64
    @inlinable
    package init(secondsSinceEpoch: Int64) { self.secondsSinceEpoch = secondsSinceEpoch }

    @inlinable
    package static func < (a: WallTime, b: WallTime) -> Bool { a.secondsSinceEpoch < b.secondsSinceEpoch }
    @inlinable
    package static func - (a: WallTime, b: WallTime) -> Seconds {
        Seconds(a.secondsSinceEpoch) - Seconds(b.secondsSinceEpoch)
    }
    @inlinable
    package static func + (a: WallTime, b: Seconds) -> WallTime {
        WallTime(secondsSinceEpoch: a.secondsSinceEpoch.saturatingAdd(b.count))
    }
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
