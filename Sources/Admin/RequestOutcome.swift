/// How one request ended, as counted and as written in the access log.
package enum RequestOutcome: Int, CaseIterable, Sendable {
    case hit, stale, revalidated, collapsed, miss, pass, refused, error, tunnel

    package var name: String { "\(self)" }

    package var meaning: String {
        switch self {
        case .hit: "served from the cache, fresh"
        case .stale: "served from the cache, stale, as a rule allowed"
        case .revalidated: "served from the cache after the origin said 304"
        case .collapsed: "joined a download that was under way"
        case .miss: "fetched from the origin, looked up in vain before"
        case .pass: "fetched from the origin, the cache was not asked"
        case .refused: "refused by Larder"
        case .error: "the origin or the way to it failed"
        case .tunnel: "CONNECT, or a connection that was upgraded"
        }
    }

    /// The bytes came out of the house, or were on their way already.
    package var isHit: Bool {
        switch self {
        case .hit, .stale, .revalidated, .collapsed: true
        case .miss, .pass, .refused, .error, .tunnel: false
        }
    }

    /// Counts for the hit ratio: it asked for something that a cache might have had.
    package var isCacheQuestion: Bool { isHit || self == .miss || self == .pass }
}

/// One counter per outcome.
package struct OutcomeCounts: Sendable, Equatable {
    private var counts = [UInt64](repeating: 0, count: RequestOutcome.allCases.count)

    package init() {}
    package init(_ pairs: KeyValuePairs<RequestOutcome, UInt64>) {
        for (outcome, count) in pairs { self[outcome] = count }
    }

    package subscript(_ outcome: RequestOutcome) -> UInt64 {
        get { counts[outcome.rawValue] }
        set { counts[outcome.rawValue] = newValue }
    }

    package var total: UInt64 { counts.reduce(0, &+) }

    /// Hits by requests, 0...1; nil before the first request that a cache might have answered.
    package var hitRatio: Double? {
        var hits: UInt64 = 0
        var questions: UInt64 = 0
        for outcome in RequestOutcome.allCases where outcome.isCacheQuestion {
            questions &+= self[outcome]
            if outcome.isHit { hits &+= self[outcome] }
        }
        return questions == 0 ? nil : Double(hits) / Double(questions)
    }
}
