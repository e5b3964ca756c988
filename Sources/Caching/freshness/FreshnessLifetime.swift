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
        /// The `ttl`, `ttl_default` or `immutable` of the rule or zone. It counts from the arrival.
        case policy = "ttl"
        /// The `negative_ttl` of the rule or zone. It counts from the arrival.
        case negative = "negative_ttl"

        /// The origin gave the lifetime.
        package var isOrigin: Bool { self == .sMaxAge || self == .maxAge || self == .expires }
    }

    /// The stored form numbers the sources in this order. Append new ones at the end.
    private static let storedSources: [Source] = [.sMaxAge, .maxAge, .expires, .policy, .negative]

    /// Writes the lifetime under the rules, and the one that was given if it is another.
    static func write(_ lifetime: FreshnessLifetime, given: FreshnessLifetime, to form: inout StoredFormWriter) {
        lifetime.write(to: &form, flag: lifetime == given ? 0 : givenFollows)
        if lifetime != given { given.write(to: &form, flag: 0) }
    }

    /// Forms of earlier versions lack the given lifetime. There, the one that is written counts as given.
    static func read(_ form: inout StoredFormReader) throws(StoredFormError) -> (
        lifetime: FreshnessLifetime, given: FreshnessLifetime
    ) {
        let kind = try form.read(UInt8.self)
        let lifetime = try FreshnessLifetime(kind: Int(kind & ~givenFollows), &form)
        guard kind & givenFollows != 0 else { return (lifetime, lifetime) }
        return (lifetime, try FreshnessLifetime(kind: Int(try form.read(UInt8.self)), &form))
    }

    /// The highest bit of the first byte.
    private static let givenFollows: UInt8 = 0x80

    private func write(to form: inout StoredFormWriter, flag: UInt8) {
        switch self {
        case .unknown: form.write(flag)
        case .heuristic(let seconds):
            form.write(flag | 1)
            form.write(seconds)
        case .explicit(let seconds, by: let source):
            form.write(flag | UInt8(2 + (Self.storedSources.firstIndex(of: source) ?? 0)))
            form.write(seconds)
        }
    }

    private init(kind: Int, _ form: inout StoredFormReader) throws(StoredFormError) {
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

    /// The same lifetime, but no longer than `bound`. It counts from the same time, so what the origin gave never becomes longer.
    fileprivate func bounded(by bound: Seconds) -> FreshnessLifetime {
        switch self {
        case .explicit(let seconds, let source): .explicit(min(seconds, bound), by: source)
        case .heuristic(let seconds): .heuristic(min(seconds, bound))
        case .unknown: .unknown
        }
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
    _ directives: borrowing ResponseDirectives, expiresMinusDate: @autoclosure () -> Seconds?,
    heuristic: @autoclosure () -> Seconds?
) -> FreshnessLifetime {
    if let seconds = directives.sMaxAge { return .explicit(seconds, by: .sMaxAge) }
    if let seconds = directives.maxAge { return .explicit(seconds, by: .maxAge) }
    if let seconds = expiresMinusDate() { return .explicit(seconds, by: .expires) }
    if let seconds = heuristic() { return .heuristic(seconds) }
    return .unknown
}

/// The lifetime under a handling. `ttl` replaces the lifetime that the origin gave. It also gives one to successes that may be reused by
/// heuristics, but never to an error or a 302, for which only the origin may do so (docs/decisions/0009). `ttlDefault` gives such
/// successes one if the origin did not. `negativeTTL` is for a 404 or 410 without a lifetime from the origin. `ttlMax` bounds the result.
///
/// `isImmutable` is about what an address stands for, so it holds for successes with content only: a redirect or an error at the same address
/// may be gone tomorrow.
func adjustedLifetime(
    _ given: FreshnessLifetime, status: UInt16, isPublic: Bool, handling: CacheHandling
) -> FreshnessLifetime {
    if handling.isImmutable, isSuccessWithContent(status) { return .explicit(immutableLifetime, by: .policy) }
    let lifetime = unboundedLifetime(given, status: status, isPublic: isPublic, handling: handling)
    return handling.ttlMax.map { lifetime.bounded(by: $0) } ?? lifetime
}

/// 206 stands for a part of a 200.
func isSuccessWithContent(_ status: UInt16) -> Bool { status == 200 || status == 203 || status == 206 }

/// How long an immutable response is fresh. Nobody should meet the end of it.
let immutableLifetime = Seconds(3650 * 86_400)

private func unboundedLifetime(
    _ given: FreshnessLifetime, status: UInt16, isPublic: Bool, handling: CacheHandling
) -> FreshnessLifetime {
    let isByOrigin = given.isByOrigin
    if handling.negativeTTL > .zero, status == 404 || status == 410, !isByOrigin {
        return .explicit(handling.negativeTTL, by: .negative)
    }
    let isLastingSuccess = status < 400 && isHeuristicallyCacheable(status)
    guard isByOrigin || isPublic || isLastingSuccess else { return given }
    if let ttl = handling.ttl { return .explicit(max(ttl, .zero), by: .policy) }
    if let ttl = handling.ttlDefault, !isByOrigin { return .explicit(max(ttl, .zero), by: .policy) }
    return given
}
