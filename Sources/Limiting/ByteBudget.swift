import Message

/// So many bytes in a window of time, or in all. Windows begin at whole hours, days (at midnight) and weeks (on Monday) of UTC.
package struct ByteBudget: Equatable, Sendable {
    package let bytes: UInt64
    package let window: Window
    package let counts: Direction

    package enum Window: String, CaseIterable, Sendable {
        case hour, day, week
        /// Never refilled, except by `larder budget reset`.
        case total

        /// In seconds. It is not said of `total`.
        private var length: Int64 {
            switch self {
            case .hour: 3600
            case .day: 86_400
            case .week: 604_800
            case .total: preconditionFailure("it has no end")
            }
        }

        /// The beginning of a window. 1970-01-01 was a Thursday.
        private var origin: Int64 { self == .week ? 4 * 86_400 : 0 }

        /// When the window ends in which a time lies, in seconds since 1970. The time itself is not the end.
        package func end(of now: Int64) -> Int64 {
            if self == .total { return ByteBudget.never }
            let since = now - origin
            let number = since >= 0 ? since / length : (since - length + 1) / length
            return origin + (number + 1) * length
        }

        /// What becomes of the window that a budget has begun.
        package enum Turn: Equatable, Sendable {
            case stays
            /// The window is over. Nothing is used of the next one, which ends then.
            case begins(end: Int64)
            /// The clock was set back to before the window. What was used of it counts in the present window, which ends then: setting the clock
            /// back neither gives a budget once more nor takes it away for longer than a window.
            case recedes(end: Int64)
        }

        /// - Parameters:
        ///   - end: when the window ends that has begun.
        ///   - now: in seconds since 1970.
        @inline(__always)
        package func turn(from end: Int64, at now: Int64) -> Turn {
            // A budget that was one in all, and now has windows, begins with a new one.
            if now >= end || (end == ByteBudget.never) != (self == .total) { return .begins(end: self.end(of: now)) }
            if self == .total || now >= end.saturatingSubtract(length + WallTime.tolerance.count) { return .stays }
            return .recedes(end: self.end(of: now))
        }
    }

    /// The end of a window that does not end.
    package static let never = Int64.max

    /// Which bytes count: of bodies and tunnels, without heads.
    package enum Direction: String, CaseIterable, Sendable {
        /// Towards the client.
        case download
        /// From the client.
        case upload
        case both
    }

    package init(_ bytes: UInt64, every window: Window, counts: Direction = .download) {
        precondition(bytes > 0, "a budget of nothing is a rule that denies")
        self.bytes = bytes
        self.window = window
        self.counts = counts
    }

    /// `in one day`, `in all`.
    package var windowText: String { window == .total ? "in all" : "in one \(window.rawValue)" }

    package var countsDownloads: Bool { counts != .upload }
    package var countsUploads: Bool { counts != .download }
}

/// What has been used of a budget, as it is kept over a restart.
package struct BudgetUse: Equatable, Sendable {
    package let bucket: LimitBucket
    /// When the window ends, in seconds since 1970.
    package let windowEnd: Int64
    package let spent: UInt64

    package init(_ bucket: LimitBucket, windowEnd: Int64, spent: UInt64) {
        self.bucket = bucket
        self.windowEnd = windowEnd
        self.spent = spent
    }
}
