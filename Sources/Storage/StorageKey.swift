/// The 128-bit keyed hash of a cache key. It finds a stored response, and never decides what a client gets: the key bytes
/// are compared in full as well.
package struct StorageKey: Hashable, Sendable {
    package let high, low: UInt64

    package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }
}
