// Serializes structured fields (RFC 9651 §4.1).
//
// A value that cannot be serialized is a mistake of Larder's own, but it may contain bytes of a peer. So it does not trap: bytes that a
// string does not allow are percent-encoded, and numbers out of bounds become the nearest bound.

extension StructuredItem {
    package func append(to bytes: inout [UInt8]) {
        switch self {
        case .integer(let value): appendInteger(value, to: &bytes)
        case .decimal(let thousandths): appendThousandths(thousandths, to: &bytes)
        case .string(let text): appendStructuredString(text, to: &bytes)
        case .token(let text): bytes.append(contentsOf: text)
        case .byteSequence(let value): bytes.append(contentsOf: [0x3A] + encodeBase64(value) + [0x3A])
        case .boolean(let value): bytes.append(value ? "?1" : "?0")
        case .date(let seconds):
            bytes.append(0x40)
            appendInteger(seconds, to: &bytes)
        case .displayString(let text): appendDisplayString(text, to: &bytes)
        }
    }
}

extension StructuredParameters {
    package func append(to bytes: inout [UInt8]) {
        for entry in entries {
            bytes.append(0x3B)
            bytes.append(contentsOf: entry.key)
            if entry.value == .boolean(true) { continue }
            bytes.append(0x3D)
            entry.value.append(to: &bytes)
        }
    }
}

extension StructuredParametrisedItem {
    package func append(to bytes: inout [UInt8]) {
        item.append(to: &bytes)
        parameters.append(to: &bytes)
    }
}

extension StructuredMember {
    package func append(to bytes: inout [UInt8]) {
        switch value {
        case .item(let item): item.append(to: &bytes)
        case .innerList(let items):
            bytes.append(0x28)
            for (index, item) in items.enumerated() {
                if index > 0 { bytes.append(0x20) }
                item.append(to: &bytes)
            }
            bytes.append(0x29)
        }
        parameters.append(to: &bytes)
    }
}

package func appendStructuredList(_ members: [StructuredMember], to bytes: inout [UInt8]) {
    for (index, member) in members.enumerated() {
        if index > 0 { bytes.append(", ") }
        member.append(to: &bytes)
    }
}

extension StructuredDictionary {
    package func append(to bytes: inout [UInt8]) {
        for (index, entry) in entries.enumerated() {
            if index > 0 { bytes.append(", ") }
            bytes.append(contentsOf: entry.key)
            if entry.member.value == .item(.boolean(true)) {
                entry.member.parameters.append(to: &bytes)
            } else {
                bytes.append(0x3D)
                entry.member.append(to: &bytes)
            }
        }
    }
}

/// `DQUOTE *( %x20-21 / %x23-5B / %x5D-7E / "\" ( DQUOTE / "\" ) ) DQUOTE` (§3.3.3). All other bytes are percent-encoded.
@inlinable
package func appendStructuredString(_ text: some Collection<UInt8>, to bytes: inout OutputSpan<UInt8>) {
    bytes.append(0x22)
    for byte in text {
        switch byte {
        case 0x22, 0x5C:
            bytes.append(0x5C)
            bytes.append(byte)
        case 0x20...0x7E: bytes.append(byte)
        default:
            bytes.append(0x25)
            bytes.append(upperHexDigit(byte >> 4))
            bytes.append(upperHexDigit(byte & 15))
        }
    }
    bytes.append(0x22)
}

/// The most bytes that `appendStructuredString` writes for so many.
@inlinable
package func structuredStringLengthMax(_ count: Int) -> Int { 2 + 3 * count }

package func appendStructuredString(_ text: some Collection<UInt8>, to bytes: inout [UInt8]) {
    bytes.append(addingCapacity: structuredStringLengthMax(text.count)) { appendStructuredString(text, to: &$0) }
}

/// Whether the bytes can be sent as a token (§3.3.4). Otherwise they are sent as a string.
package func isStructuredToken(_ text: some Collection<UInt8>) -> Bool {
    guard let first = text.first, isAlpha(first) || first == 0x2A else { return false }
    return text.allSatisfy { isTchar($0) || $0 == 0x3A || $0 == 0x2F }
}

private func appendInteger(_ value: Int64, to bytes: inout [UInt8]) {
    if value < 0 { bytes.append(0x2D) }
    appendDecimal(min(value.magnitude, 999_999_999_999_999), to: &bytes)
}

private func appendThousandths(_ value: Int64, to bytes: inout [UInt8]) {
    if value < 0 { bytes.append(0x2D) }
    let magnitude = min(value.magnitude, 999_999_999_999_999)
    appendDecimal(magnitude / 1000, to: &bytes)
    bytes.append(0x2E)
    let fraction = magnitude % 1000
    bytes.append(0x30 + UInt8(fraction / 100))
    if fraction % 100 != 0 { bytes.append(0x30 + UInt8(fraction / 10 % 10)) }
    if fraction % 10 != 0 { bytes.append(0x30 + UInt8(fraction % 10)) }
}

private func appendDisplayString(_ text: [UInt8], to bytes: inout [UInt8]) {
    bytes.append("%\"")
    for byte in text {
        if byte != 0x25, byte != 0x22, (0x20...0x7E).contains(byte) {
            bytes.append(byte)
        } else {
            bytes.append(contentsOf: [0x25, lowerHexDigit(byte >> 4), lowerHexDigit(byte & 15)])
        }
    }
    bytes.append(0x22)
}

package func lowerHexDigit(_ value: UInt8) -> UInt8 { value < 10 ? 0x30 + value : 0x57 + value }
