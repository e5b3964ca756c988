internal import Glibc

/// Whether two buffers of the same length hold the same bytes.
@inline(__always)
func equalBytes(_ one: UnsafeRawBufferPointer, _ other: UnsafeRawBufferPointer) -> Bool {
    guard let left = one.baseAddress, let right = other.baseAddress else { return one.count == other.count }
    return unsafe memcmp(left, right, one.count) == 0
}

/// What malloc(3) takes for a block of `bytes`: eight bytes of header, multiples of 16, and at most 16 more where
/// the rest of a free chunk is too small to stand alone.
func chunkBytes(_ bytes: Int) -> Int { ((bytes + 8 + 15) & ~15) + 16 }
