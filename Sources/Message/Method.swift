/// A request method (RFC 9110 §9). Names are case-sensitive; one we do not know is `other` and counts as unsafe.
@usableFromInline
package enum Method: UInt8, CaseIterable, Sendable {
    case other = 0
    case get, head, post, put, delete, connect, options, trace, patch

    /// Written out for the same reason as that of `FieldName`.
    @inlinable @inline(__always)
    package static func == (a: Method, b: Method) -> Bool { a.rawValue == b.rawValue }

    /// The token as sent; empty for `other`.
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

    /// Essentially read-only (RFC 9110 §9.2.1).
    @inlinable
    package var isSafe: Bool {
        switch self {
        case .get, .head, .options, .trace: true
        case .other, .post, .put, .delete, .connect, .patch: false
        }
    }

    /// Repeating it has the same effect as doing it once (RFC 9110 §9.2.2): may be retried by us.
    @inlinable
    package var isIdempotent: Bool { isSafe || self == .put || self == .delete }
}
