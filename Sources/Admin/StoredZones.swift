import Caching
import Message
import Server
import Storage

// What Admin asks of the store and the store does not tell yet stands here, in one place.

extension Proxy {
    /// The zones with their tiers. There is one as long as `Shared` has one tier.
    var storedZones: [(name: String, tier: MemoryTier)] { [("default", shared.tier)] }
}

extension StoredResponse {
    /// Everything is in memory alone as long as there is no other tier.
    var storagePolicy: StoragePolicy { .session }
    /// Not counted yet.
    var hitCount: UInt64 { 0 }
    /// Parts are not stored yet.
    var isPartial: Bool { false }

    /// The same response, stale from now on, its head and its body as they are.
    ///
    /// Worked out as if the origin had said `max-age=0` besides: what it says of staleness, `stale-if-error` and the like,
    /// holds. Takes the place of `CachedResponse.outdated()` until that is there.
    func outdated() -> StoredResponse {
        var said = fields
        said.append(.cacheControl, cached.directives.sMaxAge == nil ? "max-age=0" : "max-age=0, s-maxage=0")
        let stale = CachedResponse(
            status: cached.status, fields: said, requestTime: cached.requestTime, responseTime: cached.responseTime,
            policy: CachePolicy())
        return renewed(cached: stale, fields: fields)
    }
}

/// The records of a tier, a page at a time: those behind `cursor` (nil: from the start), and where to go on (nil: that
/// was the last). One page holds everything until the tier has pages of its own.
func recordPage(_ tier: MemoryTier, after cursor: Int?) -> (records: [StoredRecord], next: Int?) {
    var records: [StoredRecord] = []
    tier.forEach { records.append($0) }
    return (records, nil)
}
