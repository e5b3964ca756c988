package import Message

/// What decides on reuse, and nothing else: integers and flags, no references.
package struct ReuseTerms: Sendable, Equatable {
    package let lifetime: Seconds
    package let correctedInitialAge: TimeSpan
    package let responseTime: WallTime
    /// How long past its lifetime it may be served while it is validated (RFC 5861 §3); zero: not at all.
    package let staleWhileRevalidate: Seconds
    /// How long past its lifetime it may be served when the origin fails (RFC 9111 §4.2.4, RFC 5861 §4); zero: not at all.
    package let staleOnError: Seconds
    /// `no-cache` without a field list: never without validation.
    package let noCache: Bool
    /// `must-revalidate`, `proxy-revalidate`, `s-maxage` or `no-cache`: never stale (§4.2.4).
    package let forbidsStale: Bool
    package let allowsAuthorization: Bool
    package let immutable: Bool
    /// 4xx or 5xx: what will be there tomorrow may be missing today, so `cache-first` does not hold on to it.
    let isError: Bool
    /// Purged softly, or told to be outdated by a HEAD: stale whatever its lifetime says.
    package private(set) var isOutdated = false
    /// `noCache` or `isOutdated`: one test on the path of a hit.
    private(set) var needsValidation: Bool

    init(
        _ directives: ResponseDirectives, status: UInt16, lifetime: Seconds, correctedInitialAge: TimeSpan,
        responseTime: WallTime,
        policy: CachePolicy, handling: CacheHandling
    ) {
        self.lifetime = lifetime
        self.correctedInitialAge = correctedInitialAge
        self.responseTime = responseTime
        // What s-maxage implies of staleness is overridden with the rest.
        let forbidsStale = handling.respectsCacheControl && Caching.forbidsStale(directives)
        self.forbidsStale = forbidsStale
        staleWhileRevalidate = forbidsStale ? .zero : directives.staleWhileRevalidate ?? .zero
        staleOnError = forbidsStale ? .zero : directives.staleIfError ?? policy.staleOnErrorMax
        noCache = directives.noCache
        needsValidation = directives.noCache
        allowsAuthorization = Caching.allowsAuthorization(directives, handling)
        immutable = directives.immutable
        isError = status >= 400
    }

    func write(to form: inout StoredFormWriter) {
        form.write(lifetime)
        // Whole seconds: the second of arrival, and the age then, rounded up. So the age never goes back when the response is read
        // again, and is ahead by less than a second.
        let ageThen = correctedInitialAge - responseTime.fraction
        form.write(max((ageThen + TimeSpan(ticks: ticksPerSecond - 1)).seconds, .zero))
        form.write(responseTime)
        form.write(staleWhileRevalidate)
        form.write(staleOnError)
        form.write(flags: noCache, forbidsStale, allowsAuthorization, immutable, isError, isOutdated)
    }

    init(from form: inout StoredFormReader) throws(StoredFormError) {
        lifetime = try form.readSeconds()
        correctedInitialAge = TimeSpan(try form.readSeconds())
        responseTime = try form.readTime()
        staleWhileRevalidate = try form.readSeconds()
        staleOnError = try form.readSeconds()
        let flags = try form.readFlags()
        (noCache, forbidsStale, allowsAuthorization) = (flags[0], flags[1], flags[2])
        (immutable, isError, isOutdated) = (flags[3], flags[4], flags[5])
        needsValidation = noCache || isOutdated
    }

    func outdated() -> ReuseTerms {
        var result = self
        result.isOutdated = true
        result.needsValidation = true
        return result
    }

    /// When its lifetime ends.
    package var expiry: WallTime { responseTime + TimeSpan(lifetime) - correctedInitialAge }

    package func currentAge(_ now: WallTime) -> Seconds {
        Caching.currentAge(correctedInitialAge: correctedInitialAge, responseTime: responseTime, now: now)
    }
    /// RFC 9111 §4.2: at the very second its lifetime ends it is stale.
    package func isFresh(_ now: WallTime) -> Bool { remainingLifetime(now) > .zero }
    package func remainingLifetime(_ now: WallTime) -> Seconds { left(age: currentAge(now)) }

    func left(age: Seconds) -> Seconds { isOutdated ? min(lifetime - age, .zero) : lifetime - age }
}
