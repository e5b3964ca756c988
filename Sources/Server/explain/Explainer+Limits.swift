import EventLoop
import LimitTables
import Limiting
import Message
import Transaction

extension Explainer {
    /// Describes the limits that concern the request, as they are used now. Returns why it would be refused, or nil.
    mutating func limits() -> Refusal? {
        let now = MonotonicTime.read().nanoseconds
        var refusal: Refusal?
        for use in snapshot.limitPlan.uses(for: request.access) {
            let account = proxy.shared.limits.known(use.bucket) ?? LimitAccount(use.bucket, LimitTally())
            note(
                "limits", use.bucket.rule,
                "\(use.bucket.subject.description): \(account.description(use.terms, now: now))")
            if let excess = account.excess(use.terms, now: now), refusal == nil { refusal = Refusal(excess) }
        }
        return refusal
    }
}

extension LimitAccount {
    /// The limit that the next request would meet.
    fileprivate func excess(_ terms: LimitTerms, now: UInt64) -> LimitExcess? {
        let usage = usage(terms, now: now)
        if let rate = terms.requests, usage.tokens == 0 {
            return LimitExcess(bucket, .requests(rate), wait: wait(rate, now: now))
        }
        let wall = WallTime(ticks: readWallTicks()).secondsSinceEpoch
        if let budget = terms.budget, isSpent(budget, wall: wall) {
            return LimitExcess(bucket, .budget(budget), wait: windowLeft(wall: wall))
        }
        if let count = terms.concurrent, usage.underWay >= count {
            return LimitExcess(bucket, .concurrent(count), wait: 0)
        }
        return nil
    }

    /// `48 of 50 requests left (50/s), 3 of 8 under way, 20MiB/s`
    fileprivate func description(_ terms: LimitTerms, now: UInt64) -> String {
        let usage = usage(terms, now: now)
        var parts: [String] = []
        if let rate = terms.requests {
            parts.append("\(usage.tokens ?? 0) of \(rate.burst) requests left, \(rate.text) come back")
        }
        if let count = terms.concurrent { parts.append("\(usage.underWay) of \(count) under way") }
        if let rate = terms.bandwidth { parts.append("\(rate) bytes per second to clients") }
        if let budget = terms.budget {
            let window = budget.window == .total ? "in all" : "in this \(budget.window.rawValue)"
            parts.append("\(usage.spent) of \(budget.bytes) bytes used \(window)")
        }
        if let bytes = terms.requestBody { parts.append("requests with at most \(bytes) bytes of content") }
        if let bytes = terms.requestSize { parts.append("requests of at most \(bytes) bytes") }
        if let bytes = terms.responseBody { parts.append("responses with at most \(bytes) bytes of content") }
        return parts.joined(separator: ", ")
    }
}
