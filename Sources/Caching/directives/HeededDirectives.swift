import Message

extension CacheHandling {
    /// Everything in `Cache-Control` counts, and nothing replaces it.
    var heedsOriginDirectives: Bool { respectsCacheControl && !heedsTargetedFields }
}

/// The directives of a response that count under its handling.
struct HeededDirectives {
    var directives: ResponseDirectives
    /// The directives are from a targeted field, so `Expires` does not count (RFC 9213 §2.2).
    var isTargeted = false

    /// If `respectsCacheControl` is false, these prohibitions do not count: `no-store`, `must-revalidate`, `proxy-revalidate`, and
    /// `private` and `no-cache` without field lists. Lifetimes still count, because `ttl` can change them. Field lists still count, because
    /// they protect what belongs to one client (docs/decisions/0009).
    init(_ fields: Fields, _ handling: CacheHandling) {
        if handling.heedsTargetedFields, let targeted = targetedDirectives(fields) {
            directives = targeted
            isTargeted = true
        } else {
            directives = ResponseDirectives(fields)
        }
        guard !handling.respectsCacheControl else { return }
        directives.noStore = false
        directives.isPrivate = false
        directives.noCache = false
        directives.mustRevalidate = false
        directives.proxyRevalidate = false
    }
}
