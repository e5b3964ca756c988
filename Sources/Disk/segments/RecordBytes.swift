// Little-endian numbers in the bytes of the formats.

extension RawSpan {
    /// - Precondition: the range lies within the span. This holds for all of these functions.
    package func number<Number: FixedWidthInteger & BitwiseCopyable>(at offset: Int, as type: Number.Type = Number.self)
        -> Number
    {
        precondition(offset >= 0 && offset <= byteCount - MemoryLayout<Number>.size, "a number lies within its bytes")
        return Number(littleEndian: unsafe unsafeLoadUnaligned(fromByteOffset: offset, as: type))
    }

    func bytes(_ range: Range<Int>) -> [UInt8] {
        unsafe extracting(range).withUnsafeBytes { unsafe [UInt8]($0) }
    }

    func isZero(_ range: Range<Int>) -> Bool {
        unsafe extracting(range).withUnsafeBytes { unsafe $0.allSatisfy { $0 == 0 } }
    }
}

extension [UInt8] {
    package mutating func append(number: some FixedWidthInteger) {
        unsafe Swift.withUnsafeBytes(of: number.littleEndian) { unsafe append(contentsOf: $0) }
    }

    mutating func put(number: some FixedWidthInteger, at offset: Int) {
        unsafe Swift.withUnsafeBytes(of: number.littleEndian) { number in
            for index in 0..<number.count { self[offset + index] = unsafe number[index] }
        }
    }

    package mutating func append(zeros count: Int) { append(contentsOf: repeatElement(0, count: count)) }
}

/// The next multiple of `unit`, which must be a power of two.
package func padded<Number: FixedWidthInteger>(_ number: Number, to unit: Number) -> Number {
    precondition(unit > 0 && unit & (unit - 1) == 0, "units are powers of two")
    return (number + (unit - 1)) & ~(unit - 1)
}
