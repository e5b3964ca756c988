package import Message

/// Whether a response may be stored (RFC 9111 §3), and if not, why.
package enum Storability: Equatable, Sendable {
    case store
    case doNotStore(NotStoredReason)
}

/// The raw value is what `Cache-Status` and the log say.
package enum NotStoredReason: String, CaseIterable, Sendable {
    case method = "method"
    case requestBody = "request-body"
    case requestNoStore = "request-no-store"
    case interimStatus = "interim-status"
    case partialContent = "partial-content"
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
        case .method: "only answers to GET are stored"
        case .requestBody: "the request had content"
        case .requestNoStore: "the request says no-store"
        case .interimStatus: "the response is not final"
        case .partialContent: "the response is a part only"
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

/// Whether a response is stored, together with what is known of it then: it is worked out once.
package enum StoringDecision: Sendable {
    case store(CachedResponse)
    case doNotStore(NotStoredReason)
}

/// The rules of §3 in their order, then ours. The cheap ones come first: most of what is not stored says so itself.
///
/// - Parameters:
///   - status, fields: of the response as it came from the origin.
///   - requestTime: when the request went out; `responseTime`: when the head of the response came.
package func decideStoring(
    of request: CacheRequest, status: UInt16, fields: Fields, policy: CachePolicy, requestTime: WallTime,
    responseTime: WallTime
) -> StoringDecision {
    if let reason = objectionOfRequest(request) { return .doNotStore(reason) }
    let directives = ResponseDirectives(fields)
    let early =
        objectionOfStatus(status, directives) ?? objectionOfDirectives(directives, status: status, request)
    if let early { return .doNotStore(early) }
    let response = CachedResponse(
        status: status, fields: fields, directives: directives, requestTime: requestTime, responseTime: responseTime,
        policy: policy)
    guard isCacheable(response) else { return .doNotStore(.notCacheable) }
    if let reason = objectionOfOurs(response, fields) { return .doNotStore(reason) }
    return .store(response)
}

/// The decision alone.
package func storability(
    of request: CacheRequest, status: UInt16, fields: Fields, policy: CachePolicy, now: WallTime
) -> Storability {
    switch decideStoring(
        of: request, status: status, fields: fields, policy: policy, requestTime: now, responseTime: now)
    {
    case .store: .store
    case .doNotStore(let reason): .doNotStore(reason)
    }
}

private func objectionOfRequest(_ request: CacheRequest) -> NotStoredReason? {
    if request.method != .get { return .method }
    if request.hasBody { return .requestBody }
    if request.directives.noStore { return .requestNoStore }
    return nil
}

private func objectionOfStatus(_ status: UInt16, _ directives: ResponseDirectives) -> NotStoredReason? {
    switch status {
    case ..<200: .interimStatus
    case 206: .partialContent
    case 304: .notModified
    // 428, 429, 431, 511 "MUST NOT be stored by a cache" (RFC 6585); the others answer conditions, ranges, expectations and
    // credentials that are no part of the key: whoever asks next has others.
    case 407, 412, 416, 417, 428, 429, 431, 511: .aboutRequest
    default: directives.mustUnderstand && !isUnderstood(status) ? .statusNotUnderstood : nil
    }
}

private func objectionOfDirectives(
    _ directives: ResponseDirectives, status: UInt16, _ request: CacheRequest
) -> NotStoredReason? {
    // §5.2.2.3: where the status is understood, must-understand takes no-store back: it is for those who know neither.
    if directives.noStore, !directives.mustUnderstand { return .noStore }
    if directives.isPrivate { return .isPrivate }
    if request.hasAuthorization, !allowsAuthorization(directives) { return .authorization }
    return nil
}

/// §3, last rule: something says that it may be reused. A status unknown to us will do where it is explicit.
private func isCacheable(_ response: CachedResponse) -> Bool {
    if response.directives.isPublic || isHeuristicallyCacheable(response.status) { return true }
    switch response.lifetime {
    case .explicit: return true
    case .heuristic, .unknown: return false
    }
}

/// What the RFC would allow and we do not do.
private func objectionOfOurs(_ response: CachedResponse, _ fields: Fields) -> NotStoredReason? {
    // A cookie is mostly one client's own: shared only where the origin means a shared cache.
    if fields.contains(.setCookie), !response.directives.isPublic, response.directives.sMaxAge == nil {
        return .setCookie
    }
    if response.vary == .star { return .varyStar }
    // Stale at once, or never to be reused unvalidated, with nothing to validate by: room for nothing.
    if !response.hasValidator, response.directives.noCache || response.lifetimeSeconds <= .zero {
        return .neverReusable
    }
    return nil
}

/// The statuses whose rules for caches we follow (RFC 9110 §15): all that it defines but 206, which only an answer to a
/// range is, and 304.
private func isUnderstood(_ status: UInt16) -> Bool {
    switch status {
    case 200...205, 300...303, 305, 307, 308, 400...417, 421, 422, 426, 500...505: true
    default: false
    }
}
