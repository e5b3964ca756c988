package import Message

/// Whether a request with this response invalidates the stored responses for its target (RFC 9111 §4.4): the method is unsafe or its
/// safety is unknown, which includes overridden methods, and the response is not an error.
package func invalidates(_ request: CacheRequest, status: UInt16) -> Bool {
    !request.isSafe && request.method != .connect && (200...399).contains(status)
}

/// The URIs to invalidate: the target, and those in `Location` and `Content-Location`.
///
/// Only URIs with the same origin as the target (scheme, host, port) are returned, so no host can remove the responses of another.
/// Returns an empty array if the status is an error.
package func invalidatedURIs(target: TargetURI, status: UInt16, fields: Fields) -> [TargetURI] {
    guard (200...399).contains(status) else { return [] }
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
