package import Message

/// Whether a response is stored, together with what is known about it, which is computed only once.
package enum StoringDecision: Sendable {
    case store(CachedResponse)
    case doNotStore(NotStoredReason)
}

/// Applies the rules of §3 in their order, then Larder's own. Cheap rules come first: most responses that are not stored say so themselves.
///
/// - Parameters:
///   - status: the status of the response as it came from the origin.
///   - fields: the fields of the response as they came from the origin.
///   - requestTime: when the request was sent.
///   - responseTime: when the head of the response arrived.
///   - target: the target of the request. Without it, the response to a POST is not stored (`answersGet`).
package func decideStoring(
    of request: CacheRequest, status: UInt16, fields: Fields, policy: CachePolicy,
    handling: CacheHandling = CacheHandling(), particulars: HandlingParticulars? = nil, requestTime: WallTime,
    responseTime: WallTime, target: TargetURI? = nil
) -> StoringDecision {
    if handling.use.contains(.noWrite) { return .doNotStore(.policy) }
    if let reason = objectionOfRequest(request, status, fields, target) { return .doNotStore(reason) }
    // Every validation that brings nothing new ends here.
    if status == 304 { return .doNotStore(.notModified) }
    let heeded = HeededDirectives(fields, handling)
    if let reason = objectionOfStatus(status, heeded.directives) { return .doNotStore(reason) }
    // RFC 9110 §14.4: the field has no meaning here. A server that mixes up the status sends a part, and it must not pass for the whole.
    if fields.contains(.contentRange) { return .doNotStore(.partStatus) }
    if let reason = objectionOfDirectives(heeded.directives, handling, request) { return .doNotStore(reason) }
    if !handling.mayShare(status) { return .doNotStore(.aboutRequest) }
    if handling.isForFile, isPage(fields) { return .doNotStore(.page) }
    let received = fields
    let fields = received.withoutCookies(of: particulars)
    var response = CachedResponse(
        status: status, fields: fields, heeded: consume heeded, requestTime: requestTime, responseTime: responseTime,
        policy: policy, handling: handling)
    guard isCacheable(response) else { return .doNotStore(.notCacheable) }
    if let reason = objectionOfOurs(response, fields, handling) { return .doNotStore(reason) }
    // RFC 9110 §9.3.3: the response to a POST is stored only with a lifetime from the origin.
    if request.method == .post, !response.lifetime.isByOrigin { return .doNotStore(.method) }
    response.needed = StoringPermissions(toStore: response, request, received: received, stored: fields, handling)
    return .store(response)
}

/// Returns only the decision.
package func storability(
    of request: CacheRequest, status: UInt16, fields: Fields, policy: CachePolicy,
    handling: CacheHandling = CacheHandling(), particulars: HandlingParticulars? = nil, now: WallTime,
    target: TargetURI? = nil
) -> Storability {
    switch decideStoring(
        of: request, status: status, fields: fields, policy: policy, handling: handling, particulars: particulars,
        requestTime: now, responseTime: now, target: target)
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

/// Whether the response to a POST is what a GET of its target would return now (RFC 9110 §9.3.3): its `Content-Location` is the target.
/// Only 200 and 203 are accepted: no other status would make sense in a response to that GET.
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
    // 428, 429, 431 and 511 "MUST NOT be stored by a cache" (RFC 6585). The others are about conditions, ranges, expectations and
    // credentials, which are not part of the key: other requests have others.
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

/// Why nothing of an answer to the request may be stored, whatever the answer is (RFC 9111 §5.2.1.5, `no-write`).
package func objectionToAnswers(to request: CacheRequest, handling: CacheHandling) -> NotStoredReason? {
    if handling.use.contains(.noWrite) { return .policy }
    return request.directives.noStore ? .requestNoStore : nil
}

/// Why the bytes of a 206 must not join those that are stored (RFC 9111 §3.3): what the request or the answer says holds for any part. An answer to
/// `If-Range` that says nothing about caching leaves it at what the whole said (RFC 9110 §15.3.7).
package func objectionToBytes(
    of request: CacheRequest, fields: Fields, handling: CacheHandling
) -> NotStoredReason? {
    if let objection = objectionToAnswers(to: request, handling: handling) { return objection }
    guard fields.contains(.cacheControl) else { return nil }
    return objectionOfDirectives(HeededDirectives(fields, handling).directives, handling, request)
}

func objectionOfOrigin(_ directives: ResponseDirectives) -> NotStoredReason? {
    // §5.2.2.3: a cache that understands the status ignores no-store beside must-understand, which is meant for caches that do not.
    if directives.noStore, !directives.mustUnderstand { return .noStore }
    return directives.isPrivate ? .isPrivate : nil
}

/// Why a stored response must not stay that a 304 or the response to a HEAD has renewed (§4.3.4): the origin withdraws the permission to
/// store it, or to give it to all who could have it. Returns nil if it may stay.
/// - Parameters:
///   - stored: what was known about the response before.
///   - fields: those of the renewed response.
///   - handling: that of the renewed response. Another one may have been in force when it was renewed.
///   - limits: those of a head that is received. Updates add fields, and what no client would accept must not grow in the store.
package func objectionToKeeping(
    _ renewed: CachedResponse, _ fields: Fields, insteadOf stored: CachedResponse, handling: CacheHandling,
    limits: Limits
) -> NotStoredReason? {
    if renewed.vary == .star { return .varyStar }
    // It may have come in answer to a request with credentials, which is not remembered (§3.5).
    if stored.terms.allowsAuthorization, !renewed.terms.allowsAuthorization { return .authorization }
    if isTooLarge(fields, limits) { return .headTooLarge }
    if renewed.hasOriginDirectives, handling.heedsOriginDirectives { return objectionOfOrigin(renewed.directives) }
    return objectionOfOrigin(HeededDirectives(fields, handling).directives)
}

/// Whether the fields exceed the limits of a received head. `Date` and `Via`, which Larder adds to it, do not count.
private func isTooLarge(_ fields: Fields, _ limits: Limits) -> Bool {
    if fields.lines.count > limits.fieldCountMax + 2 { return true }
    let bytesMax = limits.headBytesMax + 128
    // There may be bytes that belong to no line, so the lines are counted only where it matters.
    guard fields.bytes.count > bytesMax else { return false }
    return fields.lines.reduce(0) { $0 + $1.nameRange.count + $1.valueRange.count + 4 } > bytesMax
}

/// §3, last rule: something says that the response may be reused. If Larder does not know the status, that must be explicit.
private func isCacheable(_ response: CachedResponse) -> Bool {
    if response.directives.isPublic || isHeuristicallyCacheable(response.status) { return true }
    switch response.lifetime {
    case .explicit: return true
    case .heuristic, .unknown: return false
    }
}

/// Responses that the RFC allows to store and Larder does not.
private func objectionOfOurs(
    _ response: CachedResponse, _ fields: Fields, _ handling: CacheHandling
) -> NotStoredReason? {
    if fields.contains(.setCookie), !maySetCookie(response, handling) { return .setCookie }
    if response.vary == .star { return .varyStar }
    // The response is stale at once, or must never be reused without validation, and nothing can validate it. It is only useful for a
    // policy that serves any stored response.
    let isUseless = response.directives.noCache || response.lifetimeSeconds <= .zero
    if !response.hasValidator, isUseless, handling.use.isDisjoint(with: [.cacheFirst, .cacheOnly, .staleOnError]) {
        return .neverReusable
    }
    return nil
}

/// Whether a response may set a cookie. Most cookies belong to one client, so the response is shared only if the origin means shared
/// caches, or if a rule allows it and there is an explicit lifetime, which includes the rule's `ttl`. A `Set-Cookie` that
/// `private="Set-Cookie"` keeps out of the store does no harm.
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

/// The statuses whose caching rules Larder follows (RFC 9110 §15): all that the RFC defines except 206, which is only a response to a
/// range, and 304.
private func isUnderstood(_ status: UInt16) -> Bool {
    switch status {
    case 200...205, 300...303, 305, 307, 308, 400...417, 421, 422, 426, 500...505: true
    default: false
    }
}
