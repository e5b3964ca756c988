/// The 128-bit keyed hash of a cache key. The hash finds a stored response, but never decides what a client gets: the bytes of the
/// key are compared in full.
package struct StorageKey: Hashable, Sendable {
    package let high, low: UInt64

    package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// Both halves are a keyed hash already: one is enough to find a place in a table.
    package func hash(into hasher: inout Hasher) { hasher.combine(low) }
}
