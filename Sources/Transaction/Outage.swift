package import Message

/// An origin that has not accepted connections lately, and is not tried for a while.
package struct Outage: Equatable, Sendable {
    /// When the first of the attempts failed.
    package let since: WallTime
    /// In whole seconds, at least one: the value of `Retry-After` (RFC 9110 §10.2.3).
    package let retryAfter: Int
    /// Whether requests fail without trying. Otherwise the next one tries.
    package let isPaused: Bool

    /// - Parameter pauseLeft: after so long the next request tries the origin.
    package init(since: WallTime, pauseLeft: Duration) {
        self.since = since
        let (seconds, rest) = pauseLeft.components
        isPaused = pauseLeft > .zero
        retryAfter = max(Int(clamping: seconds) + (rest > 0 ? 1 : 0), 1)
    }

    /// `no connection since 2026-11-23T20:45:00Z, next attempt in 4 s`.
    package var text: String {
        var time: [UInt8] = []
        appendTimestamp(since, to: &time)
        let next = isPaused ? "next attempt in \(retryAfter) s" : "the next request tries"
        return "no connection since \(String(decoding: time, as: UTF8.self)), \(next)"
    }
}
