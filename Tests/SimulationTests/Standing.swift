import Caching
import Message

/// How a stored response stands at one moment, worked out from what the origin meant: RFC 9111 §4.2 written plainly, and
/// on purpose without a line of Caching.
struct Standing {
    var description: Description
    var directives: OriginDirectives
    var lifetime: Int64
    var age: Int64
    /// Never served stale (§4.2.4).
    var forbidsStale: Bool
    var isOutdated: Bool
    /// Seconds past the lifetime that the operator allows where the origin fails.
    var staleOnErrorMax: Int64

    var left: Int64 { isOutdated ? min(lifetime - age, 0) : lifetime - age }
    var isFresh: Bool { left > 0 }
    private let lastRequest: ClientRequest

    /// The request itself had no part in it.
    func isOf(another request: ClientRequest) -> Bool { lastRequest !== request }

    init(_ record: Record, handling: CacheHandling, policy: CachePolicy, now: WallTime) {
        var merged = record.lineage[0].description
        merged.date = merged.date ?? record.lineage[0].responseTime.secondsSinceEpoch
        for update in record.lineage.dropFirst() {
            merged = merged.updated(by: update.description, received: update.responseTime.secondsSinceEpoch)
        }
        let last = record.lineage[record.lineage.count - 1]
        description = merged
        lastRequest = last.request
        var directives = merged.directives ?? OriginDirectives()
        var forbids = directives.forbidsStale
        if !handling.respectsCacheControl {
            directives.noStore = false
            directives.noCache = false
            directives.isPrivate = false
            directives.mustRevalidate = false
            directives.proxyRevalidate = false
            forbids = false
        }
        self.directives = directives
        forbidsStale = forbids
        isOutdated = record.isOutdated

        // §4.2.3
        let date = merged.date!
        // In 1/1024 s. What Date and Age leave out is less than a second: where Date says more by less than that, Age holds.
        let second: Int64 = 1024
        let apparentAge = max(0, last.responseTime.ticks - date * second)
        let correctedAgeValue = (merged.age ?? 0) * second + max(0, last.responseTime.ticks - last.requestTime.ticks)
        var initialAge = apparentAge - correctedAgeValue < second ? correctedAgeValue : apparentAge
        let residentTime = max(0, now.ticks - last.responseTime.ticks)

        // §4.2.1, then what the operator says.
        let status = record.lineage[0].status == 206 ? 200 : record.lineage[0].status
        let isHeuristic = [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501].contains(status)
        let explicit = directives.sMaxAge ?? directives.maxAge ?? merged.expires.map { max(0, $0 - date) }
        lifetime = explicit ?? 0
        if explicit == nil, let modified = merged.lastModified, isHeuristic || directives.isPublic {
            lifetime = min(max(0, date - modified) * policy.heuristicPercent / 100, policy.heuristicLifetimeMax.count)
        }
        var granted = lifetime
        var countsFromArrival = false
        if explicit == nil, handling.negativeTTL > .zero, status == 404 || status == 410 {
            granted = handling.negativeTTL.count
            countsFromArrival = true
        } else if let ttl = handling.ttl, explicit != nil || directives.isPublic || (isHeuristic && status < 400) {
            granted = ttl.count
            countsFromArrival = granted > 0
        }
        lifetime = granted
        if countsFromArrival {
            initialAge -= initialAge % second
            lifetime += initialAge / second
        }
        age = (initialAge + residentTime) / second
        // From before the clock was set back: nobody knows how old it is.
        if now.ticks - last.responseTime.ticks < -5 * second { age = 1 << 31 }
        // What was never fresh may be for one client alone.
        staleOnErrorMax = directives.staleIfError ?? (granted > 0 ? policy.staleOnErrorMax.count : 0)
    }

    /// Whether the client and the origin take it as it is, without the origin having been asked; nil: yes.
    /// - Parameter originFailed: it was asked, in vain.
    func objection(_ wishes: Wishes, use: CacheUse, originFailed: Bool) -> String? {
        if use.contains(.noRead) { return "the policy is no-read" }
        if use.contains(.cacheOnly) { return nil }
        if use.contains(.cacheFirst), !use.contains(.revalidateAlways) { return nil }
        if wishes.noCache { return "the client says no-cache" }
        if directives.noCache { return "the origin says no-cache" }
        if originFailed, isTakenInPlaceOfFailure(wishes, use) { return nil }
        if isOutdated { return "it is outdated" }
        if use.contains(.revalidateAlways) { return "the policy is revalidate-always" }
        let ageMax = directives.immutable ? nil : wishes.maxAge
        let isYoung = ageMax.map { $0 > 0 && age <= $0 } ?? true
        let lasts = wishes.minFresh.map { left >= $0 } ?? true
        if isFresh, isYoung, lasts { return nil }
        if !isFresh, forbidsStale { return "stale by \(-left) s, and that is forbidden" }
        // How far past what the client takes without saying more.
        let excess = age - min(lifetime, ageMax.map { $0 > 0 ? $0 : -1 } ?? lifetime)
        let mayBeStale = isFresh || lifetime > 0
        if mayBeStale, wishes.minFresh == nil, let maxStale = wishes.maxStale, excess <= maxStale { return nil }
        if !isFresh, wishes.maxAge == nil, wishes.minFresh == nil, let allowed = directives.staleWhileRevalidate,
            -left < allowed
        {
            return nil
        }
        return isFresh ? "fresh, but not as the client wants it" : "stale by \(-left) s"
    }

    /// RFC 9111 §4.2.4, RFC 5861 §4.
    private func isTakenInPlaceOfFailure(_ wishes: Wishes, _ use: CacheUse) -> Bool {
        if isFresh { return true }
        if forbidsStale { return false }
        let staleness = -left
        let isBounded = staleness < staleOnErrorMax || use.contains(.staleOnError)
        if lifetime <= 0, !isBounded { return false }
        if let allowed = wishes.staleIfError { return staleness < allowed }
        if let maxStale = wishes.maxStale { return staleness <= maxStale && isBounded }
        return wishes.maxAge == nil && wishes.minFresh == nil && isBounded
    }
}
