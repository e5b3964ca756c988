package import Message

/// How a message tells where its body ends (RFC 9112 §6.3).
package enum BodyLength: Sendable, Equatable {
    /// There is no body.
    case none
    /// At most `octetCountMax`.
    case length(UInt64)
    case chunked
    /// The body of a response that ends when the origin closes the connection.
    case untilClose
    /// The connection is a tunnel from here on: a 2xx to CONNECT, or a 101.
    case tunnel
}

/// The length of a request's body (RFC 9112 §6.3).
///
/// `Content-Length` lines that repeat the same number count as that number, which rule 5 allows. A message that is forwarded must have one
/// line in their place.
package func requestBodyLength(_ head: RequestHead, bytes: borrowing Span<UInt8>) throws(FramingError) -> BodyLength {
    let present = head.fields.present
    guard present.contains(.contentLength) || present.contains(.transferEncoding) else { return .none }
    return try declaredLength(head.fields, minorVersion: head.minorVersion, bytes) ?? .none
}

/// The length of a response's body (RFC 9112 §6.3).
///
/// - Parameter method: the method of the request that is answered.
package func responseBodyLength(
    _ head: ResponseHead, to method: Method, bytes: borrowing Span<UInt8>
) throws(FramingError) -> BodyLength {
    try responseBodyLength(
        status: head.status, head.fields, minorVersion: head.minorVersion, to: method, bytes: bytes)
}

package func responseBodyLength(
    status: UInt16, _ fields: FieldSection, minorVersion: UInt8, to method: Method, bytes: borrowing Span<UInt8>
) throws(FramingError) -> BodyLength {
    if status == 101 || (method == .connect && StatusClass(status) == .successful) { return .tunnel }
    if method == .head || status < 200 || status == 204 || status == 304 {
        // Content-Length describes another response here. It is passed on all the same, so it must be valid.
        _ = try contentLength(fields, bytes)
        return .none
    }
    return try declaredLength(fields, minorVersion: minorVersion, bytes) ?? .untilClose
}

/// The length by Transfer-Encoding and Content-Length. Nil if there is neither.
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

/// Throws unless the only transfer coding is `chunked`, once. Larder would have to decode a coding before it, and never asks for one
/// (RFC 9112 §7.4). With a coding after it, the end of the body cannot be found.
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

/// The number that all `Content-Length` lines and list members repeat. Nil if there is no such field.
private func contentLength(_ fields: FieldSection, _ bytes: borrowing Span<UInt8>) throws(FramingError) -> UInt64? {
    guard fields.present.contains(.contentLength) else { return nil }
    var length: UInt64?
    for line in fields.lines where line.name == .contentLength {
        if length == nil, let value = plainNumber(bytes, line.valueRange) {
            length = value
            continue
        }
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

/// The value of `1*DIGIT`, which nearly every `Content-Length` is. Nil for anything else, and for a number of so many digits that it may
/// exceed `octetCountMax`.
private func plainNumber(_ bytes: borrowing Span<UInt8>, _ range: Range<Int>) -> UInt64? {
    guard 1...15 ~= range.count else { return nil }
    let digits = bytes.extracting(range)
    var value: UInt64 = 0
    for index in digits.indices {
        let digit = digits[index] &- 0x30
        guard digit < 10 else { return nil }
        value = value &* 10 &+ UInt64(digit)
    }
    return value
}

/// Parses `1*DIGIT` with optional white space around it, up to `octetCountMax`.
private func parseLength(_ bytes: borrowing Span<UInt8>, _ range: Range<Int>) throws(FramingError) -> UInt64 {
    let trimmed = trimmedOWS(bytes, range)
    guard !trimmed.isEmpty else { throw .badContentLength }
    var value: UInt64 = 0
    for index in trimmed {
        guard isDigit(bytes[index]) else { throw .badContentLength }
        value = value * 10 + UInt64(bytes[index] - 0x30)
        guard value <= octetCountMax else { throw .badContentLength }
    }
    return value
}
