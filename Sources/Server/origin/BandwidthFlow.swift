import EventLoop
import LimitTables
import Origins

/// One flow of bytes under the limits of `bandwidth`.
private final class BandwidthFlow: FlowPacer {
    private let shares: [BandwidthShare]
    private let ledger: Locked<BandwidthLedger>

    init(_ shares: [BandwidthShare], _ ledger: Locked<BandwidthLedger>, now: MonotonicTime) {
        self.shares = shares
        self.ledger = ledger
        ledger.withLock { $0.begin(shares, now: now.sinceStart) }
    }

    func reserve(moved: Int, overdrawn: Int, now: MonotonicTime) -> (count: Int, from: MonotonicTime) {
        let time = now.sinceStart
        let grant = ledger.withLock { $0.reserve(shares, moved: moved, overdrawn: overdrawn, now: time) }
        return (grant.count, now.advanced(by: grant.from - time))
    }

    func end(moved: Int, unused: Int, now: MonotonicTime) {
        ledger.withLock { $0.end(shares, moved: moved, unused: unused, now: now.sinceStart) }
    }
}

extension Worker {
    /// The brake for what an origin sends through a tunnel. Nil if no limit holds.
    ///
    /// - Parameter limits: what holds towards the client.
    func brake(forTunnelOf request: OwnedRequest, _ limits: HeldLimits?) -> FlowBrake? {
        var flow: (any FlowPacer)?
        if snapshot.limitsBandwidth {
            flow = self.flow(for: request, snapshot.origins.terms(for: request.access), snapshot)
        }
        if let limits { flow = limits.pacer(beside: flow) }
        return flow.map { FlowBrake(loop, $0) }
    }

    /// The brake for what an origin sends in answer to a request. Nil if no limit holds.
    func brake(for request: OwnedRequest, _ terms: OriginTerms, _ snapshot: Snapshot) -> FlowBrake? {
        flow(for: request, terms, snapshot).map { FlowBrake(loop, $0) }
    }

    private func flow(for request: OwnedRequest, _ terms: OriginTerms, _ snapshot: Snapshot) -> BandwidthFlow? {
        let shares = snapshot.bandwidth.shares(for: request.access, terms)
        guard !shares.isEmpty else { return nil }
        return BandwidthFlow(shares, shared.bandwidth, now: loop.now)
    }
}
