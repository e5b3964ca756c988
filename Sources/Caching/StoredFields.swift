package import Message

/// What of a response's fields goes into the store (RFC 9111 §3.1): all in their order, but for those of the connection,
/// those for the proxy itself, and those that `private="…"` (§5.2.2.7) or `no-cache="…"` (§5.2.2.4) names.
///
/// A field that may not be reused without validation is left out for good: a validation brings it anew.
///
/// Where the result has fewer lines than the end-to-end fields had, the first client still gets them all: what is left
/// out is its own.
/// - Parameter response: what is known of it, where that is known: its directives may come from a targeted field.
package func storedFields(of fields: Fields, as response: CachedResponse? = nil) -> Fields {
    var unwanted = response?.directives ?? ResponseDirectives(fields)
    for value in fields.all(.connection) {
        forEachListElement(value) { unwanted.privateFields.append($0.map(asciiLowercased)) }
    }
    if !unwanted.hasFieldLists { return fields.dropping { isNeverStored($0.name) } }
    let names = unwanted.privateFields + unwanted.noCacheFields
    return fields.dropping { line in
        isNeverStored(line.name) || names.contains { equalsIgnoringCase(fields.name(of: line), $0) }
    }
}

/// Those that a list in the stored `Cache-Control` names, which an update without `Cache-Control` may have brought.
func droppingListed(_ fields: Fields) -> Fields {
    let directives = ResponseDirectives(fields)
    guard directives.hasFieldLists else { return fields }
    let names = directives.privateFields + directives.noCacheFields
    return fields.dropping { line in names.contains { equalsIgnoringCase(fields.name(of: line), $0) } }
}

func isNeverStored(_ name: FieldName) -> Bool {
    switch name {
    case .connection, .keepAlive, .proxyConnection, .te, .trailer, .transferEncoding, .upgrade, .http2Settings: true
    case .proxyAuthenticate, .proxyAuthenticationInfo, .proxyAuthorization: true
    default: false
    }
}
