/// Counts successive resumptions of a body that brought no byte, and sets the pauses between them.
package struct Resumptions: Sendable, Equatable {
    private var attemptsInVain = 0
    private var receivedBefore: UInt64 = 0
    private let attemptsInVainMax: Int

    /// - Parameter attemptsInVainMax: after so many attempts without a byte the retrieval gives up.
    package init(attemptsInVainMax: Int = 4) { self.attemptsInVainMax = attemptsInVainMax }

    /// Milliseconds to wait before the next attempt: none for the first, then doubling pauses, because an origin that restarts needs some
    /// time. Returns nil if too many attempts in a row brought no byte.
    ///
    /// - Parameter received: how many bytes of the body have been received in all.
    package mutating func nextPause(received: UInt64) -> Int? {
        precondition(received >= receivedBefore, "the count of received bytes went down")
        if received > receivedBefore { attemptsInVain = 0 }
        receivedBefore = received
        guard attemptsInVain < attemptsInVainMax else { return nil }
        attemptsInVain += 1
        return attemptsInVain == 1 ? 0 : 100 << attemptsInVain
    }
}
