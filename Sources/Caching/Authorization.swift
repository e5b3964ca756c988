/// Whether a shared cache may store, and reuse, the answer to a request with `Authorization` (RFC 9111 §3.5).
package func allowsAuthorization(_ directives: ResponseDirectives) -> Bool {
    directives.mustRevalidate || directives.isPublic || directives.sMaxAge != nil
}

/// That, under a handling. To override the origin's word is not enough to hand out what it gave to one user: `must-revalidate`
/// does not count where it is not respected, and only who also writes a `ttl` of his own for the same rule says that he knows the answers
/// to be the same for everybody.
func allowsAuthorization(_ directives: ResponseDirectives, _ handling: CacheHandling) -> Bool {
    allowsAuthorization(directives) || (!handling.respectsCacheControl && handling.ttl != nil)
}
