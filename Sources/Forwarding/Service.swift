package import Caching
package import Message

/// How a stored response came to be served.
package enum Service: Equatable, Sendable {
    case hit, stale, collapsed
    /// Parts of it are stored; the origin was asked for the rest and answered with `status`, 0 where it has not answered yet.
    case part(status: UInt16)
    /// The origin was asked and answered 304.
    case revalidated(CacheStatus.ForwardReason)
    /// It is being stored because of this request.
    case miss(CacheStatus.ForwardReason, status: UInt16)
    /// The origin failed or answered 5xx; `status` is 0 where it did not answer.
    case staleOnError(CacheStatus.ForwardReason, status: UInt16)

    /// What `Cache-Status` says of it (RFC 9211 §2).
    package func cacheStatus(ttl: Seconds) -> CacheStatus {
        var result: CacheStatus
        switch self {
        case .hit, .stale:
            result = CacheStatus(.hit)
        case .collapsed:
            result = CacheStatus(.forwarded(.uriMiss))
            result.isCollapsed = true
        case .revalidated(let reason):
            result = CacheStatus(.forwarded(reason))
            result.forwardStatus = 304
            result.isStored = true
        case .miss(let reason, let status):
            result = CacheStatus(.forwarded(reason))
            result.forwardStatus = status
            result.isStored = true
        case .part(let status):
            result = CacheStatus(.forwarded(.partial))
            if status > 0 { result.forwardStatus = status }
            result.isStored = true
        case .staleOnError(let reason, let status):
            result = CacheStatus(.forwarded(reason))
            if status > 0 { result.forwardStatus = status }
            result.detail = "stale-on-error"
        }
        result.ttl = ttl
        return result
    }
}
