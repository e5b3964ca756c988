/// Decides whether a server that fails is asked at all, so that requests do not wait for what has failed a moment ago.
///
/// ```
/// closed ── failures within the window ──▶ open ── its time is over ──▶ probing ── success ──▶ closed
///                                            ▲─────────── failure ──────────│
/// ```
///
/// The time grows from 1–2 seconds to 15–30 with each opening; where it lies in between is drawn, so that the nodes of a fleet do not all come back
/// at once. It begins anew after the circuit has been closed for `calmNanoseconds`. Times are nanoseconds of a clock that never goes back.
package struct Circuit: Sendable {
    /// What a caller was allowed to do. It is given back with the outcome, so that the late outcome of an earlier call is not taken for that of the
    /// probe.
    package enum Permit: Equatable, Sendable {
        case ordinary
        /// The one call that finds out whether the server is well again.
        case probe
    }

    package enum Outcome: Equatable, Sendable {
        case success
        /// - Parameter jitter: 64 random bits.
        case failure(jitter: UInt64)
    }

    private enum State: Equatable {
        /// The times of the latest failures, the oldest first: fewer than the threshold.
        case closed(failures: [UInt64], since: UInt64)
        case open(until: UInt64)
        case probing
    }

    private let failuresToOpen: Int
    private let window: UInt64
    private var state = State.closed(failures: [], since: 0)
    /// How often the circuit was opened since the server was last well for long.
    private var openings = 0

    private static let second: UInt64 = 1_000_000_000
    private static let longest = 30 * second
    package static let calmNanoseconds = 60 * second

    /// - Parameters:
    ///   - failuresToOpen: so many failures within the window open the circuit.
    ///   - windowNanoseconds: the length of the window.
    package init(failuresToOpen: Int = 5, windowNanoseconds: UInt64 = 1_000_000_000) {
        precondition(failuresToOpen > 0, "a circuit opens after a failure")
        self.failuresToOpen = failuresToOpen
        window = windowNanoseconds
    }

    package var isOpen: Bool {
        switch state {
        case .closed: false
        case .open, .probing: true
        }
    }

    /// Whether the probe is under way. Its outcome is for this circuit and for no other one.
    package var isProbing: Bool { state == .probing }

    /// Asks for a call. Each permit is settled once, with an outcome.
    ///
    /// - Returns: nil if the server is not to be asked now.
    package mutating func permit(now: UInt64) -> Permit? {
        switch state {
        case .closed: return .ordinary
        case .probing: return nil
        case .open(let until):
            guard now >= until else { return nil }
            state = .probing
            return .probe
        }
    }

    package mutating func settle(_ permit: Permit, _ outcome: Outcome, now: UInt64) {
        switch (state, permit, outcome) {
        case (.closed(var failures, let since), .ordinary, .failure(let jitter)):
            if now &- since >= Circuit.calmNanoseconds { openings = 0 }
            failures = failures.filter { now &- $0 < window } + [now]
            guard failures.count >= failuresToOpen else {
                state = .closed(failures: failures, since: since)
                return
            }
            open(now, jitter)
        case (.probing, .probe, .failure(let jitter)): open(now, jitter)
        case (.probing, .probe, .success): state = .closed(failures: [], since: now)
        case (.closed, .ordinary, .success): break
        // Calls that began before the circuit was opened.
        case (.open, .ordinary, _), (.probing, .ordinary, _): break
        case (.closed, .probe, _), (.open, .probe, _): preconditionFailure("a probe is settled once")
        }
    }

    private mutating func open(_ now: UInt64, _ jitter: UInt64) {
        openings += 1
        let most = min(Circuit.second << UInt64(min(openings, 5)), Circuit.longest)
        let duration = most / 2 + jitter % (most / 2 + 1)
        state = .open(until: now &+ duration)
    }
}
