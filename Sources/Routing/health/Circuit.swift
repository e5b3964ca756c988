/// Whether something that other requests found dead should be tried.
///
/// ```
/// closed ──failures──▶ open ──time──▶ one tries ──success──▶ closed
///                        ▲                │ failure
///                        └────────────────┘ for twice as long
/// ```
///
/// Times are those of a clock that never goes back, since any moment.
package struct Circuit: Equatable, Sendable {
    /// How a kind of circuit behaves.
    package struct Terms: Equatable, Sendable {
        /// After how many failures in a row the circuit opens.
        package var failuresMax: Int
        /// For how long it is open at first, and at most.
        package var pause: Duration
        package var pauseMax: Duration

        package init(failuresMax: Int, pause: Duration, pauseMax: Duration) {
            self.failuresMax = failuresMax
            self.pause = pause
            self.pauseMax = pauseMax
        }

        /// A next proxy: there is often another one, so one failure suffices.
        package static let nextProxy = Terms(failuresMax: 1, pause: .seconds(5), pauseMax: .seconds(60))
    }

    private var failures = 0
    private var until = Duration.zero
    private var pause = Duration.zero
    private var isTrying = false

    package init() {}

    /// Whether a request should go elsewhere, or fail at once. When the time is over this is false for the one that asks first, which tries,
    /// and true for the others for as long again.
    package mutating func isOpen(now: Duration, _ terms: Terms) -> Bool {
        guard failures >= terms.failuresMax else { return false }
        if now < until { return true }
        until = now + pause
        isTrying = true
        return false
    }

    /// Whether it is open, or would be if nobody tried.
    package func hasOpened(_ terms: Terms) -> Bool { failures >= terms.failuresMax }

    /// How long until the next one tries. Zero: nothing is in the way.
    package func pauseLeft(now: Duration) -> Duration { max(until - now, .zero) }

    /// - Returns: whether the circuit has opened with this.
    package mutating func failed(now: Duration, _ terms: Terms) -> Bool {
        // Attempts that began before it opened tell nothing new.
        guard failures < terms.failuresMax || isTrying else { return false }
        let wasOpen = failures >= terms.failuresMax
        failures += 1
        guard failures >= terms.failuresMax else { return false }
        pause = wasOpen ? min(pause * 2, terms.pauseMax) : terms.pause
        until = now + pause
        isTrying = false
        return !wasOpen
    }

    /// - Returns: whether the circuit was open.
    package mutating func succeeded(_ terms: Terms) -> Bool {
        let wasOpen = failures >= terms.failuresMax
        self = Circuit()
        return wasOpen
    }
}
