package import Message

/// How long a stored response stays fresh, and which rule said so (RFC 9111 §4.2.1).
package enum FreshnessLifetime: Equatable, Sendable {
    case explicit(Seconds, by: Source)
    case heuristic(Seconds)
    /// The origin gave nothing to go on and no heuristic applies: stale from the start.
    case unknown
    package enum Source: Sendable { case sMaxAge, maxAge, expires }

    package var seconds: Seconds {
        switch self {
        case .explicit(let seconds, by: _), .heuristic(let seconds): seconds
        case .unknown: .zero
        }
    }
}

/// The first rule that applies, for a shared cache.
///
/// - Parameters:
///   - expiresMinusDate: `Expires` − `Date`; zero when `Expires` is not a valid date (§5.3); nil when there is none.
///   - heuristic: what §4.2.2 gives; nil where it allows none.
package func freshnessLifetime(
    _ directives: ResponseDirectives, expiresMinusDate: Seconds?, heuristic: Seconds?
) -> FreshnessLifetime {
    if let seconds = directives.sMaxAge { return .explicit(seconds, by: .sMaxAge) }
    if let seconds = directives.maxAge { return .explicit(seconds, by: .maxAge) }
    if let seconds = expiresMinusDate { return .explicit(seconds, by: .expires) }
    if let seconds = heuristic { return .heuristic(seconds) }
    return .unknown
}
