import Accounts
import EventLoop
import LogIns
import Message
import Routing
import Origins
import Transaction
import Transport

/// One worker's connections to all origins: kept alive between requests, and bounded for each origin. Requests beyond the bound queue.
///
/// The pools lend streams. A fetch that cannot have one at once holds a `StreamRequest` until `opened` or `openingFailed` is called.
///
/// Ownership: a pool owns its idle links; the `OriginStream` of a fetch owns a link in use. Every link is counted (`openCount`) from the
/// moment at which it begins to be opened until it closes. Owners are called from here, and may ask for the next stream, or cancel, within
/// that call: all counts and queues are up to date before it.
final class OriginPools {
    private let worker: Worker
    private var pools: [LinkKey: OriginPool] = [:]
    /// The pool that was used last. The next request often goes to the same origin.
    private var recent: OriginPool? { didSet { recentTerms = nil } }
    /// Terms of which the key of `recent` was made. Nil: not known.
    private var recentTerms: OriginTerms?
    /// Links that are idle, in use or being opened.
    private(set) var openCount = 0
    private(set) var idleCount = 0
    /// The pins whose client connection is open. `ConnectionPins.countMax` bounds them for each.
    private var pins: [BoundIdentity: Origin] = [:]
    var pinsOpen: Int { pins.count }
    private var pinCount: UInt64 = 0

    init(worker: Worker) { self.worker = worker }

    /// The result of asking for a stream.
    enum Loan {
        case lent(OriginStream)
        /// The owner is called later.
        case waiting(StreamRequest)
        // Indirect, because it is large and rare.
        indirect case refused(OpeningRefusal)
    }

    // MARK: lending

    /// Lends a stream for the request, on an idle link if one may be used. Does not call the owner.
    ///
    /// - Parameter identity: see `LinkKey.identity`.
    func borrow(
        over plan: RoutePlan, for request: OwnedRequest, _ terms: OriginTerms, _ identity: BoundIdentity?,
        snapshot: Snapshot, mayReuse: Bool, owner: any OriginStreamOwner
    ) -> Loan {
        if mayReuse {
            let pool =
                recentPool(for: request, over: plan.current, terms, identity)
                ?? pool(for: LinkKey(request, over: plan.current, terms, for: identity))
            recentTerms = terms
            while let link = popIdle(of: pool) {
                // The address was allowed for the client for which the link was opened. Ask again for this one.
                if mayUse(link, for: request, snapshot) {
                    worker.counters.add(.originConnectionsReused)
                    Diagnostics.debug(.connections, "\(pool): used again, \(pool.counts)")
                    return .lent(link.lend(to: owner))
                }
                close(link)
            }
        }
        let streamRequest = StreamRequest(
            request, terms, over: plan, for: identity, snapshot: snapshot, mayReuse: mayReuse, owner: owner,
            pools: self)
        if let refusal = place(streamRequest) { return .refused(refusal) }
        return .waiting(streamRequest)
    }

    private func popIdle(of pool: OriginPool) -> OriginLink? {
        guard let link = pool.popIdle() else { return nil }
        discountIdle()
        // Its time limit stays in the wheel, where it does nothing while the link is lent. `takeBack` extends it.
        return link
    }

    /// Whether the access rules let this request use the link's address. If no rule depends on the request, the decision is the one that
    /// was made when the link was opened.
    private func mayUse(_ link: OriginLink, for request: OwnedRequest, _ snapshot: Snapshot) -> Bool {
        if snapshot.access.isOpen && link.snapshot === snapshot { return true }
        if case .peer = link.pool.key.route { return true }
        if case .proxy = link.pool.key.route {
            let addresses = link.pool.key.goal.addressesBehindProxy
            return addresses.allSatisfy { mayDial($0, for: request, snapshot) }
        }
        guard let address = IPAddress(link.address) else { return false }
        return mayDial(address, for: request, snapshot)
    }

    private func mayDial(_ address: IPAddress, for request: OwnedRequest, _ snapshot: Snapshot) -> Bool {
        snapshot.denial(
            of: address, for: request.access, learning: worker.learner?.active, now: worker.moment) == nil
    }

    /// Opens a link for the request, or queues the request. Returns nil if the request now waits, and otherwise why it cannot.
    private func place(_ streamRequest: StreamRequest) -> OpeningRefusal? {
        let pool = pool(for: streamRequest.key)
        if isFull(pool, for: streamRequest), let oldest = pool.idle.first {
            // The request may not use the idle links. Close one to make room for one that it may use.
            drop(oldest)
        }
        guard isFull(pool, for: streamRequest) else { return open(for: streamRequest, in: pool) }
        let displaced = pool.enqueue(streamRequest, countMax: worker.snapshot.limits.originQueueMax)
        guard displaced !== streamRequest else { return OpeningRefusal(.originQueueFull) }
        worker.counters.add(.originQueued)
        Diagnostics.debug(.connections, "\(pool): a request waits for one, \(pool.counts)")
        streamRequest.becomeQueued(in: pool, on: worker.loop)
        if let displaced { displace(displaced) }
        return nil
    }

    /// Requests under several rules of `origins` may share a pool. Each sees its own bound. A pin has one connection, because another one
    /// would not be authenticated: pipelined requests wait for it.
    private func isFull(_ pool: OriginPool, for streamRequest: StreamRequest) -> Bool {
        let countMax =
            switch pool.key.identity {
            case .client: 1
            case .credential, nil: streamRequest.terms.connections.countMax
            }
        return pool.openCount >= countMax
    }

    // MARK: opening

    /// Opens a link for the request. Returns nil if the request now waits, and otherwise why it gets no link.
    private func open(for streamRequest: StreamRequest, in pool: OriginPool) -> OpeningRefusal? {
        // The pool may have been removed together with its last link.
        pools[pool.key] = pool
        pool.countOpen()
        openCount += 1
        let opener = LinkOpener(
            worker: worker, snapshot: streamRequest.snapshot, goal: streamRequest.goal,
            timeout: streamRequest.terms.connect, dialling: streamRequest.terms.dialling,
            for: streamRequest.request, owner: streamRequest)
        streamRequest.becomeOpening(in: pool, opener, on: worker.loop)
        guard let failure = opener.begin() else { return nil }
        discountOpen(in: pool)
        forgetIfUnused(pool)
        return failOver(streamRequest, after: failure)
    }

    /// Tries the request's next route. Returns nil if the request now waits for it, and otherwise why it gets no link.
    private func failOver(_ streamRequest: StreamRequest, after failure: OpeningFailure) -> OpeningRefusal? {
        guard streamRequest.plan.failOver(after: failure) else {
            streamRequest.becomeEnded(on: worker.loop)
            return OpeningRefusal(failure)
        }
        worker.counters.add(.routesFailedOver)
        Diagnostics.debug(
            .routes, "\(streamRequest.request.origin): \(failure), next \(streamRequest.plan.current)")
        streamRequest.becomeWaiting()
        return place(streamRequest)
    }

    /// A link was opened for the request.
    func opened(
        _ transport: consuming Transport, at address: SocketAddress, in pool: OriginPool,
        for streamRequest: StreamRequest
    ) {
        streamRequest.becomeEnded(on: worker.loop)
        Diagnostics.debug(.connections, "\(pool): opened to \(address), \(pool.counts)")
        precondition(pool.openCount > pool.idle.count, "a link that opens is counted, and not idle")
        let link = OriginLink(
            worker: worker, pools: self, pool: pool, address: address, transport: transport,
            snapshot: streamRequest.snapshot)
        streamRequest.owner.opened(link.lend(to: streamRequest.owner), isReused: false)
    }

    /// No link could be opened for the request.
    func openingFailed(_ failure: OpeningFailure, in pool: OriginPool, for streamRequest: StreamRequest) {
        // The owner comes last: within that call it may ask for another stream to the same origin.
        discountOpen(in: pool)
        Diagnostics.debug(.connections, "\(pool): not opened: \(failure), \(pool.counts)")
        let refusal = failOver(streamRequest, after: failure)
        serveQueue(of: pool)
        if let refusal { streamRequest.owner.openingFailed(refusal.refusal, refusal.denial) }
    }

    /// The request was cancelled while its link was being opened.
    func openingEnded(in pool: OriginPool) {
        discountOpen(in: pool)
        serveQueue(of: pool)
    }

    // MARK: taking back

    /// Takes a link back whose response is complete and whose connection persists.
    func takeBack(_ link: OriginLink, keepFor time: Duration) {
        precondition(link.streamsInUse == 0, "a link that is lent cannot be taken back")
        let pool = link.pool
        // The client connection to which the link was pinned has closed, or the credential that has logged it in has other secrets now.
        if let identity = pool.key.identity, !isValid(identity) { return close(link) }
        // Bytes behind a response belong to no request: such a link is not trusted.
        guard !link.conversation.hasBytesBehindResponse else { return close(link) }
        if let next = pool.dequeue(where: { $0.mayReuse && mayUse(link, for: $0.request, $0.snapshot) }) {
            next.becomeEnded(on: worker.loop)
            worker.counters.add(.originConnectionsReused)
            Diagnostics.debug(.connections, "\(pool): used again for a request that waited, \(pool.counts)")
            return next.owner.opened(link.lend(to: next.owner), isReused: true)
        }
        // Requests in the queue that may not use this link get its place.
        guard pool.waitingCount == 0, !worker.isDraining, time > .zero else { return close(link) }
        pool.addIdle(link)
        idleCount += 1
        Diagnostics.debug(.connections, "\(pool): idle, \(pool.counts)")
        worker.timers.schedule(link, after: time)
    }

    /// Closes a link that its stream has released.
    func discard(_ link: OriginLink) { close(link) }

    /// Closes an idle link: the origin closed it, it was idle for too long, or another link needs its place.
    func drop(_ link: OriginLink) {
        if link.pool.removeIdle(link) { discountIdle() }
        close(link)
    }

    private func close(_ link: OriginLink) {
        precondition(link.pool.openCount > 0, "a link that is counted is closed")
        // The place is free before the queue is served. Serving it may call other owners, never the one whose link this was.
        link.close()
        discountOpen(in: link.pool)
        Diagnostics.debug(.connections, "\(link.pool): closed, \(link.pool.counts)")
        serveQueue(of: link.pool)
    }

    // MARK: pins

    /// Why a pin ends.
    enum PinEnd: CustomStringConvertible {
        case clientClosed(CloseReason)
        /// `ConnectionPins.countMax` others of its client connection are newer.
        case displaced

        var description: String {
            switch self {
            case .clientClosed(let reason): "the client connection has closed: \(reason.name)"
            case .displaced: "the client connection has \(ConnectionPins.countMax) newer ones"
            }
        }
    }

    /// Makes the number of a new pin. `endPin` ends it.
    func beginPin(at origin: Origin) -> BoundIdentity {
        pinCount += 1
        let identity = BoundIdentity.client(pinCount)
        pins[identity] = origin
        Diagnostics.debug(.connections, "\(origin): a pin to one client connection begins")
        return identity
    }

    /// Closes the links of a pin: now if they are idle, and otherwise when they are taken back.
    func endPin(_ identity: BoundIdentity, _ reason: PinEnd) {
        guard let origin = pins.removeValue(forKey: identity) else { preconditionFailure("a pin ends once") }
        Diagnostics.debug(.connections, "\(origin): the pin ends, \(reason)")
        closeIdle { $0 == identity }
    }

    private func closeIdle(of isConcerned: (BoundIdentity) -> Bool) {
        // Closing a link may remove its pool.
        for pool in pools.values.filter({ $0.key.identity.map(isConcerned) ?? false }) {
            while let link = popIdle(of: pool) { close(link) }
        }
    }

    // MARK: log-ins

    /// The number of the secrets with which connections are logged in, by the name of their credential. As many as there are credentials.
    private var secretNumbers: [String: UInt64] = [:]

    /// Connections are about to be logged in with a credential.
    func noteLogIns(with name: String, secretNumber: UInt64) {
        // A request may still have the secrets of an earlier configuration.
        guard secretNumbers[name].map({ $0 < secretNumber }) ?? true else { return }
        let earlier = secretNumbers.updateValue(secretNumber, forKey: name)
        if let earlier { closeIdle { $0 == .credential(secretNumber: earlier) } }
    }

    /// Closes the connections that are logged in with secrets of earlier days: now if they are idle, and otherwise when they are taken back.
    func closeOutdatedLogIns(_ secrets: SecretShelf) {
        guard !secretNumbers.isEmpty else { return }
        let outdated = secretNumbers.filter { secrets.version(of: $0.key)?.number != $0.value }
        for name in outdated.keys { secretNumbers[name] = nil }
        closeIdle { identity in outdated.values.contains { identity == .credential(secretNumber: $0) } }
    }

    private func isValid(_ identity: BoundIdentity) -> Bool {
        switch identity {
        case .client: pins[identity] != nil
        case .credential(let number): secretNumbers.values.contains(number)
        }
    }

    // MARK: the queue

    /// Removes a cancelled request from the queue.
    func forget(_ streamRequest: StreamRequest, queuedIn pool: OriginPool) {
        worker.timers.cancel(streamRequest)
        pool.leaveQueue(streamRequest)
        forgetIfUnused(pool)
    }

    /// Fails a queued request whose place another client's request has taken. In the next turn: this is called while that one asks.
    private func displace(_ streamRequest: StreamRequest) {
        streamRequest.becomeDisplaced(on: worker.loop)
        worker.loop.afterTurn {
            guard streamRequest.endIfDisplaced() else { return }
            streamRequest.owner.openingFailed(.originQueueFull, nil)
        }
    }

    /// Fails a request that was queued for longer than `timeouts.connect`.
    func queueingTimedOut(_ streamRequest: StreamRequest, queuedIn pool: OriginPool) {
        forget(streamRequest, queuedIn: pool)
        worker.counters.add(.timeouts)
        streamRequest.owner.openingFailed(.connectionTimeout, nil)
    }

    /// Opens links for queued requests while there is room.
    private func serveQueue(of pool: OriginPool) {
        while let next = pool.dequeue(where: { !isFull(pool, for: $0) }) {
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
        precondition(idleCount >= 0, "an idle link is removed once")
    }

    /// The pool that was used last, if it is that of the request. Tells so without making a key, which most requests need not have.
    private func recentPool(
        for request: OwnedRequest, over route: Route, _ terms: OriginTerms, _ identity: BoundIdentity?
    ) -> OriginPool? {
        guard let recent, recentTerms === terms, recent.key.identity == nil, identity == nil,
            case .direct = route, case .direct = recent.key.route,
            recent.key.origin.endpoint.port == request.head.target.port,
            recent.key.origin.scheme == request.head.target.scheme, recent.key.origin.endpoint.host == request.host
        else { return nil }
        return recent
    }

    private func pool(for key: LinkKey) -> OriginPool {
        if let recent, recent.key.isSame(as: key) { return recent }
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

    /// Closes the idle links when the worker ends. The owners of the others end theirs.
    func closeAll() {
        for pool in pools.values {
            while let link = popIdle(of: pool) {
                link.close()
                discountOpen(in: pool)
            }
        }
    }
}
