/// The head of a request as offsets into the bytes it was parsed from (RFC 9112 §3).
///
/// Reused from request to request, so that a warm parser allocates nothing.
package struct RequestHead: Sendable {
    package var method: Method = .other
    package var methodRange: Range<Int> = 0..<0
    /// The request-target as received.
    package var targetRange: Range<Int> = 0..<0
    package var target = RequestTarget()
    /// 0 or 1: the x of HTTP/1.x.
    package var minorVersion: UInt8 = 1
    package var fields = FieldSection()
    /// Bytes from the first one given to the parser to the end of the empty line that closes the head; empty lines
    /// before the request line (RFC 9112 §2.2) count as well.
    package var byteCount = 0

    package init() {}
}

/// The head of a response as offsets into the bytes it was parsed from (RFC 9112 §4).
package struct ResponseHead: Sendable {
    /// 100...599.
    package var status: UInt16 = 0
    /// 0 or 1: the x of HTTP/1.x.
    package var minorVersion: UInt8 = 1
    /// Empty where the origin sent no reason phrase.
    package var reasonRange: Range<Int> = 0..<0
    package var fields = FieldSection()
    /// Bytes of the head with the empty line that closes it.
    package var byteCount = 0

    package init() {}
}
