package import Message

/// Whether a method with that answer makes what is stored for its target invalid (RFC 9111 §4.4): an unsafe method, one we do
/// not know included, and an answer that is no error.
package func invalidates(method: Method, status: UInt16) -> Bool {
    !method.isSafe && method != .connect && (200...399).contains(status)
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
