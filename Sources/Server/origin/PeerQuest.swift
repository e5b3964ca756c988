import Access
import EventLoop
import Fleet
import Framing
import Message
import Routing
import Storage
import Transaction

/// What a fetch asks other nodes of the fleet before it asks the origin: the owner of the response, then its stand-in.
///
/// A node that has not said anything within 50 ms is not waited for: the origin is asked as well, and whoever answers first is heard (`PeerStandby`). A node that
/// fetches the response itself says so at once with an interim response (102), and then it is waited for, so that all nodes together ask the origin once.
final class PeerQuest {
    /// A connection to a node takes no longer.
    private static let connectMax = Duration.milliseconds(250)
    /// From the request to the first byte of the answer.
    private static let answerMax = Duration.milliseconds(50)

    /// The node that is being asked.
    struct Asked {
        let peer: FleetPeer
        let isForStoreOnly: Bool
        let permit: Fleet.Circuit.Permit
    }

    private let desk: PeerDesk
    private var left: ArraySlice<(peer: FleetPeer, isForStoreOnly: Bool)>
    let keeping: PeerPlan.Keeping
    /// The node is to ask the origin, whatever it has.
    let asksForNews: Bool
    private(set) var asked: Asked?
    /// How the node whose answer is being received came by it. Nil: the origin answers.
    private(set) var answer: PeerVerdict?
    /// The node whose answer is being received.
    private var answering: FleetPeer?
    private(set) var standby: PeerStandby?
    /// That have come from other nodes.
    private var bytes = 0
    private let timer: PreciseTimer
    private let loop: EventLoop

    /// - Parameter late: the node that is asked is not waited for any longer.
    init(_ plan: PeerDesk.Plan, _ desk: PeerDesk, loop: EventLoop, late: @escaping () -> Void) {
        self.desk = desk
        self.loop = loop
        left = plan.asks[...]
        keeping = plan.keeping
        asksForNews = plan.asksForNews
        timer = PreciseTimer(loop, late)
    }

    /// The next node to ask. Nil: the origin.
    func next() -> Asked? {
        precondition(asked == nil, "the node before has been settled")
        answer = nil
        while let (peer, isForStoreOnly) = left.popFirst() {
            guard let permit = desk.permit(to: peer, now: loop.now) else { continue }
            let chosen = Asked(peer: peer, isForStoreOnly: isForStoreOnly, permit: permit)
            asked = chosen
            timer.start(at: loop.now.advanced(by: PeerQuest.connectMax))
            return chosen
        }
        return nil
    }

    /// The connection to the node turned out to be dead: it has the time for a new one.
    func startAgain() { timer.start(at: loop.now.advanced(by: PeerQuest.connectMax)) }

    /// The request has gone out.
    func sent() { timer.start(at: loop.now.advanced(by: PeerQuest.answerMax)) }

    /// The node says that it fetches the response, and has the time for it.
    func stopTimer() { timer.stop() }

    /// The node gives an answer, whose head has come.
    func answered(_ verdict: PeerVerdict) {
        answer = verdict
        answering = asked?.peer
        settle(PeerResult(verdict))
    }

    /// The body of the answer that is being received breaks off.
    func brokeOff() {
        guard let answer, let peer = answering.take() else { return }
        desk.noteBreakOff(of: peer, wasStored: answer == .hit || answer == .stale, now: loop.now)
    }

    /// The node that is asked gives no answer.
    func settle(_ result: PeerResult) {
        timer.stop()
        guard let ended = asked.take() else { return }
        desk.settle(ended.permit, of: ended.peer, result, now: loop.now)
    }

    /// So many bytes have come, of whatever answers.
    func received(_ count: Int) { if answer != nil { bytes += count } }

    /// Whether what was received may go to the disk of this node.
    var isKept: Bool {
        switch keeping {
        case .always: true
        case .ifUnanswered: answer == nil
        case .never: false
        }
    }

    // MARK: hedging

    /// Goes on listening to the node that is asked, while the origin is asked as well.
    func hedge(_ stream: OriginStream, of fetch: Fetch) {
        guard asked != nil else { preconditionFailure("a node is asked") }
        precondition(standby == nil, "one node at a time is waited for")
        desk.noteHedge()
        timer.stop()
        standby = PeerStandby(stream, fetch)
    }

    /// Gives the standby up. Nil if there is none.
    func takeStandby() -> PeerStandby? { standby.take() }

    /// Nobody waits any longer, for anything.
    func end() {
        if bytes > 0 { desk.noteBytes(bytes) }
        takeStandby()?.close()
        settle(.abandoned)
    }
}

/// A node that was slow to answer, and whose answer is still welcome until the origin answers.
final class PeerStandby: ConversationOwner {
    let stream: OriginStream
    private unowned let fetch: Fetch

    fileprivate init(_ stream: OriginStream, _ fetch: Fetch) {
        self.stream = stream
        self.fetch = fetch
        stream.conversation.pass(to: self)
    }

    /// That the node fetches the response is no answer: the origin is being asked already.
    func received(interim head: ArrivedHead) {}

    /// What the node says is judged like that of any answer, and the fetch hears what follows.
    func received(final head: ArrivedHead, of conversation: HTTP1Conversation) -> ContentUse {
        fetch.standbyAnswers(head, of: conversation)
    }

    func received(content: UnsafeRawBufferPointer, isAll: Bool) { preconditionFailure("its head has not come") }
    func ended(byClosing: Bool) { preconditionFailure("its head has not come") }
    func receivedUnasked() { fetch.standbyFailed() }
    func violated(_ error: FramingError) { fetch.standbyFailed() }
    func closedBeforeHead(headBegan: Bool) { fetch.standbyFailed() }
    func brokeOff() { preconditionFailure("its head has not come") }

    func close() { stream.finish(.close) }
}
