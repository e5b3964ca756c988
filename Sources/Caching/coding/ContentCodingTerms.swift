package import Message

/// The coding of stored content (RFC 9110 §8.4).
package enum StoredCoding: Sendable, Equatable {
    /// No coding: there is no `Content-Encoding`.
    case identity
    case single(ContentCoding)
    /// Several codings, or one that Larder does not know. The content is passed on unchanged.
    case opaque

    /// `identity` as a list member has no meaning here (§8.4.1 reserves the word for `Accept-Encoding`).
    package init(of fields: Fields) {
        guard let value = fields.joined(.contentEncoding) else {
            self = .identity
            return
        }
        var coding = StoredCoding.identity
        forEachListElement(value[...]) { name in
            let member = ContentCoding(name: name)
            guard member != .identity else { return }
            coding = coding == .identity ? member.map(StoredCoding.single) ?? .opaque : .opaque
        }
        self = coding
    }
}

private func isText(_ fields: Fields) -> Bool { fields.first(.contentType).map(isCompressibleType) ?? false }

/// Which changes of coding a stored response allows. Computed when the response is stored, for all clients.
///
/// A change of coding requires that the response does not say `no-transform` (RFC 9110 §7.7), and that it is whole: a part of
/// compressed content cannot be decoded on its own.
package struct CodingTerms: Sendable, Equatable {
    package let coding: StoredCoding
    /// The content is gzip, and clients that do not accept gzip get it decompressed.
    package private(set) var isInflatable: Bool
    /// The content is gzip, and text once it is decoded.
    let isText: Bool
    /// The head says gzip, but decompressing failed. Only clients that accept gzip get the response, as it is.
    package private(set) var isUndecodable = false
    /// The content has no coding. The rules know whether its type is worth compressing.
    package let isCompressible: Bool

    /// - Parameters:
    ///   - fields: the stored fields.
    ///   - uri: the URI of the request. Its path tells files that *are* gzip (`.tar.gz`) from files that were sent as gzip.
    package init(_ stored: CachedResponse, fields: Fields, uri: some Collection<UInt8>) {
        coding = StoredCoding(of: fields)
        let isWhole = stored.status != 206 && !fields.contains(.contentRange)
        let mayChange =
            isWhole && !stored.directives.noTransform && stored.status != 204
            && stored.status != 304
        // Nobody asks that of content without a coding.
        isText = mayChange && coding == .single(.gzip) && Caching.isText(fields)
        isInflatable =
            mayChange && coding == .single(.gzip) && !namesCompressedFile(uri)
            && (stored.vary.nominatesAcceptEncoding || isText)
        isCompressible = mayChange && coding == .identity
    }

    /// The terms after decompressing failed.
    package var undecodable: CodingTerms {
        var result = self
        result.isInflatable = false
        result.isUndecodable = true
        return result
    }

    /// Whether the client accepts the stored form. If the stored form cannot be decoded, Larder asks the origin for other clients.
    package func suits(_ accepted: AcceptedCodings) -> Bool { !isUndecodable || accepted.accepts(.gzip) }

    /// Every client gets the stored bytes, so there is nothing to choose. Every hit tests this first.
    package func isFixed(_ compression: CompressionUse) -> Bool {
        !isInflatable && (compression == .no || !isCompressible)
    }
}

extension Vary {
    package var nominatesAcceptEncoding: Bool {
        guard case .names(let names) = self else { return false }
        return names.contains { $0.name == .acceptEncoding }
    }
}
