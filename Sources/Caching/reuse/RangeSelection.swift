package import Message

/// Which part of a complete stored response answers a request (RFC 9110 §14.2).
package enum RangeSelection: Equatable, Sendable {
    /// A 200 with the whole: there is no `Range`, or it is ignored.
    case whole
    /// A 206 with one part.
    case single(Range<UInt64>)
    /// A 206 as `multipart/byteranges`, in the requested order. A 200 with the whole is correct as well.
    case multiple([Range<UInt64>])
    /// A 416.
    case unsatisfiable
}

/// - Parameters:
///   - request: the fields of the request, as offsets into `bytes`. Preconditions were evaluated before (§13.2.2 step 5).
///   - length: the length of the stored content in bytes.
package func selectRange(
    _ request: FieldSection, bytes: borrowing Span<UInt8>, method: Method, stored: CachedResponse, length: UInt64,
    now: WallTime
) -> RangeSelection {
    // §14.2: Range applies to GET only; §13.1.5: and only if the response would be a 200.
    guard method == .get, stored.status == 200, let value = request.joined(.range, bytes),
        let specs = parseByteRanges(value), ifRangeHolds(request.joined(.ifRange, bytes), stored, now)
    else { return .whole }
    let ranges = specs.compactMap { $0.resolve(against: length) }
    if ranges.isEmpty { return .unsatisfiable }
    // Of empty content only a suffix is satisfiable. It means all of it, and no Content-Range can say so.
    if length == 0 { return .whole }
    if ranges.count == 1 { return .single(ranges[0]) }
    return isExcessive(ranges, length) ? .whole : .multiple(ranges)
}

package func selectRange(
    _ request: Fields, method: Method, stored: CachedResponse, length: UInt64, now: WallTime
) -> RangeSelection {
    selectRange(
        request.section, bytes: request.bytes.span, method: method, stored: stored, length: length, now: now)
}

/// Whether the client's part is of this representation, by `If-Range` (RFC 9110 §13.1.5). Compares strongly.
private func ifRangeHolds(_ value: [UInt8]?, _ stored: CachedResponse, _ now: WallTime) -> Bool {
    guard let value else { return true }
    if let eTag = EntityTag(parsing: value) { return stored.eTag?.strongMatches(eTag) ?? false }
    guard let date = parseHTTPDate(value, now: now), let lastModified = stored.lastModified else { return false }
    // §8.8.2.2: a date is a strong validator only if it is at least one second before Date.
    return date == lastModified && (stored.date - lastModified) >= Seconds(1)
}

/// §14.2: ranges whose lengths add up to more than the whole are an attack or a mistake. Sending the whole is cheaper.
private func isExcessive(_ ranges: [Range<UInt64>], _ length: UInt64) -> Bool {
    var left = length
    for range in ranges {
        let count = range.upperBound - range.lowerBound
        if count > left { return true }
        left -= count
    }
    return false
}
