import Message

/// One value for all that mean the same, as far as the field's own syntax tells (RFC 9111 §4.1).
///
/// `Accept-Encoding`: case, order and `q=1` do not matter. `Accept-Language`: case and `q=1` do not, the order among equal weights
/// does, since servers go by it. Other fields known to be lists: white space between the members. The rest as it is.
///
/// - Parameter lines: the field's values, a line each, without the white space around them; at least one.
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

/// `gzip;q=1.0, BR` → `br,gzip`; the weight is written in thousandths where it is not 1.
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
