/// A hash that is computed in parts, in place: it allocates nothing. A copy goes on from where the original is.
package protocol RunningHash: Sendable {
    /// Nil for a function that cannot be computed in place.
    init?(_ algorithm: HashAlgorithm)

    mutating func add(_ bytes: borrowing Span<UInt8>)

    /// Writes the hash to the beginning of `hash`, as many bytes as the algorithm has. Nothing can be added afterwards.
    mutating func finish(into hash: inout HashBytes)
}

/// Room for the longest hash of Digest.
package typealias HashBytes = InlineArray<32, UInt8>
