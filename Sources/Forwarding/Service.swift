package import Caching
package import Message

/// How a stored response came to be served.
package enum Service: Equatable, Sendable {
    /// It was fresh.
    case hit
    /// It was fresh, and came from another node of the fleet.
    case shared
    /// It was stale, and the request or a rule allows that.
    case stale
    /// Another request for it was under way, whose response serves this one as well.
    case collapsed
    /// Parts of it were stored, and the origin was asked for the rest. `status`: its answer, 0 if there is none yet.
    case part(status: UInt16)
    /// The origin was asked and answered 304. `notStored`: why that has not updated the stored response; nil if it has.
    case revalidated(CacheStatus.ForwardReason, notStored: NotStoredReason?)
    /// The origin was asked, and its response is being stored.
    case miss(CacheStatus.ForwardReason, status: UInt16)
    /// Another node of the fleet was asked, and its response is being stored. `isHit`: that node had it; otherwise it asked the origin.
    case peer(CacheStatus.ForwardReason, status: UInt16, isHit: Bool)
    /// It was stale, and the origin failed. `status`: its answer, 0 if there was none.
    case staleOnError(CacheStatus.ForwardReason, status: UInt16)

    /// The member of `Cache-Status` (RFC 9211 §2). `ttl`: the remaining freshness, negative if stale.
    package func cacheStatus(ttl: Seconds) -> CacheStatus {
        var result: CacheStatus
        switch self {
        case .hit, .stale:
            result = CacheStatus(.hit)
        case .shared:
            result = CacheStatus(.hit)
            result.detail = "shared"
        case .collapsed:
            result = CacheStatus(.forwarded(.uriMiss))
            result.isCollapsed = true
        case .revalidated(let reason, let objection):
            result = CacheStatus(.forwarded(reason))
            result.forwardStatus = 304
            result.isStored = objection == nil
            result.detail = objection.map { String(describing: $0.token) }
        case .miss(let reason, let status):
            result = CacheStatus(.forwarded(reason))
            result.forwardStatus = status
            result.isStored = true
        case .peer(let reason, let status, let isHit):
            result = CacheStatus(.forwarded(reason))
            result.forwardStatus = status
            result.isStored = true
            result.detail = isHit ? "peer-hit" : "peer"
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

extension Service {
    /// Whose word the answer is, for another node that asks.
    package enum Authority: Equatable, Sendable {
        /// It was stored, and is fresh or was just confirmed by the origin.
        case store
        /// The origin was asked for it.
        case origin
        /// It was stored, and is stale: nobody vouches for it.
        case nobody
    }

    /// - Parameter isFresh: whether the response is fresh now, by the rules for the request.
    package func authority(isFresh: Bool) -> Authority {
        switch self {
        case .hit, .shared, .revalidated, .peer(_, _, isHit: true): .store
        case .miss, .peer(_, _, isHit: false): .origin
        // The other request may have got a stale response, and the bytes that are there may belong to one.
        case .collapsed, .part: isFresh ? .origin : .nobody
        case .stale, .staleOnError: .nobody
        }
    }
}
