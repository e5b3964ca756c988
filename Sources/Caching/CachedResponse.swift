package import Message

/// What Caching knows of a stored response: a value, computed when it is stored and again when it is freshened.
package struct CachedResponse: Sendable, Equatable {
    package let status: UInt16
    /// Those that count: from `Cache-Control` or a targeted field, without what the treatment overrides.
    package let directives: ResponseDirectives
    package let lifetime: FreshnessLifetime
    /// Value of `Date`, or the time of arrival where it has none or none that is valid (RFC 9110 §6.6.1).
    package let date: WallTime
    /// Value of `Age`, zero where it has none: age_value of RFC 9111 §4.2.3.
    package let ageValue: Seconds
    package let requestTime: WallTime
    package let eTag: EntityTag?
    package let lastModified: WallTime?
    /// `Last-Modified` as it came: what goes back in `If-Modified-Since`; empty where it has none that is valid.
    package let lastModifiedBytes: [UInt8]
    package let vary: Vary
    /// `Content-Encoding`, lower case, its lines joined; empty where there is none.
    package let contentEncoding: [UInt8]
    /// `Accept-Ranges: none` (RFC 9110 §14.3).
    package let refusesRanges: Bool
    /// All that `reuse` looks at, in integers: copied without retaining anything.
    package private(set) var terms: ReuseTerms

    /// - Parameters:
    ///   - fields: as they are stored, `Age` among them.
    ///   - requestTime: when the request that brought them, or freshened them, was sent; `responseTime`: when the head came.
    package init(
        status: UInt16, fields: Fields, requestTime: WallTime, responseTime: WallTime, policy: CachePolicy,
        treatment: CacheTreatment = CacheTreatment()
    ) {
        self.init(
            status: status, fields: fields, heeded: HeededDirectives(fields, treatment), requestTime: requestTime,
            responseTime: responseTime, policy: policy, treatment: treatment)
    }

    init(
        status: UInt16, fields: Fields, heeded: HeededDirectives, requestTime: WallTime, responseTime: WallTime,
        policy: CachePolicy, treatment: CacheTreatment
    ) {
        self.status = status
        self.requestTime = requestTime
        directives = heeded.directives
        date = dateField(fields, received: responseTime)
        ageValue = ageField(fields)
        eTag = fields.first(.eTag).flatMap { EntityTag(parsing: $0) }
        let modified = lastModifiedField(fields, received: responseTime)
        lastModified = modified?.time
        lastModifiedBytes = modified.map { Array($0.bytes) } ?? []
        vary = Vary(fields)
        contentEncoding = fields.joined(.contentEncoding)?.map(asciiLowercased) ?? []
        refusesRanges = fields.joined(.acceptRanges).map { equalsIgnoringCase(trimOWS($0[...]), "none") } ?? false
        let given = freshnessLifetime(
            directives,
            expiresMinusDate: heeded.isTargeted ? nil : expiresMinusDate(fields, date: date, received: responseTime),
            heuristic: heuristicLifetime(
                status: status, isPublic: directives.isPublic, lastModified: lastModified, date: date, policy: policy))
        lifetime = treatedLifetime(given, status: status, isPublic: directives.isPublic, treatment: treatment)
        let initialAge = Caching.correctedInitialAge(
            age: ageValue, date: date, requestTime: requestTime, responseTime: responseTime)
        terms = ReuseTerms(
            directives, status: status,
            lifetime: lifetime.countsFromArrival ? lifetime.seconds + initialAge : lifetime.seconds,
            correctedInitialAge: initialAge, responseTime: responseTime, policy: policy, treatment: treatment)
    }

    package var lifetimeSeconds: Seconds { terms.lifetime }
    package var correctedInitialAge: Seconds { terms.correctedInitialAge }
    package var responseTime: WallTime { terms.responseTime }
    package var hasValidator: Bool { eTag != nil || lastModified != nil }

    package func currentAge(_ now: WallTime) -> Seconds { terms.currentAge(now) }
    package func isFresh(_ now: WallTime) -> Bool { terms.isFresh(now) }
    /// Negative by as much as it is stale.
    package func remainingLifetime(_ now: WallTime) -> Seconds { terms.remainingLifetime(now) }

    /// The same response, stale from now on, as after a soft purge or a HEAD that says so (§4.3.5): not served without
    /// validation, whatever the client takes, but where the origin fails or the policy says `cache-first`.
    package func outdated() -> CachedResponse {
        var result = self
        result.terms = terms.outdated()
        return result
    }
}
