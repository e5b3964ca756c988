/// How one request was answered, as `/stats` and `/metrics` count it. The access log has the same words and two more: `local` for what
/// Larder answers itself, and `none` where the client left before its request was decided.
package enum RequestOutcome: Int, CaseIterable, Sendable {
    case hit, stale, revalidated, collapsed, miss, pass, refused, error, tunnel

    package var name: String { "\(self)" }

    package var meaning: String {
        switch self {
        case .hit: "served from the store, fresh"
        case .stale: "served from the store, stale, where that is allowed"
        case .revalidated: "served from the store after the origin confirmed it with 304"
        case .collapsed: "joined a transfer that was under way"
        case .miss: "answered by an origin whose response was stored, wholly or in part"
        case .pass: "answered by an origin whose response was not stored"
        case .refused: "refused by Larder"
        case .error: "the origin or the way to it failed"
        case .tunnel: "CONNECT, or a connection that was upgraded"
        }
    }

    /// The content was stored, or was on its way because of another request.
    package var isHit: Bool {
        switch self {
        case .hit, .stale, .revalidated, .collapsed: true
        case .miss, .pass, .refused, .error, .tunnel: false
        }
    }

    /// Counts for the hit ratio: the store or an origin answered it. A `pass` counts, too, even where nothing could have been stored.
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

    /// Hits by requests, 0...1; nil before the first request that counts.
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
