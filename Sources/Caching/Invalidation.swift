package import Message

/// Whether a request with that response invalidates what is stored for its target (RFC 9111 §4.4): its method is unsafe or of
/// unknown safety, as every overridden method is, and the response is no error.
package func invalidates(_ request: CacheRequest, status: UInt16) -> Bool {
    !request.isSafe && request.method != .connect && (200...399).contains(status)
}

/// What to invalidate then: the target, and where it says so, `Location` and `Content-Location`.
///
/// Of these only what has the target's origin (scheme, host, port): no host can empty another's cache. Empty where
/// the status is an error's.
package func invalidatedURIs(target: TargetURI, status: UInt16, fields: Fields) -> [TargetURI] {
    guard (200...399).contains(status) else { return [] }
    var result = [target]
    for name in [FieldName.location, .contentLocation] {
        for value in fields.all(name) {
            guard let uri = target.resolving(value), isSameOrigin(uri, target), !result.contains(uri) else { continue }
            result.append(uri)
        }
    }
    return result
}

private func isSameOrigin(_ a: TargetURI, _ b: TargetURI) -> Bool {
    a.scheme == b.scheme && a.host == b.host && a.port == b.port
}
