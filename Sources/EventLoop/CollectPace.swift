/// When a thread takes back what others have freed of its memory (`ThreadMemory.collect`).
///
/// That takes as long as there are pages to look at (0.3 ms for each GiB) and blocks to take back (some 0.6 µs for a stored response). So it waits
/// until there is something, is done before there is too much at once, and takes a fiftieth of the thread's time at most.
package struct CollectPace: Equatable, Sendable {
    /// How long the last time took.
    private var duration = Duration.zero
    /// `ThreadMemory.freedByOthers` at that time.
    private var freedBefore: UInt32 = 0

    /// So many are taken back at once, if it was not long ago.
    static let portion: UInt32 = 4096
    /// After so long, any number is.
    static let patience = Duration.seconds(1)
    static let shareMax = 50

    package init() {}

    /// - Parameters:
    ///   - freed: `ThreadMemory.freedByOthers`.
    ///   - elapsed: the time since the last time.
    package func isDue(freed: UInt32, after elapsed: Duration) -> Bool {
        let count = freed &- freedBefore
        return count > 0 && elapsed >= duration * CollectPace.shareMax
            && (count >= CollectPace.portion || elapsed >= CollectPace.patience)
    }

    /// - Parameters:
    ///   - duration: how long it took.
    ///   - freed: `ThreadMemory.freedByOthers` before.
    package mutating func took(_ duration: Duration, freed: UInt32) {
        self.duration = duration
        freedBefore = freed
    }
}
