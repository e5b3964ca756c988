/// The head of a request as offsets into its bytes (RFC 9112 §3).
///
/// It is used again for the next request, so parsing allocates nothing once it has grown.
@usableFromInline
package struct RequestHead: Sendable {
    @usableFromInline package var method: Method = .other
    @usableFromInline package var methodRange: Range<Int> = 0..<0
    /// The request-target as received.
    @usableFromInline package var targetRange: Range<Int> = 0..<0
    @usableFromInline package var target = RequestTarget()
    /// 0 or 1: the x of HTTP/1.x.
    @usableFromInline package var minorVersion: UInt8 = 1
    @usableFromInline package var fields = FieldSection()
    /// The number of bytes up to the end of the empty line that ends the head. Empty lines before the request line (RFC 9112 §2.2) count
    /// as well.
    @usableFromInline package var byteCount = 0

    package init() {}
}

/// The head of a response as offsets into its bytes (RFC 9112 §4).
@usableFromInline
package struct ResponseHead: Sendable {
    /// 100...999. Those above 599 are invalid, and count as 5xx (RFC 9110 §15; `StatusClass`).
    @usableFromInline package var status: UInt16 = 0
    /// 0 or 1: the x of HTTP/1.x.
    @usableFromInline package var minorVersion: UInt8 = 1
    /// Empty if the origin sent no reason phrase.
    @usableFromInline package var reasonRange: Range<Int> = 0..<0
    @usableFromInline package var fields = FieldSection()
    /// The number of bytes of the head, with the empty line that ends it.
    @usableFromInline package var byteCount = 0

    package init() {}
}
