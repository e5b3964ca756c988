/// A filter of a search (RFC 4515) or a distinguished name (RFC 4514) in which `{user}` stands for the name that a client gives, and `{dn}` for
/// the name of its entry.
///
/// What is put in is escaped as the form demands. So it stays one value, whatever it contains.
package struct DirectoryTemplate: Sendable, Equatable, CustomStringConvertible {
    package enum Form: Sendable { case filter, name }
    private enum Part: Sendable, Equatable { case text(String), user, dn }

    package let form: Form
    private let parts: [Part]

    /// - Returns: nil if the text has not the form, a placeholder that does not exist, or none at all.
    package init?(_ text: String, _ form: Form) {
        self.form = form
        var parts: [Part] = []
        var rest = text[...]
        while let open = rest.firstIndex(of: "{") {
            if open > rest.startIndex { parts.append(.text(String(rest[..<open]))) }
            guard let end = rest[open...].firstIndex(of: "}") else { return nil }
            switch rest[rest.index(after: open)..<end] {
            case "user": parts.append(.user)
            case "dn" where form == .filter: parts.append(.dn)
            default: return nil
            }
            rest = rest[rest.index(after: end)...]
        }
        guard !parts.isEmpty, !rest.contains("}") else { return nil }
        if !rest.isEmpty { parts.append(.text(String(rest))) }
        self.parts = parts
        guard hasUser || hasDN else { return nil }
        let sample = Array(filled(user: "x", dn: "x").utf8)
        guard form == .filter ? isFilter(sample) : isDistinguishedName(sample) else { return nil }
    }

    package var hasUser: Bool { parts.contains(.user) }
    package var hasDN: Bool { parts.contains(.dn) }

    /// - Parameter dn: for filters alone.
    package func filled(user: String, dn: String = "") -> String {
        parts.map { part in
            switch (part, form) {
            case (.text(let text), _): text
            case (.user, .filter): escapedForFilter(user)
            case (.user, .name): escapedForName(user)
            case (.dn, _): escapedForFilter(dn)
            }
        }.joined()
    }

    package var description: String {
        parts.map { part in
            switch part {
            case .text(let text): text
            case .user: "{user}"
            case .dn: "{dn}"
            }
        }.joined()
    }
}

/// A value inside a filter (RFC 4515 §3).
package func escapedForFilter(_ value: String) -> String {
    var bytes: [UInt8] = []
    for byte in value.utf8 {
        switch byte {
        case UInt8(ascii: "*"), UInt8(ascii: "("), UInt8(ascii: ")"), UInt8(ascii: "\\"), 0: bytes += hexPair(byte)
        default: bytes.append(byte)
        }
    }
    return String(decoding: bytes, as: UTF8.self)
}

/// The value of an attribute inside a distinguished name (RFC 4514 §2.4).
package func escapedForName(_ value: String) -> String {
    var bytes: [UInt8] = []
    for (index, byte) in value.utf8.enumerated() {
        switch byte {
        case 0: bytes += hexPair(byte)
        case UInt8(ascii: "\""), UInt8(ascii: "+"), UInt8(ascii: ","), UInt8(ascii: ";"), UInt8(ascii: "<"),
            UInt8(ascii: ">"), UInt8(ascii: "\\"), UInt8(ascii: "="):
            bytes += [UInt8(ascii: "\\"), byte]
        case UInt8(ascii: "#") where index == 0, UInt8(ascii: " ") where index == 0 || index == value.utf8.count - 1:
            bytes += [UInt8(ascii: "\\"), byte]
        default: bytes.append(byte)
        }
    }
    return String(decoding: bytes, as: UTF8.self)
}

/// The value of the first attribute of a distinguished name: `builders` of `cn=builders,ou=groups,dc=example`.
///
/// - Returns: nil if the text is no name, or if the value is written in hexadecimal (`#04…`).
package func firstValue(ofName name: String) -> String? {
    var rest = name.utf8[...]
    guard let equals = rest.firstIndex(of: UInt8(ascii: "=")), equals > rest.startIndex else { return nil }
    rest = rest[rest.index(after: equals)...].drop { $0 == UInt8(ascii: " ") }
    guard rest.first != UInt8(ascii: "#") else { return nil }
    var value: [UInt8] = []
    /// Up to here spaces belong to the value: they were escaped.
    var kept = 0
    while let byte = rest.popFirst() {
        switch byte {
        case UInt8(ascii: ","), UInt8(ascii: "+"): return trimmed(value, kept)
        case UInt8(ascii: "\\"):
            guard let next = rest.popFirst() else { return nil }
            if let high = hexValue(next), let low = rest.first.flatMap(hexValue) {
                value.append(high << 4 | low)
                rest = rest.dropFirst()
            } else {
                value.append(next)
            }
            kept = value.count
        default:
            value.append(byte)
        }
    }
    return trimmed(value, kept)
}

private func trimmed(_ value: [UInt8], _ kept: Int) -> String? {
    var value = value
    while value.count > kept, value.last == UInt8(ascii: " ") { value.removeLast() }
    return value.isEmpty ? nil : String(validating: value, as: UTF8.self)
}

private func hexPair(_ byte: UInt8) -> [UInt8] {
    let digits = Array("0123456789abcdef".utf8)
    return [UInt8(ascii: "\\"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
}

private func hexValue(_ digit: UInt8) -> UInt8? {
    switch digit {
    case 0x30...0x39: digit - 0x30
    case 0x41...0x46: digit - 0x37
    case 0x61...0x66: digit - 0x57
    default: nil
    }
}

// MARK: what an administrator writes

/// Whether the text is a filter (RFC 4515 §3). Filters within filters go 16 deep at most.
func isFilter(_ text: [UInt8]) -> Bool {
    var rest = text[...]
    return takeFilter(&rest, depth: 0) && rest.isEmpty
}

private func takeFilter(_ rest: inout ArraySlice<UInt8>, depth: Int) -> Bool {
    guard depth < 16, rest.popFirst() == UInt8(ascii: "(") else { return false }
    switch rest.first {
    case UInt8(ascii: "&"), UInt8(ascii: "|"):
        rest = rest.dropFirst()
        repeat { guard takeFilter(&rest, depth: depth + 1) else { return false } } while rest.first == UInt8(ascii: "(")
    case UInt8(ascii: "!"):
        rest = rest.dropFirst()
        guard takeFilter(&rest, depth: depth + 1) else { return false }
    default:
        let item = rest.prefix { $0 != UInt8(ascii: "(") && $0 != UInt8(ascii: ")") }
        guard isFilterItem(item) else { return false }
        rest = rest.dropFirst(item.count)
    }
    return rest.popFirst() == UInt8(ascii: ")")
}

private func isFilterItem(_ item: ArraySlice<UInt8>) -> Bool {
    guard let equals = item.firstIndex(of: UInt8(ascii: "=")) else { return false }
    var attribute = item[..<equals]
    if let last = attribute.last, [UInt8(ascii: "~"), UInt8(ascii: "<"), UInt8(ascii: ">")].contains(last) {
        attribute = attribute.dropLast()
    }
    guard !attribute.isEmpty, attribute.allSatisfy({ isAttributeByte($0) || $0 == UInt8(ascii: ":") }) else {
        return false
    }
    var value = item[(equals + 1)...]
    while let byte = value.popFirst() {
        guard byte != 0 else { return false }
        guard byte == UInt8(ascii: "\\") else { continue }
        guard let high = value.popFirst(), let low = value.popFirst(), hexValue(high) != nil, hexValue(low) != nil
        else {
            return false
        }
    }
    return true
}

/// Whether the text is a distinguished name (RFC 4514 §3) with something in it.
package func isDistinguishedName(_ text: [UInt8]) -> Bool {
    var isEscaped = false
    let parts = text.split(omittingEmptySubsequences: false) { byte in
        defer { isEscaped = !isEscaped && byte == UInt8(ascii: "\\") }
        return !isEscaped && (byte == UInt8(ascii: ",") || byte == UInt8(ascii: "+"))
    }
    return !text.contains(0)
        && parts.allSatisfy { part in
            guard let equals = part.firstIndex(of: UInt8(ascii: "=")), equals + 1 < part.endIndex else { return false }
            let attribute = part[..<equals].drop { $0 == UInt8(ascii: " ") }
            return !attribute.isEmpty && attribute.allSatisfy(isAttributeByte)
        }
}

/// Whether the text can be the name of an attribute (RFC 4512 §2.5): letters, digits, `-`, `.` and `;` for options.
package func isAttributeName(_ text: String) -> Bool {
    (1...128).contains(text.utf8.count) && text.utf8.allSatisfy(isAttributeByte)
}

private func isAttributeByte(_ byte: UInt8) -> Bool {
    switch byte | 0x20 {
    case 0x61...0x7A: byte > 0x40
    default:
        switch byte {
        case 0x30...0x39, UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: ";"): true
        default: false
        }
    }
}
