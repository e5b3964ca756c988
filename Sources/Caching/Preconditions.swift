package import Message

/// What a request's conditional fields come to when the stored response answers them (RFC 9110 §13.2.2, RFC 9111 §4.3.2).
package enum Precondition: Sendable, Equatable, CaseIterable {
    /// It has none that apply.
    case none
    /// 304: the client has it already.
    case notModified
    /// `If-Match` or `If-Unmodified-Since` does not hold of the stored response. A cache may not say 412 for the
    /// origin (§13.1.1 leaves these two to it): forward the request as it is.
    case failed
    /// They hold: answer as though they were not there.
    case passed
}

/// - Parameters:
///   - request: the request's fields, offsets into `bytes`.
///   - stored: fresh, or just validated; selected by the request's key and variant.
///   - now: for two-digit years.
package func evaluate(
    _ request: FieldSection, bytes: borrowing Span<UInt8>, method: Method, against stored: CachedResponse, now: WallTime
) -> Precondition {
    // §13.2.1: conditions are ignored where the answer without them is not a success.
    guard (200...299).contains(stored.status), method == .get || method == .head else { return .none }
    let origin = evaluateForOrigin(request, bytes, stored, now)
    guard origin != .failed else { return .failed }
    if let value = request.joined(.ifNoneMatch, bytes) {
        return isNoneMatch(EntityTagList(parsing: value), stored) ? .passed : .notModified
    }
    if let since = request.joined(.ifModifiedSince, bytes).flatMap({ parseHTTPDate($0, now: now) }) {
        // §4.3.2: where nothing says when it changed, its Date stands in.
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
    // §13.1.4: without a modification date there is nothing to compare.
    guard let lastModified = stored.lastModified else { return .none }
    return lastModified <= since ? .passed : .failed
}

private func isNoneMatch(_ list: EntityTagList?, _ stored: CachedResponse) -> Bool {
    guard let list else { return true }
    if list == .any { return false }
    return stored.eTag.map { !list.containsWeak($0) } ?? true
}
