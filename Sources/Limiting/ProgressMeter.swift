/// Judges whether a peer takes or sends bytes at a minimum rate, window by window.
///
/// A peer that reads has to take, within a window, as much as the rate asks for, or all that was on its way when the window began. A peer
/// that sends has to send as much as the rate asks for. Time in which the peer waits for this process does not count: whoever feeds the
/// meter pauses it then.
///
/// Times are nanoseconds of a clock that never goes back.
package struct ProgressMeter: Equatable, Sendable {
    /// What is asked of a peer.
    package struct Terms: Equatable, Sendable {
        /// In bytes per second.
        package let rate: UInt64
        /// In nanoseconds.
        package let window: UInt64

        package init(rate: UInt64, window: UInt64) {
            precondition(window > 0, "a window that is over at once asks for nothing")
            self.rate = rate
            self.window = window
        }

        /// The bytes that a peer moves in one window.
        var bytes: UInt64 {
            let (product, overflow) = rate.multipliedReportingOverflow(by: window)
            return overflow ? rate / 1_000_000_000 * window : product / 1_000_000_000
        }
    }

    package enum Verdict: Equatable, Sendable {
        /// The window is not over. It is in so many nanoseconds, if the peer is waited for until then.
        case undecided(after: UInt64)
        /// The peer was fast enough. The next window has begun.
        case passed
        case tooSlow
    }

    package let terms: Terms
    /// What the peer had moved when the window began.
    private var start: UInt64
    /// What it has to move until the window ends.
    private var due: UInt64
    /// How much of the window is over, up to `since`.
    private var elapsed: UInt64 = 0
    /// Since when the peer is waited for. Nil: it waits.
    private var since: UInt64?

    /// Begins the first window. The peer is waited for.
    ///
    /// - Parameters:
    ///   - moved: the bytes that the peer has moved since any moment.
    ///   - waiting: the bytes that wait for the peer. It is not asked for more.
    package init(_ terms: Terms, moved: UInt64, waiting: UInt64 = .max, now: UInt64) {
        self.terms = terms
        start = moved
        due = min(terms.bytes, waiting)
        since = now
    }

    package var isPaused: Bool { since == nil }

    /// The peer waits. Does nothing if it does so already.
    package mutating func pause(now: UInt64) {
        guard let since else { return }
        elapsed += now - min(now, since)
        self.since = nil
    }

    /// The peer is waited for. Does nothing if it is already.
    package mutating func resume(now: UInt64) {
        if since == nil { since = now }
    }

    /// Looks at the peer, and begins the next window if this one is over.
    ///
    /// - Parameters: as in `init`.
    package mutating func judge(moved: UInt64, waiting: UInt64 = .max, now: UInt64) -> Verdict {
        let spent = elapsed + (since.map { now - min(now, $0) } ?? 0)
        guard spent >= terms.window else { return .undecided(after: terms.window - spent) }
        guard moved &- start >= due else { return .tooSlow }
        start = moved
        due = min(terms.bytes, waiting)
        elapsed = 0
        if since != nil { since = now }
        return .passed
    }
}
