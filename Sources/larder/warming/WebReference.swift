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
    let query = text.firstIndex(of: UInt8(ascii: "?")) ?? text.endIndex
    return percentEncoded(text[..<query], keeping: staysInPath) + percentEncoded(text[query...], keeping: staysInQuery)
}

private func staysInPath(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "`"), UInt8(ascii: "{"), UInt8(ascii: "}"), UInt8(ascii: "^"): false
    default: staysInBoth(byte)
    }
}

private func staysInQuery(_ byte: UInt8) -> Bool { byte != Byte.singleQuote && staysInBoth(byte) }

private func staysInBoth(_ byte: UInt8) -> Bool {
    switch byte {
    case 0...0x20, 0x7F..., UInt8(ascii: "\""), UInt8(ascii: "<"), UInt8(ascii: ">"): false
    default: true
    }
}
