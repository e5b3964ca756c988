import Message

/// What of a stored response every validation moves: when it was made, how old it came, how long it will do.
struct CachedTimes {
    let date: WallTime
    let ageValue: Seconds
    let lifetime: FreshnessLifetime
    let terms: ReuseTerms

    /// - Parameter countsExpires: false where a targeted field takes its place (RFC 9213 §2.2).
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
        // Then the lifetime is to end exactly so many seconds after the arrival.
        if lifetime.countsFromArrival { initialAge = initialAge.wholeSeconds }
        terms = ReuseTerms(
            directives, status: status,
            lifetime: lifetime.countsFromArrival ? lifetime.seconds + initialAge.seconds : lifetime.seconds,
            correctedInitialAge: initialAge, responseTime: responseTime, policy: policy, handling: handling)
    }
}
