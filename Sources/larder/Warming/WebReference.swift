import Message

/// The URL that a browser would request for `reference` in a page or stylesheet at `base` (the URL standard, as far as http and https need
/// it).
///
/// Surrounding white space is dropped, and so are tabs and line ends within. "\" counts as "/". Characters that a URL must not contain are
/// percent-encoded. "." and ".." are resolved, in absolute URLs too.
/// - Returns: nil if there is nothing to request: `data:`, `javascript:`, only a fragment, or an empty reference.
func webReference(_ reference: some Collection<UInt8>, from base: TargetURI) -> TargetURI? {
    var text = Array(reference).drop { $0 <= 0x20 }
    while let last = text.last, last <= 0x20 { text.removeLast() }
    let cleaned = text.filter { $0 != 0x09 && $0 != 0x0A && $0 != 0x0D }
    let reference = encoded(withoutBackslashes(cleaned.prefix { $0 != UInt8(ascii: "#") }))
    return reference.isEmpty ? nil : base.resolving(reference)
}

private func withoutBackslashes(_ text: ArraySlice<UInt8>) -> [UInt8] {
    var isQuery = false
    return text.map { byte in
        if byte == UInt8(ascii: "?") { isQuery = true }
        return byte == Byte.backslash && !isQuery ? Byte.slash : byte
    }
}

/// Applies the percent-encode set of paths before "?", and that of queries behind it.
private func encoded(_ text: [UInt8]) -> [UInt8] {
    let hex = Array("0123456789ABCDEF".utf8)
    var result: [UInt8] = []
    result.reserveCapacity(text.count)
    var isQuery = false
    for byte in text {
        if byte == UInt8(ascii: "?") { isQuery = true }
        let isEncoded =
            switch byte {
            case 0...0x20, 0x7F..., UInt8(ascii: "\""), UInt8(ascii: "<"), UInt8(ascii: ">"): true
            case UInt8(ascii: "`"), UInt8(ascii: "{"), UInt8(ascii: "}"), UInt8(ascii: "^"): !isQuery
            case Byte.singleQuote: isQuery
            default: false
            }
        if isEncoded {
            result += [UInt8(ascii: "%"), hex[Int(byte >> 4)], hex[Int(byte & 15)]]
        } else {
            result.append(byte)
        }
    }
    return result
}
