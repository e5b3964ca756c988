import Access
import Caching
import EventLoop
import Framing
import Message
import Routing
import Transaction

/// Carries out what the machine of the way to an answer wants (`Approach`).
///
/// Whatever is waited for reports an event when it has happened. The machine ignores an event that comes too late.
extension Fetch {
    /// What the request needs before a connection is asked for.
    var needs: Approach.Needs {
        let mayProve = snapshot.usesPlaceholders || request.credential != nil
        // Without chunks, only a length can say where the body of a request ends (RFC 1945 §7.2.2).
        return Approach.Needs(framing: terms.isHTTP10, credential: mayProve, body: mayProve && request.hasBody)
    }

    /// Asks for a stream.
    func wantStream() {
        precondition(hasNoLink, "the stream before has not been ended")
        approach(.wanted)
    }

    /// Tells the machine, and carries out what it wants until something is waited for.
    func approach(_ event: Approach.Event) { perform(way.on(event)) }

    func perform(_ first: Approach.Action) {
        var action = first
        while let event = carryOut(action) { action = way.on(event) }
    }

    /// Returns what to tell the machine at once. Nil: nothing, or it is told later.
    private func carryOut(_ action: Approach.Action) -> Approach.Event? {
        switch action {
        case .none: return nil
        case .meet(let need): return meet(need)
        case .borrow: return borrow()
        case .give(let isReused): feed(.opened(isReused: isReused))
        case .fail(let refusal): feed(.notOpened(refusal))
        case .timeOut: feed(.timedOut)
        case .changeWay: feed(.routeFailed)
        case .askNode(let anew): return askNode(anew: anew)
        case .leaveNode:
            leaveNode()
            return .nodeNotOpened
        case .keepNode:
            keepNode()
            return .wanted
        case .dropNode: dropStandby()
        case .returnToNode: returnToStandby()
        }
        return nil
    }

    // MARK: what the request needs

    private func meet(_ need: Approach.Need) -> Approach.Event? {
        switch need {
        case .framing:
            if case .chunked = request.bodyLength { return .refused(need, .lengthRequired) }
        case .credential:
            if let hindrance = prepareCredentials() { return outcome(of: hindrance, need) }
        case .body:
            if let hindrance = prepareBody() { return outcome(of: hindrance, need) }
        case .permission:
            if let hindrance = askRulesAboutBody() { return outcome(of: hindrance, need) }
        }
        return .met(need)
    }

    private func outcome(of hindrance: CredentialHindrance, _ need: Approach.Need) -> Approach.Event? {
        switch hindrance {
        case .undecided: wait(terms.firstByte)
        case .bodyIsMissing: receiveBody()
        case .refusal(let refusal): return .refused(need, refusal)
        }
        return nil
    }

    // MARK: a connection

    private func borrow() -> Approach.Event? {
        if let plan = routes.take() { return borrow(over: plan) }
        switch worker.way(for: request, snapshot) {
        case .plan(let plan): return borrow(over: plan)
        case .refused: return .notOpened(.routeUnknown)
        case .unknown(let choice):
            routeWait = worker.ask(choice, snapshot, request.id) { [unowned self] plan in
                routeWait = nil
                routes = plan
                turn { approach(plan == nil ? .notOpened(.routeUnknown) : .routed) }
            }
            wait(terms.connect)
            return .awaitsRoutes
        }
    }

    private func borrow(over plan: RoutePlan) -> Approach.Event? {
        let mayReuse = retrieval.mayReuseConnection && (request.boundIdentity != nil || !request.bindsConnection)
        let loan = worker.origins.borrow(
            over: snapshot.hasRoutes ? withoutRefused(plan) : plan, for: request, terms, boundIdentity,
            snapshot: snapshot, mayReuse: mayReuse && terms.mayPersist, owner: self)
        switch loan {
        case .lent(let stream):
            link = .lent(stream)
            return .opened(isReused: true)
        case .waiting(let streamRequest):
            link = .waiting(streamRequest)
            waitForConnection()
            return nil
        case .refused(let refusal):
            return notOpened(refusal.refusal, refusal.denial)
        }
    }

    /// The routes whose proxies have not refused Larder's log-in. All of them if all have: a later attempt begins anew.
    private func withoutRefused(_ plan: RoutePlan) -> RoutePlan {
        if refusedRoutes.isEmpty { return plan }
        if let left = plan.without(refusedRoutes) { return left }
        refusedRoutes = []
        return plan
    }

    /// This fetch owns the stream from here on. `releaseStream` or `switchProtocols` ends the loan, and nothing else.
    func opened(_ stream: OriginStream, isReused: Bool) {
        precondition(!holdsStream, "a fetch has one stream at a time")
        turn {
            link = .lent(stream)
            approach(way.isWithNode ? .nodeOpened(isReused: isReused) : .opened(isReused: isReused))
        }
    }

    func openingFailed(_ refusal: Refusal, _ denial: Denial?) {
        precondition(!holdsStream, "a fetch has one stream at a time")
        // The stream request has ended with this call. It must not be cancelled when the machine's next action releases the stream.
        link = .none
        turn {
            if way.isWithNode {
                quest?.settle(PeerResult(notConnected: refusal))
                approach(.nodeNotOpened)
            } else {
                approach(notOpened(refusal, denial))
            }
        }
    }

    private func notOpened(_ refusal: Refusal, _ denial: Denial?) -> Approach.Event {
        // The client is not told of a way that does not matter, because a node that is late may answer still.
        if let denial, !way.isRace { notify { $0.note(denial) } }
        return .notOpened(refusal)
    }
}
