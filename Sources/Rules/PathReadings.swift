import Message

/// The paths that an origin may take a path for. It answers that question alone, and everything that looks at paths asks here.
///
/// What an origin makes of a path depends on its software, on what stands before it, and on the order in which they do it: percent-encoding is
/// decoded once, twice or not at all; the parameters of segments (`;v=1`) are cut off before or after that, or belong to the name; "\" is a
/// separator or a character; several "/" are merged or not; "." and ".." are resolved (RFC 3986 §5.2.4), in the URL Standard also as `%2e`.
/// Applied all at once, the steps can undo each other in a way that no origin sees. So there is a reading for each combination.
///
/// A grant (an allow rule, a credential, a cookie) needs all readings, and a restriction (a deny rule, a limit) one.
package struct PathReadings: Sendable, Equatable {
    /// Each reading once, with "." and ".." resolved and, because some programs decode after they have resolved, as they are.
    package private(set) var paths: [[UInt8]] = []
    /// How many of `paths` leave the parameters in the segments. They stand first.
    private(set) var countWithParameters = 0
    /// In some reading there is a segment "..". Clients resolve it before they send a path: whoever sends it wants to deceive.
    package private(set) var climbs = false
    /// There may be more readings than `paths` has: it is not known what an origin makes of the path.
    package private(set) var isObscure = false

    /// Longer paths that can be read in several ways are obscure. Nothing that people deploy has them.
    static let bytesMax = 4096
    /// More texts, before dots are resolved, make a path obscure. Ordinary paths have one to four.
    static let textsMax = 48
    /// Whoever decodes more often decodes until nothing is left to decode, which is one more reading.
    private static let decodingsMax = 2

    /// Returns nil if every origin reads the path as it was sent, which is so for most: one scan finds that out.
    ///
    /// - Parameter path: as sent, without the query.
    package init?(_ path: ArraySlice<UInt8>) {
        guard isAmbiguousPath(path) else { return nil }
        guard path.count <= PathReadings.bytesMax else {
            (climbs, isObscure) = (true, true)
            return
        }
        var whole = PathTexts([Array(path)], cutsParameters: false)
        var cut = PathTexts([Array(path)], cutsParameters: true)
        guard whole.decodeAll(PathReadings.decodingsMax), cut.decodeAll(PathReadings.decodingsMax) else {
            (climbs, isObscure) = (true, true)
            return
        }
        var seen: Set<[UInt8]> = []
        for text in whole.all { take(text, &seen) }
        countWithParameters = paths.count
        for text in cut.all where !whole.contains(text) { take(text, &seen) }
    }

    private mutating func take(_ text: [UInt8], _ seen: inout Set<[UInt8]>) {
        for reading in resolutions(of: text) where seen.insert(reading).inserted { paths.append(reading) }
        climbs = climbs || climbing(text)
    }

    /// Whether it is known that the path is one for which this holds, whatever the origin takes it for.
    package func all(_ holds: ([UInt8]) -> Bool) -> Bool { !climbs && !isObscure && paths.allSatisfy(holds) }

    /// - Parameter parametersCount: what stands behind ";" may belong to the name of a segment in each reading.
    package func all(parametersCount: Bool) -> ArraySlice<[UInt8]> {
        parametersCount ? paths[..<countWithParameters] : paths[...]
    }

    /// The names of the resources that a path may mean, each once: the path in every reading, in the one form that all spellings of a name have in common.
    ///
    /// - Parameter path: as sent, without the query.
    /// - Returns: nil if it is not known what an origin makes of the path.
    package static func names(of path: ArraySlice<UInt8>) -> Set<[UInt8]>? {
        guard let readings = PathReadings(path) else { return [Array(path)] }
        return readings.isObscure ? nil : Set(readings.paths.map { plainPath($0[...]) } + [plainPath(path)])
    }

    /// The name of the resource that somebody means who does not hide anything: percent-encoding is decoded, dots are resolved.
    package static func name(of path: ArraySlice<UInt8>) -> [UInt8] { plainPath(path) }
}

/// What a path becomes by decoding, by replacing "\", by cutting off parameters and by resolving dots before it is decoded further, in every order.
private struct PathTexts {
    private(set) var all: [[UInt8]] = []
    private var known: Set<[UInt8]> = []
    private let cutsParameters: Bool

    init(_ texts: [[UInt8]], cutsParameters: Bool) {
        self.cutsParameters = cutsParameters
        for text in texts { add(text) }
    }

    func contains(_ text: [UInt8]) -> Bool { known.contains(text) }

    /// Decodes so often, and then until nothing is left to decode. Returns false if there are too many texts.
    mutating func decodeAll(_ decodingsMax: Int) -> Bool {
        var level = spread(all)
        for _ in 0..<decodingsMax {
            level = spread(level.map { percentDecoded($0, replacingBackslashes: false) })
            guard all.count <= PathReadings.textsMax else { return false }
        }
        _ = spread(level.map(fullyDecoded))
        // Programs in C end at NUL.
        _ = spread(all.filter { $0.contains(0) }.map { Array($0.prefix { $0 != 0 }) })
        return all.count <= PathReadings.textsMax
    }

    /// Adds the texts, and what they become without decoding. Returns all of these.
    private mutating func spread(_ texts: [[UInt8]]) -> [[UInt8]] {
        var result: [[UInt8]] = []
        for text in texts {
            result.append(text)
            if text.contains(backslash) { result.append(text.map { $0 == backslash ? slash : $0 }) }
        }
        // Programs that resolve first, and decode or cut then. A segment with `%2f` is one of those that ".." takes away, and so is "..;a".
        for text in result where text.contains(percent) || cutsParameters && text.contains(semicolon) {
            if hasDots(text) { result += resolutions(of: text) }
        }
        for text in result where cutsParameters && text.contains(semicolon) {
            let cut = withoutParameters(text)
            result.append(cut)
            if cut.contains(percent), hasDots(cut) { result += resolutions(of: cut) }
        }
        for text in result { add(text) }
        return Array(Set(result))
    }

    private mutating func add(_ text: [UInt8]) {
        if known.insert(text).inserted { all.append(text) }
    }
}

/// Decoded until nothing is left to decode, with UTF-8 in forms that are longer than needed (RFC 3629 §10).
private func fullyDecoded(_ text: [UInt8]) -> [UInt8] {
    var last = text
    for _ in 0..<4 {
        let next = percentDecoded(withoutLongForms(last), replacingBackslashes: false)
        if next == last { break }
        last = next
    }
    return last
}

private func withoutParameters(_ text: [UInt8]) -> [UInt8] {
    var result: [UInt8] = []
    var isInParameter = false
    for byte in text {
        if byte == slash { isInParameter = false }
        if byte == semicolon { isInParameter = true }
        if !isInParameter { result.append(byte) }
    }
    return result
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

/// The text with "." and ".." resolved, for each way to take empty segments and `%2e`, and as it is.
private func resolutions(of text: [UInt8]) -> [[UInt8]] {
    let hasEmptySegments = zip(text, text.dropFirst()).contains { $0 == slash && $1 == slash }
    var results = [text]
    for decodesDots in hasEncodedDot(text) ? [false, true] : [false] {
        func dots(_ segment: ArraySlice<UInt8>) -> Int { dotCount(segment, decodesDots: decodesDots) }
        let merged = resolved(text, mergesSlashes: true, dots: dots)
        results.append(merged)
        // Some drop "." and leave "..".
        results.append(resolved(text, mergesSlashes: true) { dots($0) == 1 ? 1 : 0 })
        // To file systems, "a/." is "a", where a URI has "a/".
        if merged.count > 1, merged.last == slash, text.last != slash { results.append(merged.dropLast()) }
        guard hasEmptySegments else { continue }
        results.append(withSingleSlashes(text))
        let unmerged = resolved(text, mergesSlashes: false, dots: dots)
        results.append(unmerged)
        results.append(withSingleSlashes(unmerged))
    }
    return results
}

private func climbing(_ text: [UInt8]) -> Bool {
    text.split(separator: slash).contains { segment in
        // A reading that cuts parameters off finds the dots bare.
        dotCount(segment, decodesDots: true) == 2
    }
}

private func hasDots(_ text: [UInt8]) -> Bool {
    text.split(separator: slash).contains { dotCount($0, decodesDots: true) > 0 }
}

private func hasEncodedDot(_ text: [UInt8]) -> Bool {
    text.indices.contains { isEncodedDot(text[$0...]) }
}

private func isEncodedDot(_ text: ArraySlice<UInt8>) -> Bool {
    let start = text.startIndex
    return text.count >= 3 && text[start] == UInt8(ascii: "%") && text[start + 1] == UInt8(ascii: "2")
        && text[start + 2] | 0x20 == UInt8(ascii: "e")
}

/// 1 for ".", 2 for "..", 0 for other segments.
private func dotCount(_ segment: ArraySlice<UInt8>, decodesDots: Bool) -> Int {
    var count = 0
    var rest = segment
    while let byte = rest.first {
        if byte == UInt8(ascii: ".") {
            rest = rest.dropFirst()
        } else if decodesDots, isEncodedDot(rest) {
            rest = rest.dropFirst(3)
        } else {
            return 0
        }
        count += 1
        if count > 2 { return 0 }
    }
    return count
}

private let slash = UInt8(ascii: "/")
private let backslash = UInt8(ascii: "\\")
private let percent = UInt8(ascii: "%")
private let semicolon = UInt8(ascii: ";")
