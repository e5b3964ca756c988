import Message

/// Parses `field-name ":" OWS field-value OWS CRLF` (RFC 9112 §5), without a copy.
///
/// - Returns: the offset of the next line; -1 if the bytes end before it.
@inline(__always)
func parseFieldLine(_ bytes: RawSpan, at start: Int, into line: inout FieldLine) throws(FramingError) -> Int {
    let count = bytes.byteCount
    let nameEnd = endOfToken(bytes, from: start)
    guard nameEnd < count else { return -1 }
    guard nameEnd > start, loadByte(bytes, nameEnd) == 0x3A else { throw nameError(bytes, start, nameEnd) }
    var valueStart = nameEnd &+ 1
    if valueStart < count, loadByte(bytes, valueStart) == 0x20 { valueStart &+= 1 }  // one space, in nearly all lines
    while valueStart < count, isOWS(loadByte(bytes, valueStart)) { valueStart &+= 1 }
    let end = endOfFieldContent(bytes, from: valueStart)
    guard isCRLF(bytes, end) else {
        if end == count || end &+ 1 == count && loadByte(bytes, end) == 0x0D { return -1 }
        throw valueError(bytes, end)
    }
    var valueEnd = end
    while valueEnd > valueStart, isOWS(loadByte(bytes, valueEnd &- 1)) { valueEnd &-= 1 }
    line.nameStart = UInt32(truncatingIfNeeded: start)
    line.nameEnd = UInt32(truncatingIfNeeded: nameEnd)
    line.valueStart = UInt32(truncatingIfNeeded: valueStart)
    line.valueEnd = UInt32(truncatingIfNeeded: valueEnd)
    return end &+ 2
}

/// The error where a name does not end in a colon.
private func nameError(_ bytes: RawSpan, _ start: Int, _ end: Int) -> FramingError {
    switch loadByte(bytes, end) {
    case 0x20, 0x09: end == start ? .obsoleteFolding : .spaceBeforeColon
    case 0x0D where end == start: .bareCarriageReturn  // an empty line ends in CRLF and is seen before
    case 0x0A where end == start: .bareLineFeed
    default: .badFieldName
    }
}

/// The error for the control character that ends a value.
private func valueError(_ bytes: RawSpan, _ end: Int) -> FramingError {
    switch loadByte(bytes, end) {
    case 0x0A: .bareLineFeed
    case 0x0D: .bareCarriageReturn
    default: .controlInField
    }
}
