package import Message

/// What the answer to a request for the rest of a response means.
package enum ResumeAnswer: Equatable, Sendable {
    /// These bytes of the same representation come now; perhaps not all that were asked for.
    case goesOn(Range<Int>, total: Int)
    /// The representation is another by now: what came so far can not be completed.
    case changed
    /// It says nothing of it: an error, or an answer that can not be placed. Another try may go better.
    case refused
}

/// The fields that ask for the bytes of a stored response from `start` up to `end` (nil: to its end), if it still is the same
/// (RFC 9110 §13.1.5). nil where that can not be asked: it has no strong validator, says `Accept-Ranges: none` (§14.3), or there is nothing left.
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

/// The `Accept-Encoding` to ask for missing bytes of a stored response with, in place of the client's own. Returns nil if the
/// response does not vary by it.
///
/// A variant serves clients whose fields differ from those that it was fetched with: a gzip everybody, a plain one whoever
/// takes plain. With the client's own field the origin might give a part of another variant.
package func codingOfParts(of stored: CachedResponse) -> (FieldName, [UInt8])? {
    guard case .names(let names) = stored.vary, names.contains(where: { $0.name == .acceptEncoding }) else {
        return nil
    }
    return (.acceptEncoding, stored.contentEncoding.isEmpty ? Array("identity".utf8) : stored.contentEncoding)
}

/// Judges the answer to such a request.
///
/// - Parameters:
///   - start, end: as asked for.
///   - total: length of the whole where it is known; nil: the answer says it.
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
        // §13.1.5: the whole, since If-Range does not hold; or ranges are not for this server, and the start comes again.
        return .changed
    case 416:
        // §14.4: it may say how long it is by now.
        let length = fields.first(.contentRange).flatMap { ContentRange(parsing: $0) }?.completeLength
        guard let length, let total else { return .refused }
        return length == UInt64(total) ? .refused : .changed
    case 404, 410:
        return .changed
    default:
        return .refused
    }
}

/// The answer must carry the tag that `If-Range` named (§15.3.7: a 206 has the `ETag` a 200 would have). A date may be
/// left out there, and then `If-Range` vouches for it. The coding may be left out as well (§15.3.7), but deployed servers
/// give one tag to all codings: without it nothing tells a part of the gzip form from one of the plain form.
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
