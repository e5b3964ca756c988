package import Message

/// What a response means that should bring the rest of another response.
package enum ResumeAnswer: Equatable, Sendable {
    /// It brings these bytes of the same representation, perhaps fewer than were requested.
    case goesOn(Range<Int>, total: Int)
    /// The origin has another representation now: what has arrived cannot be completed.
    case changed
    /// It is an error, or says nothing that can be used. Another attempt may succeed.
    case refused
}

/// The fields that request the bytes of a stored response from `start` to `end` (nil: to its end), provided that it did not change
/// (RFC 9110 §13.1.5). Returns nil if that cannot be requested: the response has no strong validator, says `Accept-Ranges: none` (§14.3),
/// or nothing is left.
package func partConditions(
    for stored: CachedResponse, from start: Int, to end: Int?
) -> [(FieldName, [UInt8])]? {
    guard start >= 0, end.map({ $0 > start }) ?? true, !stored.refusesRanges,
        let validator = stored.strongValidatorBytes
    else { return nil }
    var range = Array("bytes=".utf8)
    appendDecimal(UInt64(start), to: &range)
    range.append(0x2D)
    if let end { appendDecimal(UInt64(end) - 1, to: &range) }
    return [(.range, range), (.ifRange, validator)]
}

/// The `Accept-Encoding` with which missing bytes of a stored response are requested, instead of the client's own. Returns nil if the
/// response does not vary by it.
///
/// A variant also serves clients that sent other fields: a gzip serves everybody, and content without a coding serves all who accept it.
/// With the field of such a client, the origin could send a part of another variant.
package func codingOfParts(of stored: CachedResponse) -> (FieldName, [UInt8])? {
    guard case .names(let names) = stored.vary, names.contains(where: { $0.name == .acceptEncoding }) else {
        return nil
    }
    return (.acceptEncoding, stored.contentEncoding.isEmpty ? Array("identity".utf8) : stored.contentEncoding)
}

/// Judges the response to such a request.
///
/// - Parameters:
///   - start: the first byte that was requested.
///   - end: the end of the request. Nil if it was the end of the content.
///   - total: the length of the whole. Nil if it is not known; the response says it then.
package func continues(
    status: UInt16, fields: Fields, stored: CachedResponse, from start: Int, to end: Int?, total: Int?
) -> ResumeAnswer {
    switch status {
    case 206:
        guard !isMultipart(fields), let (range, length) = placedRange(fields),
            let first = Int(exactly: range.lowerBound),
            let last = Int(exactly: range.upperBound), let whole = Int(exactly: length)
        else { return .refused }
        guard total == nil || whole == total, isSameRepresentation(fields, stored) else { return .changed }
        guard first == start, last <= end ?? whole else { return .refused }
        return .goesOn(first..<last, total: whole)
    case 200:
        // §13.1.5: this is the whole, because If-Range is false, or because the server ignores ranges.
        return .changed
    case 416:
        // §14.4: the response may say how long the content is now.
        let length = fields.first(.contentRange).flatMap { ContentRange(parsing: $0) }?.completeLength
        guard let length, let total else { return .refused }
        return length == UInt64(total) ? .refused : .changed
    case 404, 410:
        return .changed
    default:
        return .refused
    }
}

/// Whether the response is of the stored representation. It must carry the tag that `If-Range` named (§15.3.7: a 206 has the `ETag` that
/// a 200 would have). It may omit a date, because the origin compared `If-Range`. It may omit the coding as well (§15.3.7), but deployed
/// servers give all codings one tag, and without the coding a part of the gzip form cannot be told from one of the plain form.
private func isSameRepresentation(_ fields: Fields, _ stored: CachedResponse) -> Bool {
    let coding = fields.joined(.contentEncoding)?.map(asciiLowercased)
    guard (coding ?? []) == stored.contentEncoding else { return false }
    let eTag = fields.first(.eTag).flatMap { EntityTag(parsing: $0) }
    switch stored.strongValidator {
    case .eTag(let own):
        return eTag?.strongMatches(own) ?? false
    case .lastModified(let own):
        guard eTag == nil else { return false }
        guard fields.contains(.lastModified) else { return true }
        return lastModifiedField(fields, received: stored.responseTime)?.time == own
    case nil:
        return false
    }
}
