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
