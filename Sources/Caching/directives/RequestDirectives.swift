package import Message

/// How stale a response may be for the client to accept it (`max-stale`, RFC 9111 §5.2.1.2).
package enum MaxStale: Sendable, Equatable {
    case any
    case upTo(Seconds)
}

/// The directives in a request's `Cache-Control` (RFC 9111 §5.2.1), or in its `Pragma` if there is no `Cache-Control` (§5.4).
///
/// A malformed directive has the strictest meaning that it could have: `max-age` without a valid number is 0, `min-fresh` without one is
/// the longest time, and a permission (`max-stale=x`, `stale-if-error=x`) permits nothing. If a directive is repeated, its strictest
/// value counts.
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
                // no-cache is the only directive of Pragma that was ever defined.
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
