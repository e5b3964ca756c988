package import Message

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
///   - target: of the request; where it is given, the answer to a POST may be stored too: `answersGet`.
package func decideStoring(
    of request: CacheRequest, status: UInt16, fields: Fields, policy: CachePolicy,
    handling: CacheHandling = CacheHandling(), requestTime: WallTime, responseTime: WallTime,
    target: TargetURI? = nil
) -> StoringDecision {
    if handling.use.contains(.noWrite) { return .doNotStore(.policy) }
    if let reason = objectionOfRequest(request, status, fields, target) { return .doNotStore(reason) }
    // Every validation that finds nothing new ends here.
    if status == 304 { return .doNotStore(.notModified) }
    let heeded = HeededDirectives(fields, handling)
    let early =
        objectionOfStatus(status, heeded.directives)
        ?? objectionOfDirectives(heeded.directives, handling, request)
    if let early { return .doNotStore(early) }
    let response = CachedResponse(
        status: status, fields: fields, heeded: heeded, requestTime: requestTime, responseTime: responseTime,
        policy: policy, handling: handling)
    guard isCacheable(response) else { return .doNotStore(.notCacheable) }
    if let reason = objectionOfOurs(response, fields, handling) { return .doNotStore(reason) }
    // RFC 9110 §9.3.3: only with a lifetime that the origin gave.
    if request.method == .post, !response.lifetime.isByOrigin { return .doNotStore(.method) }
    return .store(response)
}

/// The decision alone.
package func storability(
    of request: CacheRequest, status: UInt16, fields: Fields, policy: CachePolicy,
    handling: CacheHandling = CacheHandling(), now: WallTime, target: TargetURI? = nil
) -> Storability {
    switch decideStoring(
        of: request, status: status, fields: fields, policy: policy, handling: handling, requestTime: now,
        responseTime: now, target: target)
    {
    case .store: .store
    case .doNotStore(let reason): .doNotStore(reason)
    }
}

private func objectionOfRequest(
    _ request: CacheRequest, _ status: UInt16, _ fields: Fields, _ target: TargetURI?
) -> NotStoredReason? {
    if request.overridesMethod { return .methodOverride }
    switch request.method {
    case .get: if request.hasBody { return .requestBody }
    case .post: if !answersGet(status, fields, target) { return .method }
    case .other, .head, .put, .delete, .connect, .options, .trace, .patch: return .method
    }
    return request.directives.noStore ? .requestNoStore : nil
}

/// Whether the answer to a POST is what a GET of its target would get now (RFC 9110 §9.3.3): its `Content-Location` is
/// the target. Only a 200 or 203 says so of its own content: another status would be a strange answer to a GET.
private func answersGet(_ status: UInt16, _ fields: Fields, _ target: TargetURI?) -> Bool {
    guard status == 200 || status == 203, let target else { return false }
    let locations = fields.all(.contentLocation)
    return locations.count == 1 && target.resolving(locations[0]) == target
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
    _ directives: ResponseDirectives, _ handling: CacheHandling, _ request: CacheRequest
) -> NotStoredReason? {
    if let reason = objectionOfOrigin(directives) { return reason }
    if request.hasAuthorization, !allowsAuthorization(directives, handling) { return .authorization }
    return nil
}

private func objectionOfOrigin(_ directives: ResponseDirectives) -> NotStoredReason? {
    // §5.2.2.3: where the status is understood, must-understand takes no-store back: it is for those who know neither.
    if directives.noStore, !directives.mustUnderstand { return .noStore }
    return directives.isPrivate ? .isPrivate : nil
}

/// Why a stored response may not stay, now that a 304 or the answer to a HEAD has brought these fields (§4.3.4): the origin takes
/// back that it may be stored. Nil: it stays.
package func objectionToKeeping(_ fields: Fields, handling: CacheHandling) -> NotStoredReason? {
    objectionOfOrigin(HeededDirectives(fields, handling).directives)
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
private func objectionOfOurs(
    _ response: CachedResponse, _ fields: Fields, _ handling: CacheHandling
) -> NotStoredReason? {
    if fields.contains(.setCookie), !maySetCookie(response, handling) { return .setCookie }
    if response.vary == .star { return .varyStar }
    // Stale at once, or never to be reused unvalidated, with nothing to validate by: room for nothing, but for who wants
    // whatever there is.
    let isUseless = response.directives.noCache || response.lifetimeSeconds <= .zero
    if !response.hasValidator, isUseless, handling.use.isDisjoint(with: [.cacheFirst, .cacheOnly, .staleOnError]) {
        return .neverReusable
    }
    return nil
}

/// A cookie is mostly one client's own: shared only where the origin means a shared cache, or where a rule says so and
/// there is an explicit lifetime, the rule's own `ttl` included. What `private="Set-Cookie"` keeps out of the store does no harm.
package func maySetCookie(_ response: CachedResponse, _ handling: CacheHandling) -> Bool {
    let directives = response.directives
    if directives.isPublic || directives.sMaxAge != nil { return true }
    let isLeftOut = (directives.privateFields + directives.noCacheFields).contains {
        $0.elementsEqual("set-cookie".utf8)
    }
    if isLeftOut { return true }
    guard handling.storesCookies, case .explicit(_, let source) = response.lifetime else { return false }
    return source != .negative
}

/// The statuses whose rules for caches we follow (RFC 9110 §15): all that it defines but 206, which only an answer to a
/// range is, and 304.
private func isUnderstood(_ status: UInt16) -> Bool {
    switch status {
    case 200...205, 300...303, 305, 307, 308, 400...417, 421, 422, 426, 500...505: true
    default: false
    }
}
