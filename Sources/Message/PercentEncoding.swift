// What is sent beyond ASCII in a path or a query. A URI has ASCII alone (RFC 3986 §2), but curl and others send what a user typed. Browsers
// encode it as here (WHATWG URL §4.4), so that a path has one form for keys, rules and origins.

/// The text with `%XX` in place of each byte above 0x7F, in upper case (RFC 3986 §2.1). Nil if there is none, as nearly always.
package func encodingBeyondASCII(_ text: some Collection<UInt8>) -> [UInt8]? {
    let count = text.count { $0 > 0x7F }
    guard count > 0 else { return nil }
    var result: [UInt8] = []
    result.reserveCapacity(text.count + 2 * count)
    for byte in text {
        if byte > 0x7F {
            result.append(0x25)
            result.append(upperHexDigit(byte >> 4))
            result.append(upperHexDigit(byte & 15))
        } else {
            result.append(byte)
        }
    }
    return result
}

/// Where path and query of a target in origin-form or absolute-form begin. The end of the text if there are none, as in `host:port`.
package func startOfPath(in target: some RandomAccessCollection<UInt8>) -> Int {
    let bytes = Array(target)
    if bytes.first == 0x2F { return 0 }
    for (scheme, start) in [("http://" as StaticString, 7), ("https://", 8)]
    where equalsIgnoringCase(bytes.prefix(start), scheme) {
        return bytes[start...].firstIndex(where: endsAuthority) ?? bytes.count
    }
    return bytes.count
}

@inlinable
func upperHexDigit(_ value: UInt8) -> UInt8 { value < 10 ? 0x30 + value : 0x37 + value }
