package import Message

/// The settings of a `CacheHandling` that a zone, a rule or a client's `Larder-Policy` overrides. A nil setting is not overridden.
package struct HandlingChanges: Sendable, Equatable {
    /// All policies together: naming any of them replaces all.
    package var use: CacheUse?
    package var storage: StoragePolicy?
    package var admission: AdmissionUse?
    package var ttl: Seconds?
    package var respectsCacheControl: Bool?
    package var negativeTTL: Seconds?
    /// In bytes.
    package var objectSizeMax: UInt64?
    package var storesCookies: Bool?
    package var ranges: RangeUse?
    package var compression: CompressionUse?

    package init() {}

    package func apply(to handling: inout CacheHandling) {
        if let use { handling.use = use }
        if let storage { handling.storage = storage }
        if let admission { handling.admission = admission }
        if let ttl { handling.ttl = ttl }
        if let respectsCacheControl { handling.respectsCacheControl = respectsCacheControl }
        if let negativeTTL { handling.negativeTTL = negativeTTL }
        if let objectSizeMax { handling.objectSizeMax = objectSizeMax }
        if let storesCookies { handling.storesCookies = storesCookies }
        if let ranges { handling.ranges = ranges }
        if let compression { handling.compression = compression }
    }
}
