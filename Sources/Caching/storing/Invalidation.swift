package import Message

/// Whether a request with this response invalidates the stored responses for its target (RFC 9111 §4.4): the method is unsafe or its
/// safety is unknown, which includes overridden methods, and the response is not an error.
package func invalidates(_ request: CacheRequest, status: UInt16) -> Bool {
    !request.isSafe && request.method != .connect && isNoError(status)
}

/// The URIs to invalidate: the target, and those in `Location` and `Content-Location`.
///
/// Only URIs with the same origin as the target (scheme, host, port) are returned, so no host can remove the responses of another.
/// Returns an empty array if the status is an error.
package func invalidatedURIs(target: TargetURI, status: UInt16, fields: Fields) -> [TargetURI] {
    guard isNoError(status) else { return [] }
    var result = [target]
    for name in [FieldName.location, .contentLocation] {
        for value in fields.all(name) {
            guard let uri = target.resolving(value), uri.isSameOrigin(as: target), !result.contains(uri) else {
                continue
            }
            result.append(uri)
        }
    }
    return result
}

/// §4.4: a 2xx or 3xx.
private func isNoError(_ status: UInt16) -> Bool {
    switch StatusClass(status) {
    case .successful, .redirection: true
    case .informational, .clientError, .serverError: false
    }
}
