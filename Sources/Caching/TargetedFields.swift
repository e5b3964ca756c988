import Message

/// What a targeted field says (RFC 9213): it takes the place of `Cache-Control` and `Expires` for the caches it names.
///
/// Our target list (§2.2): `Larder-Cache-Control`, then `CDN-Cache-Control`. The first that is there and can be read is the only
/// one that counts; one that is empty, or no structured dictionary, is as if it was not there. Parameters are ignored. A member
/// of the wrong type counts as strictly as in `Cache-Control`; one that is false is absent.
func targetedDirectives(_ fields: Fields) -> ResponseDirectives? {
    directives(ownTargetedField(fields)) ?? directives(fields.joined(.cdnCacheControl))
}

private func directives(_ value: [UInt8]?) -> ResponseDirectives? {
    guard let value, let dictionary = parseStructuredDictionary(value), !dictionary.entries.isEmpty else { return nil }
    var result = ResponseDirectives()
    for entry in dictionary.entries where entry.member.value != .item(.boolean(false)) {
        guard let name = DirectiveName(rawValue: String(decoding: entry.key, as: UTF8.self)) else { continue }
        result.apply(name, seconds: seconds(entry.member.value), names: names(entry.member.value))
    }
    return result
}

private func seconds(_ value: StructuredMember.Value) -> Seconds {
    guard case .item(.integer(let count)) = value, count > 0 else { return .zero }
    return min(Seconds(count), .deltaMax)
}

private func names(_ value: StructuredMember.Value) -> [[UInt8]] {
    switch value {
    case .item(.string(let list)), .item(.token(let list)): fieldNameList(list)
    case .item, .innerList: []
    }
}

/// All lines of `Larder-Cache-Control` as one; nil where there is none.
private func ownTargetedField(_ fields: Fields) -> [UInt8]? {
    let lines = fields.lines.filter {
        $0.name == .other && equalsIgnoringCase(fields.name(of: $0), "larder-cache-control")
    }
    guard !lines.isEmpty else { return nil }
    return Array(lines.map { fields.value(of: $0) }.joined(separator: [Byte.comma, 0x20]))
}
