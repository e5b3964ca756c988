/// The names of the cache policies in configuration files and in `Larder-Policy`.
package enum CachePolicyWord: String, CaseIterable, Sendable {
    case revalidateWhenStale = "revalidate-when-stale"
    case revalidateAlways = "revalidate-always"
    case cacheFirst = "cache-first"
    case cacheOnly = "cache-only"
    case noRead = "no-read"
    case noWrite = "no-write"
    case staleOnError = "stale-on-error"

    /// The default policy is the empty set: naming it removes the policies of a zone or rule.
    package var use: CacheUse {
        switch self {
        case .revalidateWhenStale: []
        case .revalidateAlways: .revalidateAlways
        case .cacheFirst: .cacheFirst
        case .cacheOnly: .cacheOnly
        case .noRead: .noRead
        case .noWrite: .noWrite
        case .staleOnError: .staleOnError
        }
    }

    /// The policies that contradict this one. Only one policy may say whether and when a stored response is served. `cache-only`
    /// includes `cache-first`. `no-write` and `stale-on-error` are about other questions, but with `no-read` nothing can be served
    /// stale.
    fileprivate var contradicted: [CachePolicyWord] {
        switch self {
        case .revalidateWhenStale: [.revalidateAlways, .cacheFirst, .cacheOnly, .noRead]
        case .revalidateAlways: [.cacheFirst, .cacheOnly, .noRead]
        case .cacheFirst, .cacheOnly, .staleOnError: [.noRead]
        case .noRead, .noWrite: []
        }
    }
}

/// Two policies that contradict each other.
package struct CachePolicyContradiction: Error, Equatable, Sendable {
    package let one, other: CachePolicyWord
}

extension CacheUse {
    package init(_ words: [CachePolicyWord]) throws(CachePolicyContradiction) {
        self = []
        for word in words {
            if let other = word.contradicted.first(where: words.contains) {
                throw CachePolicyContradiction(one: word, other: other)
            }
            formUnion(word.use)
        }
    }

    /// The names of the policies in the order of the manual. The default policy if the set is empty.
    package var words: [CachePolicyWord] {
        isEmpty ? [.revalidateWhenStale] : CachePolicyWord.allCases.filter { !$0.use.isEmpty && contains($0.use) }
    }
}
