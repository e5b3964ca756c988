import Message

// Lists of tokens, read without a copy. Not for lists with quoted strings.

/// The range without optional white space at both ends (RFC 9110 §5.6.3).
func trimmedOWS(_ bytes: borrowing Span<UInt8>, _ range: Range<Int>) -> Range<Int> {
    var start = range.lowerBound
    var end = range.upperBound
    while start < end, isOWS(bytes[start]) { start += 1 }
    while start < end, isOWS(bytes[end - 1]) { end -= 1 }
    return start..<end
}

/// Calls `body` for each element between commas, trimmed. Empty elements are skipped (RFC 9110 §5.6.1.2).
func forEachRawElement(
    _ bytes: borrowing Span<UInt8>, _ range: Range<Int>, _ body: (borrowing Span<UInt8>, Range<Int>) -> Void
) {
    var start = range.lowerBound
    while start < range.upperBound {
        var end = start
        while end < range.upperBound, bytes[end] != 0x2C { end += 1 }
        let element = trimmedOWS(bytes, start..<end)
        if !element.isEmpty { body(bytes, element) }
        start = end + 1
    }
}

/// Whether the bytes in `range` equal `text`, without regard to the case of ASCII letters.
package func matches(_ bytes: borrowing Span<UInt8>, _ range: Range<Int>, _ text: StaticString) -> Bool {
    guard range.count == text.utf8CodeUnitCount else { return false }
    for index in 0..<range.count {
        let expected = unsafe text.utf8Start[index]
        if asciiLowercased(bytes[range.lowerBound + index]) != asciiLowercased(expected) { return false }
    }
    return true
}
