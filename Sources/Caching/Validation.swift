package import Message

/// The fields that ask the origin whether a stored response still holds (RFC 9111 §4.3.1): every validator it has.
///
/// They replace the client's own conditional fields, which are answered from what comes of it. Empty where the
/// response has no validator: the request goes out without condition.
package func conditionalFields(for stored: CachedResponse) -> [(FieldName, [UInt8])] {
    var fields: [(FieldName, [UInt8])] = []
    if let eTag = stored.eTag { fields.append((.ifNoneMatch, eTag.wire)) }
    if stored.lastModified != nil { fields.append((.ifModifiedSince, stored.lastModifiedBytes)) }
    return fields
}

/// The same where none of several stored responses matches the request (§4.3.1): the origin may say that one does after
/// all. All their tags, each once; no date, which would speak of one of them only. Empty where none has a tag.
package func conditionalFields(forOneOf stored: [CachedResponse]) -> [(FieldName, [UInt8])] {
    var tags: [[UInt8]] = []
    for tag in stored.compactMap({ $0.eTag?.wire }) where !tags.contains(tag) { tags.append(tag) }
    return tags.isEmpty ? [] : [(.ifNoneMatch, Array(tags.joined(separator: [Byte.comma, 0x20])))]
}

/// The request fields that must go when `conditionalFields` are put in, `Range` with them: a whole response is wanted.
package let replacedByConditionalFields: FieldNameSet = [
    .ifNoneMatch, .ifModifiedSince, .ifMatch, .ifUnmodifiedSince, .ifRange, .range,
]

/// Whether a 304 speaks of this stored response (RFC 9111 §4.3.4): its validator, where it has one, is the same.
///
/// A 304 without any validator answers the one response whose validators were sent; deployed origins do so.
package func selects(_ notModified: Fields, _ stored: CachedResponse, received: WallTime) -> Bool {
    if let eTag = notModified.first(.eTag).flatMap({ EntityTag(parsing: $0) }) {
        guard let storedTag = stored.eTag else { return false }
        return eTag.isWeak ? eTag.weakMatches(storedTag) : eTag.opaque == storedTag.opaque && !storedTag.isWeak
    }
    guard let modified = lastModifiedField(notModified, received: received) else { return true }
    return modified.time == stored.lastModified
}

/// Whether a 304 confirms the stored response whose validators went out: it selects it, or it carries the tag that was
/// sent, weak or strong.
///
/// Wider than §4.3.4 for one deployed server: nginx weakens the tag of a response that it compresses on the way, but its
/// 304 to that very tag carries the strong one. Whoever answers 304 to `W/"x"` with `"x"` means what we hold.
package func confirms(_ notModified: Fields, _ stored: CachedResponse, received: WallTime) -> Bool {
    if selects(notModified, stored, received: received) { return true }
    guard let eTag = notModified.first(.eTag).flatMap({ EntityTag(parsing: $0) }), let sent = stored.eTag else {
        return false
    }
    return eTag.weakMatches(sent)
}

/// Which of several stored responses a 304 updates (RFC 9111 §4.3.4), as indices: all with its strong validator; with a
/// weak one the most recent that matches; without any the only one there is, if that has none either. None: it speaks
/// of nothing we hold, and updates nothing.
package func selected(by notModified: Fields, among stored: [CachedResponse], received: WallTime) -> [Int] {
    let matching = stored.indices.filter { selects(notModified, stored[$0], received: received) }
    if let eTag = notModified.first(.eTag).flatMap({ EntityTag(parsing: $0) }) {
        return eTag.isWeak ? mostRecent(matching, stored) : matching
    }
    guard lastModifiedField(notModified, received: received) == nil else { return mostRecent(matching, stored) }
    return stored.count == 1 && !stored[0].hasValidator ? [0] : []
}

private func mostRecent(_ indices: [Int], _ stored: [CachedResponse]) -> [Int] {
    guard var best = indices.first else { return [] }
    for index in indices where isMoreRecent(stored[index], than: stored[best]) { best = index }
    return [best]
}
