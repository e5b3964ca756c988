import Message

/// Finding the byte that ends a run, sixteen at a time.
///
/// Loads go through `RawSpan`, which checks bounds; nothing here can read outside of what it is given. The shape of
/// the comparisons matters: a vector on both sides and one cast to words is what the compiler turns into vector
/// instructions; a scalar on the right side is not (twenty times slower).

@inline(__always)
func loadByte(_ bytes: RawSpan, _ index: Int) -> UInt8 {
    unsafe bytes.unsafeLoad(fromByteOffset: index, as: UInt8.self)
}

@inline(__always)
func loadVector(_ bytes: RawSpan, _ index: Int) -> SIMD16<UInt8> {
    unsafe bytes.unsafeLoadUnaligned(fromByteOffset: index, as: SIMD16<UInt8>.self)
}

/// Eight bytes as a little-endian word; zeros behind the end.
@inline(__always)
func loadWord(_ bytes: RawSpan, _ index: Int) -> UInt64 {
    if index &+ 8 <= bytes.byteCount { return unsafe bytes.unsafeLoadUnaligned(fromByteOffset: index, as: UInt64.self) }
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

/// The index of the first lane that is set, or 16.
@inline(__always)
private func firstLane(_ mask: SIMDMask<SIMD16<Int8>>) -> Int {
    let words = unsafe unsafeBitCast(mask, to: SIMD2<UInt64>.self)
    if words[0] != 0 { return words[0].trailingZeroBitCount &>> 3 }
    return 8 &+ words[1].trailingZeroBitCount &>> 3
}

@inline(__always)
private func vector(_ byte: UInt8) -> SIMD16<UInt8> { SIMD16(repeating: byte) }

/// The first byte from `start` on that is a control other than HTAB; the count where there is none.
@inline(__always)
func endOfFieldContent(_ bytes: RawSpan, from start: Int) -> Int {
    var index = start
    while index &+ 16 <= bytes.byteCount {
        let block = loadVector(bytes, index)
        let found = ((block .< vector(0x20)) .& (block .!= vector(0x09))) .| (block .== vector(0x7F))
        let lane = firstLane(found)
        if lane < 16 { return index &+ lane }
        index &+= 16
    }
    while index < bytes.byteCount, isFieldContent(loadByte(bytes, index)) { index &+= 1 }
    return index
}

/// The first byte from `start` on that no target has: SP, controls, "#", anything beyond ASCII.
@inline(__always)
func endOfTarget(_ bytes: RawSpan, from start: Int) -> Int {
    var index = start
    while index &+ 16 <= bytes.byteCount {
        let block = loadVector(bytes, index)
        let found = (block .<= vector(0x20)) .| (block .>= vector(0x7F)) .| (block .== vector(0x23))
        let lane = firstLane(found)
        if lane < 16 { return index &+ lane }
        index &+= 16
    }
    while index < bytes.byteCount {
        let byte = loadByte(bytes, index)
        if !isVchar(byte) || byte == 0x23 { return index }
        index &+= 1
    }
    return index
}

/// The first byte from `start` on that is not a tchar. Letters, digits and "-" by vector; the rest are rare.
@inline(__always)
func endOfToken(_ bytes: RawSpan, from start: Int) -> Int {
    var index = start
    while index &+ 16 <= bytes.byteCount {
        let block = loadVector(bytes, index)
        let letters = ((block | vector(0x20)) &- vector(0x61)) .< vector(26)
        let digits = (block &- vector(0x30)) .< vector(10)
        let plain = letters .| digits .| (block .== vector(0x2D))
        let lane = firstLane(.!plain)
        index &+= lane
        if lane < 16 {
            if !isTchar(loadByte(bytes, index)) { return index }
            index &+= 1
        }
    }
    while index < bytes.byteCount, isTchar(loadByte(bytes, index)) { index &+= 1 }
    return index
}

/// The first LF from `start` on, or nil.
func indexOfLineFeed(_ bytes: RawSpan, from start: Int) -> Int? {
    var index = start
    while index &+ 16 <= bytes.byteCount {
        let lane = firstLane(loadVector(bytes, index) .== vector(0x0A))
        if lane < 16 { return index &+ lane }
        index &+= 16
    }
    while index < bytes.byteCount {
        if loadByte(bytes, index) == 0x0A { return index }
        index &+= 1
    }
    return nil
}
