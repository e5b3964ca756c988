import Accounts
import EventLoop
import LimitTables
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
        switch limits.admit(now: worker.loop.now.nanoseconds, wall: worker.wallTime.secondsSinceEpoch) {
        case .success(let held):
            guard let excess = held.excess(ofRequest: request.head.byteCount, body: request.knownBodyBytes) else {
                stream.limits = held
                return nil
            }
            self.excess = excess
            return Refusal(excess)
        case .failure(let refusal):
            excess = refusal.excess
            return Refusal(refusal.excess)
        }
    }

    /// Counts content of the request that is about to be sent. Returns the limit that it meets.
    func noteUploaded(_ count: Int) -> LimitExcess? {
        guard let limits = stream.limits else { return nil }
        uploadedBytes += UInt64(count)
        limits.note(received: count, at: worker.wallTime.secondsSinceEpoch)
        return limits.excess(ofRequest: request.head.byteCount, body: uploadedBytes)
    }

    /// Refuses an answer whose body is longer than a limit allows, before a byte of it is sent. Returns whether it did.
    func hasRefused(_ delivery: Delivery?) -> Bool {
        guard let limits = stream.limits, let delivery, let length = delivery.lengthNeeded,
            let excess = limits.excess(ofResponseBody: UInt64(length))
        else { return false }
        delivery.end(cancelling: true)
        self.excess = excess
        refuse(Refusal(excess))
        return true
    }
}

extension OwnedRequest {
    /// The length of the body as far as the head says it.
    fileprivate var knownBodyBytes: UInt64 {
        switch bodyLength {
        case .length(let bytes): bytes
        case .none, .chunked, .untilClose, .tunnel: 0
        }
    }
}
