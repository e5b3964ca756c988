import EventLoop
import Limiting
import Message
import Transaction

extension Worker {
    /// The buckets of a request. Nil: no limit concerns it.
    func limits(of request: OwnedRequest, _ snapshot: Snapshot) -> RequestLimits? {
        guard !snapshot.limitPlan.isEmpty else { return nil }
        let uses = snapshot.limitPlan.uses(for: request.access)
        return uses.isEmpty ? nil : RequestLimits(uses, shared.limits, now: loop.now.nanoseconds)
    }

    /// The buckets of requests that differ from this one in path and query alone. Nil: no limit concerns them.
    func limits(ofOthersLike request: OwnedRequest, _ snapshot: Snapshot) -> RequestLimits? {
        guard !snapshot.limitPlan.isEmpty else { return nil }
        let uses = snapshot.limitPlan.usesOfOtherPaths(like: request.access)
        return uses.isEmpty ? nil : RequestLimits(uses, shared.limits, now: loop.now.nanoseconds)
    }

    /// The places of a new connection.
    func connectionLimits(of peer: IPAddress?) -> Result<ConnectionLimits, ConnectionRefusal> {
        ConnectionLimits.take(
            snapshot.limitPlan.uses(forConnectionOf: peer), shared.limits, now: loop.now.nanoseconds)
    }

    /// Tells the log of a bucket once a minute.
    func note(_ refusal: ConnectionRefusal) {
        let text = refusal.text
        let isNews = shared.limitNews.withLock { news in
            guard news.value(text, now: uptime) == nil else { return false }
            news.set(text, (), now: uptime)
            return true
        }
        if isNews { Diagnostics.warning("connections are closed at once: \(text)") }
    }
}

extension Exchange {
    /// Counts the request in its buckets. Returns why it is refused, or nil.
    ///
    /// What follows a redirect for the client is the same request to its limits.
    func meetsLimit() -> Refusal? {
        guard detour == nil, let limits = worker.limits(of: request, snapshot) else { return nil }
        switch limits.admit(now: worker.loop.now.nanoseconds) {
        case .success(let held):
            stream.limits = held
            return nil
        case .failure(let refusal):
            excess = refusal.excess
            return Refusal(refusal.excess)
        }
    }
}
