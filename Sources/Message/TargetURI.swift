/// An absolute `http` or `https` URI with its own storage, from a command line or from a Location or Content-Location field.
///
/// A fragment is dropped, because it is never sent. Userinfo is refused (RFC 9110 §4.2.4).
package struct TargetURI: Sendable, Hashable {
    package let scheme: Scheme
    /// The host in lower case, without a dot at its end. An IP literal has its brackets.
    package let host: String
    package let port: UInt16
    /// Path and query as written, with `%XX` in place of bytes above 0x7F. Begins with "/".
    package let pathAndQuery: [UInt8]

    /// Returns nil if the text is not an absolute http or https URI.
    package init?(_ bytes: some Collection<UInt8>) {
        let text = Array(bytes.prefix { $0 != 0x23 })
        guard text.allSatisfy(isFieldVchar) else { return nil }
        let scheme: Scheme
        let start: Int
        if equalsIgnoringCase(text.prefix(7), "http://") {
            (scheme, start) = (.http, 7)
        } else if equalsIgnoringCase(text.prefix(8), "https://") {
            (scheme, start) = (.https, 8)
        } else {
            return nil
        }
        let authorityEnd = text[start...].firstIndex { $0 == 0x2F || $0 == 0x3F } ?? text.count
        let authority: Authority
        do { authority = try parseAuthority(text.span, in: start..<authorityEnd) } catch { return nil }
        var host: [UInt8] = []
        appendNormalisedHost(text.span, authority.host, to: &host)
        var path: [UInt8] = []
        appendPath(text.span, authorityEnd..<text.count, to: &path)
        self.init(scheme: scheme, host: host, port: authority.port ?? scheme.defaultPort, pathAndQuery: path)
    }

    private init(scheme: Scheme, host: [UInt8], port: UInt16, pathAndQuery: [UInt8]) {
        self.scheme = scheme
        self.host = String(decoding: host, as: UTF8.self)
        self.port = port
        self.pathAndQuery = encodingBeyondASCII(pathAndQuery) ?? pathAndQuery
    }

    /// The bytes that `appendNormalisedURI` appends for a request to this URI.
    package var normalised: [UInt8] {
        var result: [UInt8] = []
        let host = Array(host.utf8)
        appendNormalisedOrigin(scheme, host.span, host: 0..<host.count, port: port, to: &result)
        return result + pathAndQuery
    }

    /// Whether both have the same scheme, host and port (RFC 9110 §4.3.1).
    package func isSameOrigin(as other: TargetURI) -> Bool {
        scheme == other.scheme && host == other.host && port == other.port
    }

    /// Resolves a reference in a response from this URI (RFC 3986 §5.2). Returns nil if its scheme is not http or https, or if the text is
    /// not a reference.
    package func resolving(_ reference: some Collection<UInt8>) -> TargetURI? {
        let text = Array(reference.prefix { $0 != 0x23 })
        guard text.allSatisfy(isFieldVchar) else { return nil }
        if hasScheme(text) { return TargetURI(text)?.withoutDotSegments }
        if text.starts(with: [0x2F, 0x2F]) {
            return TargetURI(bytes(of: scheme.text) + [0x3A] + text)?.withoutDotSegments
        }
        let merged: [UInt8] =
            switch text.first {
            case nil: pathAndQuery
            case 0x2F: text
            case 0x3F: pathAndQuery.prefix { $0 != 0x3F } + text
            default: directory + text
            }
        var path: [UInt8] = []
        appendPath(merged.span, 0..<merged.count, to: &path)
        return TargetURI(scheme: scheme, host: Array(host.utf8), port: port, pathAndQuery: path).withoutDotSegments
    }

    /// The text with which a recipient elsewhere finds what `reference` means here: the reference itself if it has a scheme, or else the URI
    /// that it resolves to. A fragment stays. Returns nil if it resolves to nothing.
    package func absolute(_ reference: ArraySlice<UInt8>) -> [UInt8]? {
        if hasScheme(reference) { return Array(reference) }
        return resolving(reference).map { $0.normalised + reference.drop { $0 != 0x23 } }
    }

    /// With `/./` and `/../` resolved (RFC 3986 §5.2.4).
    private var withoutDotSegments: TargetURI {
        var path = pathAndQuery
        removeDotSegments(&path, from: 0)
        return TargetURI(scheme: scheme, host: Array(host.utf8), port: port, pathAndQuery: path)
    }

    /// The path up to its last "/" (RFC 3986 §5.2.3).
    private var directory: [UInt8] {
        let path = pathAndQuery.prefix { $0 != 0x3F }
        return Array(path[...(path.lastIndex(of: 0x2F) ?? path.startIndex)])
    }
}

/// `ALPHA *( ALPHA / DIGIT / "+" / "-" / "." ) ":"` (RFC 3986 §3.1).
private func hasScheme(_ text: some BidirectionalCollection<UInt8>) -> Bool {
    guard let first = text.first, isAlpha(first), let colon = text.firstIndex(of: 0x3A) else { return false }
    return text[..<colon].allSatisfy {
        isAlpha($0) || isDigit($0) || $0 == 0x2B || $0 == 0x2D || $0 == 0x2E
    }
}

extension TargetURI {
    /// The text of the URI, with `?…` in place of a query.
    package var withoutQuery: String {
        let text = normalised
        guard let query = text.firstIndex(of: UInt8(ascii: "?")) else { return String(decoding: text, as: UTF8.self) }
        return String(decoding: text[..<query], as: UTF8.self) + "?…"
    }
}
