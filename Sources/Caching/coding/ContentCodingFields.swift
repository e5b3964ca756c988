package import Message

/// The head of a stored response that is sent in another coding than it is stored in.
///
/// - `ETag`: another representation must not have the same strong tag (RFC 9110 §8.8.3.3), so the tag becomes weak. `If-None-Match`
///   compares weakly, so a 304 still confirms a client's copy in either coding. Ranges and `If-Match` compare strongly and do not match,
///   which is right.
/// - `Accept-Ranges` is removed, because ranges of this form are not served. So are the length and the digests of the bytes that are
///   not sent (`Content-Digest`, `Repr-Digest`: RFC 9530 §2, §3; `Digest` and `Content-MD5`, their predecessors).
/// - `Vary` names `Accept-Encoding` (§12.5.5), for caches between Larder and the client.
package func codedFields(of stored: Fields, _ choice: CodingChoice) -> Fields {
    guard choice.isTransformed else { return stored }
    let tag = stored.first(.eTag).flatMap { EntityTag(parsing: $0) }
    var fields = stored.dropping { line in
        switch line.name {
        case .contentEncoding, .contentLength, .acceptRanges, .eTag: true
        case .other: isDigest(stored.name(of: line))
        default: false
        }
    }
    if let tag { fields.append(.eTag, EntityTag(isWeak: true, opaque: tag.opaque).wire) }
    if choice != .inflated { fields.append(.contentEncoding, "gzip") }
    if !namesAcceptEncoding(fields) { fields.append(.vary, "Accept-Encoding") }
    return fields
}

/// The head of an index from which releases were removed. It is another representation, so it has a tag of its own and no `Last-Modified`: the
/// index changes when a release opens, and the origin's time does not. The body has no coding.
package func filteredFields(of stored: Fields, tag: [UInt8]) -> Fields {
    var fields = stored.dropping { line in
        switch line.name {
        case .contentEncoding, .contentLength, .acceptRanges, .eTag, .lastModified: true
        case .other: isDigest(stored.name(of: line))
        default: false
        }
    }
    fields.append(.eTag, tag)
    return fields
}

/// Whether Larder adds `Vary: Accept-Encoding` to a response that is sent as it is stored, because another client would get it in
/// another form (RFC 9110 §12.5.5).
package func needsVary(_ terms: CodingTerms, _ stored: Vary, compression: CompressionUse) -> Bool {
    !terms.isFixed(compression) && stored != .star && !stored.nominatesAcceptEncoding
}

private func namesAcceptEncoding(_ fields: Fields) -> Bool {
    let vary = Vary(fields)
    return vary == .star || vary.nominatesAcceptEncoding
}

private func isDigest(_ name: ArraySlice<UInt8>) -> Bool {
    let names: [StaticString] = ["Content-Digest", "Repr-Digest", "Digest", "Content-MD5"]
    return names.contains { equalsIgnoringCase(name, $0) }
}
