/// Remembers what connections sent in their last requests, so that what they repeat is not parsed again.
///
/// A connection has the entries that its number selects, and shares them with others: whoever came last has them. What a connection sends
/// is compared only with what the same connection sent, so the time that it takes tells nobody what others sent. Entries take memory
/// only once a connection that sends several requests has used them.
///
/// Threads: one.
package struct HeadMemory: ~Copyable {
    static let entryCount = 256
    /// So many different heads in a row, and the connection is left alone: it sends something new each time.
    static let changesMax = 3

    let targets = TargetMemory()
    let fields = FieldMemory()

    package init() {}

    /// The entry of a connection.
    ///
    /// - Parameter owner: the number of the connection; not zero.
    @inline(__always)
    static func index(of owner: UInt64) -> Int { Int(truncatingIfNeeded: owner & UInt64(entryCount - 1)) }
}

/// Whether a head has the bytes of `kept` at this offset.
@inline(__always)
func hasBytes(_ head: RawSpan, at start: Int, _ kept: UnsafeMutableRawPointer, _ count: Int) -> Bool {
    guard start >= 0, count >= 0, count <= head.byteCount &- start else { return false }
    return unsafe head.withUnsafeBytes { head in
        unsafe haveSameBytes(head.baseAddress! + start, UnsafeRawPointer(kept), count)
    }
}

/// Sixteen bytes at a time. The last block overlaps the one before it.
@inline(__always)
private func haveSameBytes(_ one: UnsafeRawPointer, _ other: UnsafeRawPointer, _ count: Int) -> Bool {
    guard count >= 16 else {
        for index in 0..<count
        where unsafe one.load(fromByteOffset: index, as: UInt8.self)
            != other.load(fromByteOffset: index, as: UInt8.self)
        {
            return false
        }
        return true
    }
    var index = 0
    var differing = SIMD2<UInt64>()
    while index &+ 32 <= count {
        unsafe differing = block(one, index) ^ block(other, index)
        unsafe differing |= block(one, index &+ 16) ^ block(other, index &+ 16)
        if differing[0] | differing[1] != 0 { return false }
        index &+= 32
    }
    if index &+ 16 <= count { unsafe differing = block(one, index) ^ block(other, index) }
    unsafe differing |= block(one, count &- 16) ^ block(other, count &- 16)
    return differing[0] | differing[1] == 0
}

@inline(__always)
private func block(_ bytes: UnsafeRawPointer, _ offset: Int) -> SIMD2<UInt64> {
    unsafe bytes.loadUnaligned(fromByteOffset: offset, as: SIMD2<UInt64>.self)
}
