package import Message

/// The fields of a response that are stored (RFC 9111 §3.1): all of them in their order, except those of the connection, those for the
/// proxy itself, and those that `private="…"` (§5.2.2.7) or `no-cache="…"` (§5.2.2.4) names.
///
/// A field that must not be reused without validation is never stored: each validation brings it again. If fields are left out, the first
/// client still gets all of them, because they are meant for it.
/// - Parameters:
///   - response: what is known about the response: its directives may come from a targeted field.
///   - particulars: name the cookies that are not stored.
package func storedFields(
    of fields: Fields, as response: CachedResponse, without particulars: HandlingParticulars? = nil
) -> Fields {
    let fields = fields.withoutCookies(of: particulars)
    // Most responses name no field that is not to be stored, and their directives need not be copied.
    if !response.hasFieldLists, fields.present.isDisjoint(with: neverStored) { return fields }
    return storedFields(of: fields, under: response.directives)
}

/// The same where nothing more is known about the response.
package func storedFields(of fields: Fields) -> Fields { storedFields(of: fields, under: ResponseDirectives(fields)) }

private func storedFields(of fields: Fields, under directives: ResponseDirectives) -> Fields {
    var unwanted = directives
    for value in fields.all(.connection) {
        forEachListElement(value) { unwanted.privateFields.append($0.map(asciiLowercased)) }
    }
    if !unwanted.hasFieldLists { return fields.dropping { isNeverStored($0.name) } }
    let names = unwanted.privateFields + unwanted.noCacheFields
    return fields.dropping { line in
        isNeverStored(line.name) || names.contains { equalsIgnoringCase(fields.name(of: line), $0) }
    }
}

/// Removes the fields that a list in the stored `Cache-Control` names. An update without `Cache-Control` may have brought them.
func droppingListed(_ fields: Fields) -> Fields {
    let directives = ResponseDirectives(fields)
    guard directives.hasFieldLists else { return fields }
    let names = directives.privateFields + directives.noCacheFields
    return fields.dropping { line in names.contains { equalsIgnoringCase(fields.name(of: line), $0) } }
}

func isNeverStored(_ name: FieldName) -> Bool { neverStored.contains(name) }

private let neverStored: FieldNameSet = [
    .connection, .keepAlive, .proxyConnection, .te, .trailer, .transferEncoding, .upgrade, .http2Settings,
    .proxyAuthenticate, .proxyAuthenticationInfo, .proxyAuthorization,
]
