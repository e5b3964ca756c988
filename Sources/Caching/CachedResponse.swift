package import Message

/// What Caching knows of a stored response: a value, computed when it is stored and again when it is freshened.
package struct CachedResponse: Sendable, Equatable {
    package let status: UInt16
    package let directives: ResponseDirectives
    package let lifetime: FreshnessLifetime
    /// Value of `Date`, or the time of arrival where it has none or none that is valid (RFC 9110 §6.6.1).
    package let date: WallTime
    package let requestTime: WallTime
    package let eTag: EntityTag?
    package let lastModified: WallTime?
    /// `Last-Modified` as it came: what goes back in `If-Modified-Since`; empty where it has none that is valid.
    package let lastModifiedBytes: [UInt8]
    package let vary: Vary
    /// All that `reuse` looks at, in integers: copied without retaining anything.
    package let terms: ReuseTerms

    /// - Parameters:
    ///   - fields: as they are stored, `Age` among them.
    ///   - requestTime: when the request that brought them, or freshened them, was sent; `responseTime`: when the head came.
    package init(status: UInt16, fields: Fields, requestTime: WallTime, responseTime: WallTime, policy: CachePolicy) {
        self.init(
            status: status, fields: fields, directives: ResponseDirectives(fields), requestTime: requestTime,
            responseTime: responseTime, policy: policy)
    }

    init(
        status: UInt16, fields: Fields, directives: ResponseDirectives, requestTime: WallTime, responseTime: WallTime,
        policy: CachePolicy
    ) {
        self.status = status
        self.requestTime = requestTime
        self.directives = directives
        date = dateField(fields, received: responseTime)
        eTag = fields.first(.eTag).flatMap { EntityTag(parsing: $0) }
        let modified = lastModifiedField(fields, received: responseTime)
        lastModified = modified?.time
        lastModifiedBytes = modified.map { Array($0.bytes) } ?? []
        vary = Vary(fields)
        lifetime = freshnessLifetime(
            directives,
            expiresMinusDate: expiresMinusDate(fields, date: date, received: responseTime),
            heuristic: heuristicLifetime(
                status: status, isPublic: directives.isPublic, lastModified: lastModified, date: date, policy: policy))
        terms = ReuseTerms(
            directives, lifetime: lifetime.seconds,
            correctedInitialAge: Caching.correctedInitialAge(
                age: ageField(fields), date: date, requestTime: requestTime, responseTime: responseTime),
            responseTime: responseTime, policy: policy)
    }

    package var lifetimeSeconds: Seconds { terms.lifetime }
    package var correctedInitialAge: Seconds { terms.correctedInitialAge }
    package var responseTime: WallTime { terms.responseTime }
    package var hasValidator: Bool { eTag != nil || lastModified != nil }

    package func currentAge(_ now: WallTime) -> Seconds { terms.currentAge(now) }
    package func isFresh(_ now: WallTime) -> Bool { terms.isFresh(now) }
    /// Negative by as much as it is stale.
    package func remainingLifetime(_ now: WallTime) -> Seconds { terms.remainingLifetime(now) }
}

/// What decides on reuse, and nothing else: integers and flags, no references.
package struct ReuseTerms: Sendable, Equatable {
    package let lifetime: Seconds
    package let correctedInitialAge: Seconds
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

    init(
        _ directives: ResponseDirectives, lifetime: Seconds, correctedInitialAge: Seconds, responseTime: WallTime,
        policy: CachePolicy
    ) {
        self.lifetime = lifetime
        self.correctedInitialAge = correctedInitialAge
        self.responseTime = responseTime
        let forbidsStale = Caching.forbidsStale(directives)
        self.forbidsStale = forbidsStale
        staleWhileRevalidate = forbidsStale ? .zero : directives.staleWhileRevalidate ?? .zero
        staleOnError = forbidsStale ? .zero : directives.staleIfError ?? policy.staleOnErrorMax
        noCache = directives.noCache
        allowsAuthorization = Caching.allowsAuthorization(directives)
        immutable = directives.immutable
    }

    package func currentAge(_ now: WallTime) -> Seconds {
        Caching.currentAge(correctedInitialAge: correctedInitialAge, responseTime: responseTime, now: now)
    }
    /// RFC 9111 §4.2: at the very second its lifetime ends it is stale.
    package func isFresh(_ now: WallTime) -> Bool { lifetime > currentAge(now) }
    package func remainingLifetime(_ now: WallTime) -> Seconds { lifetime - currentAge(now) }
}
