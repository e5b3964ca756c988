package import Message

/// The fields that ask the origin whether a stored response is still valid (RFC 9111 §4.3.1): every validator that it has.
///
/// They replace the client's own conditional fields, which Larder evaluates after the validation. Empty if the response has no validator;
/// the request is then sent without a condition.
package func conditionalFields(for stored: CachedResponse) -> [(FieldName, [UInt8])] {
    guard let eTag = stored.eTag else {
        return stored.lastModified == nil ? [] : [(.ifModifiedSince, stored.lastModifiedBytes)]
    }
    // In one piece: an array that grows is allocated twice.
    guard stored.lastModified != nil else { return [(.ifNoneMatch, eTag.wire)] }
    return [(.ifNoneMatch, eTag.wire), (.ifModifiedSince, stored.lastModifiedBytes)]
}

/// The same if none of several stored responses matches the request (§4.3.1): the origin may say that one of them does after all. Contains
/// each tag once, and no date, which would be about only one of them. Empty if none has a tag.
package func conditionalFields(forOneOf stored: [CachedResponse]) -> [(FieldName, [UInt8])] {
    var tags: [[UInt8]] = []
    for tag in stored.compactMap({ $0.eTag?.wire }) where !tags.contains(tag) { tags.append(tag) }
    return tags.isEmpty ? [] : [(.ifNoneMatch, Array(tags.joined(separator: [Byte.comma, 0x20])))]
}

/// The request fields that `conditionalFields` replace. `Range` is among them, because a whole response is wanted.
package let replacedByConditionalFields: FieldNameSet = [
    .ifNoneMatch, .ifModifiedSince, .ifMatch, .ifUnmodifiedSince, .ifRange, .range,
]

/// Whether a 304 is about this stored response (RFC 9111 §4.3.4): if it has a validator, that is the same.
///
/// A 304 without any validator answers for the one response whose validators were sent; deployed origins do so.
package func selects(_ notModified: Fields, _ stored: CachedResponse, received: WallTime) -> Bool {
    // Nearly always the tag comes back as it was sent, and need not be parsed.
    if let tag = stored.eTag, let value = notModified.first(.eTag), tag.isWritten(value) { return true }
    if let eTag = notModified.first(.eTag).flatMap({ EntityTag(parsing: $0) }) {
        guard let storedTag = stored.eTag else { return false }
        return eTag.isWeak ? eTag.weakMatches(storedTag) : eTag.opaque == storedTag.opaque && !storedTag.isWeak
    }
    guard let modified = lastModifiedField(notModified, received: received) else { return true }
    return modified.time == stored.lastModified
}

/// Whether a 304 confirms the stored response whose validators were sent: it selects the response, or it has the tag that was sent, weak
/// or strong.
///
/// This is wider than §4.3.4 because of nginx, which weakens the tag of a response that it compresses on the fly, but sends the strong
/// tag in the 304 for the weak one. An origin that answers `W/"x"` with a 304 and `"x"` means the stored response.
package func confirms(_ notModified: Fields, _ stored: CachedResponse, received: WallTime) -> Bool {
    if selects(notModified, stored, received: received) { return true }
    guard let eTag = notModified.first(.eTag).flatMap({ EntityTag(parsing: $0) }), let sent = stored.eTag else {
        return false
    }
    return eTag.weakMatches(sent)
}

/// The indices of the stored responses that a 304 updates (RFC 9111 §4.3.4). With a strong validator: all that have it. With a weak one:
/// the most recent that matches. Without any: the only response, if that has no validator either. If there are none, the 304 is about
/// nothing that is stored, and updates nothing.
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
