import Message

/// Parses `delta-seconds = 1*DIGIT` (RFC 9111 §1.2.2). A number that is too large counts as 2^31. Returns nil for anything else.
func parseDeltaSeconds(_ bytes: borrowing Span<UInt8>, in range: Range<Int>) -> Seconds? {
    guard !range.isEmpty else { return nil }
    var value: Int64 = 0
    for index in range {
        guard isDigit(bytes[index]) else { return nil }
        value = min(value * 10 + Int64(bytes[index] - 0x30), Seconds.deltaMax.count)
    }
    return Seconds(value)
}
