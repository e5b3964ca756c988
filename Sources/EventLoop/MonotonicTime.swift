// Import all of these: which module a C type belongs to depends on which one is loaded first.
import CAres
import CLarder
import CLibevent
import Glibc

/// A time of the clock that never goes back. Only differences have a meaning.
package struct MonotonicTime: Comparable, Hashable, Sendable {
    /// Nanoseconds since the system started.
    package var nanoseconds: UInt64

    package init(nanoseconds: UInt64) { self.nanoseconds = nanoseconds }

    package static func < (a: MonotonicTime, b: MonotonicTime) -> Bool { a.nanoseconds < b.nanoseconds }

    /// The time `duration` later, clamped to the range of the clock.
    package func advanced(by duration: Duration) -> MonotonicTime {
        let step = duration.nanosecondsClamped
        if step < 0 {
            let (time, underflow) = nanoseconds.subtractingReportingOverflow(step.magnitude)
            return MonotonicTime(nanoseconds: underflow ? 0 : time)
        }
        let (time, overflow) = nanoseconds.addingReportingOverflow(UInt64(step))
        return MonotonicTime(nanoseconds: overflow ? .max : time)
    }

    /// The time since `earlier`. Negative if `earlier` is later.
    package func duration(since earlier: MonotonicTime) -> Duration {
        self >= earlier
            ? .nanoseconds(Int64(clamping: nanoseconds - earlier.nanoseconds))
            : .nanoseconds(-Int64(clamping: earlier.nanoseconds - nanoseconds))
    }

    /// A time that does not come.
    package static let never = MonotonicTime(nanoseconds: .max)

    /// The time since the system started.
    package var sinceStart: Duration { .nanoseconds(Int64(clamping: nanoseconds)) }

    /// The present time. It advances in steps of a scheduler tick (1 to 4 ms), and is cheap to read.
    package static func read() -> MonotonicTime {
        let time = readClock(CLOCK_MONOTONIC_COARSE)
        return MonotonicTime(nanoseconds: UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec))
    }

    /// The present time, in full resolution. It takes longer to read.
    package static func readExactly() -> MonotonicTime {
        let time = readClock(CLOCK_MONOTONIC)
        return MonotonicTime(nanoseconds: UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec))
    }
}

extension Duration {
    /// The duration in nanoseconds, clamped to the range of `Int64` (292 years).
    var nanosecondsClamped: Int64 {
        let (seconds, attoseconds) = components
        let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        let (sum, overflowOfSum) = whole.addingReportingOverflow(attoseconds / 1_000_000_000)
        return overflow || overflowOfSum ? (seconds < 0 ? .min : .max) : sum
    }
}

func readClock(_ clock: clockid_t) -> timespec {
    var time = timespec()
    let status = unsafe clock_gettime(clock, &time)
    precondition(status == 0, "clock_gettime failed")
    return time
}

extension Duration {
    /// Rounded down, and clamped to the range of the type.
    package var wholeNanoseconds: Int64 {
        // A billion is 2⁹ · 5⁹. After the shift, time limits of up to two hours fit in a word, whose division is cheap.
        let parts = attoseconds >> 9
        if let word = UInt64(exactly: parts) { return Int64(word / 1_953_125) }
        let nanoseconds = attoseconds / 1_000_000_000
        return Int64(exactly: nanoseconds) ?? (nanoseconds < 0 ? .min : .max)
    }
}
