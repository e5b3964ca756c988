import EventLoop
import Routing

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
    func brake(forTunnelOf request: OwnedRequest) -> FlowBrake? {
        guard snapshot.limitsBandwidth else { return nil }
        return brake(for: request, snapshot.origins.terms(for: request.access), snapshot)
    }

    /// The brake for what an origin sends in answer to a request. Nil if no limit holds.
    func brake(for request: OwnedRequest, _ terms: OriginTerms, _ snapshot: Snapshot) -> FlowBrake? {
        let shares = snapshot.bandwidth.shares(for: request.access, terms)
        guard !shares.isEmpty else { return nil }
        return FlowBrake(loop, BandwidthFlow(shares, shared.bandwidth, now: loop.now))
    }
}
