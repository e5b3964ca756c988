package import Message

/// The head of a stored response in another coding than it is stored in.
///
/// - `ETag`: another representation may not have the same strong tag (RFC 9110 §8.8.3.3). It becomes weak: still good for
///   `If-None-Match`, which compares weakly, so a client's copy in either coding is confirmed by 304; no longer good for ranges
///   and `If-Match`, as it should be.
/// - `Accept-Ranges` goes: ranges of it are not served. So do the length and the digests of bytes that are not sent
///   (`Content-Digest`, `Repr-Digest`: RFC 9530 §2, §3; `Digest`, `Content-MD5`: their forerunners).
/// - `Vary` names `Accept-Encoding` (§12.5.5), for caches behind this one.
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

/// Whether a response sent as stored needs a line `Vary: Accept-Encoding` of ours, because another client would get
/// another form of it (RFC 9110 §12.5.5).
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
