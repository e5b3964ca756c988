/// The bare items of structured fields (RFC 9651 §4.2.4 – §4.2.10).
extension StructuredFieldParser {
    mutating func number() -> StructuredItem? {
        let sign: Int64 = take(0x2D) ? -1 : 1
        let digits = run { isDigit($0) }
        guard !digits.isEmpty, digits.count <= 15 else { return nil }
        let whole = digits.reduce(Int64(0)) { $0 * 10 + Int64($1 - 0x30) }
        guard take(0x2E) else { return .integer(sign * whole) }
        let fraction = run { isDigit($0) }
        guard digits.count <= 12, !fraction.isEmpty, fraction.count <= 3 else { return nil }
        var thousandths = fraction.reduce(Int64(0)) { $0 * 10 + Int64($1 - 0x30) }
        for _ in fraction.count..<3 { thousandths *= 10 }
        return .decimal(thousandths: sign * (whole * 1000 + thousandths))
    }

    mutating func string() -> StructuredItem? {
        _ = next()
        var text: [UInt8] = []
        while let byte = next() {
            switch byte {
            case 0x22: return .string(text)
            case 0x5C:
                guard let escaped = next(), escaped == 0x22 || escaped == 0x5C else { return nil }
                text.append(escaped)
            case 0x20...0x7E: text.append(byte)
            default: return nil
            }
        }
        return nil
    }

    mutating func byteSequence() -> StructuredItem? {
        _ = next()
        let text = run { $0 != 0x3A }
        guard take(0x3A), let decoded = decodeBase64(text) else { return nil }
        return .byteSequence(decoded)
    }

    mutating func boolean() -> StructuredItem? {
        _ = next()
        if take(0x31) { return .boolean(true) }
        return take(0x30) ? .boolean(false) : nil
    }

    mutating func date() -> StructuredItem? {
        _ = next()
        guard case .integer(let seconds)? = number() else { return nil }
        return .date(seconds)
    }

    mutating func displayString() -> StructuredItem? {
        _ = next()
        guard take(0x22) else { return nil }
        var text: [UInt8] = []
        while let byte = next() {
            switch byte {
            case 0x22: return String(validating: text, as: UTF8.self) == nil ? nil : .displayString(text)
            case 0x25:
                guard let high = next(), let low = next(), let value = lowerHexPair(high, low) else { return nil }
                text.append(value)
            case 0x20...0x7E: text.append(byte)
            default: return nil
            }
        }
        return nil
    }
}

/// The value of a hexadecimal digit in lower case, the only one that is allowed here (§4.2.10).
private func lowerHexPair(_ high: UInt8, _ low: UInt8) -> UInt8? {
    guard !(0x41...0x46).contains(high), !(0x41...0x46).contains(low), let high = hexValue(high),
        let low = hexValue(low)
    else { return nil }
    return high << 4 | low
}
