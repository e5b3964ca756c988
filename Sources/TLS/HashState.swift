import CLarder

/// A hash that is computed in parts without allocating. It is a value: a copy goes on from where the original is.
package struct HashState: Sendable {
    private var state = clarder_hash()

    /// Nil for functions that have no such form.
    package init?(_ function: HashFunction) {
        let kind: Int =
            switch function {
            case .md5: CLARDER_HASH_MD5
            case .sha256: CLARDER_HASH_SHA256
            case .sha512_256: CLARDER_HASH_SHA512_256
            case .md4, .sha1: -1
            }
        guard kind >= 0 else { return nil }
        unsafe clarder_hash_begin(&state, CInt(kind))
    }

    package mutating func add(_ bytes: borrowing Span<UInt8>) {
        unsafe bytes.withUnsafeBytes { unsafe clarder_hash_add(&state, $0.baseAddress, $0.count) }
    }

    /// Writes the hash to the beginning of `hash`: 16 bytes for MD5, 32 for the others. Nothing can be added afterwards.
    package mutating func finish(into hash: inout InlineArray<32, UInt8>) {
        var bytes = hash.mutableSpan
        unsafe bytes.withUnsafeMutableBufferPointer { unsafe clarder_hash_end(&state, $0.baseAddress) }
    }
}
