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
        // What an origin says about a signature is for the client that presented it.
        if folding != .none { return isSuccessWithContent(status) }
        switch authorization {
        case .standard: return true
        case .public, .separate: return status != 401 && status != 403
        case .validate: return isSuccessWithContent(status)
        }
    }

    /// Access is proven by asking the origin with the client's own fields and address.
    package var asksForAccess: Bool { authorization == .validate || folding == .unproven }

    /// The key leaves out a signature. What is public is for everybody.
    ///
    /// - Parameter standsFor: the address redirected here never stands for something else, and perhaps has a digest.
    package mutating func fold(isProven: Bool, standsForImmutable: Bool, provesBodies: Bool) {
        folding = isProven || authorization == .public ? .proven : .unproven
        isImmutable = isImmutable || standsForImmutable
        self.provesBodies = self.provesBodies || provesBodies
        protectAccess()
    }

    /// No policy may serve what is stored without asking, where access is proven by asking.
    mutating func protectAccess() {
        guard asksForAccess else { return }
        use.subtract([.cacheFirst, .cacheOnly, .staleOnError])
    }
}
