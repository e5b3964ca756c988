import Message

/// Gives all values the same form that mean the same by the syntax of their field (RFC 9111 §4.1).
///
/// In `Accept-Encoding`, case, order and `q=1` do not matter. In `Accept-Language`, case and `q=1` do not matter, but the order among equal
/// weights does, because servers use it. In other known lists, white space between members does not matter. All other values stay
/// unchanged.
///
/// - Parameter lines: the values of the field, one for each line, without surrounding white space. At least one.
func normalisedValue(of name: FieldName, _ lines: [[UInt8]]) -> [UInt8] {
    let joined = Array(lines.joined(separator: [Byte.comma, 0x20]))
    switch name {
    case .acceptEncoding: return normalisedPreferences(joined, sortsEqualWeights: true)
    case .acceptLanguage: return normalisedPreferences(joined, sortsEqualWeights: false)
    case .accept, .cacheControl, .forwarded, .te, .via: return normalisedList(joined)
    default: return joined
    }
}

private func normalisedList(_ value: [UInt8]) -> [UInt8] {
    var members: [ArraySlice<UInt8>] = []
    forEachListElement(value[...]) { members.append($0) }
    return Array(members.joined(separator: [Byte.comma]))
}

/// `gzip;q=1.0, BR` → `br,gzip`. A weight other than 1 is written in thousandths.
private func normalisedPreferences(_ value: [UInt8], sortsEqualWeights: Bool) -> [UInt8] {
    let preferences = qualityValues(value[...]).enumerated().map { position, preference in
        (token: codingName(preference.token.map(asciiLowercased)), weight: preference.weight, position: position)
    }
    let sorted = preferences.sorted { a, b in
        if a.weight != b.weight { return a.weight > b.weight }
        return sortsEqualWeights && a.token != b.token
            ? a.token.lexicographicallyPrecedes(b.token) : a.position < b.position
    }
    let members = sorted.map { $0.weight == 1000 ? $0.token : $0.token + Array(";q=\($0.weight)".utf8) }
    return Array(members.joined(separator: [Byte.comma]))
}

/// Two codings have a second name (RFC 9110 §8.4.1.1, §8.4.1.3).
private func codingName(_ token: [UInt8]) -> [UInt8] {
    token.elementsEqual("x-gzip".utf8) || token.elementsEqual("x-compress".utf8) ? Array(token.dropFirst(2)) : token
}
