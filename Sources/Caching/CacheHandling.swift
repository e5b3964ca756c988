package import Message

/// How requests use the cache: the cache policies, which may be combined. None of them is the default: what is fresh is
/// served, what is stale is validated (`revalidate-when-stale`).
package struct CacheUse: OptionSet, Sendable, Hashable {
    package let rawValue: UInt8
    package init(rawValue: UInt8) { self.rawValue = rawValue }

    /// A conditional request every time.
    package static let revalidateAlways = CacheUse(rawValue: 1 << 0)
    /// Whatever is stored is served, stale or not, but for errors that are stale; the origin is asked only for what is missing.
    package static let cacheFirst = CacheUse(rawValue: 1 << 1)
    /// What is stored is served, otherwise 504; the origin is never asked.
    package static let cacheOnly = CacheUse(rawValue: 1 << 2)
    /// Nothing is served from the store.
    package static let noRead = CacheUse(rawValue: 1 << 3)
    /// Nothing is stored.
    package static let noWrite = CacheUse(rawValue: 1 << 4)
    /// Where the origin fails, what is stored is served, however stale, unless it forbids that.
    package static let staleOnError = CacheUse(rawValue: 1 << 5)
}

/// How long a response is kept.
package enum StoragePolicy: String, CaseIterable, Sendable {
    /// In memory; gone when the process ends.
    case session
    /// Survives restarts; evicted only for space.
    case permanent
    /// As permanent, and not evicted until it is purged.
    case pinned
}

/// What goes to the disk of what may go there.
package enum AdmissionUse: String, CaseIterable, Sendable {
    case all
    /// What is asked for a second time; until then it is in memory only. Keeps what is wanted once from wearing the disk.
    case secondHit = "second-hit"
}

/// What becomes of requests for parts (RFC 9110 §14).
package enum RangeUse: String, CaseIterable, Sendable {
    /// Parts are stored as they come, and what is missing is fetched when it is asked for.
    case sparse
    /// As `sparse`, and what is missing of the whole is fetched behind the client's back.
    case whole
    /// Parts are passed on and not stored.
    case pass
}

/// When what is stored without a content coding is sent compressed.
package enum CompressionUse: String, CaseIterable, Sendable {
    case no
    /// For each client anew, while it goes out.
    case onTheFly = "on-the-fly"
    /// Once, in the background; until then as it is.
    case once
}

/// What the default settings, the zone, the rules and the client's `Larder-Policy` say about one request and its response.
package struct CacheHandling: Sendable, Equatable {
    /// Number of the rule that decided, from 1; nil: none, what the zone says holds.
    package var rule: Int?
    /// Index of the zone; 0 is the default one.
    package var zone = 0
    /// Number of the rule that says how the key is made (`CacheRules.keyRules`); nil: it is the URI.
    package var keyRule: Int?
    package var use: CacheUse = []
    package var storage: StoragePolicy = .session
    /// Of what `storage` sends to the disk.
    package var admission: AdmissionUse = .all
    /// Takes the place of the lifetime the origin gave; nil: that holds.
    package var ttl: Seconds?
    /// False: stored and reused in spite of `no-store`, `private`, `no-cache`, `must-revalidate`, `Vary: *` excepted.
    package var respectsCacheControl = true
    /// Lifetime of a 404 or 410 for which the origin gave none; zero: as RFC 9111 says.
    package var negativeTTL: Seconds = .zero
    /// Answers with `Set-Cookie` are stored with any explicit lifetime, not only with `public` or `s-maxage`.
    package var storesCookies = false
    /// Targeted fields are heeded (RFC 9213).
    package var heedsTargetedFields = false
    /// The largest body that is stored, in bytes. Nil: the zone's limit applies.
    package var objectSizeMax: UInt64?
    package var ranges: RangeUse = .sparse
    package var compression: CompressionUse = .no

    package init() {}
}
