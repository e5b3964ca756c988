import Message

// Functions that find the byte that ends a run, sixteen bytes at a time.

/// The index of the first control character other than HTAB, from `start` on. The number of bytes if there is none.
@inline(__always)
func endOfFieldContent(_ bytes: RawSpan, from start: Int) -> Int {
    scan(bytes, from: start, to: bytes.byteCount) {
        (($0 .< vector(0x20)) .& ($0 .!= vector(0x09))) .| ($0 .== vector(0x7F))
    }
}

/// The index of the first byte from `start` on that cannot be in a target: SP, a control, "#", or beyond ASCII. The number of bytes if
/// there is none.
@inline(__always)
func endOfTarget(_ bytes: RawSpan, from start: Int) -> Int {
    scan(bytes, from: start, to: bytes.byteCount) {
        // One comparison covers all bytes but 0x21 to 0x7E.
        (($0 &- vector(0x21)) .>= vector(0x5E)) .| ($0 .== vector(0x23))
    }
}

/// The index of the first byte from `start` on that is not a tchar. Letters, digits, "-" and "." are found by vector; other tchars
/// are rare.
@inline(__always)
func endOfToken(_ bytes: RawSpan, from start: Int) -> Int {
    var index = start
    while true {
        index = scan(bytes, from: index, to: bytes.byteCount) { .!isNameByte($0) }
        guard index < bytes.byteCount, isTchar(loadByte(bytes, index)) else { return index }
        index &+= 1
    }
}

/// The index of the first LF from `start` on. Nil if there is none.
func indexOfLineFeed(_ bytes: RawSpan, from start: Int) -> Int? {
    let index = scan(bytes, from: start, to: bytes.byteCount) { $0 .== vector(0x0A) }
    return index < bytes.byteCount ? index : nil
}
