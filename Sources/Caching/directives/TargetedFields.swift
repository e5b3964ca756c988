import Message

/// The directives of a targeted field (RFC 9213), which replaces `Cache-Control` and `Expires` for the caches that it names.
///
/// Larder's target list (§2.2) is `Larder-Cache-Control`, then `CDN-Cache-Control`. Only the first one that is present and can be parsed
/// counts. A field that is empty or not a structured dictionary counts as absent. Parameters are ignored. A member of the wrong type counts
/// as strictly as in `Cache-Control`, and a member that is false counts as absent.
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

/// All lines of `Larder-Cache-Control` joined. Returns nil if there is none.
private func ownTargetedField(_ fields: Fields) -> [UInt8]? {
    func isOurs(_ line: FieldLine) -> Bool {
        line.name == .other && equalsIgnoringCase(fields.name(of: line), "larder-cache-control")
    }
    // Nearly no response has one, and each that is stored is asked.
    guard fields.present.contains(.other), fields.lines.contains(where: isOurs) else { return nil }
    let lines = fields.lines.filter(isOurs)
    return Array(lines.map { fields.value(of: $0) }.joined(separator: [Byte.comma, 0x20]))
}
