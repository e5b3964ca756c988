package import Message

/// Whether the origin forbids serving the response stale under all circumstances (RFC 9111 §4.2.4). `s-maxage` implies `proxy-revalidate`
/// (§5.2.2.10).
package func forbidsStale(_ directives: ResponseDirectives) -> Bool {
    directives.mustRevalidate || directives.proxyRevalidate || directives.sMaxAge != nil || directives.noCache
}

/// Whether a stored response may be served if the origin cannot be reached or answers with a failure, which is a 5xx or one of `FailureStatuses` (RFC 9111 §4.2.4, §4.3.3;
/// `stale-if-error`, RFC 5861 §4).
///
/// The client's directives count as well. With `no-cache`, no response is served without validation, unless a rule says that it never changes. With `max-age` or `min-fresh`, none
/// is served stale (§5.2.1.1, §5.2.1.3), unless `max-stale` or `stale-if-error` says how stale it may be. `stale-if-error` of the client
/// takes the place of that of the origin, whether it allows more or less.
///
/// A response that was never fresh may be made for one client (`ReuseTerms.isEverFresh`). It stands in only if the origin says
/// `stale-if-error`, or the policy `stale-on-error`.
///
/// What is doubted never stands in: it may have been purged.
///
/// - Parameter use: `stale-on-error` removes the time limit and nothing else. With `no-read` nothing is served.
package func mayServeStaleOnError(
    _ stored: CachedResponse, for request: CacheRequest, use: CacheUse = [], now: WallTime
) -> Bool {
    mayServeStaleOnError(stored.terms, for: request, use: use, now: now)
}

package func mayServeStaleOnError(
    _ terms: ReuseTerms, for request: CacheRequest, use: CacheUse = [], now: WallTime
) -> Bool {
    guard isEligible(terms, for: request), !terms.noCache, !terms.isDoubted,
        !request.directives.noCache || terms.isImmutableByRule, !use.contains(.noRead)
    else { return false }
    let left = terms.remainingLifetime(now)
    if left > .zero { return true }
    let staleness = Seconds.zero - left
    guard !terms.forbidsStale else { return false }
    let isWithinBound = staleness < terms.boundOnError || use.contains(.staleOnError)
    guard terms.isEverFresh || isWithinBound else { return false }
    if let limit = request.directives.staleIfError { return staleness < limit }
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
