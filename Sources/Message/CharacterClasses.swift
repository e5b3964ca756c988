// The character classes of the HTTP and URI grammars, each named for its ABNF rule. They classify bytes, not characters.
//
// They are inlinable because the parser of heads, in another module, calls them for single bytes.

/// RFC 9110 §5.6.2: `tchar`, the characters of tokens (methods, field names): "!#$%&'*+-.^_`|~", digits, letters.
@inlinable @inline(__always)
package func isTchar(_ byte: UInt8) -> Bool {
    // One bit for each ASCII byte: one word for those below 64, and one for the others.
    let members: UInt64 = byte < 64 ? 0x03FF_6CFA_0000_0000 : 0x57FF_FFFF_C7FF_FFFE
    return byte < 0x80 && (members &>> UInt64(byte & 63)) & 1 != 0
}

/// RFC 5234: `VCHAR`.
@inlinable @inline(__always)
package func isVchar(_ byte: UInt8) -> Bool { byte > 0x20 && byte < 0x7F }

/// RFC 9110 §5.5: `field-vchar` = VCHAR / obs-text.
@inlinable @inline(__always)
package func isFieldVchar(_ byte: UInt8) -> Bool { byte > 0x20 && byte != 0x7F }

/// RFC 9110 §5.5: the characters of a field value: field-vchar, SP, HTAB.
@inlinable @inline(__always)
package func isFieldContent(_ byte: UInt8) -> Bool { byte >= 0x20 && byte != 0x7F || byte == 0x09 }

/// RFC 9110 §5.6.3: the characters of `OWS`, optional white space.
@inlinable @inline(__always)
package func isOWS(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

@inlinable @inline(__always)
package func isDigit(_ byte: UInt8) -> Bool { byte &- 0x30 < 10 }

@inlinable @inline(__always)
package func isAlpha(_ byte: UInt8) -> Bool { (byte | 0x20) &- 0x61 < 26 }

/// RFC 5234: `ALPHA` or `DIGIT`.
@inlinable @inline(__always)
package func isAlphanumeric(_ byte: UInt8) -> Bool { isAlpha(byte) || isDigit(byte) }

/// RFC 9110 §8.8.3: `etagc` = %x21 / %x23-7E / obs-text.
@inlinable @inline(__always)
package func isETagC(_ byte: UInt8) -> Bool { isFieldVchar(byte) && byte != 0x22 }

/// RFC 3986 §2.3: `unreserved`.
@inlinable @inline(__always)
package func isUnreserved(_ byte: UInt8) -> Bool {
    isAlpha(byte) || isDigit(byte) || byte == 0x2D || byte == 0x2E || byte == 0x5F || byte == 0x7E
}

/// The value of a hexadecimal digit. Nil for any other byte.
@inlinable @inline(__always)
package func hexValue(_ byte: UInt8) -> UInt8? {
    if isDigit(byte) { return byte &- 0x30 }
    let letter = (byte | 0x20) &- 0x61
    return letter < 6 ? letter &+ 10 : nil
}

/// The lower-case hexadecimal digit of a value below 16. It takes the same time for each, because digests that nobody may know are written so.
@inlinable @inline(__always)
package func hexadecimalDigit(_ value: UInt8) -> UInt8 { 0x30 &+ value &+ ((9 &- value) >> 7) &* 0x27 }

/// Two lower-case hexadecimal digits for each byte.
@inlinable
package func hexadecimal(_ bytes: some Collection<UInt8>) -> [UInt8] {
    var digits: [UInt8] = []
    digits.reserveCapacity(2 * bytes.count)
    for byte in bytes {
        digits.append(hexadecimalDigit(byte >> 4))
        digits.append(hexadecimalDigit(byte & 15))
    }
    return digits
}

/// The byte in ASCII lower case. Other bytes than letters do not change.
@inlinable @inline(__always)
package func asciiLowercased(_ byte: UInt8) -> UInt8 { byte &- 0x41 < 26 ? byte | 0x20 : byte }

/// Equal without regard to the case of ASCII letters.
@inlinable
package func equalsIgnoringCase(_ bytes: some Collection<UInt8>, _ text: StaticString) -> Bool {
    guard bytes.count == text.utf8CodeUnitCount else { return false }
    var index = 0
    for byte in bytes {
        guard asciiLowercased(byte) == asciiLowercased(unsafe text.utf8Start[index]) else { return false }
        index += 1
    }
    return true
}

/// Equal without regard to the case of ASCII letters.
@inlinable
package func equalsIgnoringCase(_ a: some Collection<UInt8>, _ b: some Collection<UInt8>) -> Bool {
    a.count == b.count && zip(a, b).allSatisfy { asciiLowercased($0) == asciiLowercased($1) }
}

/// The bytes of a static string.
package func bytes(of text: StaticString) -> [UInt8] {
    unsafe Array(UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
}
