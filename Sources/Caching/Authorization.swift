/// Whether a shared cache may store, and reuse, the answer to a request with `Authorization` (RFC 9111 §3.5).
package func allowsAuthorization(_ directives: ResponseDirectives) -> Bool {
    directives.mustRevalidate || directives.isPublic || directives.sMaxAge != nil
}
