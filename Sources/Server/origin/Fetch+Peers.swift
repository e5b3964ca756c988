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
/// `Approach` says which node is asked and when. The retrieval hears of a node that gives no answer as it hears of a next proxy that refused (`routeFailed`), and asks for
/// another stream. If the body of its answer breaks off, the rest is asked for like the rest of any body.
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

    /// Asks for a stream to a node.
    ///
    /// - Parameter anew: on a new connection to the one that was asked last. Otherwise the next one is asked.
    func askNode(anew: Bool) -> Approach.Event? {
        if anew { quest?.startAgain() }
        while let asked = anew ? quest?.asked : quest?.next() {
            let loan = worker.origins.borrow(
                over: RoutePlan(.peer(asked.peer)), for: request, terms, nil, snapshot: snapshot,
                mayReuse: !anew && retrieval.mayReuseConnection, owner: self)
            switch loan {
            case .lent(let stream):
                link = .lent(stream)
                return .nodeOpened(isReused: true)
            case .waiting(let request):
                link = .waiting(request)
                waitForConnection()
                return nil
            case .refused(let refusal):
                quest?.settle(PeerResult(notConnected: refusal.refusal))
                if anew { return .nodeNotOpened }
            }
        }
        if let quest, quest.isKept { request.isOwnedElsewhere = false }
        return .noNode
    }

    /// Sends the request to the node that is asked.
    func sendToPeer(_ asked: PeerQuest.Asked, on stream: OriginStream) {
        guard let desk = worker.shared.fleet?.peers,
            let value = desk.question({ request.describe(to: &$0, isForStoreOnly: asked.isForStoreOnly) })
        else { return peerFailed(.abandoned) }
        var outgoing = OutgoingRequest(request, conditions: retrieval.conditions, instance: worker.shared.instance)
        outgoing.addressToPeer()
        outgoing.set(spelling: PeerQuestion.fieldName, value)
        if asked.isForStoreOnly {
            outgoing.set(.cacheControl, Array("only-if-cached".utf8))
        } else if quest?.asksForNews == true {
            outgoing.set(.cacheControl, Array("no-cache".utf8))
        }
        guard case .failed = send(outgoing, on: stream, .own) else {
            worker.debug(.requests, request.id, "\(subject): the node \(asked.peer) is asked")
            quest?.sent()
            return wait(terms.firstByte)
        }
        peerEnded(isReused: stream.isReused)
    }

    /// The response cannot be stored: the next request for it goes to the origin at once.
    func notePassing() {
        worker.shared.fleet?.peers?.notePassing(zone: request.zone.name, key: request.keyBytes, now: worker.loop.now)
    }

    /// The connection ended before an answer.
    func peerEnded(isReused: Bool) { peerFailed(.broken, isReused ? .wasDead : .noAnswer) }

    /// The node that is asked gives no answer: the next one is asked, or the origin.
    func peerFailed(_ result: PeerResult, _ failure: Approach.NodeFailure = .noAnswer) {
        let next = way.on(.nodeFailed(failure))
        worker.debug(.requests, request.id, "\(subject): \(quest?.asked.map { "\($0.peer)" } ?? ""): \(result)")
        if !way.asksAgain { quest?.settle(result) }
        perform(next)
    }

    /// The time of the node that is asked is over.
    func peerIsLate() {
        var headBegan = false
        if case .lent(let stream) = link { headBegan = stream.conversation.headBegan }
        turn { approach(.nodeLate(headBegan: headBegan)) }
    }

    /// Gives up the wait for a connection to the node.
    func leaveNode() {
        guard case .waiting(let streamRequest) = link else { return }
        // That all connections are in use is no failure of the node.
        let result: PeerResult = streamRequest.isQueued ? .abandoned : .late
        streamRequest.cancel()
        link = .none
        quest?.settle(result)
    }

    /// Goes on listening to the node, while the origin is asked as well.
    func keepNode() {
        guard case .lent(let stream) = link else { preconditionFailure("a node is asked on a stream") }
        link = .none
        quest?.hedge(stream, of: self)
    }

    // MARK: a node that is late

    /// The late node has sent its final head.
    func standbyAnswers(_ head: ArrivedHead, of conversation: HTTP1Conversation) -> ContentUse {
        var (originBegan, use) = (false, ContentUse.leave)
        if case .lent(let stream) = link { originBegan = stream.conversation.headBegan }
        turn {
            approach(.lateNodeHeard(originBegan: originBegan))
            if way.isWithNode { use = received(final: head, of: conversation) }
        }
        return use
    }

    /// The stream to the late node takes the place of what leads to the origin.
    func returnToStandby() {
        guard let standby = quest?.takeStandby() else { preconditionFailure("a late node is listened to") }
        cancelRouteWait()
        releaseStream(isComplete: false)
        standby.stream.conversation.pass(to: self)
        link = .lent(standby.stream)
        wait(terms.firstByte)
    }

    /// The late node has ended its connection. The origin is being asked.
    func standbyFailed() {
        let next = way.on(.nodeFailed(.noAnswer))
        quest?.settle(.broken)
        turn { perform(next) }
    }

    /// The late node is not needed any more.
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
            guard !way.nodeIsWorking else { return .response(response.withoutPeerRemarks) }
            approach(.nodeWorks)
            quest?.stopTimer()
            return .working
        }
        switch verdict {
        case .hit?, .fetched?, .passed?: break
        // A node that joins asks for what is good enough to be stored.
        case .stale?: guard retrieval.takesStale, quest?.asked?.isForStoreOnly == false else { return .none(.stale) }
        case .refused(let objection)?: return .none(.refused(objection))
        case .working?, nil: return .none(.broken)
        }
        approach(.nodeAnswered)
        if let verdict { quest?.answered(verdict) }
        if verdict == .passed, response.status == 200 { notePassing() }
        return .response(response.withoutPeerRemarks)
    }
}

extension PeerResult {
    /// Where no connection could be had.
    init(notConnected refusal: Refusal) {
        self = refusal == .originQueueFull ? .abandoned : .unreachable(refusal.name)
    }
}
