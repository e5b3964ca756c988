extension Array<UInt8> {
    /// The bytes that `write` writes, which are no more than `room`; there remains room for the others.
    ///
    /// In place of the standard library's `init(capacity:initializingWith:)`, which is not specialised and takes 500 instructions more.
    @inlinable
    package init(room: Int, _ write: (inout OutputSpan<UInt8>) -> Void) {
        self = []
        append(addingCapacity: room, initializingWith: write)
    }

    /// Appends a range of a span with one copy, not byte by byte.
    package mutating func append(_ span: borrowing Span<UInt8>, _ range: Range<Int>) {
        precondition(range.lowerBound >= 0 && range.upperBound <= span.count, "the range lies outside the bytes")
        unsafe span.withUnsafeBufferPointer { unsafe append(contentsOf: UnsafeBufferPointer(rebasing: $0[range])) }
    }

    package mutating func append(_ text: StaticString) {
        unsafe append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }
}

/// Heads are written into room of a known size: one check of the capacity for many small pieces. Each function traps if its bytes do not fit.
extension OutputSpan<UInt8> {
    @inlinable
    package mutating func append(_ bytes: UnsafeBufferPointer<UInt8>) {
        guard let source = bytes.baseAddress else { return }
        unsafe withUnsafeMutableBufferPointer { room, count in
            precondition(bytes.count <= room.count - count, "there is no room for the bytes")
            unsafe (room.baseAddress! + count).initialize(from: source, count: bytes.count)
            count += bytes.count
        }
    }

    /// Always inlined: with a literal it is a comparison and a few stores, and a head has a dozen of them.
    @inlinable @inline(__always)
    package mutating func append(_ text: StaticString) {
        unsafe append(UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    @inlinable
    package mutating func append(_ bytes: borrowing Span<UInt8>) {
        unsafe bytes.withUnsafeBufferPointer { unsafe append($0) }
    }

    @inlinable
    package mutating func append(_ bytes: [UInt8]) { unsafe bytes.withUnsafeBufferPointer { unsafe append($0) } }

    @inlinable
    package mutating func append(_ bytes: [UInt8], _ range: Range<Int>) {
        unsafe bytes.withUnsafeBufferPointer { unsafe append(UnsafeBufferPointer(rebasing: $0[range])) }
    }

    package mutating func append(_ bytes: ArraySlice<UInt8>) {
        unsafe bytes.withUnsafeBufferPointer { unsafe append($0) }
    }
}

/// Whether a range of one span holds the same bytes as a range of another.
package func areEqual(
    _ a: borrowing Span<UInt8>, _ first: Range<Int>, _ b: borrowing Span<UInt8>, _ second: Range<Int>
) -> Bool {
    guard first.count == second.count else { return false }
    let (x, y) = unsafe (a.extracting(first).bytes, b.extracting(second).bytes)
    let count = first.count
    guard count >= 8 else {
        var difference: UInt8 = 0
        for index in 0..<count {
            difference |=
                unsafe x.unsafeLoad(fromByteOffset: index, as: UInt8.self)
                ^ y.unsafeLoad(fromByteOffset: index, as: UInt8.self)
        }
        return difference == 0
    }
    // Words of eight bytes; the last one may overlap the one before.
    var difference: UInt64 = 0
    var offset = 0
    while offset < count {
        let start = min(offset, count - 8)
        difference |=
            unsafe x.unsafeLoadUnaligned(fromByteOffset: start, as: UInt64.self)
            ^ y.unsafeLoadUnaligned(fromByteOffset: start, as: UInt64.self)
        offset += 8
    }
    return difference == 0
}
