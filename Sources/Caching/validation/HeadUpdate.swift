package import Message

/// What the response to a HEAD means for a stored response that the same request could have selected (RFC 9111 §4.3.5).
package enum HeadUpdate: Sendable, Equatable {
    /// The stored response is still valid: freshen it with these fields (`freshened`).
    case freshen
    /// The HEAD shows another representation: the stored response becomes stale.
    case markStale
    /// The response is not a 200, or says with `Content-Range` that it is about a part, and says nothing about the stored one.
    case ignore
}

/// - Parameter length: the length of the stored content in bytes.
package func headUpdate(
    status: UInt16, fields: Fields, stored: CachedResponse, length: UInt64, received: WallTime
) -> HeadUpdate {
    guard status == 200, !fields.contains(.contentRange) else { return .ignore }
    if let value = fields.first(.contentLength), parseOctetCount(value) != length { return .markStale }
    // Every validator in the response must match, including the weaker one.
    if let modified = fields.first(.lastModified).flatMap({ parseHTTPDate($0, now: received) }),
        let known = stored.lastModified, modified != known
    {
        return .markStale
    }
    return selects(fields, stored, received: received) ? .freshen : .markStale
}
