package import Message

/// A validator that tells whether two responses are equal byte by byte (RFC 9110 §8.8.1). Only with it are parts combined (RFC 9111 §3.4).
package enum StrongValidator: Sendable, Equatable {
    case eTag(EntityTag)
    /// A `Last-Modified` that is at least one second before `Date` (RFC 9110 §8.8.2.2).
    case lastModified(WallTime)
}

extension CachedResponse {
    /// Nil if the response has none. Beside a weak tag, the date does not count as strong, although §8.8.2.2 would allow it: servers that
    /// compress on the fly weaken the tag and keep the date, and their bytes differ from response to response.
    package var strongValidator: StrongValidator? {
        if let eTag { return eTag.isWeak ? nil : .eTag(eTag) }
        guard let lastModified, date - lastModified >= Seconds(1) else { return nil }
        return .lastModified(lastModified)
    }

    /// The value for `If-Range` (RFC 9110 §13.1.5).
    var strongValidatorBytes: [UInt8]? {
        switch strongValidator {
        case .eTag(let eTag): eTag.wire
        case .lastModified: lastModifiedBytes
        case nil: nil
        }
    }
}
