import Message

/// The times of a stored response that every validation changes: when it was made, how old it arrived, and its lifetime.
struct CachedTimes {
    let date: WallTime
    let ageValue: Seconds
    /// The lifetime that the origin or a trusted client gave.
    let given: FreshnessLifetime
    /// The lifetime under the handling.
    let lifetime: FreshnessLifetime
    let terms: ReuseTerms

    /// - Parameter countsExpires: false if a targeted field replaces `Expires` (RFC 9213 §2.2).
    init(
        status: UInt16, fields: Fields, directives: borrowing ResponseDirectives, countsExpires: Bool,
        lastModified: WallTime?, requestTime: WallTime, responseTime: WallTime, policy: CachePolicy,
        handling: CacheHandling
    ) {
        let date = dateField(fields, received: responseTime)
        self.date = date
        ageValue = ageField(fields)
        let byOrigin = freshnessLifetime(
            directives,
            expiresMinusDate: countsExpires ? expiresMinusDate(fields, date: date, received: responseTime) : nil,
            heuristic: heuristicLifetime(
                status: status, isPublic: directives.isPublic, lastModified: lastModified, date: date, policy: policy))
        lifetime = adjustedLifetime(byOrigin, status: status, isPublic: directives.isPublic, handling: handling)
        given = handling.hasLifetimeOfClient ? lifetime : byOrigin
        terms = ReuseTerms(
            directives, status: status, lifetime: lifetime,
            correctedInitialAge: correctedInitialAge(
                age: ageValue, date: date, requestTime: requestTime, responseTime: responseTime),
            responseTime: responseTime, end: endOfSignature(status: status, fields, received: responseTime),
            policy: policy, handling: handling)
    }
}
