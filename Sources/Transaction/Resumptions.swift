/// Counts how often a transfer was resumed without a single byte having come of it, and spaces the attempts.
package struct Resumptions: Sendable, Equatable {
    private var attemptsInVain = 0
    private var receivedBefore: UInt64 = 0
    private let attemptsInVainMax: Int

    /// - Parameter attemptsInVainMax: attempts that bring nothing before the transfer is given up.
    package init(attemptsInVainMax: Int = 4) { self.attemptsInVainMax = attemptsInVainMax }

    /// Milliseconds to wait before the next attempt: none at first, then more and more, since an origin that restarts needs a
    /// moment. Returns nil when too many attempts in a row brought nothing.
    ///
    /// - Parameter received: bytes of the body that have arrived in all.
    package mutating func nextPause(received: UInt64) -> Int? {
        precondition(received >= receivedBefore, "bytes that arrived do not go away")
        if received > receivedBefore { attemptsInVain = 0 }
        receivedBefore = received
        guard attemptsInVain < attemptsInVainMax else { return nil }
        attemptsInVain += 1
        return attemptsInVain == 1 ? 0 : 100 << attemptsInVain
    }
}
