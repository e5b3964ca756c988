// Functions that read raw bytes sixteen or eight at a time, for all scanners.
//
// Loads go through `RawSpan`, which checks bounds, so nothing here can read outside its input. "Unsafe" is only that any bits are read as
// a number, which every bit pattern is. The form of the comparisons matters: the compiler makes vector instructions of a
// comparison of two vectors and one cast to words, but not of a comparison with a scalar, which is twenty times slower.

@inlinable @inline(__always)
package func loadByte(_ bytes: RawSpan, _ index: Int) -> UInt8 {
    unsafe bytes.unsafeLoad(fromByteOffset: index, as: UInt8.self)
}

@inlinable @inline(__always)
package func loadVector(_ bytes: RawSpan, _ index: Int) -> SIMD16<UInt8> {
    unsafe bytes.unsafeLoadUnaligned(fromByteOffset: index, as: SIMD16<UInt8>.self)
}

/// Whether there are two bytes at `index`, and they are CRLF.
@inlinable @inline(__always)
package func isCRLF(_ bytes: RawSpan, _ index: Int) -> Bool {
    guard index &+ 2 <= bytes.byteCount else { return false }
    return unsafe bytes.unsafeLoadUnaligned(fromByteOffset: index, as: UInt16.self) == 0x0A0D
}

/// Eight bytes as a little-endian word, with zeros for bytes beyond the end.
@inlinable @inline(__always)
package func loadWord(_ bytes: RawSpan, _ index: Int) -> UInt64 {
    if index &+ 8 <= bytes.byteCount { return unsafe bytes.unsafeLoadUnaligned(fromByteOffset: index, as: UInt64.self) }
    return loadLastWord(bytes, index)
}

@usableFromInline
func loadLastWord(_ bytes: RawSpan, _ index: Int) -> UInt64 {
    var word: UInt64 = 0
    var shift: UInt64 = 0
    var position = index
    while position < bytes.byteCount {
        word |= UInt64(loadByte(bytes, position)) << shift
        shift &+= 8
        position &+= 1
    }
    return word
}

/// Whether two ranges of the same length hold the same bytes.
package func equal(_ bytes: RawSpan, _ first: Int, _ second: Int, count: Int) -> Bool {
    guard count >= 16 else {
        if count >= 8 {
            let last = count &- 8  // overlaps the first eight
            return loadWord(bytes, first) == loadWord(bytes, second)
                && loadWord(bytes, first &+ last) == loadWord(bytes, second &+ last)
        }
        for index in 0..<count where loadByte(bytes, first + index) != loadByte(bytes, second + index) { return false }
        return true
    }
    var index = 0
    while true {
        let differs = loadVector(bytes, first &+ index) .!= loadVector(bytes, second &+ index)
        if firstLane(differs) < 16 { return false }
        if index == count &- 16 { return true }
        // The last block overlaps the one before it.
        index = min(index &+ 16, count &- 16)
    }
}

@usableFromInline package typealias LaneMask = SIMDMask<SIMD16<Int8>>

@inlinable @inline(__always)
package func vector(_ byte: UInt8) -> SIMD16<UInt8> { SIMD16(repeating: byte) }

/// The index of the first lane that is set. 16 if none is.
@inlinable @inline(__always)
package func firstLane(_ mask: LaneMask) -> Int {
    let words = unsafe unsafeBitCast(mask, to: SIMD2<UInt64>.self)
    if words[0] != 0 { return words[0].trailingZeroBitCount &>> 3 }
    return 8 &+ words[1].trailingZeroBitCount &>> 3
}

/// The mask without the lanes before `lane`.
@inlinable @inline(__always)
package func lanes(from lane: Int) -> LaneMask {
    SIMD16<UInt8>(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) .>= vector(UInt8(truncatingIfNeeded: lane))
}

/// The first index from `start` up to `end` whose byte satisfies `isWanted`. `end` if there is none.
///
/// - Parameter isWanted: checks sixteen bytes at once. If the input is long enough, the last block overlaps the one before it, so that no
///   byte is checked on its own.
@inlinable @inline(__always)
package func scan(
    _ bytes: RawSpan, from start: Int, to end: Int, _ isWanted: (SIMD16<UInt8>) -> LaneMask
) -> Int {
    var index = start
    while index &+ 16 <= end {
        let lane = firstLane(isWanted(loadVector(bytes, index)))
        if lane < 16 { return index &+ lane }
        index &+= 16
    }
    guard index < end else { return end }
    let base = end &- 16
    if base >= 0 {
        return base &+ firstLane(isWanted(loadVector(bytes, base)) .& lanes(from: index &- base))
    }
    return min(end, index &+ firstLane(isWanted(gatherBlock(bytes, from: index, to: end))))
}

/// The first such index where a byte is checked together with the one before it. There must be a byte before `start`.
@inlinable @inline(__always)
package func scanPairs(
    _ bytes: RawSpan, from start: Int, to end: Int, _ isWanted: (SIMD16<UInt8>, _ before: SIMD16<UInt8>) -> LaneMask
) -> Int {
    precondition(start > 0, "there is no byte before `start`")
    var index = start
    while index &+ 16 <= end {
        let lane = firstLane(isWanted(loadVector(bytes, index), loadVector(bytes, index &- 1)))
        if lane < 16 { return index &+ lane }
        index &+= 16
    }
    guard index < end else { return end }
    let base = end &- 16
    if base > 0 {
        let found = isWanted(loadVector(bytes, base), loadVector(bytes, base &- 1))
        return base &+ firstLane(found .& lanes(from: index &- base))
    }
    let found = isWanted(gatherBlock(bytes, from: index, to: end), gatherBlock(bytes, from: index &- 1, to: end &- 1))
    return min(end, index &+ firstLane(found))
}

/// Whether bytes are letters, digits, "-" or ".", of which nearly all names consist.
@inlinable @inline(__always)
package func isNameByte(_ block: SIMD16<UInt8>) -> LaneMask {
    let letters = ((block | vector(0x20)) &- vector(0x61)) .< vector(26)
    let digits = (block &- vector(0x30)) .< vector(10)
    return letters .| digits .| ((block &- vector(0x2D)) .< vector(2))
}

/// Loads fewer than sixteen bytes, followed by zeros.
@usableFromInline
func gatherBlock(_ bytes: RawSpan, from start: Int, to end: Int) -> SIMD16<UInt8> {
    var block = SIMD16<UInt8>()
    var index = start
    while index < end {
        block[index &- start] = loadByte(bytes, index)
        index &+= 1
    }
    return block
}
