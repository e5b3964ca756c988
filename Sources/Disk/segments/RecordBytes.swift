/// Little-endian numbers in the bytes of the formats.

extension RawSpan {
    /// - Precondition: the bytes are there, as for all of these.
    package func number<Number: FixedWidthInteger & BitwiseCopyable>(at offset: Int, as type: Number.Type = Number.self)
        -> Number
    {
        precondition(offset >= 0 && offset <= byteCount - MemoryLayout<Number>.size, "the bytes are there")
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

/// The next multiple of `unit`, a power of two.
package func padded<Number: FixedWidthInteger>(_ number: Number, to unit: Number) -> Number {
    (number + (unit - 1)) & ~(unit - 1)
}
