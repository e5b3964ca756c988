package import Message

/// Writes heads as bytes: the fields that Larder adds itself, in the spelling of their RFCs.
package enum HeadWriter {
    package static func append(_ text: StaticString, to bytes: inout [UInt8]) { bytes.append(text) }

    package static func append(decimal value: Int, to bytes: inout [UInt8]) {
        if value < 0 { bytes.append(0x2D) }
        appendDecimal(UInt64(value.magnitude), to: &bytes)
    }

    package static func append(_ name: FieldName, _ value: Int, to bytes: inout [UInt8]) {
        append(name.text, to: &bytes)
        append(": ", to: &bytes)
        append(decimal: value, to: &bytes)
        append("\r\n", to: &bytes)
    }

    package static func append(_ name: FieldName, _ value: StaticString, to bytes: inout [UInt8]) {
        append(name.text, to: &bytes)
        append(": ", to: &bytes)
        append(value, to: &bytes)
        append("\r\n", to: &bytes)
    }

    /// Says whether the connection stays, where the version does not say it already, and ends the head
    /// (RFC 9112 §9.3).
    package static func appendConnection(persists: Bool, minorVersion: UInt8, to bytes: inout [UInt8]) {
        if !persists {
            append("Connection: close\r\n", to: &bytes)
        } else if minorVersion == 0 {
            append("Connection: keep-alive\r\n", to: &bytes)
        }
        append("\r\n", to: &bytes)
    }

    /// - Parameter range: nil: none of the content, as in a 416 (RFC 9110 §14.4).
    package static func appendContentRange(_ range: Range<Int>?, of length: Int, to bytes: inout [UInt8]) {
        append("Content-Range: bytes ", to: &bytes)
        if let range {
            append(decimal: range.lowerBound, to: &bytes)
            append("-", to: &bytes)
            append(decimal: range.upperBound - 1, to: &bytes)
        } else {
            append("*", to: &bytes)
        }
        append("/", to: &bytes)
        append(decimal: length, to: &bytes)
        append("\r\n", to: &bytes)
    }

    package static func append(hexadecimal value: Int, to bytes: inout [UInt8]) {
        bytes.append(contentsOf: String(value, radix: 16).utf8)
    }

    package static func hexDigit(_ value: UInt8) -> UInt8 { value < 10 ? 0x30 + value : 0x57 + value }
}
