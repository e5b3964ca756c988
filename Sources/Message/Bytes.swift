extension Array<UInt8> {
    /// Appends a range of a span with one copy, not byte by byte.
    package mutating func append(_ span: borrowing Span<UInt8>, _ range: Range<Int>) {
        precondition(range.lowerBound >= 0 && range.upperBound <= span.count, "the range lies outside the bytes")
        unsafe span.withUnsafeBufferPointer { unsafe append(contentsOf: UnsafeBufferPointer(rebasing: $0[range])) }
    }

    package mutating func append(_ text: StaticString) {
        unsafe append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }
}

/// Whether a range of one span holds the same bytes as a range of another.
package func areEqual(
    _ a: borrowing Span<UInt8>, _ first: Range<Int>, _ b: borrowing Span<UInt8>, _ second: Range<Int>
) -> Bool {
    guard first.count == second.count else { return false }
    let (x, y) = (a.extracting(first), b.extracting(second))
    // The loop has no early exit, so the compiler compares many bytes at a time.
    var difference: UInt8 = 0
    for index in x.indices where index < y.count { difference |= x[index] ^ y[index] }
    return difference == 0
}
