package import Message

/// What the answer to a HEAD means for a stored response that the same request could have selected (RFC 9111 §4.3.5).
package enum HeadUpdate: Sendable, Equatable {
    /// It still holds: `freshened` by these fields.
    case freshen
    /// It is another representation: consider the stored one stale.
    case markStale
    /// Not a 200: says nothing of it.
    case ignore
}

/// - Parameter length: of the stored content in bytes.
package func headUpdate(
    status: UInt16, fields: Fields, stored: CachedResponse, length: UInt64, received: WallTime
) -> HeadUpdate {
    guard status == 200 else { return .ignore }
    if let value = fields.first(.contentLength), parseDecimal(value) != length { return .markStale }
    // Every validator that came must match, the weaker one too.
    if let modified = fields.first(.lastModified).flatMap({ parseHTTPDate($0, now: received) }),
        let known = stored.lastModified, modified != known
    {
        return .markStale
    }
    return selects(fields, stored, received: received) ? .freshen : .markStale
}
