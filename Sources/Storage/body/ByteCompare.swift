internal import CLarder
internal import Glibc

/// Whether two buffers of the same length have the same bytes.
@inline(__always)
func equalBytes(_ one: UnsafeRawBufferPointer, _ other: UnsafeRawBufferPointer) -> Bool {
    guard let left = one.baseAddress, let right = other.baseAddress else { return one.count == other.count }
    return unsafe memcmp(left, right, one.count) == 0
}

/// The most bytes of memory that malloc(3) takes for a block of `bytes`: that of libc rounds up to a multiple of 16, and has a header; mimalloc has
/// sizes that differ by an eighth to a quarter.
func chunkBytes(_ bytes: Int) -> Int { clarder_malloc_most_size(bytes) }
