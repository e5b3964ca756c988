/// How bytes share a rate: the arithmetic of `BandwidthLedger`, on a state of one number for threads that share it.
///
/// The state is the time at which the next byte is due, in nanoseconds of a clock that never goes back. A flow pays for a small quantity
/// before it moves it, so flows take turns in the order in which they ask.
package struct PacedRate: Equatable, Sendable {
    /// In bytes per second.
    package let rate: UInt64

    package init(_ rate: UInt64) {
        precondition(rate > 0, "a flow without a rate would never end")
        self.rate = rate
    }

    /// What a bucket that was not used for a while may catch up on, in nanoseconds.
    package static let credit: UInt64 = 100_000_000
    private static let countMin: UInt64 = 256
    private static let countMax: UInt64 = 64 << 10
    /// All flows together take so long for a quantity each that none waits for longer than 100 ms.
    private static let roundsPerSecond: UInt64 = 20

    /// How many bytes one of so many flows pays for at once.
    package func quantity(flows: Int) -> Int {
        let fair = max(rate / PacedRate.roundsPerSecond / UInt64(max(1, flows)), rate / 2000)
        return Int(min(max(fair, PacedRate.countMin), PacedRate.countMax))
    }

    /// When the first of the bytes that are paid for now may be moved.
    package func start(due: UInt64, now: UInt64) -> UInt64 {
        max(due, now < PacedRate.credit ? 0 : now - PacedRate.credit)
    }

    /// The state after so many bytes from `start` on.
    package func after(_ start: UInt64, count: Int) -> UInt64 { start &+ time(of: count) }

    /// In nanoseconds.
    package func time(of count: Int) -> UInt64 {
        let (scaled, overflow) = UInt64(count).multipliedReportingOverflow(by: 1_000_000_000)
        return overflow ? UInt64(count) / rate * 1_000_000_000 : scaled / rate
    }

    /// Whether bytes may be moved at once.
    @inline(__always)
    package func mayMove(due: UInt64, now: UInt64) -> Bool { due <= now }
}
