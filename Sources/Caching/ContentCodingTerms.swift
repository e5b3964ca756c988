package import Message

/// The coding that stored content is in (RFC 9110 §8.4).
package enum StoredCoding: Sendable, Equatable {
    /// As it is: no `Content-Encoding`.
    case identity
    case single(ContentCoding)
    /// Several in a row, or one that Larder does not know: passed on, never touched.
    case opaque

    /// `identity` among the members says nothing (§8.4.1 reserves the word for `Accept-Encoding`).
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

/// What may be done about the coding of one stored response: computed when it is stored, whoever asks for it later.
///
/// Other codings of it are made by this proxy, so it must not say `no-transform` (RFC 9110 §7.7), and it must be the whole:
/// a part of compressed content is nothing that can be read by itself.
package struct CodingTerms: Sendable, Equatable {
    package let coding: StoredCoding
    /// It is gzip, and clients that do not accept that get it inflated.
    package private(set) var isInflatable: Bool
    /// It says that it is gzip, and inflating it failed: it is served only as it is, to those who accept gzip.
    package private(set) var isUndecodable = false
    /// It is as it is; whether its type gets smaller, the rules know.
    package let isCompressible: Bool

    /// - Parameters:
    ///   - fields: the stored fields.
    ///   - uri: of the request it answered; its path tells files that *are* gzip (`.tar.gz`) from those sent as gzip.
    package init(_ stored: CachedResponse, fields: Fields, uri: some Collection<UInt8>) {
        coding = StoredCoding(of: fields)
        let isWhole = stored.status != 206 && !fields.contains(.contentRange)
        let mayChange =
            isWhole && !stored.directives.noTransform && stored.status != 204
            && stored.status != 304
        isInflatable =
            mayChange && coding == .single(.gzip)
            && (stored.vary.nominatesAcceptEncoding || (isText(fields) && !namesGzipFile(uri)))
        isCompressible = mayChange && coding == .identity
    }

    /// The same after inflating failed.
    package var undecodable: CodingTerms {
        var result = self
        result.isInflatable = false
        result.isUndecodable = true
        return result
    }

    /// Whether the client takes the stored form. Others have to be asked for at the origin where it cannot be decoded.
    package func suits(_ accepted: AcceptedCodings) -> Bool { !isUndecodable || accepted.accepts(.gzip) }

    /// Everybody gets the stored bytes: nothing is to be chosen. Tested before anything else of this, on every hit.
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
