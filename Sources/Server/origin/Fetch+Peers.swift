import Caching
import EventLoop
import Fleet
import Forwarding
import Framing
import Message
import Routing
import Transaction

/// Asks the nodes of the fleet before the origin (`PeerQuest`).
///
/// To the machine a node is one more way to the origin: if it does not answer, the next way is taken, as after a next proxy that refused (`routeFailed`). If it breaks off in its
/// body, the rest is asked for like the rest of any body.
extension Fetch {
    /// The quest of a fetch whose response another node may have. Nil for all others.
    func makeQuest() -> PeerQuest? {
        guard let desk = worker.shared.fleet?.peers, request.isForFleet(snapshot) else { return nil }
        // What is only looked up is no news.
        let isForStore = stored == nil && candidates.isEmpty && hole == nil && !request.saysHowFresh
        let plan = desk.plan(
            zone: request.zone.name, key: request.keyBytes, isForPeer: request.peer != nil,
            looksIntoStores: isForStore, now: worker.loop.now)
        guard !plan.asks.isEmpty || plan.keeping != .always else { return nil }
        return PeerQuest(plan, desk, loop: worker.loop) { [unowned self] in peerIsLate() }
    }

    /// Asks the next node. Returns false if it is the origin's turn.
    func acquireFromPeer() -> Bool {
        while let asked = quest?.next() {
            let loan = worker.origins.borrow(
                over: RoutePlan(.peer(asked.peer)), for: request, terms, nil, snapshot: snapshot,
                mayReuse: !asked.isSecondAttempt && retrieval.mayReuseConnection, owner: self)
            switch loan {
            case .lent(let stream):
                opened(stream, isReused: true)
                return true
            case .waiting(let request):
                link = .waiting(request)
                waitForConnection()
                return true
            case .refused(let refusal): quest?.settle(PeerResult(notConnected: refusal.refusal))
            }
        }
        if let quest, quest.isKept { request.isOwnedElsewhere = false }
        return false
    }

    /// Sends the request to the node that is asked.
    func sendToPeer(_ asked: PeerQuest.Asked, on stream: OriginStream) {
        guard let desk = worker.shared.fleet?.peers,
            let value = desk.question({ request.describe(to: &$0, isForStoreOnly: asked.isForStoreOnly) })
        else { return peerFailed(.abandoned) }
        incoming.head = []
        incoming.progress = HeadProgress()
        incoming.persists = false
        var outgoing = OutgoingRequest(request, conditions: retrieval.conditions, instance: worker.shared.instance)
        outgoing.addressToPeer()
        outgoing.set(spelling: PeerQuestion.fieldName, value)
        if asked.isForStoreOnly {
            outgoing.set(.cacheControl, Array("only-if-cached".utf8))
        } else if quest?.asksForNews == true {
            outgoing.set(.cacheControl, Array("no-cache".utf8))
        }
        guard case .failed = send(outgoing, on: stream) else {
            worker.debug(.requests, request.id, "\(subject): the node \(asked.peer) is asked")
            requestIsSent = true
            outgoingBody = OutgoingBody(outgoing.framing)
            quest?.sent()
            return wait(terms.firstByte)
        }
        peerEnded(isReused: stream.isReused)
    }

    /// The response cannot be stored: the next request for it goes to the origin at once.
    func notePassing() {
        worker.shared.fleet?.peers?.notePassing(zone: request.zone.name, key: request.keyBytes, now: worker.loop.now)
    }

    /// Whether the link leads to a node of the fleet that has not answered.
    var isAskingPeer: Bool { quest?.asked != nil && quest?.standby == nil }

    /// The connection ended before an answer.
    func peerEnded(isReused: Bool) {
        if isReused, quest?.asked?.isWorking == false, quest?.triesAgain() == true { return feed(.routeFailed) }
        peerFailed(.broken)
    }

    /// The node that is asked gives no answer: the next one is asked, or the origin.
    func peerFailed(_ result: PeerResult) {
        worker.debug(.requests, request.id, "\(subject): \(quest?.asked.map { "\($0.peer)" } ?? ""): \(result)")
        quest?.settle(result)
        feed(.routeFailed)
    }

    /// The node that is asked could not be connected to. Returns false if none was.
    func peerIsUnreachable(_ refusal: Refusal) -> Bool {
        guard isAskingPeer else { return false }
        quest?.settle(PeerResult(notConnected: refusal))
        link = .none
        turn { acquire(mayReuse: retrieval.mayReuseConnection) }
        return true
    }

    /// The time of the node that is asked is over.
    func peerIsLate() {
        guard isAskingPeer, let quest else { return }
        turn {
            switch link {
            case .lent(let stream) where isIn(.asked) && incoming.head.isEmpty:
                link = .none
                quest.hedge(stream, of: self)
                feed(.routeFailed)
            case .waiting(let streamRequest):
                // That all connections are in use is no failure of the node.
                let result: PeerResult = streamRequest.isQueued ? .abandoned : .late
                streamRequest.cancel()
                link = .none
                quest.settle(result)
                acquire(mayReuse: retrieval.mayReuseConnection)
            case .lent, .none: break
            }
        }
    }

    // MARK: a node that is late

    /// The late node has sent a head, and the origin has not. What came from the origin is dropped.
    func standbyAnswers() {
        guard isIn(.opening) || (isIn(.asked) && incoming.head.isEmpty) else { return dropStandby() }
        turn {
            if let wait = routeWait.take() { worker.cancel(wait) }
            returnToStandby()
        }
    }

    /// The late node is the only way that is left: its answer is waited for.
    func returnToStandby() {
        guard let standby = quest?.takeStandby() else { return }
        releaseStream(isComplete: false)
        standby.stream.pass(to: self)
        link = .lent(standby.stream)
        incoming.progress = HeadProgress()
        incoming.persists = false
        incoming.head = standby.received
        if isIn(.opening) {
            quest?.isSent = true
            feed(.opened(isReused: false))
        }
        wait(terms.firstByte)
        if isIn(.asked), !incoming.head.isEmpty { parseKeptHead() }
    }

    /// The late node has ended its connection. The origin is being asked.
    func standbyFailed() {
        quest?.takeStandby()?.close()
        quest?.settle(.broken)
    }

    /// The origin answers before the late node does.
    func dropStandby() {
        guard let standby = quest?.takeStandby() else { return }
        quest?.settle(.late)
        standby.close()
    }

    // MARK: its head

    enum PeerHead {
        /// Without what is meant for this node alone.
        case response(ReceivedResponse)
        /// An interim head that says no more than that there will be an answer.
        case working
        case none(PeerResult)
    }

    /// Takes the head of the node that is asked.
    func takeFromPeer(_ response: ReceivedResponse) -> PeerHead {
        // That node puts its line before those of the origin.
        let verdict = response.fields.value(ofSpelling: PeerQuestion.fieldName).flatMap { PeerVerdict($0) }
        guard response.status >= 200 else {
            if case .refused(let objection) = verdict { return .none(.refused(objection)) }
            guard verdict == .working else { return .response(response) }
            return quest?.isWorking() == true ? .working : .response(response.withoutPeerRemarks)
        }
        switch verdict {
        case .hit?, .fetched?, .passed?: break
        // A node that joins asks for what is good enough to be stored.
        case .stale?: guard retrieval.takesStale, quest?.asked?.isForStoreOnly == false else { return .none(.stale) }
        case .refused(let objection)?: return .none(.refused(objection))
        case .working?, nil: return .none(.broken)
        }
        if let verdict { quest?.answered(verdict) }
        if verdict == .passed, response.status == 200 { notePassing() }
        return .response(response.withoutPeerRemarks)
    }
}

extension PeerResult {
    /// Where no connection could be had.
    fileprivate init(notConnected refusal: Refusal) {
        self = refusal == .originQueueFull ? .abandoned : .unreachable(refusal.name)
    }
}
