extension IPAddress {
    /// Parses every spelling that a resolver or `connect` might read as an address: dotted, decimal, octal, hexadecimal and short forms of
    /// IPv4 (`inet_aton`), IPv6 with or without brackets, with a dot at the end. Returns nil for a name and for a zone id.
    package init?(anySpelling host: some Collection<UInt8>) {
        var text = Array(host)[...]
        if text.first == 0x5B {
            guard text.last == 0x5D, let address = parseIPv6(text.dropFirst().dropLast()) else { return nil }
            self = address
        } else if text.contains(0x3A) {
            guard let address = parseIPv6(text) else { return nil }
            self = address
        } else {
            if text.count > 1, text.last == 0x2E { text = text.dropLast() }
            guard let v4 = parseLooseIPv4(text) else { return nil }
            self.init(v4: v4)
        }
    }

    /// Parses the standard spellings only: four decimal numbers without leading zeros (RFC 3986 §3.2.2), or IPv6 without brackets
    /// (RFC 4291 §2.2).
    package init?(strict text: some Collection<UInt8>) {
        let bytes = Array(text)[...]
        if bytes.contains(0x3A) {
            guard let address = parseIPv6(bytes) else { return nil }
            self = address
        } else {
            guard let v4 = parseStrictIPv4(bytes) else { return nil }
            self.init(v4: v4)
        }
    }
}

/// Whether the last label is a decimal or hexadecimal number (WHATWG URL, "ends in a number"). Such a host is an address or invalid: it
/// must be parsed by `init(anySpelling:)`, or refused.
package func hostEndsInNumber(_ host: some Collection<UInt8>) -> Bool {
    var text = Array(host)[...]
    if text.last == 0x2E { text = text.dropLast() }
    let label = text.lastIndex(of: 0x2E).map { text[($0 + 1)...] } ?? text
    if label.isEmpty { return false }
    if label.allSatisfy({ isDigit($0) }) { return true }
    return isHexPrefixed(label) && label.dropFirst(2).allSatisfy { hexValue($0) != nil }
}

private func isHexPrefixed(_ text: ArraySlice<UInt8>) -> Bool {
    text.count >= 2 && text.first == 0x30 && text[text.startIndex + 1] | 0x20 == 0x78
}

/// Parses like `inet_aton`: one to four numbers in any base, the last of which fills the remaining bytes.
private func parseLooseIPv4(_ text: ArraySlice<UInt8>) -> UInt32? {
    let parts = text.split(separator: 0x2E, maxSplits: 4, omittingEmptySubsequences: false)
    guard parts.count <= 4 else { return nil }
    var address: UInt64 = 0
    for (index, part) in parts.enumerated() {
        guard let number = parseAnyBase(part) else { return nil }
        let bits = UInt64(index == parts.count - 1 ? 8 * (5 - parts.count) : 8)
        guard number < 1 << bits else { return nil }
        address = address << bits | number
    }
    return UInt32(truncatingIfNeeded: address)
}

/// Parses `0x1F`, `037` or `31`. `0x` without digits is zero, as in `inet_aton`.
private func parseAnyBase(_ text: ArraySlice<UInt8>) -> UInt64? {
    if isHexPrefixed(text) { return parseNumber(text.dropFirst(2), base: 16, whenEmpty: 0) }
    if text.count > 1, text.first == 0x30 { return parseNumber(text, base: 8, whenEmpty: nil) }
    return parseNumber(text, base: 10, whenEmpty: nil)
}

/// Returns nil if a byte is not a digit of the base, or if the number does not fit in 32 bits.
private func parseNumber(_ text: ArraySlice<UInt8>, base: UInt64, whenEmpty: UInt64?) -> UInt64? {
    if text.isEmpty { return whenEmpty }
    var value: UInt64 = 0
    for byte in text {
        guard let digit = hexValue(byte), digit < base else { return nil }
        value = value * base + UInt64(digit)
        if value > UInt64(UInt32.max) { return nil }
    }
    return value
}

private func parseStrictIPv4(_ text: ArraySlice<UInt8>) -> UInt32? {
    var address: UInt32 = 0
    var dots = 0
    /// The number behind the last dot. Nil if it has no digit yet.
    var number: UInt32?
    for byte in text {
        switch (byte, number) {
        case (0x2E, let whole?) where dots < 3:
            address = address << 8 | whole
            dots += 1
            number = nil
        case (0x30...0x39, nil):
            number = UInt32(byte - 0x30)
        // A zero in front might mean an octal number.
        case (0x30...0x39, let begun?) where begun > 0 && begun * 10 + UInt32(byte - 0x30) < 256:
            number = begun * 10 + UInt32(byte - 0x30)
        default: return nil
        }
    }
    guard dots == 3, let number else { return nil }
    return address << 8 | number
}

/// Parses the three forms of RFC 4291 §2.2, without brackets. Zone ids are refused: they have a meaning on one machine only.
package func parseIPv6(_ text: ArraySlice<UInt8>) -> IPAddress? {
    var groups: [UInt16] = []
    var gap: Int?
    var index = text.startIndex
    if text.starts(with: [0x3A, 0x3A]) {
        gap = 0
        index += 2
    }
    while index < text.endIndex {
        let end = text[index...].firstIndex(of: 0x3A) ?? text.endIndex
        let part = text[index..<end]
        if end == text.endIndex, part.contains(0x2E) {
            guard let v4 = parseStrictIPv4(part) else { return nil }
            groups.append(UInt16(v4 >> 16))
            groups.append(UInt16(v4 & 0xFFFF))
            break
        }
        guard part.count <= 4, let number = parseNumber(part, base: 16, whenEmpty: nil) else { return nil }
        groups.append(UInt16(number))
        if groups.count > 8 { return nil }
        index = end
        if index == text.endIndex { break }
        index += 1
        if index == text.endIndex { return nil }  // one colon at the end
        if text[index] == 0x3A {
            guard gap == nil else { return nil }
            gap = groups.count
            index += 1
        }
    }
    return assemble(groups, gap: gap)
}

/// - Parameter gap: the number of groups before the "::". Nil if there is none.
private func assemble(_ groups: [UInt16], gap: Int?) -> IPAddress? {
    guard gap == nil ? groups.count == 8 : groups.count < 8 else { return nil }
    let gap = gap ?? 8
    let all = groups.prefix(gap) + Array(repeating: 0, count: 8 - groups.count) + groups.dropFirst(gap)
    let high = all[..<4].reduce(UInt64(0)) { $0 << 16 | UInt64($1) }
    let low = all[4...].reduce(UInt64(0)) { $0 << 16 | UInt64($1) }
    return IPAddress(v6: high, low: low)
}
