internal import Glibc

/// Whether two buffers of the same length have the same bytes.
@inline(__always)
func equalBytes(_ one: UnsafeRawBufferPointer, _ other: UnsafeRawBufferPointer) -> Bool {
    guard let left = one.baseAddress, let right = other.baseAddress else { return one.count == other.count }
    return unsafe memcmp(left, right, one.count) == 0
}

/// The most bytes that malloc(3) takes for a block of `bytes`: eight bytes of header, rounded up to a multiple of 16, and 16 more if
/// the rest of a free chunk is too small to be a chunk of its own.
func chunkBytes(_ bytes: Int) -> Int { ((bytes + 8 + 15) & ~15) + 16 }
