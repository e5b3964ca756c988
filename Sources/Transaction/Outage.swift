package import Message

/// An origin that has not accepted connections lately, or whose name the name servers were silent about, and that is not tried for a while.
package struct Outage: Equatable, Sendable {
    /// What there was none of.
    package enum Lack: Equatable, Sendable { case connection, nameServer }

    package let lack: Lack
    /// When the first of the attempts failed.
    package let since: WallTime
    /// In whole seconds, at least one: the value of `Retry-After` (RFC 9110 §10.2.3).
    package let retryAfter: Int
    /// Whether requests fail without trying. Otherwise the next one tries.
    package let isPaused: Bool

    /// - Parameter pauseLeft: after so long the next request tries the origin.
    package init(_ lack: Lack = .connection, since: WallTime, pauseLeft: Duration) {
        self.lack = lack
        self.since = since
        let (seconds, rest) = pauseLeft.components
        isPaused = pauseLeft > .zero
        retryAfter = max(Int(clamping: seconds) + (rest > 0 ? 1 : 0), 1)
    }

    /// The refusal of requests that are not tried because of it.
    package var refusal: Refusal {
        switch lack {
        case .connection: .originUnavailable
        case .nameServer: .nameServersSilent
        }
    }

    /// `no connection since 2026-11-23T20:45:00Z, next attempt in 4 s`, or `no answer of a name server since …`.
    package var text: String {
        var time: [UInt8] = []
        appendTimestamp(since, to: &time)
        let next = isPaused ? "next attempt in \(retryAfter) s" : "the next request tries"
        let what =
            switch lack {
            case .connection: "no connection"
            case .nameServer: "no answer of a name server"
            }
        return "\(what) since \(String(decoding: time, as: UTF8.self)), \(next)"
    }
}
