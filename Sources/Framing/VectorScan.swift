import Message

/// Finding the byte that ends a run, sixteen at a time.

/// The first byte from `start` on that is a control other than HTAB; the count where there is none.
@inline(__always)
func endOfFieldContent(_ bytes: RawSpan, from start: Int) -> Int {
    scan(bytes, from: start, to: bytes.byteCount) {
        (($0 .< vector(0x20)) .& ($0 .!= vector(0x09))) .| ($0 .== vector(0x7F))
    }
}

/// The first byte from `start` on that no target has: SP, controls, "#", anything beyond ASCII.
@inline(__always)
func endOfTarget(_ bytes: RawSpan, from start: Int) -> Int {
    scan(bytes, from: start, to: bytes.byteCount) {
        // 0x21 to 0x7E in one comparison.
        (($0 &- vector(0x21)) .>= vector(0x5E)) .| ($0 .== vector(0x23))
    }
}

/// The first byte from `start` on that is not a tchar. Letters, digits, "-" and "." by vector; the rest are rare.
@inline(__always)
func endOfToken(_ bytes: RawSpan, from start: Int) -> Int {
    var index = start
    while true {
        index = scan(bytes, from: index, to: bytes.byteCount) { .!isNameByte($0) }
        guard index < bytes.byteCount, isTchar(loadByte(bytes, index)) else { return index }
        index &+= 1
    }
}

/// The first LF from `start` on, or nil.
func indexOfLineFeed(_ bytes: RawSpan, from start: Int) -> Int? {
    let index = scan(bytes, from: start, to: bytes.byteCount) { $0 .== vector(0x0A) }
    return index < bytes.byteCount ? index : nil
}
