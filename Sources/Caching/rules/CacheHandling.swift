package import Message
package import Releases

/// The cache policies of a request, which can be combined. Without any, fresh responses are served and stale ones are validated
/// (`revalidate-when-stale`).
package struct CacheUse: OptionSet, Sendable, Hashable {
    package let rawValue: UInt8
    package init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Validate the stored response every time.
    package static var revalidateAlways: CacheUse { CacheUse(rawValue: 1 << 0) }
    /// Serve a stored response, fresh or stale, except stale errors. Ask the origin only if nothing is stored.
    package static var cacheFirst: CacheUse { CacheUse(rawValue: 1 << 1) }
    /// Serve a stored response, or answer with 504. Never ask the origin.
    package static var cacheOnly: CacheUse { CacheUse(rawValue: 1 << 2) }
    /// Serve nothing from the cache.
    package static var noRead: CacheUse { CacheUse(rawValue: 1 << 3) }
    /// Store nothing.
    package static var noWrite: CacheUse { CacheUse(rawValue: 1 << 4) }
    /// If the origin fails, serve the stored response, however stale it is, unless the response forbids that.
    package static var staleOnError: CacheUse { CacheUse(rawValue: 1 << 5) }

    // Other modules would call the `contains` of `OptionSet` through a witness table.
    package func contains(_ policy: CacheUse) -> Bool { rawValue & policy.rawValue == policy.rawValue }
}

/// How long a response is stored.
package enum StoragePolicy: String, CaseIterable, Sendable {
    /// In memory, until the process ends.
    case session
    /// On the disk, where it survives restarts. It is evicted only for space.
    case permanent
    /// On the disk, where it stays until it is purged.
    case pinned
}

/// Which of the responses that may go to the disk are written there.
package enum AdmissionUse: String, CaseIterable, Sendable {
    case all
    /// Those that are requested a second time. Until then a response is in memory only. This saves writes of responses that are
    /// requested once.
    case secondHit = "second-hit"
}

/// How requests for ranges are handled (RFC 9110 §14).
package enum RangeUse: String, CaseIterable, Sendable {
    /// Store parts as they arrive, and fetch missing bytes when they are requested.
    case sparse
    /// Like `sparse`, and also fetch the rest in the background.
    case whole
    /// Pass parts on without storing them.
    case pass
}

/// Who answers a GET with `If-Match`, as downloaders in parts send it with each range.
package enum IfMatchUse: String, CaseIterable, Sendable {
    /// The origin: a cache does not evaluate the field (RFC 9111 §4.3.2).
    case origin
    /// A stored response that is fresh and has the very strong tag; the origin, if there is none.
    case stored
}

/// Whether a response that is stored without a content coding is sent compressed.
package enum CompressionUse: String, CaseIterable, Sendable {
    case no
    /// Compress it for each client while it is sent.
    case onTheFly = "on-the-fly"
    /// Compress it once, in the background. Until the copy is ready, send the response as it is stored.
    case once
}

/// The settings for one request and its response, from the defaults, the zone, the rules and the client's `Larder-Policy`.
///
/// Requests copy it many times, so it refers to nothing, and numbers that may be missing take eight bytes or less. What needs references, such
/// as lists of names, is in `HandlingParticulars`.
package struct CacheHandling: Sendable, Equatable {
    private var ruleNumber: UInt32 = 0
    private var keyRuleNumber: UInt32 = 0
    private var zoneIndex: UInt32 = 0
    package var use: CacheUse = []
    package var storage: StoragePolicy = .session
    /// Which of the responses that `storage` allows on the disk are written there.
    package var admission: AdmissionUse = .all
    /// Successes never change: they stay fresh as long as they are stored. A client that insists has the origin asked, at most once a minute
    /// (`ReuseTerms.satisfiesInsistence`).
    package var isImmutable = false
    /// A recipe says how long the response is kept, and the path names an archive or a package: a page in its place is some error of the origin.
    package var isForFile = false
    /// The address has a digest that proves the content.
    package var hasDigestInAddress = false
    /// A client's `Larder-Policy` gave the lifetime. It is stored with the response as if the origin had given it.
    package var hasLifetimeOfClient = false
    /// If false, responses are stored and reused in spite of `no-store`, `private`, `no-cache` and `must-revalidate`. `Vary: *` still
    /// prevents reuse.
    package var respectsCacheControl = true
    /// Store responses with `Set-Cookie` if they have any explicit lifetime, not only with `public` or `s-maxage`.
    package var storesCookies = false
    /// Cookies are taken out of responses that are stored (`HandlingParticulars.droppedCookies`).
    package var dropsCookies = false
    package var authorization: AuthorizationUse = .standard
    package var folding: Folding = .none
    /// Obey targeted fields (RFC 9213).
    package var heedsTargetedFields = false
    package var ranges: RangeUse = .sparse
    package var ifMatch: IfMatchUse = .origin
    /// What counts as a failure of the origin, beside 5xx.
    package var failureStatuses: FailureStatuses = []
    package var compression: CompressionUse = .no
    /// A rule or the zone says something that is in `HandlingParticulars`.
    package var hasParticulars = false
    /// A body must be proven by its digest before it is stored.
    package var provesBodies = false
    /// An origin may take the path for one about which the rules say something else. The settings are the strictest of all that may be meant, and
    /// `rule` is the rule among them that asks for a proof or a minimum age, if there is one.
    package var isDisputed = false
    private var ttlOrNone = OptionalCount()
    private var ttlMaxOrNone = OptionalCount()
    private var ttlDefaultOrNone = OptionalCount()
    private var objectSizeMaxOrNone = OptionalCount()
    /// The lifetime of a 404 or 410 for which the origin gave none. With zero, RFC 9111 decides.
    package var negativeTTL: Seconds = .zero

    package init() {}

    /// The number of the rule that decided, from 1. Nil if no rule matched, and the settings of the zone apply.
    package var rule: Int? {
        get { ruleNumber == 0 ? nil : Int(ruleNumber) }
        set { ruleNumber = UInt32(newValue ?? 0) }
    }
    /// The index of the zone. 0 is the default zone.
    package var zone: Int {
        get { Int(zoneIndex) }
        set { zoneIndex = UInt32(newValue) }
    }
    /// The number of the rule that says how the key is made (`CacheRules.keyRules`). Nil if the key is the URI.
    package var keyRule: Int? {
        get { keyRuleNumber == 0 ? nil : Int(keyRuleNumber) }
        set { keyRuleNumber = UInt32(newValue ?? 0) }
    }
    /// Replaces the lifetime that the origin gave. Nil if the origin's lifetime applies.
    package var ttl: Seconds? {
        get { ttlOrNone.value.map { Seconds($0) } }
        set { ttlOrNone.value = newValue?.count }
    }
    /// The longest lifetime. A shorter one from the origin counts. Nil if there is no bound.
    package var ttlMax: Seconds? {
        get { ttlMaxOrNone.value.map { Seconds($0) } }
        set { ttlMaxOrNone.value = newValue?.count }
    }
    /// The lifetime of a success for which the origin gave none. Nil if RFC 9111 decides.
    package var ttlDefault: Seconds? {
        get { ttlDefaultOrNone.value.map { Seconds($0) } }
        set { ttlDefaultOrNone.value = newValue?.count }
    }
    /// The largest body that is stored, in bytes. Nil: the zone's limit applies.
    package var objectSizeMax: UInt64? {
        get { objectSizeMaxOrNone.value.map { UInt64($0) } }
        set { objectSizeMaxOrNone.value = newValue.map { Int64(clamping: $0) } }
    }

    /// Whether a part that answers a client's range request may be stored.
    /// The digest of a part says nothing, so a rule with a digest stores whole responses only.
    package var storesParts: Bool { ranges != .pass && !provesBodies }

    /// Whether a fresh response of the default zone is served to a plain GET as it is stored: nothing of the handling but the terms of its
    /// reuse concerns that.
    package var servesAsStored: Bool {
        use.isEmpty && zone == 0 && keyRule == nil && compression == .no && folding == .none && !hasParticulars
    }

    /// Whether the handling may change what the origin said about the reuse of a response with this status.
    func changesTerms(_ status: UInt16) -> Bool {
        ttlOrNone.isGiven || ttlMaxOrNone.isGiven || ttlDefaultOrNone.isGiven || isImmutable || !respectsCacheControl
            || authorization != .standard || folding == .unproven
            || (negativeTTL > .zero && (status == 404 || status == 410))
    }

    /// Whether a response with this status never changes.
    func isImmutable(_ status: UInt16) -> Bool { isImmutable && isSuccessWithContent(status) }
}

/// Whether the key leaves out a signature, and then whether the client has proven its access.
package enum Folding: Sendable {
    case none
    case proven
    /// The origin has to be asked with the client's own address before anything that is stored is served.
    case unproven
}

/// A number that may be missing, in the room of one.
private struct OptionalCount: Sendable, Equatable {
    private var count = Int64.min

    var isGiven: Bool { count != .min }
    var value: Int64? {
        get { isGiven ? count : nil }
        set { count = newValue ?? .min }
    }
}

/// What few rules and zones say about the responses that they match, and what needs references.
package final class HandlingParticulars: Sendable {
    /// The names of cookies that are not stored. A response that sets no others counts as one that sets none.
    package let droppedCookies: [[UInt8]]
    /// What proves a body before the response is stored. Nil if nothing has to.
    package let digest: DigestRule?
    /// What the response offers, for `minimumAge`. Nil if it offers no releases.
    package let release: ReleaseKind?
    /// How old releases have to be. Nil if they may be of any age.
    package let minimumAge: MinimumAge?

    package init(
        droppedCookies: [[UInt8]] = [], digest: DigestRule? = nil, release: ReleaseKind? = nil,
        minimumAge: MinimumAge? = nil
    ) {
        self.droppedCookies = droppedCookies
        self.digest = digest
        self.release = release
        self.minimumAge = minimumAge
    }
}
