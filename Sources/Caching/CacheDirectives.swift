package import Message

/// How stale a response a client will take (`max-stale`, RFC 9111 §5.2.1.2).
package enum MaxStale: Sendable, Equatable {
    case any
    case upTo(Seconds)
}

/// What a request's `Cache-Control` asks (RFC 9111 §5.2.1), and its `Pragma` where there is no `Cache-Control` (§5.4).
///
/// A directive that says less than it should counts as strictly as it could have been meant: a `max-age` without a valid
/// number is 0, a `min-fresh` without one is the longest there is, a leave (`max-stale=x`, `stale-if-error=x`) is none.
/// Of repeated ones the strictest counts.
package struct RequestDirectives: Sendable, Equatable {
    package var noCache = false
    package var noStore = false
    package var noTransform = false
    package var onlyIfCached = false
    package var maxAge: Seconds?
    package var minFresh: Seconds?
    package var maxStale: MaxStale?
    /// RFC 5861 §4.
    package var staleIfError: Seconds?

    package init() {}

    package init(_ fields: FieldSection, bytes: borrowing Span<UInt8>) {
        let name: FieldName = fields.present.contains(.cacheControl) ? .cacheControl : .pragma
        guard fields.present.contains(name) else { return }
        for line in fields.lines where line.name == name {
            var scanner = DirectiveScanner(line.valueRange)
            while let directive = scanner.next(bytes) {
                let known = DirectiveName(directive.name, of: bytes)
                // Of Pragma, no-cache is all that was ever defined.
                if name == .cacheControl || known == .noCache { apply(known, directive, bytes) }
            }
        }
    }

    private mutating func apply(_ name: DirectiveName?, _ directive: Directive, _ bytes: borrowing Span<UInt8>) {
        switch name {
        case .noCache: noCache = true
        case .noStore: noStore = true
        case .noTransform: noTransform = true
        case .onlyIfCached: onlyIfCached = true
        case .maxAge: maxAge = shorter(maxAge, directive.seconds(bytes) ?? .zero)
        case .minFresh: minFresh = max(minFresh ?? .zero, directive.seconds(bytes) ?? .deltaMax)
        case .maxStale: restrict(maxStaleTo: directive, bytes)
        case .staleIfError: staleIfError = shorter(staleIfError, directive.seconds(bytes) ?? .zero)
        case .isPrivate, .isPublic, .mustRevalidate, .proxyRevalidate, .mustUnderstand, .immutable, .sMaxAge,
            .staleWhileRevalidate, nil:
            break  // not for requests, or unknown: ignored (§5.2.3)
        }
    }

    private mutating func restrict(maxStaleTo directive: Directive, _ bytes: borrowing Span<UInt8>) {
        if directive.argument == nil && directive.isWellFormed {
            maxStale = maxStale ?? .any
        } else if case .upTo(let limit) = maxStale {
            maxStale = .upTo(min(limit, directive.seconds(bytes) ?? .zero))
        } else {
            maxStale = .upTo(directive.seconds(bytes) ?? .zero)
        }
    }
}

/// What a response's `Cache-Control` allows and forbids (RFC 9111 §5.2.2, RFC 5861, RFC 8246).
///
/// Malformed counts as strict: `max-age` or `s-maxage` without a valid number is 0, so that the response is stale
/// (§4.2.1 encourages it); of repeated ones the smallest counts; `no-cache` and `private` with an empty or
/// malformed field list are without one; a leave without a valid number is none.
package struct ResponseDirectives: Sendable, Equatable {
    package var noStore = false
    /// Without a field list: nothing may be reused unvalidated (§5.2.2.4).
    package var noCache = false
    /// `no-cache="…"`: only these fields may not; lower case.
    package var noCacheFields: [[UInt8]] = []
    /// Without a field list: not for a shared cache (§5.2.2.7).
    package var isPrivate = false
    /// `private="…"`: only these fields are not; lower case.
    package var privateFields: [[UInt8]] = []
    package var isPublic = false
    package var mustRevalidate = false
    package var proxyRevalidate = false
    package var mustUnderstand = false
    package var noTransform = false
    /// RFC 8246.
    package var immutable = false
    package var maxAge: Seconds?
    package var sMaxAge: Seconds?
    /// RFC 5861 §3.
    package var staleWhileRevalidate: Seconds?
    /// RFC 5861 §4.
    package var staleIfError: Seconds?

    /// Some fields are for the first client alone, or not to be reused without validation.
    package var hasFieldLists: Bool { !privateFields.isEmpty || !noCacheFields.isEmpty }

    package init() {}

    package init(_ fields: Fields) {
        guard fields.contains(.cacheControl) else { return }
        let bytes = fields.bytes.span
        for line in fields.lines where line.name == .cacheControl {
            var scanner = DirectiveScanner(line.valueRange)
            while let directive = scanner.next(bytes) { apply(directive, bytes) }
        }
    }

    private mutating func apply(_ directive: Directive, _ bytes: borrowing Span<UInt8>) {
        switch DirectiveName(directive.name, of: bytes) {
        case .noStore: noStore = true
        case .noCache:
            let names = directive.fieldNames(bytes)
            if names.isEmpty { noCache = true } else { noCacheFields += names }
        case .isPrivate:
            let names = directive.fieldNames(bytes)
            if names.isEmpty { isPrivate = true } else { privateFields += names }
        case .isPublic: isPublic = true
        case .mustRevalidate: mustRevalidate = true
        case .proxyRevalidate: proxyRevalidate = true
        case .mustUnderstand: mustUnderstand = true
        case .noTransform: noTransform = true
        case .immutable: immutable = true
        case .maxAge: maxAge = shorter(maxAge, directive.seconds(bytes) ?? .zero)
        case .sMaxAge: sMaxAge = shorter(sMaxAge, directive.seconds(bytes) ?? .zero)
        case .staleWhileRevalidate:
            staleWhileRevalidate = shorter(staleWhileRevalidate, directive.seconds(bytes) ?? .zero)
        case .staleIfError: staleIfError = shorter(staleIfError, directive.seconds(bytes) ?? .zero)
        case .onlyIfCached, .minFresh, .maxStale, nil: break  // not for responses, or unknown: ignored (§5.2.3)
        }
    }
}

private func shorter(_ known: Seconds?, _ other: Seconds) -> Seconds { min(known ?? other, other) }

/// The directives Larder knows, of requests and responses alike.
enum DirectiveName: String, CaseIterable {
    case noCache = "no-cache"
    case noStore = "no-store"
    case noTransform = "no-transform"
    case onlyIfCached = "only-if-cached"
    case maxAge = "max-age"
    case minFresh = "min-fresh"
    case maxStale = "max-stale"
    case staleIfError = "stale-if-error"
    case isPrivate = "private"
    case isPublic = "public"
    case mustRevalidate = "must-revalidate"
    case proxyRevalidate = "proxy-revalidate"
    case mustUnderstand = "must-understand"
    case immutable = "immutable"
    case sMaxAge = "s-maxage"
    case staleWhileRevalidate = "stale-while-revalidate"

    private static let spellings = allCases.map { (name: $0, bytes: Array($0.rawValue.utf8)) }

    /// The directive spelled there, in any case (RFC 9111 §5.2), or nil.
    init?(_ range: Range<Int>, of bytes: borrowing Span<UInt8>) {
        for spelling in Self.spellings where spelling.bytes.count == range.count {
            var offset = 0
            while offset < range.count, asciiLowercased(bytes[range.lowerBound + offset]) == spelling.bytes[offset] {
                offset += 1
            }
            if offset == range.count {
                self = spelling.name
                return
            }
        }
        return nil
    }
}

extension Directive {
    /// The argument as delta-seconds, token or quoted (§5.2: recipients accept both); nil where it is missing or malformed.
    func seconds(_ bytes: borrowing Span<UInt8>) -> Seconds? {
        guard isWellFormed, let argument else { return nil }
        return parseDeltaSeconds(bytes, in: argument)
    }

    /// The argument as a list of field names, lower case; empty where there is none or it is not such a list.
    func fieldNames(_ bytes: borrowing Span<UInt8>) -> [[UInt8]] {
        guard isWellFormed, let argument else { return [] }
        var list: [UInt8] = []
        for index in argument { list.append(asciiLowercased(bytes[index])) }
        var names: [[UInt8]] = []
        var areNames = true
        forEachListElement(list[...]) { name in
            areNames = areNames && name.allSatisfy(isTchar)
            names.append(Array(name))
        }
        return areNames ? names : []
    }
}
