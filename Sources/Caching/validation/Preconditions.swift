package import Message

/// The result of evaluating a request's conditional fields against a stored response (RFC 9110 §13.2.2, RFC 9111 §4.3.2).
package enum Precondition: Sendable, Equatable, CaseIterable {
    /// There is no condition that applies.
    case none
    /// The client already has the response: answer with 304.
    case notModified
    /// `If-Match` or `If-Unmodified-Since` is false for the stored response. A cache must not answer 412 for the origin (§13.1.1 leaves
    /// these two to it): forward the request unchanged.
    case failed
    /// The conditions are true: answer as if there were none.
    case passed
}

/// - Parameters:
///   - request: the fields of the request, as offsets into `bytes`.
///   - stored: a response that is fresh or was just validated, selected by key and variant.
///   - now: needed for years with two digits.
package func evaluate(
    _ request: FieldSection, bytes: borrowing Span<UInt8>, method: Method, against stored: CachedResponse, now: WallTime
) -> Precondition {
    // §13.2.1: conditions are ignored if the response without them would not be a success.
    guard StatusClass(stored.status) == .successful, method == .get || method == .head else { return .none }
    let origin = evaluateForOrigin(request, bytes, stored, now)
    guard origin != .failed else { return .failed }
    if let value = request.joined(.ifNoneMatch, bytes) {
        return isNoneMatch(EntityTagList(parsing: value), stored) ? .passed : .notModified
    }
    if let since = request.joined(.ifModifiedSince, bytes).flatMap({ parseHTTPDate($0, now: now) }) {
        // §4.3.2: if it is not known when the response was modified, its Date counts instead.
        return (stored.lastModified ?? stored.date) <= since ? .notModified : .passed
    }
    return origin
}

package func evaluate(_ request: Fields, method: Method, against stored: CachedResponse, now: WallTime) -> Precondition
{
    evaluate(request.section, bytes: request.bytes.span, method: method, against: stored, now: now)
}

/// §13.2.2 steps 1 and 2: the conditions that guard against lost updates.
private func evaluateForOrigin(
    _ request: FieldSection, _ bytes: borrowing Span<UInt8>, _ stored: CachedResponse, _ now: WallTime
) -> Precondition {
    if let value = request.joined(.ifMatch, bytes) {
        switch EntityTagList(parsing: value) {
        case .any: return .passed
        case .some(let list): return stored.eTag.map(list.containsStrong) ?? false ? .passed : .failed
        case nil: return .failed
        }
    }
    guard let since = request.joined(.ifUnmodifiedSince, bytes).flatMap({ parseHTTPDate($0, now: now) }) else {
        return .none
    }
    // §13.1.4: without a modification date the condition is ignored.
    guard let lastModified = stored.lastModified else { return .none }
    return lastModified <= since ? .passed : .failed
}

private func isNoneMatch(_ list: EntityTagList?, _ stored: CachedResponse) -> Bool {
    guard let list else { return true }
    if list == .any { return false }
    return stored.eTag.map { !list.containsWeak($0) } ?? true
}
