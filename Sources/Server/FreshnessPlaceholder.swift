import Caching
import Message

// PLACEHOLDER until Caching has `explainFreshness` with this signature; then this file goes.

struct ExplanationLine {
    let name: String
    let value: String
}

func explainFreshness(
    _ stored: CachedResponse, for request: CacheRequest, use: CacheUse = [], now: WallTime
) -> [ExplanationLine] {
    let lifetime =
        switch stored.lifetime {
        case .explicit(let seconds, by: let source): "\(seconds.count) s (\(source))"
        case .heuristic(let seconds): "\(seconds.count) s (heuristic)"
        case .unknown: "0 s (the origin gave nothing to go on)"
        }
    let left = stored.remainingLifetime(now).count
    return [
        ExplanationLine(name: "corrected_initial_age", value: "\(stored.correctedInitialAge.count) s"),
        ExplanationLine(name: "resident_time", value: "\(max(0, (now - stored.responseTime).count)) s"),
        ExplanationLine(name: "current_age", value: "\(stored.currentAge(now).count) s"),
        ExplanationLine(name: "freshness_lifetime", value: lifetime),
        ExplanationLine(name: "response_is_fresh", value: left > 0 ? "yes, for \(left) s" : "no, since \(-left) s"),
    ]
}
