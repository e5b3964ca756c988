package import Message

/// What a zone, a rule or a client's `Larder-Policy` says of a treatment. Nil: nothing, what was said before holds.
package struct TreatmentChanges: Sendable, Equatable {
    /// All policies at once: who names any names all.
    package var use: CacheUse?
    package var storage: StoragePolicy?
    package var admission: AdmissionUse?
    package var ttl: Seconds?
    package var respectsCacheControl: Bool?
    package var negativeTTL: Seconds?
    /// Bytes.
    package var objectSizeMax: UInt64?
    package var storesCookies: Bool?
    package var ranges: RangeUse?
    package var compression: CompressionUse?

    package init() {}

    package func apply(to treatment: inout CacheTreatment) {
        if let use { treatment.use = use }
        if let storage { treatment.storage = storage }
        if let admission { treatment.admission = admission }
        if let ttl { treatment.ttl = ttl }
        if let respectsCacheControl { treatment.respectsCacheControl = respectsCacheControl }
        if let negativeTTL { treatment.negativeTTL = negativeTTL }
        if let objectSizeMax { treatment.objectSizeMax = objectSizeMax }
        if let storesCookies { treatment.storesCookies = storesCookies }
        if let ranges { treatment.ranges = ranges }
        if let compression { treatment.compression = compression }
    }
}
