/// How responses to requests with `Authorization` are stored and shared.
package enum AuthorizationUse: String, CaseIterable, Sendable {
    /// As RFC 9111 §3.5 says: shared with `public`, `s-maxage` or `must-revalidate` only.
    case standard
    /// The responses are for everybody, with or without credentials.
    case `public`
    /// Stored once for all, and validated for each request with the fields of that request. A 304 proves that its client may have the
    /// response, and saves the body.
    case validate
    /// Stored for each credential, under a key of its own.
    case separate = "per-credential"
}

extension CacheHandling {
    /// Whether a response to a request with credentials may be stored, as far as its status tells. What concerns the credentials is never
    /// stored; where each client proves its access anew, neither is anything that could take the place of the content.
    func mayShare(_ status: UInt16) -> Bool {
        switch authorization {
        case .standard: true
        case .public, .separate: status != 401 && status != 403
        case .validate: isSuccessWithContent(status)
        }
    }

    /// No policy may serve what is stored without asking, where access is proven by asking.
    mutating func protectAccess() {
        guard authorization == .validate else { return }
        use.subtract([.cacheFirst, .cacheOnly, .staleOnError])
    }
}
