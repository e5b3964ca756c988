package import Message

/// Writes the field lines that Larder itself adds, in the spelling of their RFCs.
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

    /// Appends a `Connection` line if the version does not already tell whether the connection persists (RFC 9112 §9.3), and the empty line
    /// that ends the head.
    package static func appendConnection(persists: Bool, minorVersion: UInt8, to bytes: inout [UInt8]) {
        append(connection(persists: persists, minorVersion: minorVersion), to: &bytes)
    }

    /// What `appendConnection` appends.
    static func connection(persists: Bool, minorVersion: UInt8) -> StaticString {
        if !persists { return "Connection: close\r\n\r\n" }
        return minorVersion == 0 ? "Connection: keep-alive\r\n\r\n" : "\r\n"
    }

    /// Appends a `Content-Range` line (RFC 9110 §14.4).
    ///
    /// - Parameters:
    ///   - range: the bytes that are sent. Nil for a 416.
    ///   - length: the length of the whole content in bytes.
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
