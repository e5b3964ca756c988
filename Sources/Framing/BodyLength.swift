package import Message

/// How the end of a body is known (RFC 9112 §6.3).
package enum BodyLength: Sendable, Equatable {
    /// There is no body.
    case none
    case length(UInt64)
    case chunked
    /// A response that lasts until the origin closes.
    case untilClose
    /// From here on the connection is a tunnel: 2xx to CONNECT, or 101.
    case tunnel
}

/// RFC 9112 §6.3 for a request.
///
/// Content-Length lines that repeat one number are taken as that number (rule 5 leaves it to us); who forwards the
/// message must send one line in their place.
package func requestBodyLength(_ head: RequestHead, bytes: borrowing Span<UInt8>) throws(FramingError) -> BodyLength {
    guard !head.fields.present.isDisjoint(with: [.contentLength, .transferEncoding]) else { return .none }
    return try declaredLength(head.fields, minorVersion: head.minorVersion, bytes) ?? .none
}

/// RFC 9112 §6.3 for a response.
///
/// - Parameter method: of the request it answers.
package func responseBodyLength(
    _ head: ResponseHead, to method: Method, bytes: borrowing Span<UInt8>
) throws(FramingError) -> BodyLength {
    if head.status == 101 || (method == .connect && head.status / 100 == 2) { return .tunnel }
    if method == .head || head.status < 200 || head.status == 204 || head.status == 304 {
        // What Content-Length says is about another response, but it is passed on: it must be a number.
        _ = try contentLength(head.fields, bytes)
        return .none
    }
    return try declaredLength(head.fields, minorVersion: head.minorVersion, bytes) ?? .untilClose
}

/// What Transfer-Encoding and Content-Length say together; nil where neither is there.
private func declaredLength(
    _ fields: FieldSection, minorVersion: UInt8, _ bytes: borrowing Span<UInt8>
) throws(FramingError) -> BodyLength? {
    guard fields.present.contains(.transferEncoding) else {
        return try contentLength(fields, bytes).map { .length($0) }
    }
    if fields.present.contains(.contentLength) { throw .transferEncodingWithContentLength }
    if minorVersion == 0 { throw .transferEncodingInHTTP10 }
    try requireChunked(fields, bytes)
    return .chunked
}

/// `chunked` once and alone is the one coding we take. Another before it would be ours to decode, and we never ask for any
/// (RFC 9112 §7.4); after it, the end of the body can not be found.
private func requireChunked(_ fields: FieldSection, _ bytes: borrowing Span<UInt8>) throws(FramingError) {
    var codings = 0
    var chunkedAt: Int?
    var isRepeated = false
    for line in fields.lines where line.name == .transferEncoding {
        forEachRawElement(bytes, line.valueRange) { bytes, element in
            codings += 1
            guard matches(bytes, element, "chunked") else { return }
            isRepeated = isRepeated || chunkedAt != nil
            chunkedAt = codings
        }
    }
    if codings == 0 || isRepeated { throw .transferCodingNotFinal }
    if let chunkedAt, chunkedAt < codings { throw .transferCodingNotFinal }
    if chunkedAt == nil || codings > 1 { throw .transferCodingUnknown }
}

/// The one number that all lines and list members repeat; nil where there is no such field.
private func contentLength(_ fields: FieldSection, _ bytes: borrowing Span<UInt8>) throws(FramingError) -> UInt64? {
    guard fields.present.contains(.contentLength) else { return nil }
    var length: UInt64?
    for line in fields.lines where line.name == .contentLength {
        var start = line.valueRange.lowerBound
        while start <= line.valueRange.upperBound {
            var end = start
            while end < line.valueRange.upperBound, bytes[end] != 0x2C { end += 1 }
            let value = try parseLength(bytes, start..<end)
            if let length, length != value { throw .differingContentLengths }
            length = value
            start = end + 1
        }
    }
    return length
}

/// `1*DIGIT` with white space around it, up to 2^63 - 1.
private func parseLength(_ bytes: borrowing Span<UInt8>, _ range: Range<Int>) throws(FramingError) -> UInt64 {
    let trimmed = trimmedOWS(bytes, range)
    guard !trimmed.isEmpty else { throw .badContentLength }
    var value: Int64 = 0
    for index in trimmed {
        guard isDigit(bytes[index]) else { throw .badContentLength }
        let (tens, overflow) = value.multipliedReportingOverflow(by: 10)
        let (sum, carry) = tens.addingReportingOverflow(Int64(bytes[index] - 0x30))
        guard !overflow, !carry else { throw .badContentLength }
        value = sum
    }
    return UInt64(value)
}
