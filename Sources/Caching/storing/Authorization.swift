/// Whether a shared cache may store and reuse the response to a request with `Authorization` (RFC 9111 §3.5).
package func allowsAuthorization(_ directives: ResponseDirectives) -> Bool {
    directives.mustRevalidate || directives.isPublic || directives.sMaxAge != nil
}

/// The same under a handling. If `Cache-Control` is not respected, `must-revalidate` does not count, and overriding the origin is not
/// enough to share what the origin gave to one user. The rule must also set a `ttl`: that shows that its author knows the responses to be
/// the same for every user. So does `authorization`, whatever it is: with `validate` each client proves its access, and with
/// `per-credential` each has responses of its own.
func allowsAuthorization(_ directives: ResponseDirectives, _ handling: CacheHandling) -> Bool {
    handling.authorization != .standard || allowsAuthorization(directives)
        || (!handling.respectsCacheControl && handling.ttl != nil)
}
