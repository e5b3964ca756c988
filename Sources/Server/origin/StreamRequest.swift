import EventLoop
import Routing
import Transaction

/// A wish for a stream that could not be met at once.
///
/// ```
/// waiting ─▶ queued ─▶ opening ─▶ ended
///    └──────────────────▲
/// ```
///
/// Its owner holds it until `opened` or `openingFailed` comes, or calls `cancel()`.
final class StreamRequest: TimedObject {
    let request: OwnedRequest
    let snapshot: Snapshot
    /// A link that has carried other requests will do.
    let mayReuse: Bool
    unowned let owner: any OriginStreamOwner
    /// The routes that are left, the one that is tried at the front.
    var plan: RoutePlan
    private unowned let pools: OriginPools

    private enum State {
        case waiting
        case queued(OriginPool)
        case opening(OriginPool, LinkOpener)
        case ended
    }
    private var state = State.waiting

    init(
        _ request: OwnedRequest, over plan: RoutePlan, snapshot: Snapshot, mayReuse: Bool,
        owner: any OriginStreamOwner, pools: OriginPools
    ) {
        self.request = request
        self.plan = plan
        self.snapshot = snapshot
        self.mayReuse = mayReuse
        self.owner = owner
        self.pools = pools
    }

    var key: LinkKey { LinkKey(request.origin, over: plan.current) }

    /// What has to be opened: the host is dialled, or named to a proxy; under TLS, SNI names it and the certificate must.
    var goal: OpeningGoal {
        let origin = request.origin
        let use: OpeningGoal.Use = origin.scheme == .https ? .secured(serverName: origin.endpoint.host) : .plain
        return OpeningGoal(origin.endpoint, for: use, over: plan.current)
    }

    // MARK: the states

    func becomeQueued(in pool: OriginPool, on loop: EventLoop) {
        guard case .waiting = state else { preconditionFailure("a request is queued once for each route") }
        state = .queued(pool)
        loop.timers.schedule(self, after: snapshot.configuration.timeouts.connect)
    }

    func becomeOpening(in pool: OriginPool, _ opener: LinkOpener, on loop: EventLoop) {
        switch state {
        case .waiting: break
        case .queued: loop.timers.cancel(self)
        case .opening, .ended: preconditionFailure("one link at a time is opened for a request")
        }
        state = .opening(pool, opener)
    }

    /// The route failed and another is tried.
    func becomeWaiting() { state = .waiting }

    func becomeEnded(on loop: EventLoop) {
        loop.timers.cancel(self)
        state = .ended
    }

    /// No stream is wanted any more; the owner hears nothing further.
    func cancel() {
        let was = state
        state = .ended
        switch was {
        case .waiting, .ended: return
        case .queued(let pool): pools.forget(self, queuedIn: pool)
        case .opening(let pool, let opener):
            opener.cancel()
            pools.openingEnded(in: pool)
        }
    }

    override func timerFired() {
        guard case .queued(let pool) = state else { preconditionFailure("only the queue has a time limit of its own") }
        state = .ended
        pools.waitedTooLong(self, queuedIn: pool)
    }

    fileprivate var openingPool: OriginPool {
        guard case .opening(let pool, _) = state else { preconditionFailure("no link is being opened") }
        return pool
    }
}

extension StreamRequest: LinkOpenerOwner {
    func opened(_ transport: consuming Transport, at address: SocketAddress) {
        pools.opened(transport, at: address, in: openingPool, for: self)
    }

    func openingFailed(_ failure: OpeningFailure) { pools.openingFailed(failure, in: openingPool, for: self) }
}
