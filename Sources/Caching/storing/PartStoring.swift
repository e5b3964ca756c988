package import Message

/// A part of a response that may be stored (RFC 9111 §3.3), and what is known about the whole.
package struct StorablePart: Sendable, Equatable {
    /// The response as if the whole had arrived, with status 200.
    package let whole: CachedResponse
    /// The fields of the whole that are stored, without `Content-Range` and `Content-Length`.
    package let fields: Fields
    /// The bytes in the part. Never empty, and always within `total`.
    package let range: Range<UInt64>
    /// The length of the whole in bytes.
    package let total: UInt64
}

package enum PartStoring: Sendable {
    case store(StorablePart)
    /// A digest proves the whole, which has so many bytes, and says nothing about a part. The whole may be stored.
    case storeWhole(length: UInt64)
    case doNotStore(NotStoredReason)
}

/// Whether a 206 to a GET with `Range` may be stored as a part of the whole (RFC 9111 §3.3, RFC 9110 §15.3.7).
///
/// The general rules are those for a 200 with the same fields. In addition, the part must say where in a whole of known length it
/// belongs, and it must have a strong validator, because a part that cannot be combined is of little use (§3.4).
package func decideStoringPart(
    of request: CacheRequest, status: UInt16, fields: Fields, policy: CachePolicy,
    handling: CacheHandling = CacheHandling(), particulars: HandlingParticulars? = nil, requestTime: WallTime,
    responseTime: WallTime
) -> PartStoring {
    guard status == 206, request.method == .get, request.hasRange else { return .doNotStore(.partialContent) }
    guard handling.ranges != .pass else { return .doNotStore(.policy) }
    guard !isMultipart(fields) else { return .doNotStore(.partMultiple) }
    guard let (range, total) = placedRange(fields) else { return .doNotStore(.partUnplaced) }
    // A response to If-Range may omit the fields that describe the whole (RFC 9110 §15.3.7). Without them it cannot stand for the whole.
    if request.hasIfRange, !handling.provesBodies, !fields.contains(.contentType) { return .doNotStore(.partUnplaced) }
    let whole = fields.dropping { $0.name == .contentRange || $0.name == .contentLength }
    let decision = decideStoring(
        of: request, status: 200, fields: whole, policy: policy, handling: handling, particulars: particulars,
        requestTime: requestTime, responseTime: responseTime)
    guard case .store(let cached) = decision else {
        if case .doNotStore(let reason) = decision { return .doNotStore(reason) }
        preconditionFailure("a decision is one of two")
    }
    guard !handling.provesBodies else { return .storeWhole(length: total) }
    guard cached.strongValidator != nil else { return .doNotStore(.partWeak) }
    return .store(
        StorablePart(
            whole: cached, fields: storedFields(of: whole, as: cached, without: particulars), range: range,
            total: total))
}

/// Whether the part and the stored response are of the same representation (RFC 9111 §3.4): the strong validators are equal, and so are
/// the codings, because deployed servers give all codings one tag. The caller compares the total lengths.
package func combines(part: StorablePart, with stored: CachedResponse) -> Bool {
    guard stored.status == 200, let validator = part.whole.strongValidator else { return false }
    return validator == stored.strongValidator && part.whole.contentEncoding == stored.contentEncoding
}

/// The range and total of the only `Content-Range`. Returns nil if the total is unknown or `Content-Length` contradicts it.
func placedRange(_ fields: Fields) -> (range: Range<UInt64>, total: UInt64)? {
    let values = fields.all(.contentRange)
    guard values.count == 1, let contentRange = ContentRange(parsing: values[0]), let range = contentRange.range,
        let total = contentRange.completeLength
    else { return nil }
    let lengths = fields.all(.contentLength)
    guard lengths.allSatisfy({ parseOctetCount($0) == range.upperBound - range.lowerBound }) else { return nil }
    return (range, total)
}

/// How many bytes of content the head of a 206 promises.
package enum PartPromise: Equatable, Sendable {
    /// There are several parts, or no `Content-Range` that can be parsed. Only the framing tells how long the body is.
    ///
    /// Such a response is passed on as it is and never stored or combined. RFC 9110 §15.3.7 forbids origins a 206 with one part and
    /// without `Content-Range`, but asks nothing of a proxy that gets one. A unit that the proxy does not know is no error at all: such
    /// a response is to be forwarded (§14.4). What the client can do with the part, only the client knows.
    case none
    case bytes(UInt64)
    /// `Content-Range` and `Content-Length` disagree, so it is unknown which bytes these are.
    case contradictory
}

/// How many bytes a response promises with its `Content-Range` (RFC 9110 §14.4). A body of another length is an error, however it is
/// framed: it must neither be stored nor reach a client as if it were complete.
package func promisedPart(status: UInt16, fields: Fields) -> PartPromise {
    guard status == 206, !isMultipart(fields) else { return .none }
    let values = fields.all(.contentRange)
    guard values.count == 1, let range = ContentRange(parsing: values[0])?.range else { return .none }
    let count = range.upperBound - range.lowerBound
    return fields.all(.contentLength).allSatisfy { parseOctetCount($0) == count } ? .bytes(count) : .contradictory
}

/// Whether the type is `multipart/byteranges`, which has several parts, or one part in an envelope (RFC 9110 §14.6).
func isMultipart(_ fields: Fields) -> Bool {
    guard let type = fields.first(.contentType) else { return false }
    let essence = trimOWS(type.prefix { $0 != 0x3B })
    return equalsIgnoringCase(essence, "multipart/byteranges")
}
