/// The names of the cache policies, as files and `Larder-Policy` write them.
package enum CachePolicyWord: String, CaseIterable, Sendable {
    case revalidateWhenStale = "revalidate-when-stale"
    case revalidateAlways = "revalidate-always"
    case cacheFirst = "cache-first"
    case cacheOnly = "cache-only"
    case noRead = "no-read"
    case noWrite = "no-write"
    case staleOnError = "stale-on-error"

    /// The default adds nothing: it takes away what a zone or a rule said.
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

    /// Which of them say the opposite of it: at most one may say whether and when what is stored is served. `cache-only`
    /// is `cache-first` and more; `no-write` and `stale-on-error` say something else, but nothing is served under `no-read`.
    fileprivate var contradicted: [CachePolicyWord] {
        switch self {
        case .revalidateWhenStale: [.revalidateAlways, .cacheFirst, .cacheOnly, .noRead]
        case .revalidateAlways: [.cacheFirst, .cacheOnly, .noRead]
        case .cacheFirst, .cacheOnly, .staleOnError: [.noRead]
        case .noRead, .noWrite: []
        }
    }
}

/// Two policies that can not hold together.
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

    /// The words for it, in the order of the manual; the default for none.
    package var words: [CachePolicyWord] {
        isEmpty ? [.revalidateWhenStale] : CachePolicyWord.allCases.filter { !$0.use.isEmpty && contains($0.use) }
    }
}
