/// So many per period, and so many at once: a token bucket that is always refilled (the generic cell rate algorithm).
///
/// The state of a bucket is one number: the time at which it is full again. A token moves that time on by one interval. So a bucket that is
/// full needs no memory, and taking a token from one that threads share is a single exchange. Times are nanoseconds of a clock that never
/// goes back, since any moment.
package struct TokenRate: Equatable, Sendable {
    package let count: UInt64
    package let period: Period
    /// How many may be taken at once from a bucket that is full.
    package let burst: UInt64
    /// How long one token takes to come back.
    private let interval: UInt64

    package enum Period: String, CaseIterable, Sendable {
        case second = "s"
        case minute = "m"
        case hour = "h"
        case day = "d"

        package var nanoseconds: UInt64 {
            switch self {
            case .second: 1_000_000_000
            case .minute: 60_000_000_000
            case .hour: 3_600_000_000_000
            case .day: 86_400_000_000_000
            }
        }
    }

    /// - Parameter burst: nil for as many as come back within one period.
    package init(_ count: UInt64, per period: Period, burst: UInt64? = nil) {
        precondition((1...TokenRate.countMax).contains(count), "a rate of nothing would never let anything through")
        precondition((1...TokenRate.countMax).contains(burst ?? 1), "a bucket without room would never have a token")
        self.count = count
        self.period = period
        self.burst = burst ?? count
        interval = period.nanoseconds / count
    }

    /// For the rate and for the burst. A day of as many is still far from the end of the clock.
    package static let countMax: UInt64 = 1_000_000

    /// Takes one token.
    ///
    /// - Parameter full: when the bucket is full again.
    /// - Returns: the same afterwards. Nil: there is no token.
    @inline(__always)
    package func taking(from full: UInt64, now: UInt64) -> UInt64? {
        let next = max(full, now) &+ interval
        return next &- now <= burst &* interval ? next : nil
    }

    /// Takes one token from one of so many equal shares of the bucket: it takes so much longer to come back, and so many fewer may be taken at once, but
    /// always one.
    package func taking(from full: UInt64, now: UInt64, shares: UInt64) -> UInt64? {
        let step = step(shares: shares)
        let next = max(full, now) &+ step
        return next &- now <= max(burst &* interval, step) ? next : nil
    }

    /// The change of the state that one token makes, to take it back.
    package var step: UInt64 { interval }
    package func step(shares: UInt64) -> UInt64 { interval &* shares }

    /// How long until there is a token, in nanoseconds.
    package func wait(full: UInt64, now: UInt64, shares: UInt64 = 1) -> UInt64 {
        let step = step(shares: shares)
        let next = max(full, now) &+ step
        let room = now &+ max(burst &* interval, step)
        return next > room ? next &- room : 0
    }

    /// How many tokens there are.
    package func left(full: UInt64, now: UInt64, shares: UInt64 = 1) -> UInt64 {
        let most = max(1, burst / shares)
        let step = step(shares: shares)
        return full <= now ? most : most - min(most, (full - now + step - 1) / step)
    }

    /// `50/s`
    package var text: String { "\(count)/\(period.rawValue)" }
}
