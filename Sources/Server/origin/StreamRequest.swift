import EventLoop
import Routing
import Origins
import Transaction
import Transport

/// A request for a stream that could not be lent at once.
///
/// ```
/// waiting ─▶ queued ─▶ opening ─▶ ended
///    │          └─▶ displaced ──▲
///    └──────────────────▲
/// ```
///
/// Its owner keeps it until `opened` or `openingFailed` is called, or until it cancels. Each of the three ends it, once. The owner is not
/// retained, so an owner that is released must have cancelled.
final class StreamRequest: TimedObject {
    let request: OwnedRequest
    let terms: OriginTerms
    /// Whose connection is wanted. Nil: one that may carry every request.
    let identity: BoundIdentity?
    let snapshot: Snapshot
    /// Whether a link that has carried other requests may be used.
    let mayReuse: Bool
    unowned let owner: any OriginStreamOwner
    /// The routes that have not failed. The present one is at the front.
    var plan: RoutePlan
    private unowned let pools: OriginPools

    private enum State {
        case waiting
        case queued(OriginPool)
        case opening(OriginPool, LinkOpener)
        /// Another client's request has taken its place in the queue. The owner is about to be told.
        case displaced
        case ended
    }
    private var state = State.waiting

    init(
        _ request: OwnedRequest, _ terms: OriginTerms, over plan: RoutePlan, for identity: BoundIdentity?,
        snapshot: Snapshot, mayReuse: Bool, owner: any OriginStreamOwner, pools: OriginPools
    ) {
        self.request = request
        self.identity = identity
        self.terms = terms
        self.plan = plan
        self.snapshot = snapshot
        self.mayReuse = mayReuse
        self.owner = owner
        self.pools = pools
    }

    var key: LinkKey { LinkKey(request, over: plan.current, terms, for: identity) }

    var goal: OpeningGoal { key.goal }

    /// Whether no connection is being opened for it: it waits until one is free.
    var isQueued: Bool { if case .queued = state { true } else { false } }

    // MARK: the states

    func becomeQueued(in pool: OriginPool, on loop: EventLoop) {
        guard case .waiting = state else { preconditionFailure("the request is queued or ended already") }
        state = .queued(pool)
        loop.timers.schedule(self, after: terms.connect)
    }

    func becomeOpening(in pool: OriginPool, _ opener: LinkOpener, on loop: EventLoop) {
        switch state {
        case .waiting: break
        case .queued: loop.timers.cancel(self)
        case .opening, .displaced, .ended:
            preconditionFailure("a link is being opened for the request, or it has ended")
        }
        state = .opening(pool, opener)
    }

    /// The route failed, and the next one is tried.
    func becomeWaiting() {
        guard case .opening = state else { preconditionFailure("only a route that was tried can fail") }
        state = .waiting
    }

    func becomeEnded(on loop: EventLoop) {
        switch state {
        case .queued, .opening: break
        case .waiting, .displaced, .ended: preconditionFailure("a request that ends was queued or being served")
        }
        loop.timers.cancel(self)
        state = .ended
    }

    func becomeDisplaced(on loop: EventLoop) {
        guard case .queued = state else { preconditionFailure("only a queued request has a place to lose") }
        loop.timers.cancel(self)
        state = .displaced
    }

    /// - Returns: false if the owner has cancelled meanwhile. It may be gone then.
    func endIfDisplaced() -> Bool {
        guard case .displaced = state else { return false }
        state = .ended
        return true
    }

    /// Ends the request. The owner is not called afterwards.
    func cancel() {
        // Ended first, so that a second call does nothing.
        let was = state
        state = .ended
        switch was {
        case .waiting, .displaced, .ended: return
        case .queued(let pool): pools.forget(self, queuedIn: pool)
        case .opening(let pool, let opener):
            opener.cancel()
            pools.openingEnded(in: pool)
        }
    }

    override func timerFired() {
        guard case .queued(let pool) = state else { preconditionFailure("only a queued request has a time limit here") }
        state = .ended
        pools.queueingTimedOut(self, queuedIn: pool)
    }

    fileprivate var openingPool: OriginPool {
        guard case .opening(let pool, _) = state else { preconditionFailure("no link is being opened") }
        return pool
    }
}

extension LinkKey {
    /// The key of the connections that may carry a request.
    init(_ request: OwnedRequest, over route: Route, _ terms: OriginTerms, for identity: BoundIdentity?) {
        self.init(
            request.origin, over: route, tlsProfile: terms.tls, dialling: terms.dialling, identity: identity)
    }
}

extension StreamRequest: LinkOpenerOwner {
    func opened(_ transport: consuming Transport, at address: SocketAddress, early: [UInt8]) {
        precondition(early.isEmpty, "only a tunnel may have bytes before it is used")

        pools.opened(transport, at: address, in: openingPool, for: self)
    }

    func openingFailed(_ failure: OpeningFailure) { pools.openingFailed(failure, in: openingPool, for: self) }
}
