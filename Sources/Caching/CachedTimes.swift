import Message

/// The times of a stored response that every validation changes: when it was made, how old it arrived, and its lifetime.
struct CachedTimes {
    let date: WallTime
    let ageValue: Seconds
    let lifetime: FreshnessLifetime
    let terms: ReuseTerms

    /// - Parameter countsExpires: false if a targeted field replaces `Expires` (RFC 9213 §2.2).
    init(
        status: UInt16, fields: Fields, directives: ResponseDirectives, countsExpires: Bool, lastModified: WallTime?,
        requestTime: WallTime, responseTime: WallTime, policy: CachePolicy, handling: CacheHandling
    ) {
        date = dateField(fields, received: responseTime)
        ageValue = ageField(fields)
        let given = freshnessLifetime(
            directives,
            expiresMinusDate: countsExpires ? expiresMinusDate(fields, date: date, received: responseTime) : nil,
            heuristic: heuristicLifetime(
                status: status, isPublic: directives.isPublic, lastModified: lastModified, date: date, policy: policy))
        lifetime = adjustedLifetime(given, status: status, isPublic: directives.isPublic, handling: handling)
        var initialAge = correctedInitialAge(
            age: ageValue, date: date, requestTime: requestTime, responseTime: responseTime)
        // Such a lifetime ends exactly this many seconds after the arrival.
        if lifetime.countsFromArrival { initialAge = initialAge.wholeSeconds }
        terms = ReuseTerms(
            directives, status: status,
            lifetime: lifetime.countsFromArrival ? lifetime.seconds + initialAge.seconds : lifetime.seconds,
            correctedInitialAge: initialAge, responseTime: responseTime, policy: policy, handling: handling)
    }
}
