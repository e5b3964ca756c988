package import Message

/// What to do with a stored response that matches a request by key and variant (RFC 9111 §4).
package enum Reuse: Equatable, Sendable {
    /// - age: for the `Age` field; ttl: the rest of the lifetime.
    case serve(age: Seconds, ttl: Seconds)
    /// Serve it stale: the client allows it (`max-stale`). `ttl` is zero or negative.
    case serveStale(age: Seconds, ttl: Seconds)
    /// Serve it stale: the origin allows it while the response is validated in the background (RFC 5861 §3).
    case serveStaleAndRevalidate(age: Seconds, ttl: Seconds)
    /// Ask the origin, with `conditionalFields` if there is a validator.
    case validate(ValidateReason)
    /// The stored response is not for this request: forward the request unchanged.
    case fetch(FetchReason)
    /// Answer with 504: the client does not want the origin to be asked (`only-if-cached`, §5.2.1.7).
    case refuse
}

package enum ValidateReason: String, CaseIterable, Sendable {
    case stale
    case responseNoCache = "response-no-cache"
    case requestNoCache = "request-no-cache"
    case requestMaxAge = "request-max-age"
    case requestMinFresh = "request-min-fresh"
    /// The response was purged softly, or a HEAD showed another representation.
    case outdated
    /// A purge that concerns the response may have been missed.
    case doubted
    /// The policy says `revalidate-always`.
    case policy

    /// What `Cache-Status` says (RFC 9211 §2.2).
    package var forwardReason: CacheStatus.ForwardReason {
        switch self {
        case .stale, .responseNoCache, .outdated, .doubted, .policy: .stale
        case .requestNoCache, .requestMaxAge, .requestMinFresh: .request
        }
    }
}

package enum FetchReason: String, CaseIterable, Sendable {
    /// Only GET and HEAD are answered from the store.
    case method
    /// A field asks for another method than the one in the request line.
    case methodOverride = "method-override"
    /// The request is a GET with content.
    case requestBody = "request-body"
    /// The request has credentials, and the response does not say that it is for everybody (§3.5).
    case authorization
    /// A rule allowed to store the response, and it is not in force for this request.
    case permission
    /// The policy says `no-read`.
    case policy
    /// The request has `If-Match`, and the response is not fresh or has another tag.
    case ifMatch = "if-match"

    /// What `Cache-Status` says (RFC 9211 §2.2).
    package var forwardReason: CacheStatus.ForwardReason {
        switch self {
        case .method, .methodOverride: .method
        case .requestBody, .authorization, .permission, .ifMatch: .request
        case .policy: .bypass
        }
    }
}

/// Decides about a response that was stored under the key and variant of the request. This is the only place that decides it.
///
/// It runs for every hit, so it uses integers only.
///
/// - Parameter use: the policies. `no-read` and `cache-only` take precedence over `revalidate-always`, which takes precedence over
///   `cache-first`. `cache-only` and `cache-first` serve any stored response, even with `no-cache` or `must-revalidate`: that is what an
///   operator who sets them wants (docs/decisions/0009). A response that is doubted is served by `cache-only` alone.
package func reuse(
    of stored: CachedResponse, for request: CacheRequest, use: CacheUse = [], now: WallTime
) -> Reuse {
    reuse(of: stored.terms, for: request, use: use, now: now)
}

package func reuse(of terms: ReuseTerms, for request: CacheRequest, use: CacheUse = [], now: WallTime) -> Reuse {
    let age = terms.currentAge(now)
    let ttl = terms.lifetime - age
    if request.isPlain, !terms.needsValidation, ttl > .zero, use.isDisjoint(with: .againstFresh) {
        return .serve(age: age, ttl: ttl)
    }
    let decision = considered(terms, request, use, age: age, ttl: terms.left(age: age), now: now)
    guard request.directives.onlyIfCached || use.contains(.cacheOnly) else { return decision }
    switch decision {
    case .serve, .serveStale: return decision
    case .serveStaleAndRevalidate, .validate, .fetch, .refuse: return .refuse
    }
}

/// The decision about a request with `If-Match`, where rules let a stored response answer it. Only the origin knows whether the tag is
/// still that of the resource, so the response must be fresh and have the tag that the client names. `*` names none.
///
/// - Parameter mayForward: the origin may be asked.
package func reuse(
    _ decision: Reuse, ofMatch request: Fields, stored eTag: EntityTag?, mayForward: Bool
) -> Reuse {
    guard let value = request.joined(.ifMatch) else { return decision }
    let other = mayForward ? Reuse.fetch(.ifMatch) : .refuse
    switch decision {
    case .serve:
        guard let list = EntityTagList(parsing: value), list != .any, let eTag, list.containsStrong(eTag) else {
            return other
        }
        return decision
    case .serveStale, .serveStaleAndRevalidate, .validate: return other
    case .fetch, .refuse: return decision
    }
}

/// The decision where the origin has failed and wants no requests for a while (`Retry-After`): what would be validated and may stand in for a failure
/// does so without another question.
///
/// - Parameter isPaused: whether the origin wants no requests, because of a status that `handling` takes for a failure. Evaluated only where it matters.
package func reuse(
    _ decision: Reuse, of terms: ReuseTerms, for request: CacheRequest, handling: CacheHandling, now: WallTime,
    isPaused: @autoclosure () -> Bool
) -> Reuse {
    guard case .validate = decision, handling.heedsPauses,
        mayServeStaleOnError(terms, for: request, use: handling.use, now: now), isPaused()
    else { return decision }
    return .serveStale(age: terms.currentAge(now), ttl: terms.remainingLifetime(now))
}

extension CacheUse {
    /// With these policies, even a fresh response may have to be validated or fetched.
    fileprivate static var againstFresh: CacheUse {
        CacheUse(rawValue: CacheUse.revalidateAlways.rawValue | CacheUse.noRead.rawValue)
    }

    /// The policies for a response that came while the request waited for it: what the origin has said just now is not validated once more because
    /// of `revalidate-always`.
    package static func ofPublished(_ use: CacheUse) -> CacheUse { use.subtracting(.revalidateAlways) }

    /// Whether these policies serve any stored response. `cache-first` does not serve stale errors.
    fileprivate func takes(_ terms: ReuseTerms, ttl: Seconds) -> Bool {
        contains(.cacheOnly)
            || (contains(.cacheFirst) && !contains(.revalidateAlways) && (!terms.isError || ttl > .zero))
    }
}

private func considered(
    _ terms: ReuseTerms, _ request: CacheRequest, _ use: CacheUse, age: Seconds, ttl: Seconds, now: WallTime
) -> Reuse {
    if let reason = ineligibility(terms, for: request) { return .fetch(reason) }
    if use.contains(.noRead) { return .fetch(.policy) }
    if terms.isDoubted, !use.contains(.cacheOnly) { return .validate(.doubted) }
    if use.takes(terms, ttl: ttl) { return ttl > .zero ? .serve(age: age, ttl: ttl) : .serveStale(age: age, ttl: ttl) }
    if request.directives.noCache, !terms.satisfiesInsistence(now) { return .validate(.requestNoCache) }
    if terms.noCache { return .validate(.responseNoCache) }
    if terms.isOutdated { return .validate(.outdated) }
    if use.contains(.revalidateAlways) { return .validate(.policy) }
    let wanted = wantedLifetime(terms, request, now)
    let isYoung = wanted.map { age <= $0 } ?? true
    if ttl > .zero, isYoung {
        guard let minFresh = request.directives.minFresh, ttl < minFresh else { return .serve(age: age, ttl: ttl) }
        return .validate(.requestMinFresh)
    }
    return considerStale(terms, request, age: age, ttl: ttl, wanted: wanted)
}

/// Decides about a response that is older than its lifetime, or than the client wants.
private func considerStale(
    _ terms: ReuseTerms, _ request: CacheRequest, age: Seconds, ttl: Seconds, wanted: Seconds?
) -> Reuse {
    let staleness = age - min(terms.lifetime, wanted ?? terms.lifetime)
    if let maxStale = request.directives.maxStale, request.directives.minFresh == nil {
        let isPermitted = ttl > .zero || (!terms.forbidsStale && terms.isEverFresh)
        if isPermitted, maxStale.permits(staleness) {
            return ttl > .zero ? .serve(age: age, ttl: ttl) : .serveStale(age: age, ttl: ttl)
        }
    }
    if ttl > .zero { return .validate(.requestMaxAge) }
    let hasWish = request.directives.maxAge != nil || request.directives.minFresh != nil
    if !hasWish, staleness < terms.staleWhileRevalidate { return .serveStaleAndRevalidate(age: age, ttl: ttl) }
    return .validate(.stale)
}

/// The age up to which the client accepts the response (`max-age`, §5.2.1.1). Returns nil if it accepts any.
///
/// Clients say `max-age=0` for "reload". Not even a response of this second is acceptable then, so the result is −1. A response that is
/// fresh and `immutable` needs no such validation (RFC 8246 §2.1): only `no-cache` demands it. If a rule alone says so, a reload is validated too,
/// unless the address proves the content.
private func wantedLifetime(_ terms: ReuseTerms, _ request: CacheRequest, _ now: WallTime) -> Seconds? {
    guard let maxAge = request.directives.maxAge else { return nil }
    guard terms.immutable else { return maxAge > .zero ? maxAge : Seconds(-1) }
    let insists = maxAge == .zero && terms.isImmutableByRule && !terms.isProvenByAddress
    return insists && !terms.satisfiesInsistence(now) ? Seconds(-1) : nil
}

/// Why the response is not for this request. Returns nil if it is.
private func ineligibility(_ terms: ReuseTerms, for request: CacheRequest) -> FetchReason? {
    guard request.method == .get || request.method == .head else { return .method }
    if request.overridesMethod { return .methodOverride }
    if request.hasBody { return .requestBody }
    if request.hasAuthorization, !terms.allowsAuthorization { return .authorization }
    return terms.isWithheld ? .permission : nil
}

/// Whether the response is for this request, regardless of its age.
package func isEligible(_ terms: ReuseTerms, for request: CacheRequest) -> Bool {
    ineligibility(terms, for: request) == nil
}
