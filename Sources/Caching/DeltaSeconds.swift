import Message

/// `delta-seconds = 1*DIGIT` (RFC 9111 §1.2.2); too large a number is 2^31, anything else than digits is nil.
func parseDeltaSeconds(_ bytes: borrowing Span<UInt8>, in range: Range<Int>) -> Seconds? {
    guard !range.isEmpty else { return nil }
    var value: Int64 = 0
    for index in range {
        guard isDigit(bytes[index]) else { return nil }
        value = min(value * 10 + Int64(bytes[index] - 0x30), Seconds.deltaMax.count)
    }
    return Seconds(value)
}
