package import Message

/// What of a response's fields goes into the store (RFC 9111 §3.1): all in their order, but for those of the connection,
/// those for the proxy itself, and those that `private="…"` (§5.2.2.7) or `no-cache="…"` (§5.2.2.4) names.
///
/// A field that may not be reused without validation is left out for good: a validation brings it anew.
package func storedFields(of fields: Fields) -> Fields {
    var unwanted = ResponseDirectives(fields)
    for value in fields.all(.connection) {
        forEachListElement(value) { unwanted.privateFields.append($0.map(asciiLowercased)) }
    }
    let names = unwanted.privateFields + unwanted.noCacheFields
    return fields.dropping { line in
        isNeverStored(line.name) || names.contains { equalsIgnoringCase(fields.name(of: line), $0) }
    }
}

private func isNeverStored(_ name: FieldName) -> Bool {
    switch name {
    case .connection, .keepAlive, .proxyConnection, .te, .trailer, .transferEncoding, .upgrade, .http2Settings: true
    case .proxyAuthenticate, .proxyAuthenticationInfo, .proxyAuthorization: true
    default: false
    }
}
