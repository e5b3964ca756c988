import Message

/// The path as an origin might read it. Origins decode, merge and resolve a path before they use it, so rules that protect them must do
/// the same.
///
/// Decodes percent-encoding once, replaces "\" by "/" and several "/" by one, and resolves "." and "..". Only for rules: in cache keys
/// and in requests to origins, paths stay as they were sent.
func plainPath(_ path: ArraySlice<UInt8>) -> [UInt8] {
    resolved(percentDecoded(path), mergesSlashes: true, dots: dotCount)
}

/// The path with "." and ".." resolved (RFC 3986 §5.2.4).
///
/// - Parameters:
///   - mergesSlashes: several "/" count as one. Otherwise there are empty segments between them.
///   - dots: 1 for a segment that means ".", 2 for one that means "..", 0 for others.
func resolved(_ text: [UInt8], mergesSlashes: Bool, dots: (ArraySlice<UInt8>) -> Int) -> [UInt8] {
    let segments = text.split(separator: slash, omittingEmptySubsequences: mergesSlashes)
    var kept: [ArraySlice<UInt8>] = []
    var endsInside = false
    // In front of the first "/" there is nothing.
    for segment in segments.dropFirst(mergesSlashes ? 0 : 1) {
        let count = dots(segment)
        endsInside = count > 0
        if count == 2 {
            kept = kept.dropLast()
        } else if !endsInside {
            kept.append(segment)
        }
    }
    var result: [UInt8] = []
    for segment in kept {
        result.append(slash)
        result += segment
    }
    let endsWithSlash = mergesSlashes && text.last == slash
    if endsInside || endsWithSlash || result.isEmpty { result.append(slash) }
    return result
}

/// Whether an origin might read another path. It does not for most paths, so this check is all they cost.
package func isAmbiguousPath(_ path: borrowing Span<UInt8>) -> Bool {
    var previous: UInt8 = 0
    for index in path.indices {
        let byte = path[index]
        if byte == UInt8(ascii: "%") || byte == UInt8(ascii: "\\") || byte == UInt8(ascii: ";") || byte >= 0x80 {
            return true
        }
        if previous == slash, byte == slash || byte == UInt8(ascii: ".") { return true }
        previous = byte
    }
    return false
}

func isAmbiguousPath(_ path: ArraySlice<UInt8>) -> Bool { isAmbiguousPath(path.span) }

/// Decodes percent-encoding once, and replaces "\" by "/". A "%" without two hexadecimal digits stays.
func percentDecoded(_ bytes: some Collection<UInt8>, replacingBackslashes: Bool = true) -> [UInt8] {
    let bytes = Array(bytes)
    var result: [UInt8] = []
    result.reserveCapacity(bytes.count)
    var index = 0
    while index < bytes.count {
        var byte = bytes[index]
        if byte == UInt8(ascii: "%"), index + 2 < bytes.count, let high = hexValue(bytes[index + 1]),
            let low = hexValue(bytes[index + 2])
        {
            byte = high << 4 | low
            index += 2
        }
        result.append(byte == UInt8(ascii: "\\") && replacingBackslashes ? slash : byte)
        index += 1
    }
    return result
}

func withSingleSlashes(_ bytes: [UInt8]) -> [UInt8] {
    var result: [UInt8] = []
    for byte in bytes where byte != slash || result.last != slash { result.append(byte) }
    return result
}

func hasDotSegment(_ path: [UInt8]) -> Bool { path.split(separator: slash).contains { dotCount($0) > 0 } }

/// 1 for ".", 2 for "..", 0 for other segments. Some origins remove parameters first, so "..;x" counts as "..".
private func dotCount(_ segment: ArraySlice<UInt8>) -> Int {
    let name = segment.prefix { $0 != UInt8(ascii: ";") }
    return name.count <= 2 && name.allSatisfy { $0 == UInt8(ascii: ".") } ? name.count : 0
}

private let slash = UInt8(ascii: "/")
