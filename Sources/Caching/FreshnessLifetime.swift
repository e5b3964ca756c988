package import Message

/// How long a stored response stays fresh, and which rule said so (RFC 9111 §4.2.1).
package enum FreshnessLifetime: Equatable, Sendable {
    case explicit(Seconds, by: Source)
    case heuristic(Seconds)
    /// The origin gave nothing to go on and no heuristic applies: stale from the start.
    case unknown

    package enum Source: String, Sendable {
        case sMaxAge = "s-maxage"
        case maxAge = "max-age"
        case expires = "Expires"
        /// `ttl` of the rule or the zone; counts from arrival.
        case policy = "ttl"
        /// `negative_ttl` of the rule or the zone; counts from arrival.
        case negative = "negative_ttl"

        /// The origin said so.
        package var isOrigin: Bool { self == .sMaxAge || self == .maxAge || self == .expires }
    }

    /// In this order they are numbered where they are stored; new ones come last.
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

    /// The origin gave a lifetime itself.
    package var isByOrigin: Bool {
        if case .explicit(_, let source) = self { source.isOrigin } else { false }
    }

    /// Counted from the age it had when it came, not from when the origin made it: who writes `ttl: 1h` means an hour
    /// here, whatever clock or cache stands before us.
    var countsFromArrival: Bool {
        if case .explicit(_, let source) = self { !source.isOrigin } else { false }
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

/// That, under a handling. `ttl` takes the place of what the origin gave, and gives successes that may be reused by
/// heuristics what it did not; never an error or a 302, whose lifetime must be the origin's word (docs/decisions/0009).
/// `negativeTTL` is for a 404 or 410 without such a word.
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
