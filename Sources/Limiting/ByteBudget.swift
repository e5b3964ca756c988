/// So many bytes in a window of time. Windows begin at whole hours, days (at midnight) and weeks (on Monday) of UTC.
package struct ByteBudget: Equatable, Sendable {
    package let bytes: UInt64
    package let window: Window
    package let counts: Direction

    package enum Window: String, CaseIterable, Sendable {
        case hour, day, week

        /// In seconds.
        package var length: Int64 {
            switch self {
            case .hour: 3600
            case .day: 86_400
            case .week: 604_800
            }
        }

        /// The beginning of a window. 1970-01-01 was a Thursday.
        private var origin: Int64 { self == .week ? 4 * 86_400 : 0 }

        /// When the window ends in which a time lies, in seconds since 1970. The time itself is not the end.
        package func end(of now: Int64) -> Int64 {
            let since = now - origin
            let number = since >= 0 ? since / length : (since - length + 1) / length
            return origin + (number + 1) * length
        }
    }

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
