// How bytes are written that cannot stand for themselves in a URI or a form: `%XX`, in upper case (RFC 3986 §2.1).

/// The text with `%XX` in place of each byte that is not kept. By default nothing but `unreserved` is (RFC 3986 §2.3), so that the result is one value wherever it is put.
package func percentEncoded(
    _ text: some Sequence<UInt8>, keeping isKept: (UInt8) -> Bool = { isUnreserved($0) }
) -> [UInt8] {
    var result: [UInt8] = []
    result.reserveCapacity(text.underestimatedCount)
    for byte in text {
        if isKept(byte) {
            result.append(byte)
        } else {
            result.append(0x25)
            result.append(upperHexDigit(byte >> 4))
            result.append(upperHexDigit(byte & 15))
        }
    }
    return result
}

/// The text with each byte above 0x7F encoded. Nil if there is none, as nearly always.
///
/// A URI has ASCII alone (RFC 3986 §2), but curl and others send what a user typed in a path or a query. Browsers encode it as here (WHATWG URL §4.4), so that a path
/// has one form for keys, rules and origins.
package func encodingBeyondASCII(_ text: some Collection<UInt8>) -> [UInt8]? {
    guard text.contains(where: { $0 > 0x7F }) else { return nil }
    return percentEncoded(text) { $0 <= 0x7F }
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
