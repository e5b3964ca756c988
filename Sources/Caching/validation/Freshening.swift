package import Message

/// Updates the stored fields from a 304 (RFC 9111 §4.3.4) or from the response to a HEAD (§4.3.5), by the rules of §3.2.
///
/// Each field of the new response replaces all stored lines with its name, at the place of the first. New names are appended. These
/// fields stay as stored: fields that are never stored from a response, `Content-Length`, and those that say how the stored bytes are to
/// be read (`Content-Encoding`, `Content-Range`). So does a weak `ETag` that comes back strong: what is stored is not the same to the byte, and
/// parts of it must not be combined with parts of what has the strong tag (RFC 9110 §8.8.1). `Age` is removed unless the new response has
/// one, because it was about the old one.
///
/// - Parameter received: when the 304 arrived, which stands for a missing `Date` (RFC 9110 §6.6.1). If nil, the stored `Date` stays.
package func freshened(_ stored: Fields, by notModified: Fields, received: WallTime? = nil) -> Fields {
    freshening(stored, by: notModified, received: received).fields
}

/// Does the same, and says what changed. If only values of fields changed, the lines stay where they are.
/// - Parameter response: what is known about the stored response.
package func freshening(
    _ stored: Fields, of response: CachedResponse? = nil, by notModified: Fields, received: WallTime? = nil
) -> FreshenedFields {
    if let patched = patched(stored, of: response, by: withDate(notModified, received)) { return patched }
    return FreshenedFields(fields: merged(stored, by: notModified, received), changed: nil)
}

private func merged(_ stored: Fields, by notModified: Fields, _ received: WallTime?) -> Fields {
    let keepsTag = isStrengthened(stored, by: notModified)
    let update = withDate(
        storedFields(of: notModified).dropping { isKept($0.name) || (keepsTag && $0.name == .eTag) }, received)
    var result = Fields()
    var written: [Int] = []
    for line in stored.lines {
        let name = stored.name(of: line)
        let replacing = update.lines.indices.filter { isSame(update, update.lines[$0], line.name, name) }
        if replacing.isEmpty {
            if line.name != .age { result.append(line.name, spelling: name, stored.value(of: line)) }
        } else if !written.contains(replacing[0]) {
            for index in replacing { append(update, update.lines[index], to: &result) }
            written += replacing
        }
    }
    for index in update.lines.indices where !written.contains(index) {
        append(update, update.lines[index], to: &result)
    }
    return droppingListed(result)
}

/// Whether the stored bytes depend on this field (§3.2).
func isKept(_ name: FieldName) -> Bool {
    switch name {
    case .contentLength, .contentEncoding, .contentRange: true
    default: false
    }
}

/// Whether the stored tag is weak, and the update has the same one as a strong tag.
private func isStrengthened(_ stored: Fields, by update: Fields) -> Bool {
    guard let new = update.first(.eTag).flatMap({ EntityTag(parsing: $0) }), !new.isWeak,
        let old = stored.first(.eTag).flatMap({ EntityTag(parsing: $0) })
    else { return false }
    return old.isWeak && old.opaque == new.opaque
}

private func withDate(_ fields: Fields, _ received: WallTime?) -> Fields {
    guard let received, !fields.contains(.date) else { return fields }
    var result = fields
    var value: [UInt8] = []
    appendHTTPDate(received, to: &value)
    result.append(.date, value)
    return result
}

func isSame(_ fields: Fields, _ line: FieldLine, _ name: FieldName, _ spelling: ArraySlice<UInt8>) -> Bool {
    line.name == name && (name != .other || equalsIgnoringCase(fields.name(of: line), spelling))
}

private func append(_ fields: Fields, _ line: FieldLine, to result: inout Fields) {
    result.append(line.name, spelling: fields.name(of: line), fields.value(of: line))
}
