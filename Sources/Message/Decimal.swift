// Decimal numbers in messages: digits only, without sign or white space.

/// Parses `1*DIGIT`. Returns nil for anything else, and for a number beyond 64 bits.
package func parseDecimal(_ text: some Collection<UInt8>) -> UInt64? {
    guard !text.isEmpty else { return nil }
    var value: UInt64 = 0
    for byte in text {
        guard isDigit(byte) else { return nil }
        let (tens, overflow) = value.multipliedReportingOverflow(by: 10)
        let (sum, carry) = tens.addingReportingOverflow(UInt64(byte &- 0x30))
        guard !overflow, !carry else { return nil }
        value = sum
    }
    return value
}

/// Parses `delta-seconds` (RFC 9111 §1.2.2). A number that is too large becomes the largest one. Returns nil for anything but digits.
package func parseDeltaSeconds(_ text: some Collection<UInt8>) -> Seconds? {
    guard !text.isEmpty, text.allSatisfy({ isDigit($0) }) else { return nil }
    guard let value = parseDecimal(text), value < UInt64(Seconds.deltaMax.count) else { return .deltaMax }
    return Seconds(Int64(value))
}

package func appendDecimal(_ value: UInt64, to bytes: inout [UInt8]) {
    bytes.append(addingCapacity: decimalLengthMax) { appendDecimal(value, to: &$0) }
}

/// The digits of the largest number.
package var decimalLengthMax: Int { 20 }

package func appendDecimal(_ value: UInt64, to bytes: inout OutputSpan<UInt8>) {
    if value < UInt64(shortDecimalEnd), bytes.freeCapacity >= 8 { return appendShort(UInt32(value), to: &bytes) }
    var length = 1
    var bound: UInt64 = 10
    while length < decimalLengthMax, value >= bound {
        length += 1
        let (next, isBeyond) = bound.multipliedReportingOverflow(by: 10)
        if isBeyond { break }
        bound = next
    }
    unsafe bytes.withUnsafeMutableBufferPointer { room, count in
        precondition(length <= room.count - count, "there is no room for the digits")
        // Write from the last digit to the first, so that each division is by a constant.
        var rest = value
        var index = count + length
        while index > count {
            index -= 1
            unsafe (room.baseAddress! + index).initialize(to: 0x30 + UInt8(truncatingIfNeeded: rest % 10))
            rest /= 10
        }
        count += length
    }
}

/// With room for eight bytes the digits are stored with one instruction, whatever their count.
@inline(__always)
private func appendShort(_ value: UInt32, to bytes: inout OutputSpan<UInt8>) {
    let (digits, length) = shortDecimal(value)
    unsafe bytes.withUnsafeMutableBufferPointer { room, count in
        precondition(room.count - count >= 8, "there is no room for the digits")
        let place = unsafe UnsafeMutableRawPointer(room.baseAddress! + count)
        unsafe place.storeBytes(of: digits.littleEndian, as: UInt64.self)
        count += length
    }
}

/// The digits of a number below 10⁸, without leading zeros: the first digit is the lowest byte.
///
/// All digits are computed at once. Each step divides the parts of the word, which lie beside each other, in two: into parts of four digits, of two and of one. The
/// factors are the reciprocals of 100 and 10, exact for parts of that size.
@inlinable @inline(__always)
package func shortDecimal(_ value: UInt32) -> (digits: UInt64, count: Int) {
    precondition(value < shortDecimalEnd, "more than eight digits")
    let fours = UInt64(value / 10_000) | UInt64(value % 10_000) &<< 32
    let hundreds = (fours &* 10_486) &>> 20 & 0x0000_007F_0000_007F
    let twos = hundreds | (fours &- hundreds &* 100) &<< 16
    let tens = (twos &* 103) &>> 10 & 0x000F_000F_000F_000F
    let ones = tens | (twos &- tens &* 10) &<< 8
    let zeros = min(ones.trailingZeroBitCount &>> 3, 7)
    return ((ones | 0x3030_3030_3030_3030) &>> UInt64(zeros &* 8), 8 &- zeros)
}

/// The first number that `shortDecimal` does not take.
@inlinable
package var shortDecimalEnd: UInt32 { 100_000_000 }

/// Appends the three digits of a status code (RFC 9110 §15).
package func appendStatus(_ status: UInt16, to bytes: inout OutputSpan<UInt8>) {
    precondition(100...999 ~= status, "a status code has three digits")
    bytes.append(0x30 + UInt8(truncatingIfNeeded: status / 100))
    bytes.append(0x30 + UInt8(truncatingIfNeeded: status / 10 % 10))
    bytes.append(0x30 + UInt8(truncatingIfNeeded: status % 10))
}
