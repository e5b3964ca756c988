/// A request method (RFC 9110 §9). Names are case-sensitive. A method without a case of its own is `other`, and counts as unsafe.
@usableFromInline
package enum Method: UInt8, CaseIterable, Sendable {
    case other = 0
    case get, head, post, put, delete, connect, options, trace, patch

    /// Written out for the same reason as in `FieldName`.
    @inlinable @inline(__always)
    package static func == (a: Method, b: Method) -> Bool { a.rawValue == b.rawValue }

    /// The token. Empty for `other`.
    package var text: StaticString {
        switch self {
        case .other: ""
        case .get: "GET"
        case .head: "HEAD"
        case .post: "POST"
        case .put: "PUT"
        case .delete: "DELETE"
        case .connect: "CONNECT"
        case .options: "OPTIONS"
        case .trace: "TRACE"
        case .patch: "PATCH"
        }
    }

    /// Whether the method is read-only in essence (RFC 9110 §9.2.1).
    @inlinable
    package var isSafe: Bool {
        switch self {
        case .get, .head, .options, .trace: true
        case .other, .post, .put, .delete, .connect, .patch: false
        }
    }

    /// Whether repeating the request has the same effect as sending it once (RFC 9110 §9.2.2), so that Larder may retry it.
    @inlinable
    package var isIdempotent: Bool { isSafe || self == .put || self == .delete }
}
