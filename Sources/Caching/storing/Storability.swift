/// Whether a response may be stored (RFC 9111 §3), and if not, why.
package enum Storability: Equatable, Sendable {
    case store
    case doNotStore(NotStoredReason)
}

/// Why a response is not stored. The raw value is `detail` in `Cache-Status` and in the log.
package enum NotStoredReason: CaseIterable, Sendable {
    case policy
    case method
    case methodOverride
    case requestBody
    case requestNoStore
    case interimStatus
    case partialContent
    case partMultiple
    case partUnplaced
    case partWeak
    case partStatus
    case notModified
    case aboutRequest
    case statusNotUnderstood
    case noStore
    case isPrivate
    case authorization
    case setCookie
    case varyStar
    case notCacheable
    case neverReusable
    case headTooLarge
    case staleElsewhere
    case page
    case outdated
    case unproven
    case tooLarge
    case secondHit
    case memoryFull
    case diskBusy
    case diskOff
    case partNotMissing

    /// Whether the reason says nothing about for whom the response is: the next one for the key may well be stored, and be for all who wait for it.
    package var isPassing: Bool {
        switch self {
        case .staleElsewhere, .unproven, .outdated, .tooLarge, .secondHit, .memoryFull, .diskBusy, .diskOff,
            .partNotMissing:
            true
        case .policy, .method, .methodOverride, .requestBody, .requestNoStore, .interimStatus, .partialContent,
            .partMultiple, .partUnplaced, .partWeak, .partStatus, .notModified, .aboutRequest, .statusNotUnderstood,
            .noStore, .isPrivate, .authorization, .setCookie, .varyStar, .notCacheable, .neverReusable, .headTooLarge,
            .page:
            false
        }
    }

    /// The parameter `detail` of `Cache-Status` (RFC 9211 §2.8).
    package var token: StaticString {
        switch self {
        case .policy: "policy"
        case .method: "method"
        case .methodOverride: "method-override"
        case .requestBody: "request-body"
        case .requestNoStore: "request-no-store"
        case .interimStatus: "interim-status"
        case .partialContent: "partial-content"
        case .partMultiple: "part-multiple"
        case .partUnplaced: "part-unplaced"
        case .partWeak: "part-weak"
        case .partStatus: "part-status"
        case .notModified: "not-modified"
        case .aboutRequest: "about-request"
        case .statusNotUnderstood: "status-not-understood"
        case .noStore: "no-store"
        case .isPrivate: "private"
        case .authorization: "authorization"
        case .setCookie: "set-cookie"
        case .varyStar: "vary-star"
        case .notCacheable: "not-cacheable"
        case .neverReusable: "never-reusable"
        case .headTooLarge: "head-too-large"
        case .staleElsewhere: "stale-elsewhere"
        case .page: "page"
        case .outdated: "outdated"
        case .unproven: "unproven"
        case .tooLarge: "too-large"
        case .secondHit: "second-hit"
        case .memoryFull: "memory-full"
        case .diskBusy: "disk-busy"
        case .diskOff: "disk-off"
        case .partNotMissing: "part-not-missing"
        }
    }

    package var text: String {
        switch self {
        case .policy: "the policy says so"
        case .method: "only responses to GET are stored, and responses to POST that a GET would get too"
        case .methodOverride: "a field of the request asks for another method than the request line"
        case .requestBody: "the request had content"
        case .requestNoStore: "the request says no-store"
        case .interimStatus: "the response is not final"
        case .partialContent: "the response is a part, but the request had no Range"
        case .partMultiple: "the response has several parts; such responses are passed on"
        case .partUnplaced: "the response does not say, or says wrongly, which part it is"
        case .partWeak: "a part without a strong validator cannot be combined with others"
        case .partStatus: "the response says with Content-Range that it is a part, but its status is not 206"
        case .notModified: "a 304 renews a stored response and is not stored itself"
        case .aboutRequest: "the status says something about this request, not about the resource"
        case .statusNotUnderstood: "the response says must-understand, and Larder does not know the status"
        case .noStore: "the response says no-store"
        case .isPrivate: "the response says private"
        case .authorization: "the request had credentials, and the response does not say that it is for everybody"
        case .setCookie: "the response sets a cookie, and does not say that it is for everybody"
        case .varyStar: "no later request can match the response's Vary"
        case .notCacheable: "neither the status nor the fields of the response allow it"
        case .neverReusable: "the response is stale at once and has no validator"
        case .headTooLarge:
            "validations have added so many fields that the head is larger than one that is received may be"
        case .staleElsewhere: "another node of the fleet had it stored, and stale, and the origin did not confirm it"
        case .page: "the origin sent a page (text/html) in place of a package"
        case .outdated: "the URL was purged or changed while the response was on its way"
        case .unproven:
            "a rule wants the content proven by its digest, and the response is not that content or has no digest"
        case .tooLarge: "the response is longer than cache.object_size_max, or than memory may hold without the disk"
        case .secondHit: "admission: second-hit keeps so long a response from its second request on"
        case .memoryFull: "all memory of the cache is in use at this moment"
        case .diskBusy: "so much waits to be written that the disk takes no more"
        case .diskOff: "the disk takes nothing after an error"
        case .partNotMissing: "the part is stored already, or others are being fetched, or memory has no room for it"
        }
    }
}
