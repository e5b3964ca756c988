// Lengths and offsets of content, as peers name them: in Content-Length, Range, Content-Range and the sizes of chunks.
//
// None is greater than `octetCountMax`: the parsers of these fields refuse a greater one, or cut it where the RFC says so. A thousand of them add up to less than 2⁶³, so code
// that adds, subtracts and rounds lengths up needs no checks of its own.

/// The greatest length of content: 2⁵³ − 1 bytes, 8 PiB. All numbers up to it are exact in JSON (RFC 7493 §2.2), which logs and statistics are in.
///
/// RFC 9110 §8.6 asks a recipient to expect large numbers and to prevent errors by overflow.
@inlinable
package var octetCountMax: UInt64 { 1 << 53 - 1 }

/// Parses `1*DIGIT`. Returns nil for anything else, and for a number beyond `octetCountMax`.
package func parseOctetCount(_ text: some Collection<UInt8>) -> UInt64? {
    guard let count = parseDecimal(text), count <= octetCountMax else { return nil }
    return count
}

/// Parses a position in content, which may lie behind its end (RFC 9110 §14.1.2): a greater number than `octetCountMax` becomes that one. Returns nil for anything but digits.
package func parseOctetPosition(_ text: some Collection<UInt8>) -> UInt64? {
    guard !text.isEmpty, text.allSatisfy({ isDigit($0) }) else { return nil }
    return parseOctetCount(text) ?? octetCountMax
}
