/// Base 64 (RFC 4648 §4), as in Basic credentials and byte sequences.

/// Decodes base 64. Returns nil if a byte is not in the alphabet or the length is impossible. Missing padding is accepted (RFC 9651
/// §4.2.7), and bits behind the last byte are ignored.
package func decodeBase64(_ text: some Collection<UInt8>) -> [UInt8]? {
    var digits = Array(text)[...]
    let padding = digits.suffix(2).reversed().prefix { $0 == 0x3D }.count
    digits = digits.dropLast(padding)
    guard digits.count % 4 != 1, padding == 0 || (digits.count + padding) % 4 == 0 else { return nil }
    var result: [UInt8] = []
    result.reserveCapacity(digits.count * 3 / 4)
    var bits: UInt32 = 0
    var bitCount = 0
    for digit in digits {
        guard let value = base64Value(digit) else { return nil }
        bits = (bits << 6 | UInt32(value)) & 0xFFFF
        bitCount += 6
        if bitCount >= 8 {
            bitCount -= 8
            result.append(UInt8(truncatingIfNeeded: bits >> UInt32(bitCount)))
        }
    }
    return result
}

/// Encodes bytes as base 64, with padding.
package func encodeBase64(_ bytes: some Collection<UInt8>) -> [UInt8] {
    let alphabet: StaticString = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    var result: [UInt8] = []
    var rest = Array(bytes)[...]
    while !rest.isEmpty {
        let group = rest.prefix(3)
        rest = rest.dropFirst(3)
        let bits = group.reduce(UInt32(0)) { $0 << 8 | UInt32($1) } << UInt32(8 * (3 - group.count))
        for index in 0..<4 {
            let digit = Int(bits >> UInt32(18 - 6 * index) & 63)
            result.append(index <= group.count ? unsafe alphabet.utf8Start[digit] : 0x3D)
        }
    }
    return result
}

private func base64Value(_ byte: UInt8) -> UInt8? {
    switch byte {
    case 0x41...0x5A: byte - 0x41
    case 0x61...0x7A: byte - 0x61 + 26
    case 0x30...0x39: byte - 0x30 + 52
    case 0x2B: 62
    case 0x2F: 63
    default: nil
    }
}
