// Lists in field values (RFC 9110 §5.6.1): `#element`.

/// The bytes without optional white space at both ends (RFC 9110 §5.6.3).
package func trimOWS(_ value: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    var start = value.startIndex
    var end = value.endIndex
    while start < end, isOWS(value[start]) { start += 1 }
    while start < end, isOWS(value[end - 1]) { end -= 1 }
    return value[start..<end]
}

/// Calls `body` for each element of a comma-separated list, trimmed. Skips empty elements, as a recipient must (RFC 9110 §5.6.1.2).
/// Commas in quoted strings do not separate.
package func forEachListElement(_ value: ArraySlice<UInt8>, _ body: (ArraySlice<UInt8>) -> Void) {
    forEachElement(value, separator: 0x2C, body)
}

/// Calls `body` for each element of a list with any separator. Parameters are separated by semicolons (RFC 9110 §5.6.6).
package func forEachElement(_ value: ArraySlice<UInt8>, separator: UInt8, _ body: (ArraySlice<UInt8>) -> Void) {
    var start = value.startIndex
    var index = start
    var quoted = false
    while index < value.endIndex {
        let byte = value[index]
        if byte == 0x22 {
            quoted.toggle()
        } else if byte == 0x5C, quoted {
            index += 1  // quoted-pair: the next byte does not end the string
        } else if byte == separator, !quoted {
            deliver(trimOWS(value[start..<index]), to: body)
            start = index + 1
        }
        index += 1
    }
    deliver(trimOWS(value[start..<value.endIndex]), to: body)
}

private func deliver(_ element: ArraySlice<UInt8>, to body: (ArraySlice<UInt8>) -> Void) {
    if !element.isEmpty { body(element) }
}

/// The text of a `quoted-string` without quotes and escapes (RFC 9110 §5.6.4), or a token as it is. Returns nil for anything else.
package func unquoted(_ value: ArraySlice<UInt8>) -> [UInt8]? {
    guard value.first == 0x22 else { return !value.isEmpty && value.allSatisfy(isTchar) ? Array(value) : nil }
    var result: [UInt8] = []
    var index = value.startIndex + 1
    while index < value.endIndex {
        if value[index] == 0x22 { return index == value.endIndex - 1 ? result : nil }
        if value[index] == 0x5C { index += 1 }
        guard index < value.endIndex, isFieldContent(value[index]) else { return nil }
        result.append(value[index])
        index += 1
    }
    return nil
}

/// Appends a `quoted-string` (RFC 9110 §5.6.4). Control characters, which none can have, are left out.
package func appendQuotedString(_ text: some Sequence<UInt8>, to bytes: inout [UInt8]) {
    bytes.append(0x22)
    for byte in text where isFieldContent(byte) {
        if byte == 0x22 || byte == 0x5C { bytes.append(0x5C) }
        bytes.append(byte)
    }
    bytes.append(0x22)
}
