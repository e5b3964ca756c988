import EventLoop
import Message
import Routing
import Transaction

/// The connections of one worker to all origins: kept alive between requests, bounded per origin, queued beyond.
///
/// What the pools lend are streams. Whoever cannot get one at once has a `StreamRequest` until there is one.
final class OriginPools {
    private let worker: Worker
    private var pools: [LinkKey: OriginPool] = [:]
    /// The pool that was asked last: often the next request goes there as well.
    private var recent: OriginPool?
    /// Links that are idle, in use or being opened.
    private(set) var openCount = 0
    private(set) var idleCount = 0

    init(worker: Worker) { self.worker = worker }

    /// What came of asking for a stream.
    enum Loan {
        case lent(OriginStream)
        /// The owner is told later.
        case waiting(StreamRequest)
        case refused(OpeningRefusal)
    }

    // MARK: lending

    /// Lends a stream for the request, on an idle link if there is one that will do. The owner is not called from here.
    func borrow(
        over plan: RoutePlan, for request: OwnedRequest, snapshot: Snapshot, mayReuse: Bool,
        owner: any OriginStreamOwner
    ) -> Loan {
        if mayReuse {
            let pool = pool(for: LinkKey(request.origin, over: plan.current))
            while let link = popIdle(of: pool) {
                // Another client's rules may have allowed this address when it was dialled: ask again for this client.
                if mayUse(link, for: request, snapshot) {
                    worker.counters.add(.originConnectionsReused)
                    return .lent(link.lend(to: owner))
                }
                close(link)
            }
        }
        let wish = StreamRequest(
            request, over: plan, snapshot: snapshot, mayReuse: mayReuse, owner: owner, pools: self)
        if let refusal = place(wish) { return .refused(refusal) }
        return .waiting(wish)
    }

    private func popIdle(of pool: OriginPool) -> OriginLink? {
        guard let link = pool.popIdle() else { return nil }
        discountIdle()
        worker.loop.timers.cancel(link)
        return link
    }

    /// Where no rule looks at who asks, the answer is the one that was given when the link was opened.
    private func mayUse(_ link: OriginLink, for request: OwnedRequest, _ snapshot: Snapshot) -> Bool {
        if snapshot.access.isOpen && link.snapshot === snapshot { return true }
        guard let address = IPAddress(link.address) else { return false }
        return snapshot.access.mayDial(request.access, address: address) == nil
    }

    /// Opens a link for the request or puts it into the queue.
    /// - Returns: why neither can be; nil if the request waits.
    private func place(_ wish: StreamRequest) -> OpeningRefusal? {
        let pool = pool(for: wish.key)
        if isFull(pool), let oldest = pool.idle.first {
            // An idle link that this request may not use is in the way of one that it may.
            drop(oldest)
        }
        guard isFull(pool) else { return open(for: wish, in: pool) }
        guard pool.queue.count < worker.snapshot.limits.originQueueMax else {
            return OpeningRefusal(.originQueueFull)
        }
        worker.counters.add(.originQueued)
        pool.enqueue(wish)
        wish.becomeQueued(in: pool, on: worker.loop)
        return nil
    }

    private func isFull(_ pool: OriginPool) -> Bool { pool.openCount >= worker.snapshot.limits.originConnectionsMax }

    // MARK: opening

    /// - Returns: why the request gets no link, if that is known at once.
    private func open(for wish: StreamRequest, in pool: OriginPool) -> OpeningRefusal? {
        // The pool may have been forgotten with its last link.
        pools[pool.key] = pool
        pool.countOpen()
        openCount += 1
        let opener = LinkOpener(
            worker: worker, snapshot: wish.snapshot, goal: wish.goal, for: wish.request.access, owner: wish)
        wish.becomeOpening(in: pool, opener, on: worker.loop)
        guard let failure = opener.begin() else { return nil }
        discountOpen(in: pool)
        forgetIfUnused(pool)
        return failOver(wish, after: failure)
    }

    /// - Returns: why the request gets no link; nil if it waits for one on another route.
    private func failOver(_ wish: StreamRequest, after failure: OpeningFailure) -> OpeningRefusal? {
        guard wish.plan.failOver(after: failure) else {
            wish.becomeEnded(on: worker.loop)
            return OpeningRefusal(failure)
        }
        wish.becomeWaiting()
        return place(wish)
    }

    func opened(
        _ transport: consuming Transport, at address: SocketAddress, in pool: OriginPool, for wish: StreamRequest
    ) {
        wish.becomeEnded(on: worker.loop)
        let link = OriginLink(
            worker: worker, pools: self, pool: pool, address: address, transport: transport, snapshot: wish.snapshot)
        wish.owner.opened(link.lend(to: wish.owner), isReused: false)
    }

    func openingFailed(_ failure: OpeningFailure, in pool: OriginPool, for wish: StreamRequest) {
        discountOpen(in: pool)
        let refusal = failOver(wish, after: failure)
        serveQueue(of: pool)
        if let refusal { wish.owner.openingFailed(refusal.refusal, refusal.denial) }
    }

    /// The opening was cancelled.
    func openingEnded(in pool: OriginPool) {
        discountOpen(in: pool)
        serveQueue(of: pool)
    }

    // MARK: taking back

    /// The response on the link is complete and the connection persists.
    func takeBack(_ link: OriginLink, keepFor time: Duration) {
        let pool = link.pool
        // Whatever the origin sent behind its response, it is not the next response.
        guard !link.mustBeDrained, link.unsentBytes == 0 else { return close(link) }
        if let next = pool.dequeue(where: { $0.mayReuse && mayUse(link, for: $0.request, $0.snapshot) }) {
            next.becomeEnded(on: worker.loop)
            worker.counters.add(.originConnectionsReused)
            return next.owner.opened(link.lend(to: next.owner), isReused: true)
        }
        // Those who wait but may not use this link get its place.
        guard pool.queue.isEmpty, !worker.isDraining, time > .zero else { return close(link) }
        pool.addIdle(link)
        idleCount += 1
        worker.loop.timers.schedule(link, after: time)
    }

    /// The link is of no further use.
    func discard(_ link: OriginLink) { close(link) }

    /// The origin closed an idle link, or it has been idle for too long.
    func drop(_ link: OriginLink) {
        if link.pool.removeIdle(link) { discountIdle() }
        close(link)
    }

    private func close(_ link: OriginLink) {
        link.close()
        discountOpen(in: link.pool)
        serveQueue(of: link.pool)
    }

    // MARK: the queue

    func forget(_ wish: StreamRequest, queuedIn pool: OriginPool) {
        worker.loop.timers.cancel(wish)
        pool.leaveQueue(wish)
        forgetIfUnused(pool)
    }

    func waitedTooLong(_ wish: StreamRequest, queuedIn pool: OriginPool) {
        forget(wish, queuedIn: pool)
        worker.counters.add(.timeouts)
        wish.owner.openingFailed(.connectionTimeout, nil)
    }

    /// Opens links for those who wait, as far as there is room.
    private func serveQueue(of pool: OriginPool) {
        while !isFull(pool), let next = pool.dequeue() {
            if let refusal = open(for: next, in: pool) { next.owner.openingFailed(refusal.refusal, refusal.denial) }
        }
        forgetIfUnused(pool)
    }

    // MARK: counting

    private func discountOpen(in pool: OriginPool) {
        pool.discountOpen()
        openCount -= 1
        precondition(openCount >= idleCount, "every idle link is open")
    }

    private func discountIdle() {
        idleCount -= 1
        precondition(idleCount >= 0, "a link is taken out of the idle ones once")
    }

    private func pool(for key: LinkKey) -> OriginPool {
        if let recent, recent.key == key { return recent }
        if let pool = pools[key] {
            recent = pool
            return pool
        }
        let pool = OriginPool(key: key)
        pools[key] = pool
        recent = pool
        return pool
    }

    private func forgetIfUnused(_ pool: OriginPool) {
        guard pool.isUnused, pools[pool.key] === pool else { return }
        pools[pool.key] = nil
        if recent === pool { recent = nil }
    }

    /// Closes the idle links, when the worker ends; those in use are ended by their owners.
    func closeAll() {
        for pool in pools.values {
            while let link = popIdle(of: pool) {
                link.close()
                discountOpen(in: pool)
            }
        }
    }
}
