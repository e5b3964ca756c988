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
    // Write from the last digit to the first, so that each division is by a constant.
    var digits = InlineArray<20, UInt8>(repeating: 0)
    var first = digits.count
    var rest = value
    repeat {
        first -= 1
        digits[first] = 0x30 + UInt8(truncatingIfNeeded: rest % 10)
        rest /= 10
    } while rest > 0
    bytes.append(addingCapacity: digits.count - first) { (out: inout OutputSpan<UInt8>) in
        for index in first..<digits.count { out.append(digits[index]) }
    }
}

/// Appends the three digits of a status code (RFC 9110 §15).
package func appendStatus(_ status: UInt16, to bytes: inout [UInt8]) {
    precondition(100...999 ~= status, "a status code has three digits")
    bytes.append(0x30 + UInt8(truncatingIfNeeded: status / 100))
    bytes.append(0x30 + UInt8(truncatingIfNeeded: status / 10 % 10))
    bytes.append(0x30 + UInt8(truncatingIfNeeded: status % 10))
}
