package import Message
package import Releases

/// The settings of a `CacheHandling` that a zone, a rule or a client's `Larder-Policy` overrides. A nil setting is not overridden.
package struct HandlingChanges: Sendable, Equatable {
    /// All policies together: naming any of them replaces all.
    package var use: CacheUse?
    package var storage: StoragePolicy?
    package var admission: AdmissionUse?
    package var ttl: Seconds?
    package var ttlMax: Seconds?
    package var ttlDefault: Seconds?
    package var isImmutable: Bool?
    package var respectsCacheControl: Bool?
    package var negativeTTL: Seconds?
    package var failureStatuses: FailureStatuses?
    /// In bytes.
    package var objectSizeMax: UInt64?
    package var storesCookies: Bool?
    package var droppedCookies: [[UInt8]]?
    package var authorization: AuthorizationUse?
    package var digest: DigestRule?
    package var ifMatch: IfMatchUse?
    package var release: ReleaseKind?
    package var minimumAge: MinimumAge?
    package var ranges: RangeUse?
    package var compression: CompressionUse?

    package init() {}

    package func apply(to handling: inout CacheHandling) {
        if let use { handling.use = use }
        if let storage { handling.storage = storage }
        if let admission { handling.admission = admission }
        if let ttl { handling.ttl = ttl }
        if let ttlMax { handling.ttlMax = ttlMax }
        if let ttlDefault { handling.ttlDefault = ttlDefault }
        if let isImmutable { handling.isImmutable = isImmutable }
        if let respectsCacheControl { handling.respectsCacheControl = respectsCacheControl }
        if let negativeTTL { handling.negativeTTL = negativeTTL }
        if let failureStatuses { handling.failureStatuses = failureStatuses }
        if let objectSizeMax { handling.objectSizeMax = objectSizeMax }
        if let storesCookies { handling.storesCookies = storesCookies }
        if let droppedCookies { handling.dropsCookies = !droppedCookies.isEmpty }
        if let authorization { handling.authorization = authorization }
        if let ifMatch { handling.ifMatch = ifMatch }
        if let ranges { handling.ranges = ranges }
        if let compression { handling.compression = compression }
        if hasParticulars { handling.hasParticulars = true }
        if digest != nil { handling.provesBodies = true }
    }

    /// Whether any setting is part of `HandlingParticulars`.
    var hasParticulars: Bool { droppedCookies != nil || digest != nil || minimumAge != nil }

    /// Whether any setting is about lifetimes.
    var concernsLifetime: Bool {
        ttl != nil || ttlMax != nil || ttlDefault != nil || isImmutable != nil || negativeTTL != nil
    }

    /// These changes, and those of `general` that they leave out.
    package func over(_ general: HandlingChanges) -> HandlingChanges {
        var result = general
        if let use { result.use = use }
        if let storage { result.storage = storage }
        if let admission { result.admission = admission }
        if let ttl { result.ttl = ttl }
        if let ttlMax { result.ttlMax = ttlMax }
        if let ttlDefault { result.ttlDefault = ttlDefault }
        if let isImmutable { result.isImmutable = isImmutable }
        if let respectsCacheControl { result.respectsCacheControl = respectsCacheControl }
        if let negativeTTL { result.negativeTTL = negativeTTL }
        if let failureStatuses { result.failureStatuses = failureStatuses }
        if let objectSizeMax { result.objectSizeMax = objectSizeMax }
        if let storesCookies { result.storesCookies = storesCookies }
        if let droppedCookies { result.droppedCookies = droppedCookies }
        if let authorization { result.authorization = authorization }
        if let digest { result.digest = digest }
        if let ifMatch { result.ifMatch = ifMatch }
        if let release { result.release = release }
        if let minimumAge { result.minimumAge = minimumAge }
        if let ranges { result.ranges = ranges }
        if let compression { result.compression = compression }
        return result
    }
}
