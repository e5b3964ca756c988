package import Message

/// Whether the origin forbids serving it stale, to whomever and whatever happens (RFC 9111 §4.2.4).
/// `s-maxage` speaks for `proxy-revalidate` as well (§5.2.2.10).
package func forbidsStale(_ directives: ResponseDirectives) -> Bool {
    directives.mustRevalidate || directives.proxyRevalidate || directives.sMaxAge != nil || directives.noCache
}

/// Whether a stored response may stand in where the origin can not be reached or answers with a 5xx (RFC 9111 §4.2.4,
/// §4.3.3; `stale-if-error`, RFC 5861 §4).
///
/// The client's wishes bind as well: `no-cache` means no unvalidated response at all; `max-age` and `min-fresh` that it takes no
/// stale one (§5.2.1.1, §5.2.1.3), unless `max-stale` or `stale-if-error` says how stale.
///
/// - Parameter use: `stale-on-error` lifts the bound in time and nothing else; with `no-read` nothing is served at all.
package func mayServeStaleOnError(
    _ stored: CachedResponse, for request: CacheRequest, use: CacheUse = [], now: WallTime
) -> Bool {
    mayServeStaleOnError(stored.terms, for: request, use: use, now: now)
}

package func mayServeStaleOnError(
    _ terms: ReuseTerms, for request: CacheRequest, use: CacheUse = [], now: WallTime
) -> Bool {
    guard isEligible(terms, for: request), !terms.noCache, !request.directives.noCache, !use.contains(.noRead) else {
        return false
    }
    let left = terms.remainingLifetime(now)
    if left > .zero { return true }
    let staleness = Seconds.zero - left
    guard !terms.forbidsStale else { return false }
    let isWithinBound = staleness < terms.staleOnError || use.contains(.staleOnError)
    if let limit = request.directives.staleIfError, staleness < limit { return true }
    if let maxStale = request.directives.maxStale { return maxStale.permits(staleness) && isWithinBound }
    guard request.directives.maxAge == nil, request.directives.minFresh == nil else { return false }
    return isWithinBound
}

extension MaxStale {
    func permits(_ staleness: Seconds) -> Bool {
        switch self {
        case .any: true
        case .upTo(let limit): staleness <= limit
        }
    }
}
