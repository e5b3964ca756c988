import Message

/// base64url without padding (RFC 4648 §5, RFC 7515 §2), as all of JOSE uses it.

/// Decodes base64url. Returns nil for padding, white space, a character outside of the alphabet, an impossible length, and bits that are not
/// zero behind the last byte: each value has one encoding.
package func decodeBase64URL(_ text: some Collection<UInt8>) -> [UInt8]? {
    guard text.count % 4 != 1 else { return nil }
    var result: [UInt8] = []
    result.reserveCapacity(text.count * 3 / 4)
    var bits: UInt32 = 0
    var bitCount: UInt32 = 0
    for character in text {
        guard let digit = base64URLDigit(character) else { return nil }
        bits = (bits << 6 | digit) & 0xFFFF
        bitCount += 6
        guard bitCount >= 8 else { continue }
        bitCount -= 8
        result.append(UInt8(truncatingIfNeeded: bits >> bitCount))
    }
    guard bits & ((1 << bitCount) - 1) == 0 else { return nil }
    return result
}

/// Encodes bytes as base64url without padding.
package func encodeBase64URL(_ bytes: some Collection<UInt8>) -> [UInt8] {
    encodeBase64(bytes).compactMap { character in
        switch character {
        case UInt8(ascii: "+"): UInt8(ascii: "-")
        case UInt8(ascii: "/"): UInt8(ascii: "_")
        case UInt8(ascii: "="): nil
        default: character
        }
    }
}

private func base64URLDigit(_ character: UInt8) -> UInt32? {
    switch character {
    case 0x41...0x5A: UInt32(character) - 0x41
    case 0x61...0x7A: UInt32(character) - 0x61 + 26
    case 0x30...0x39: UInt32(character) - 0x30 + 52
    case UInt8(ascii: "-"): 62
    case UInt8(ascii: "_"): 63
    default: nil
    }
}
