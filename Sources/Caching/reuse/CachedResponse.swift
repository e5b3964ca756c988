package import Message

/// What Caching knows about a stored response: a value that is computed when the response is stored, and again when it is freshened.
package struct CachedResponse: Sendable, Equatable {
    /// What stays as it is when a 304 brings nothing but new times. Shared, so that a copy of the response retains one object.
    private var lasting: LastingPart
    /// The lifetime that the origin or a trusted client gave.
    private var given: FreshnessLifetime
    /// The lifetime under the rules that were in force when the response was stored or judged.
    package private(set) var lifetime: FreshnessLifetime
    /// The value of `Date`. The second of arrival if there is none, or none that is valid (RFC 9110 §6.6.1).
    package private(set) var date: WallTime
    /// The value of `Age`, or zero: age_value in RFC 9111 §4.2.3.
    package private(set) var ageValue: Seconds
    package private(set) var requestTime: WallTime
    /// Everything that `reuse` looks at, in integers: it can be copied without retaining anything.
    package private(set) var terms: ReuseTerms
    /// No rule had a part in the terms.
    private var hasTermsOfOrigin: Bool
    /// What a rule has to allow the client that gets the response. Nothing, if no rule was needed to store it.
    package internal(set) var needed: StoringPermissions = []

    package var status: UInt16 { lasting.status }
    /// The directives that count: those of `Cache-Control` or a targeted field, without what the handling overrides.
    package var directives: ResponseDirectives { lasting.directives }
    /// Some fields are only for the first client, or must not be reused without validation.
    var hasFieldLists: Bool { lasting.directives.hasFieldLists }
    package var eTag: EntityTag? { lasting.eTag }
    package var lastModified: WallTime? { lasting.lastModified }
    /// `Last-Modified` as it was received, for `If-Modified-Since`. Empty if there is none that is valid.
    package var lastModifiedBytes: [UInt8] { lasting.lastModifiedBytes }
    package var vary: Vary { lasting.vary }
    /// `Content-Encoding` in lower case, with its lines joined. Empty if there is none.
    package var contentEncoding: [UInt8] { lasting.contentEncoding }
    /// The response says `Accept-Ranges: none` (RFC 9110 §14.3).
    package var refusesRanges: Bool { lasting.refusesRanges }
    /// `directives` are exactly those of `Cache-Control`.
    var hasOriginDirectives: Bool { lasting.hasOriginDirectives }

    /// - Parameters:
    ///   - fields: the stored fields, including `Age`.
    ///   - requestTime: when the request that brought or freshened the fields was sent.
    ///   - responseTime: when the head of the response arrived.
    package init(
        status: UInt16, fields: Fields, requestTime: WallTime, responseTime: WallTime, policy: CachePolicy,
        handling: CacheHandling = CacheHandling()
    ) {
        self.init(
            status: status, fields: fields, heeded: HeededDirectives(fields, handling), requestTime: requestTime,
            responseTime: responseTime, policy: policy, handling: handling)
    }

    init(
        status: UInt16, fields: Fields, heeded: consuming HeededDirectives, requestTime: WallTime,
        responseTime: WallTime, policy: CachePolicy, handling: CacheHandling
    ) {
        let countsExpires = !heeded.isTargeted
        // A constant, so that its directives are not copied to be looked at.
        let lasting = LastingPart(
            status, heeded.directives, hasOriginDirectives: handling.heedsOriginDirectives, fields,
            received: responseTime)
        self.lasting = lasting
        let times = CachedTimes(
            status: status, fields: fields, directives: lasting.directives, countsExpires: countsExpires,
            lastModified: lasting.lastModified, requestTime: requestTime, responseTime: responseTime, policy: policy,
            handling: handling)
        self.requestTime = requestTime
        date = times.date
        ageValue = times.ageValue
        given = times.given
        lifetime = times.lifetime
        terms = times.terms
        hasTermsOfOrigin = isByOrigin(lasting.directives, given, lifetime, terms)
    }

    /// Returns the response with renewed fields if only those changed that say when, and none that says what or for whom. Returns nil if
    /// everything has to be computed again.
    package func renewed(
        _ renewed: FreshenedFields, requestTime: WallTime, responseTime: WallTime, policy: CachePolicy,
        handling: CacheHandling
    ) -> CachedResponse? {
        guard let changed = renewed.changed, changed.isDisjoint(with: CachedResponse.lastingFields),
            hasOriginDirectives, handling.heedsOriginDirectives
        else { return nil }
        let times = CachedTimes(
            status: status, fields: renewed.fields, directives: directives, countsExpires: true,
            lastModified: lastModified, requestTime: requestTime, responseTime: responseTime, policy: policy,
            handling: handling)
        var result = self
        result.requestTime = requestTime
        result.date = times.date
        result.ageValue = times.ageValue
        result.given = times.given
        result.lifetime = times.lifetime
        result.terms = times.terms
        result.hasTermsOfOrigin = isByOrigin(directives, times.given, times.lifetime, times.terms)
        return result
    }

    /// The response needs what the one needed that it renews, and what its own fields need.
    package mutating func needs(as stored: CachedResponse, _ fields: Fields, _ handling: CacheHandling) {
        needed = stored.needed.union(StoringPermissions(forDirectivesOf: fields, directives, handling))
    }

    /// The fields that say what the content is and for whom. A field that Larder does not know may do so, too.
    private static let lastingFields: FieldNameSet = [
        .other, .acceptRanges, .cacheControl, .cdnCacheControl, .contentEncoding, .contentRange, .contentType, .eTag,
        .lastModified, .location, .surrogateControl, .surrogateKey, .vary,
    ]

    /// Writes what cannot be derived from the fields, and what was decided when the response arrived: the rules may have changed since.
    package func write(to form: inout StoredFormWriter) {
        form.write(status)
        directives.write(to: &form)
        FreshnessLifetime.write(lifetime, given: given, to: &form)
        form.write(date)
        form.write(ageValue)
        form.write(requestTime)
        form.write(
            flags: hasOriginDirectives, needed.has(0), needed.has(1), needed.has(2), needed.has(3), needed.has(4),
            needed.has(5))
        terms.write(to: &form)
    }

    /// - Parameter fields: the fields from which the value was made.
    package init(from form: inout StoredFormReader, fields: Fields) throws(StoredFormError) {
        let status: UInt16 = try form.read()
        // It is written as three digits, and interim responses are not stored.
        guard 200...999 ~= status else { throw StoredFormError() }
        let directives = try ResponseDirectives(from: &form)
        (lifetime, given) = try FreshnessLifetime.read(&form)
        date = try form.readTime()
        ageValue = try form.readSeconds()
        requestTime = try form.readTime()
        let flags = try form.readFlags()
        let hasOriginDirectives = flags[0]
        needed = StoringPermissions(from: flags, at: 1)
        terms = try ReuseTerms(from: &form)
        lasting = LastingPart(
            status, directives, hasOriginDirectives: hasOriginDirectives, fields, received: terms.responseTime)
        hasTermsOfOrigin = isByOrigin(directives, given, lifetime, terms)
    }

    /// The response with other fields that say what the content is. Times and terms stay.
    package func replacing(_ fields: Fields) -> CachedResponse {
        var result = self
        result.lasting = LastingPart(
            status, directives, hasOriginDirectives: hasOriginDirectives, fields, received: responseTime)
        return result
    }

    /// The response under the rules that are in force now: lifetimes are judged when a response is read, so that a change of the rules holds
    /// for what is stored already.
    package func judged(by handling: CacheHandling) -> CachedResponse {
        guard isChanged(by: handling) else { return self }
        var result = self
        result.lifetime = lifetime(under: handling)
        result.terms = terms(with: result.lifetime, handling)
        result.hasTermsOfOrigin = isByOrigin(directives, given, result.lifetime, result.terms)
        return result
    }

    /// The terms of `judged(by:)`, without a copy of what they are part of.
    package func terms(under handling: CacheHandling) -> ReuseTerms {
        isChanged(by: handling) ? terms(with: lifetime(under: handling), handling) : terms
    }

    private func isChanged(by handling: CacheHandling) -> Bool {
        !hasTermsOfOrigin || !needed.isEmpty || handling.changesTerms(status)
    }

    private func lifetime(under handling: CacheHandling) -> FreshnessLifetime {
        adjustedLifetime(given, status: status, isPublic: directives.isPublic, handling: handling)
    }

    private func terms(with lifetime: FreshnessLifetime, _ handling: CacheHandling) -> ReuseTerms {
        terms.judged(
            lifetime, until: lasting.endOfSignature, directives, status: status, handling: handling,
            isWithheld: !handling.permissions.isSuperset(of: needed))
    }

    /// The terms are the same under every handling without rules, so the short path can use them. That of a 404 or 410 depends on
    /// `cache.negative_ttl`.
    package var hasFixedTerms: Bool {
        hasTermsOfOrigin && needed.isEmpty && (status != 404 && status != 410 || given.isByOrigin)
    }

    package var lifetimeSeconds: Seconds { terms.lifetime }
    package var correctedInitialAge: TimeSpan { terms.correctedInitialAge }
    package var responseTime: WallTime { terms.responseTime }
    package var hasValidator: Bool { eTag != nil || lastModified != nil }

    package func currentAge(_ now: WallTime) -> Seconds { terms.currentAge(now) }
    package func isFresh(_ now: WallTime) -> Bool { terms.isFresh(now) }
    /// The rest of the lifetime. Negative by the time for which the response has been stale.
    package func remainingLifetime(_ now: WallTime) -> Seconds { terms.remainingLifetime(now) }

    /// The same response as another clock dates it, which is so much ahead of the one that did: it has the same age and the same lifetime there. `Date` is the origin's, and stays.
    package func moved(by seconds: Seconds) -> CachedResponse {
        var result = self
        result.requestTime = requestTime + TimeSpan(seconds)
        result.terms = terms.moved(by: seconds)
        return result
    }

    /// The same response, stale from now on, as after a soft purge or a HEAD that shows another representation (§4.3.5). It is not served
    /// without validation, whatever the client accepts, unless the origin fails or the policy says `cache-first`.
    package func outdated() -> CachedResponse {
        var result = self
        result.terms = terms.outdated()
        return result
    }

    /// The same response, after purges may have been missed. It is not served before its origin has confirmed it, whatever the client and the policies accept,
    /// except by `cache-only`.
    package func doubted() -> CachedResponse {
        var result = self
        result.terms = terms.doubted()
        return result
    }
}

/// Whether the terms are what the origin's directives and lifetime make of them.
private func isByOrigin(
    _ directives: ResponseDirectives, _ given: FreshnessLifetime, _ lifetime: FreshnessLifetime, _ terms: ReuseTerms
) -> Bool {
    lifetime == given && terms.noCache == directives.noCache && terms.immutable == directives.immutable
        && terms.allowsAuthorization == allowsAuthorization(directives)
}

/// What a response says about its content and whom it is for.
private final class LastingPart: Sendable, Equatable {
    let status: UInt16
    let directives: ResponseDirectives
    let hasOriginDirectives: Bool
    let eTag: EntityTag?
    let lastModified: WallTime?
    let lastModifiedBytes: [UInt8]
    let vary: Vary
    let contentEncoding: [UInt8]
    let refusesRanges: Bool
    let endOfSignature: WallTime?

    init(
        _ status: UInt16, _ directives: ResponseDirectives, hasOriginDirectives: Bool, _ fields: Fields,
        received: WallTime
    ) {
        self.status = status
        self.directives = directives
        self.hasOriginDirectives = hasOriginDirectives
        endOfSignature = Caching.endOfSignature(status: status, fields, received: received)
        eTag = fields.first(.eTag).flatMap { EntityTag(parsing: $0) }
        let modified = lastModifiedField(fields, received: received)
        lastModified = modified?.time
        lastModifiedBytes = modified.map { Array($0.bytes) } ?? []
        vary = Vary(fields)
        contentEncoding = fields.joined(.contentEncoding)?.map(asciiLowercased) ?? []
        refusesRanges = fields.joined(.acceptRanges).map { equalsIgnoringCase(trimOWS($0[...]), "none") } ?? false
    }

    static func == (a: LastingPart, b: LastingPart) -> Bool {
        a === b
            || (a.status == b.status && a.directives == b.directives && a.hasOriginDirectives == b.hasOriginDirectives
                && a.eTag == b.eTag && a.lastModified == b.lastModified && a.lastModifiedBytes == b.lastModifiedBytes
                && a.vary == b.vary && a.contentEncoding == b.contentEncoding && a.refusesRanges == b.refusesRanges
                && a.endOfSignature == b.endOfSignature)
    }
}
