/// The value of an HTML attribute with its character references resolved (HTML §13.2.5.72).
///
/// It knows numeric references and the five named ones that occur in URLs. The other two thousand names do not occur there, and are left
/// as they are.
func withoutCharacterReferences(_ value: ArraySlice<UInt8>) -> [UInt8] {
    guard value.contains(UInt8(ascii: "&")) else { return Array(value) }
    var result: [UInt8] = []
    result.reserveCapacity(value.count)
    var rest = value
    while let byte = rest.popFirst() {
        guard byte == UInt8(ascii: "&") else {
            result.append(byte)
            continue
        }
        if let (scalar, count) = numericReference(rest) ?? namedReference(rest) {
            result += String(scalar).utf8
            rest = rest.dropFirst(count)
        } else {
            result.append(byte)
        }
    }
    return result
}

/// The character that the text behind "&" stands for, and how many bytes it takes.
private func numericReference(_ text: ArraySlice<UInt8>) -> (Unicode.Scalar, count: Int)? {
    guard text.first == UInt8(ascii: "#") else { return nil }
    var digits = text.dropFirst()
    let isHexadecimal = digits.first.map { $0 | 0x20 } == UInt8(ascii: "x")
    if isHexadecimal { digits = digits.dropFirst() }
    let radix: UInt32 = isHexadecimal ? 16 : 10
    var value: UInt32 = 0
    var count = 0
    for byte in digits {
        guard let digit = hexDigit(byte), digit < radix else { break }
        value = min(value * radix + digit, 0x11_0000)  // just beyond Unicode, so that the number cannot overflow
        count += 1
    }
    guard count > 0 else { return nil }
    let length = (digits.startIndex - text.startIndex) + count
    let hasSemicolon = text.dropFirst(length).first == UInt8(ascii: ";")
    let scalar = value == 0 ? nil : Unicode.Scalar(value)
    return (scalar ?? "\u{FFFD}", length + (hasSemicolon ? 1 : 0))
}

private let namedCharacters: [(name: [UInt8], scalar: Unicode.Scalar)] = [
    (Array("amp".utf8), "&"), (Array("lt".utf8), "<"), (Array("gt".utf8), ">"), (Array("quot".utf8), "\""),
    (Array("apos;".utf8), "'"),
]

/// Without a semicolon, a name counts only if no letter, digit or "=" follows: `?a=1&lt=2` contains no "<".
private func namedReference(_ text: ArraySlice<UInt8>) -> (Unicode.Scalar, count: Int)? {
    for (name, scalar) in namedCharacters where text.starts(with: name) {
        let next = text.dropFirst(name.count).first
        if next == UInt8(ascii: ";") { return (scalar, name.count + 1) }
        if name.last == UInt8(ascii: ";") { return (scalar, name.count) }
        if let next, next == Byte.equals || isLetter(next) || next &- 0x30 < 10 { return nil }
        return (scalar, name.count)
    }
    return nil
}

/// The value of a hexadecimal digit. Returns nil for any other byte.
func hexDigit(_ byte: UInt8) -> UInt32? {
    switch byte {
    case 0x30...0x39: UInt32(byte - 0x30)
    case 0x41...0x46: UInt32(byte - 0x41 + 10)
    case 0x61...0x66: UInt32(byte - 0x61 + 10)
    default: nil
    }
}
