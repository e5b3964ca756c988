package import Message

/// What decides about reuse: integers and flags, without references.
package struct ReuseTerms: Sendable, Equatable {
    package private(set) var lifetime: Seconds
    package private(set) var correctedInitialAge: TimeSpan
    package private(set) var responseTime: WallTime
    /// How long after its lifetime the response may be served while it is validated (RFC 5861 §3). Zero if not at all.
    package let staleWhileRevalidate: Seconds
    /// How long after its lifetime it may be served if the origin fails, if it has a lifetime (RFC 9111 §4.2.4, RFC 5861 §4). Zero if not at
    /// all.
    private let staleOnError: Seconds
    /// `staleOnError` is what the origin says, and not the general bound.
    private let saysStaleIfError: Bool
    /// `no-cache` without a field list, or access is proven by asking: never serve it without validation.
    package private(set) var noCache: Bool
    /// `must-revalidate`, `proxy-revalidate`, `s-maxage` or `no-cache`: never serve it stale (§4.2.4).
    package let forbidsStale: Bool
    package private(set) var allowsAuthorization: Bool
    package private(set) var immutable: Bool
    /// Only a rule says that the response never changes. The rule may be wrong, so a client that insists has the origin asked.
    private(set) var isImmutableByRule: Bool
    /// The address has a digest that proves the content, so a client that reloads (`max-age=0`) could get nothing else.
    private(set) var isProvenByAddress: Bool
    /// The status is 4xx or 5xx, and the resource may exist tomorrow; or it is a redirect to an address with a signature that expires. `cache-first`
    /// does not serve the response stale.
    let isError: Bool
    /// The response was purged softly, or a HEAD showed another representation: it is stale, whatever its lifetime.
    package private(set) var isOutdated = false
    /// No rule allows this client what one had to allow when the response was stored (`StoringPermissions`).
    private(set) var isWithheld = false
    /// A purge, or an unsafe request, that concerns the response may have been missed. Only the origin can say that it is still valid: until then it is neither served stale nor
    /// by `cache-first`. What is doubted is outdated, too.
    package private(set) var isDoubted = false
    /// `noCache`, `isOutdated`, `isDoubted` or `isWithheld`. They are one test on the way of a hit.
    private(set) var needsValidation: Bool

    init(
        _ directives: borrowing ResponseDirectives, status: UInt16, lifetime: FreshnessLifetime,
        correctedInitialAge: TimeSpan, responseTime: WallTime, end: WallTime?, policy: CachePolicy,
        handling: CacheHandling
    ) {
        self.lifetime = .zero
        self.correctedInitialAge = correctedInitialAge
        self.responseTime = responseTime
        // What s-maxage implies about staleness is overridden as well.
        let forbidsStale = handling.respectsCacheControl && Caching.forbidsStale(directives)
        self.forbidsStale = forbidsStale
        let isNeverStale = forbidsStale || end != nil
        staleWhileRevalidate = isNeverStale ? .zero : directives.staleWhileRevalidate ?? .zero
        staleOnError = isNeverStale ? .zero : directives.staleIfError ?? policy.staleOnErrorMax
        saysStaleIfError = directives.staleIfError != nil
        noCache = directives.noCache || handling.asksForAccess
        needsValidation = noCache
        allowsAuthorization = Caching.allowsAuthorization(directives, handling)
        immutable = directives.immutable || handling.isImmutable(status)
        isImmutableByRule = !directives.immutable && handling.isImmutable(status)
        isProvenByAddress = handling.hasDigestInAddress
        isError = StatusClass(status).isError || end != nil
        setLifetime(lifetime, until: end)
    }

    private mutating func setLifetime(_ lifetime: FreshnessLifetime, until end: WallTime?) {
        self.lifetime = lifetime.seconds
        if lifetime.countsFromArrival, lifetime.seconds > .zero {
            // Such a lifetime ends exactly this many seconds after the arrival.
            correctedInitialAge = correctedInitialAge.wholeSeconds
            self.lifetime = lifetime.seconds + correctedInitialAge.seconds
        }
        guard let end else { return }
        self.lifetime = min(self.lifetime, max(.zero, end - responseTime) + correctedInitialAge.seconds)
    }

    /// The same terms under other rules.
    ///
    /// - Parameter end: as in `init`: when the address expires to which the response leads.
    func judged(
        _ lifetime: FreshnessLifetime, until end: WallTime?, _ directives: borrowing ResponseDirectives, status: UInt16,
        handling: CacheHandling, isWithheld: Bool
    ) -> ReuseTerms {
        var result = self
        result.setLifetime(lifetime, until: end)
        result.noCache = directives.noCache || handling.asksForAccess
        result.isWithheld = isWithheld
        result.needsValidation = result.noCache || isOutdated || isWithheld
        result.allowsAuthorization = Caching.allowsAuthorization(directives, handling)
        result.immutable = directives.immutable || handling.isImmutable(status)
        result.isImmutableByRule = !directives.immutable && handling.isImmutable(status)
        result.isProvenByAddress = handling.hasDigestInAddress
        return result
    }

    func write(to form: inout StoredFormWriter) {
        form.write(lifetime)
        // Whole seconds: the second of arrival, and the age at that time, rounded up. So the age never decreases when the response is
        // read again, and is ahead by less than one second.
        let ageThen = correctedInitialAge - responseTime.fraction
        form.write(max((ageThen + TimeSpan(ticks: ticksPerSecond - 1)).seconds, .zero))
        form.write(responseTime)
        form.write(staleWhileRevalidate)
        form.write(staleOnError)
        form.write(
            flags: noCache, forbidsStale, allowsAuthorization, immutable, isError, isOutdated, saysStaleIfError,
            isDoubted)
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
        saysStaleIfError = flags[6]
        // Rules are asked anew (`judged`).
        (isImmutableByRule, isProvenByAddress) = (false, false)
        isDoubted = flags[7]
        needsValidation = noCache || isOutdated
    }

    func outdated() -> ReuseTerms {
        var result = self
        result.isOutdated = true
        result.needsValidation = true
        return result
    }

    func moved(by seconds: Seconds) -> ReuseTerms {
        var result = self
        result.responseTime = responseTime + TimeSpan(seconds)
        return result
    }

    package func doubted() -> ReuseTerms {
        var result = outdated()
        result.isDoubted = true
        return result
    }

    /// The response has, or had, a lifetime in which it is for every request. Without one, as with an `ETag` alone or with `max-age=0`, only the
    /// origin can say whether it is for a request: it may be made for the client that got it.
    var isEverFresh: Bool { lifetime > .zero }

    /// How long after its lifetime the response may be served if the origin fails. What was never fresh may be made for one client: the general
    /// bound is not for it.
    package var boundOnError: Seconds { isEverFresh || saysStaleIfError ? staleOnError : .zero }

    /// Whether the origin has said that the response is for every request, for however short a time. Otherwise it may be made for the client that
    /// got it.
    package var isForAll: Bool { !noCache && (isEverFresh || staleWhileRevalidate > .zero) }

    /// Whether the origin has spoken of what a rule calls immutable so recently that a client that insists gets what is stored: some clients insist with
    /// each request.
    func satisfiesInsistence(_ now: WallTime) -> Bool {
        isImmutableByRule && responseTime <= now && now - responseTime < insistencePause
    }

    /// When the lifetime ends.
    package var expiry: WallTime { responseTime + TimeSpan(lifetime) - correctedInitialAge }

    package func currentAge(_ now: WallTime) -> Seconds {
        Caching.currentAge(correctedInitialAge: correctedInitialAge, responseTime: responseTime, now: now)
    }
    /// RFC 9111 §4.2: a response is stale in the very second in which its lifetime ends.
    package func isFresh(_ now: WallTime) -> Bool { remainingLifetime(now) > .zero }
    package func remainingLifetime(_ now: WallTime) -> Seconds { left(age: currentAge(now)) }

    func left(age: Seconds) -> Seconds { isOutdated ? min(lifetime - age, .zero) : lifetime - age }
}

/// What a rule calls immutable is validated at most once in this time, however often clients insist.
private let insistencePause = Seconds(60)
