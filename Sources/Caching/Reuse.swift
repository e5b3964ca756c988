package import Message

/// What to do with a stored response that matches a request by key and variant (RFC 9111 §4).
package enum Reuse: Equatable, Sendable {
    /// - age: for the `Age` field; ttl: what is left of the lifetime.
    case serve(age: Seconds, ttl: Seconds)
    /// Stale, but the client allows it (`max-stale`); `ttl` is zero or negative.
    case serveStale(age: Seconds, ttl: Seconds)
    /// Stale, but the origin allows it while it is validated behind the client's back (RFC 5861 §3).
    case serveStaleAndRevalidate(age: Seconds, ttl: Seconds)
    /// Ask the origin, with `conditionalFields` where there is a validator.
    case validate(ValidateReason)
    /// The stored response is not for this request: forward it as it is.
    case fetch(FetchReason)
    /// 504: the client wants nothing from the origin (`only-if-cached`, §5.2.1.7).
    case refuse
}

package enum ValidateReason: String, CaseIterable, Sendable {
    case stale
    case responseNoCache = "response-no-cache"
    case requestNoCache = "request-no-cache"
    case requestMaxAge = "request-max-age"
    case requestMinFresh = "request-min-fresh"
    /// Purged softly, or a HEAD told that it is another by now.
    case outdated
    /// `revalidate-always`.
    case policy

    /// What `Cache-Status` says of it (RFC 9211 §2.2).
    package var forwardReason: CacheStatus.ForwardReason {
        switch self {
        case .stale, .responseNoCache, .outdated, .policy: .stale
        case .requestNoCache, .requestMaxAge, .requestMinFresh: .request
        }
    }
}

package enum FetchReason: String, CaseIterable, Sendable {
    /// Only GET and HEAD are answered from the store.
    case method
    /// A field asks for another method than the one in the request line.
    case methodOverride = "method-override"
    /// A GET with content.
    case requestBody = "request-body"
    /// Credentials, and the response does not say that it is for everybody (§3.5).
    case authorization
    /// `no-read`.
    case policy

    /// What `Cache-Status` says of it (RFC 9211 §2.2).
    package var forwardReason: CacheStatus.ForwardReason {
        switch self {
        case .method, .methodOverride: .method
        case .requestBody, .authorization: .request
        case .policy: .bypass
        }
    }
}

/// The one decision, for a response that was stored under the request's key and variant.
///
/// Runs for every hit: integers only.
///
/// - Parameter use: of the policies `no-read` and `cache-only` go before `revalidate-always`, and that before `cache-first`. `cache-only`
///   and `cache-first` serve whatever is stored, `no-cache` and `must-revalidate` notwithstanding: who sets them says so (docs/decisions/0009).
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
    let decision = considered(terms, request, use, age: age, ttl: terms.left(age: age))
    guard request.directives.onlyIfCached || use.contains(.cacheOnly) else { return decision }
    switch decision {
    case .serve, .serveStale: return decision
    case .serveStaleAndRevalidate, .validate, .fetch, .refuse: return .refuse
    }
}

extension CacheUse {
    /// Even what is fresh may have to be validated or fetched.
    fileprivate static var againstFresh: CacheUse {
        CacheUse(rawValue: CacheUse.revalidateAlways.rawValue | CacheUse.noRead.rawValue)
    }

    /// Whatever is stored will do; `cache-first` holds on to no error that is stale.
    fileprivate func takes(_ terms: ReuseTerms, ttl: Seconds) -> Bool {
        contains(.cacheOnly)
            || (contains(.cacheFirst) && !contains(.revalidateAlways) && (!terms.isError || ttl > .zero))
    }
}

private func considered(
    _ terms: ReuseTerms, _ request: CacheRequest, _ use: CacheUse, age: Seconds, ttl: Seconds
) -> Reuse {
    if let reason = ineligibility(terms, for: request) { return .fetch(reason) }
    if use.contains(.noRead) { return .fetch(.policy) }
    if use.takes(terms, ttl: ttl) { return ttl > .zero ? .serve(age: age, ttl: ttl) : .serveStale(age: age, ttl: ttl) }
    if request.directives.noCache { return .validate(.requestNoCache) }
    if terms.noCache { return .validate(.responseNoCache) }
    if terms.isOutdated { return .validate(.outdated) }
    if use.contains(.revalidateAlways) { return .validate(.policy) }
    let wanted = wantedLifetime(terms, request)
    let isYoung = wanted.map { age <= $0 } ?? true
    if ttl > .zero, isYoung {
        guard let minFresh = request.directives.minFresh, ttl < minFresh else { return .serve(age: age, ttl: ttl) }
        return .validate(.requestMinFresh)
    }
    return considerStale(terms, request, age: age, ttl: ttl, wanted: wanted)
}

/// Past the lifetime that the origin gave, or past the age that the client wants.
private func considerStale(
    _ terms: ReuseTerms, _ request: CacheRequest, age: Seconds, ttl: Seconds, wanted: Seconds?
) -> Reuse {
    let staleness = age - min(terms.lifetime, wanted ?? terms.lifetime)
    if let maxStale = request.directives.maxStale, request.directives.minFresh == nil {
        let isPermitted = ttl > .zero || !terms.forbidsStale
        if isPermitted, maxStale.permits(staleness) {
            return ttl > .zero ? .serve(age: age, ttl: ttl) : .serveStale(age: age, ttl: ttl)
        }
    }
    if ttl > .zero { return .validate(.requestMaxAge) }
    let hasWish = request.directives.maxAge != nil || request.directives.minFresh != nil
    if !hasWish, staleness < terms.staleWhileRevalidate { return .serveStaleAndRevalidate(age: age, ttl: ttl) }
    return .validate(.stale)
}

/// The age up to which the client takes it (`max-age`, §5.2.1.1); nil where any will do.
///
/// `max-age=0` is how a client says "reload": not even a response of this second will do, so it is −1. What is
/// fresh and `immutable` needs no such validation (RFC 8246 §2.1): only `no-cache` asks for it.
private func wantedLifetime(_ terms: ReuseTerms, _ request: CacheRequest) -> Seconds? {
    guard !terms.immutable, let maxAge = request.directives.maxAge else { return nil }
    return maxAge > .zero ? maxAge : Seconds(-1)
}

/// Why the response is not for this request at all, or nil.
private func ineligibility(_ terms: ReuseTerms, for request: CacheRequest) -> FetchReason? {
    guard request.method == .get || request.method == .head else { return .method }
    if request.overridesMethod { return .methodOverride }
    if request.hasBody { return .requestBody }
    if request.hasAuthorization, !terms.allowsAuthorization { return .authorization }
    return nil
}

/// Whether the response is for this request at all, however fresh it is.
package func isEligible(_ terms: ReuseTerms, for request: CacheRequest) -> Bool {
    ineligibility(terms, for: request) == nil
}
