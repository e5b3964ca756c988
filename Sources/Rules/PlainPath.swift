import Message

/// The path as an origin might read it. Origins decode, merge and resolve a path before they use it, so rules that protect them must do
/// the same.
///
/// Decodes percent-encoding once, replaces "\" by "/" and several "/" by one, and resolves "." and "..". Only for rules: in cache keys
/// and in requests to origins, paths stay as they were sent.
func plainPath(_ path: ArraySlice<UInt8>) -> [UInt8] { resolved(percentDecoded(path)) }

/// Every path that an origin might make of this one: decoded once, which is right; decoded until nothing is left to decode, with UTF-8 in forms that are
/// longer than needed (RFC 3629 §10); cut off at NUL, as programs in C do; and without the parameters of segments, as servlet containers do.
///
/// - Parameter withoutParameters: false leaves out the last one.
func pathReadings(_ path: ArraySlice<UInt8>, withoutParameters: Bool) -> [[UInt8]] {
    let once = percentDecoded(path)
    var last = once
    for _ in 0..<decodingsMax {
        let next = percentDecoded(withoutLongForms(last))
        if next == last { break }
        last = next
    }
    var texts = [once]
    if last != once { texts.append(last) }
    if last.contains(0) { texts.append(Array(last.prefix { $0 != 0 })) }
    if withoutParameters, last.contains(UInt8(ascii: ";")) {
        texts += texts.map { text in
            Array(
                text.split(separator: slash, omittingEmptySubsequences: false).map(withoutParameter).joined(separator: [
                    slash
                ]))
        }
    }
    return texts.map(resolved)
}

/// Nobody decodes more often. A path that is still encoded then stays so.
private let decodingsMax = 6

private func withoutParameter(_ segment: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    segment.prefix { $0 != UInt8(ascii: ";") }
}

/// Replaces UTF-8 of more than one byte for a character of ASCII by the character: `C0 AE` is ".", and so is `E0 80 AE`.
private func withoutLongForms(_ bytes: [UInt8]) -> [UInt8] {
    guard bytes.contains(where: { $0 == 0xC0 || $0 == 0xC1 || $0 == 0xE0 || $0 == 0xF0 }) else { return bytes }
    var result: [UInt8] = []
    var index = 0
    while index < bytes.count {
        var lead = bytes[index]
        var end = index + 1
        // Zero bits in front of the last two bytes.
        for (first, count) in [(UInt8(0xE0), 1), (0xF0, 2)] where lead == first {
            let zeros = bytes[end...].prefix(count)
            if zeros.count == count, zeros.dropLast().allSatisfy({ $0 == 0x80 }),
                zeros.last.map({ $0 & 0xFE == 0x80 }) == true
            {
                lead = 0xC0 | (zeros.last ?? 0) & 1
                end += count
            }
        }
        if lead & 0xFE == 0xC0, end < bytes.count, bytes[end] & 0xC0 == 0x80 {
            result.append((lead & 1) << 6 | bytes[end] & 0x3F)
            index = end + 1
        } else {
            result.append(bytes[index])
            index += 1
        }
    }
    return result
}

private func resolved(_ decoded: [UInt8]) -> [UInt8] {
    var kept: [ArraySlice<UInt8>] = []
    var endsInside = false
    for segment in decoded.split(separator: slash) {
        let dots = dotCount(segment)
        endsInside = dots > 0
        if dots == 2 {
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
    if endsInside || decoded.last == slash || result.isEmpty { result.append(slash) }
    return result
}

/// Whether an origin might read another path. It does not for most paths, so this check is all they cost.
func isAmbiguousPath(_ path: ArraySlice<UInt8>) -> Bool {
    var previous: UInt8 = 0
    for byte in path {
        if byte == UInt8(ascii: "%") || byte == UInt8(ascii: "\\") || byte == UInt8(ascii: ";") || byte >= 0x80 {
            return true
        }
        if previous == slash, byte == slash || byte == UInt8(ascii: ".") { return true }
        previous = byte
    }
    return false
}

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
