import Message

extension CacheHandling {
    /// All that `Cache-Control` says counts, and nothing takes its place.
    var heedsOriginDirectives: Bool { respectsCacheControl && !heedsTargetedFields }
}

/// The directives that count for a response, under the handling it gets.
struct HeededDirectives {
    var directives: ResponseDirectives
    /// A targeted field said so: `Expires` does not count (RFC 9213 §2.2).
    var isTargeted = false

    /// With `respectsCacheControl` off the prohibitions go: `no-store`, `private` and `no-cache` without field lists,
    /// `must-revalidate`, `proxy-revalidate`. Lifetimes stay (`ttl` is there to change them), and so do field lists, which are
    /// there for what is one client's own (docs/decisions/0009).
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
