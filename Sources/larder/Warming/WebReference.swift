import Message

/// The URL that a browser would ask for where a page or stylesheet at `base` says `reference` (the URL standard, as far as
/// http and https need it).
///
/// White space around is dropped, tabs and line ends within as well; "\" counts as "/"; what may not stand in a URL is
/// percent-encoded; "." and ".." are worked off, in absolute URLs too.
/// - Returns: nil where it leads nowhere: `data:`, `javascript:`, a fragment alone, nothing.
func webReference(_ reference: some Collection<UInt8>, from base: TargetURI) -> TargetURI? {
    var text = Array(reference).drop { $0 <= 0x20 }
    while let last = text.last, last <= 0x20 { text.removeLast() }
    let cleaned = text.filter { $0 != 0x09 && $0 != 0x0A && $0 != 0x0D }
    let reference = encoded(withoutBackslashes(cleaned.prefix { $0 != UInt8(ascii: "#") }))
    guard !reference.isEmpty, let target = base.resolving(reference) else { return nil }
    // The same path once more: that works off the dots of an absolute one.
    return target.resolving(target.pathAndQuery)
}

private func withoutBackslashes(_ text: ArraySlice<UInt8>) -> [UInt8] {
    var isQuery = false
    return text.map { byte in
        if byte == UInt8(ascii: "?") { isQuery = true }
        return byte == Byte.backslash && !isQuery ? Byte.slash : byte
    }
}

/// The path percent-encode set before "?", the query one behind it.
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
