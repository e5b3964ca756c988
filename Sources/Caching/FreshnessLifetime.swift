package import Message

/// How long a stored response stays fresh, and which rule decided (RFC 9111 §4.2.1).
package enum FreshnessLifetime: Equatable, Sendable {
    case explicit(Seconds, by: Source)
    case heuristic(Seconds)
    /// The origin gave no lifetime, and no heuristic applies: the response is stale from the beginning.
    case unknown

    package enum Source: String, Sendable {
        case sMaxAge = "s-maxage"
        case maxAge = "max-age"
        case expires = "Expires"
        /// The `ttl` of the rule or zone. It counts from the arrival.
        case policy = "ttl"
        /// The `negative_ttl` of the rule or zone. It counts from the arrival.
        case negative = "negative_ttl"

        /// The origin gave the lifetime.
        package var isOrigin: Bool { self == .sMaxAge || self == .maxAge || self == .expires }
    }

    /// The stored form numbers the sources in this order. Append new ones at the end.
    private static let storedSources: [Source] = [.sMaxAge, .maxAge, .expires, .policy, .negative]

    func write(to form: inout StoredFormWriter) {
        switch self {
        case .unknown: form.write(UInt8(0))
        case .heuristic(let seconds):
            form.write(UInt8(1))
            form.write(seconds)
        case .explicit(let seconds, by: let source):
            form.write(UInt8(2 + (Self.storedSources.firstIndex(of: source) ?? 0)))
            form.write(seconds)
        }
    }

    init(from form: inout StoredFormReader) throws(StoredFormError) {
        let kind = Int(try form.read(UInt8.self))
        switch kind {
        case 0: self = .unknown
        case 1: self = .heuristic(try form.readSeconds())
        default:
            guard kind - 2 < Self.storedSources.count else { throw StoredFormError() }
            self = .explicit(try form.readSeconds(), by: Self.storedSources[kind - 2])
        }
    }

    package var seconds: Seconds {
        switch self {
        case .explicit(let seconds, by: _), .heuristic(let seconds): seconds
        case .unknown: .zero
        }
    }

    /// The origin itself gave a lifetime.
    package var isByOrigin: Bool {
        if case .explicit(_, let source) = self { source.isOrigin } else { false }
    }

    /// The lifetime counts from the arrival, and not from when the origin made the response: an operator who writes `ttl: 1h` means one
    /// hour here, whatever the origin's clock says, and however long caches on the way had the response.
    var countsFromArrival: Bool {
        if case .explicit(_, let source) = self { !source.isOrigin } else { false }
    }
}

/// The first rule that applies, for a shared cache.
///
/// - Parameters:
///   - expiresMinusDate: `Expires` − `Date`. Zero if `Expires` is not a valid date (§5.3), nil if there is none.
///   - heuristic: the lifetime by §4.2.2. Nil if that does not allow one.
package func freshnessLifetime(
    _ directives: ResponseDirectives, expiresMinusDate: Seconds?, heuristic: Seconds?
) -> FreshnessLifetime {
    if let seconds = directives.sMaxAge { return .explicit(seconds, by: .sMaxAge) }
    if let seconds = directives.maxAge { return .explicit(seconds, by: .maxAge) }
    if let seconds = expiresMinusDate { return .explicit(seconds, by: .expires) }
    if let seconds = heuristic { return .heuristic(seconds) }
    return .unknown
}

/// The lifetime under a handling. `ttl` replaces the lifetime that the origin gave. It also gives one to successes that may be reused by
/// heuristics, but never to an error or a 302, for which only the origin may do so (docs/decisions/0009). `negativeTTL` is for a 404 or
/// 410 without a lifetime from the origin.
func adjustedLifetime(
    _ given: FreshnessLifetime, status: UInt16, isPublic: Bool, handling: CacheHandling
) -> FreshnessLifetime {
    let isByOrigin = given.isByOrigin
    if handling.negativeTTL > .zero, status == 404 || status == 410, !isByOrigin {
        return .explicit(handling.negativeTTL, by: .negative)
    }
    let isLastingSuccess = status < 400 && isHeuristicallyCacheable(status)
    guard let ttl = handling.ttl, isByOrigin || isPublic || isLastingSuccess else { return given }
    return .explicit(max(ttl, .zero), by: .policy)
}
