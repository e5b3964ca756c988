package import Message

/// The stored fields, updated from a 304 (RFC 9111 §4.3.4) or from the answer to a HEAD (§4.3.5), as §3.2 says.
///
/// Each field of the new response replaces all stored lines of its name, at the place of the first; new names come
/// last. Kept as stored are those that are never stored, `Content-Length`, and what tells how the stored bytes are to be read
/// (`Content-Encoding`, `Content-Range`). `Age` goes, unless the new response brings one: it spoke of the old one.
///
/// - Parameter received: when the 304 came: its `Date` where it has none (RFC 9110 §6.6.1); nil: the stored one stays.
package func freshened(_ stored: Fields, by notModified: Fields, received: WallTime? = nil) -> Fields {
    freshening(stored, by: notModified, received: received).fields
}

/// The same, and what changed. Where that is the value of some field only, the lines stay where they are.
/// - Parameter response: what is known of the stored one.
package func freshening(
    _ stored: Fields, of response: CachedResponse? = nil, by notModified: Fields, received: WallTime? = nil
) -> FreshenedFields {
    if let patched = patched(stored, of: response, by: withDate(notModified, received)) { return patched }
    return FreshenedFields(fields: merged(stored, by: notModified, received), changed: nil)
}

private func merged(_ stored: Fields, by notModified: Fields, _ received: WallTime?) -> Fields {
    let update = withDate(storedFields(of: notModified).dropping { isKept($0.name) }, received)
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

/// Fields on which the stored bytes depend (§3.2).
func isKept(_ name: FieldName) -> Bool {
    switch name {
    case .contentLength, .contentEncoding, .contentRange: true
    default: false
    }
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
