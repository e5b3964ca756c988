package import Message

/// What tells two responses to be the same to the byte (RFC 9110 §8.8.1): only by it are parts put together (RFC 9111 §3.4).
package enum StrongValidator: Sendable, Equatable {
    case eTag(EntityTag)
    /// `Last-Modified`, a second or more before `Date` (RFC 9110 §8.8.2.2).
    case lastModified(WallTime)
}

extension CachedResponse {
    /// nil where it has none. Beside a weak tag the date is not taken for strong, though §8.8.2.2 would allow it: servers
    /// that compress on the way weaken the tag and leave the date, and their bytes differ from one time to the next.
    package var strongValidator: StrongValidator? {
        if let eTag { return eTag.isWeak ? nil : .eTag(eTag) }
        guard let lastModified, date - lastModified >= Seconds(1) else { return nil }
        return .lastModified(lastModified)
    }

    /// As it goes out in `If-Range` (RFC 9110 §13.1.5).
    var strongValidatorBytes: [UInt8]? {
        switch strongValidator {
        case .eTag(let eTag): eTag.wire
        case .lastModified: lastModifiedBytes
        case nil: nil
        }
    }
}
