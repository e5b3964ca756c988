/// Whether a response may be stored (RFC 9111 §3), and if not, why.
package enum Storability: Equatable, Sendable {
    case store
    case doNotStore(NotStoredReason)
}

/// The raw value is what `Cache-Status` and the log say.
package enum NotStoredReason: String, CaseIterable, Sendable {
    case policy = "policy"
    case method = "method"
    case methodOverride = "method-override"
    case requestBody = "request-body"
    case requestNoStore = "request-no-store"
    case interimStatus = "interim-status"
    case partialContent = "partial-content"
    case partMultiple = "part-multiple"
    case partUnplaced = "part-unplaced"
    case partWeak = "part-weak"
    case notModified = "not-modified"
    case aboutRequest = "about-request"
    case statusNotUnderstood = "status-not-understood"
    case noStore = "no-store"
    case isPrivate = "private"
    case authorization = "authorization"
    case setCookie = "set-cookie"
    case varyStar = "vary-star"
    case notCacheable = "not-cacheable"
    case neverReusable = "never-reusable"

    package var text: String {
        switch self {
        case .policy: "the policy says so"
        case .method: "only answers to GET are stored, and what a POST says that a GET would get"
        case .methodOverride: "a field of the request asks for another method than its request line"
        case .requestBody: "the request had content"
        case .requestNoStore: "the request says no-store"
        case .interimStatus: "the response is not final"
        case .partialContent: "the response is a part, and none was asked for"
        case .partMultiple: "several parts in one response are passed on only"
        case .partUnplaced: "it does not say rightly which part of what it is"
        case .partWeak: "parts without a strong validator can not be put together"
        case .notModified: "a 304 updates, it is not stored"
        case .aboutRequest: "the status speaks of this one request, not of the resource"
        case .statusNotUnderstood: "must-understand, and the status is not one we know"
        case .noStore: "the response says no-store"
        case .isPrivate: "the response says private"
        case .authorization: "the request had credentials, and the response does not say that it is for everybody"
        case .setCookie: "the response sets a cookie, and does not say that it is for everybody"
        case .varyStar: "no later request can match its Vary"
        case .notCacheable: "neither its status nor its fields allow it"
        case .neverReusable: "it is stale at once and has no validator"
        }
    }
}
