import Access
import Caching
import EventLoop
import Forwarding
import Framing
import Message
import Routing
import Storage
import Transaction

/// Carries out one `Retrieval`: owns the stream to the origin, the sink of the body and the time limits, tells the machine
/// what happens, and does what the machine returns.
///
/// A fetch belongs to the worker, not to a client. It knows its client by an address and tells it four things
/// (`FetchListener`); bytes reach the client by the `Body` alone, which the fetch writes and a `Delivery` reads. When the client
/// leaves, the retrieval goes on for the store, for followers and for other readers, or ends where nobody gains by it.
final class Fetch: TimedObject, OriginStreamOwner {
    enum Link {
        case none
        /// A stream is being opened, or waits its turn.
        case waiting(StreamRequest)
        case lent(OriginStream)
    }

    /// Where the bytes of the body go: what the machine decided, with the objects that belong to it.
    enum Sink {
        case none
        /// Through a window to the client that asked, and to nobody else.
        case pass(Body, TransientTrailers?)
        case store(StoredResponse)
        case fill(Fill, of: StoredResponse)
        case discard
    }

    /// What has been read of the message under way.
    struct Incoming: ~Copyable {
        /// The beginning of a head that is not complete.
        var head: [UInt8] = []
        var progress = HeadProgress()
        /// Nothing is to come until there is a final head.
        var body = BodyReader()
        /// Bytes of the body that came in one read with the head, and went to the sink when it was made.
        var takenWithHead = 0
        /// The connection can be used again when the message is complete, for as long.
        var persists = false
        var keepAlive: Duration = .zero
    }

    let worker: Worker
    let snapshot: Snapshot
    let request: OwnedRequest
    let reason: CacheStatus.ForwardReason
    /// The transfer that other requests follow; nil where this fetch does not lead.
    let transfer: Transfer?
    let retrieval: Retrieval
    /// Whom the answer is for; nil: it left, or nobody waits.
    var client: ClientStream.Address?
    /// The stored response that is being validated, and that may stand in for an origin that fails.
    var stored: StoredResponse?
    /// Other variants whose validators go along: the origin may say that one of them suits (RFC 9111 §4.3.1).
    let candidates: [StoredResponse]
    /// The bytes of a stored response that are being fetched.
    var hole: Hole?
    /// Its place among the worker's fetches; nil before it starts and when it is over.
    private(set) var id: ConnectionID?
    var link = Link.none
    var sink = Sink.none
    var incoming: Incoming
    /// All of the request has been sent.
    var requestIsSent = false
    var isPaused = false
    /// Invalidations of the tier when the fetch began: a response from before one of them is not stored.
    var invalidationsBefore: Int
    private let startedAt: MonotonicTime

    /// - Parameters:
    ///   - client: nil where nobody waits for the answer.
    ///   - stored: the stored response that was selected.
    ///   - hole: bytes to fetch in place of what the client asked for. The client of a hole has its head already where
    ///     `isAnswered`.
    init(
        worker: Worker, snapshot: Snapshot, request: OwnedRequest, client: ClientStream.Address?, plan: RetrievalPlan,
        stored: StoredResponse? = nil, candidates: [StoredResponse] = [], transfer: Transfer? = nil, hole: Hole? = nil,
        isAnswered: Bool = false
    ) {
        precondition(hole == nil || transfer == nil, "a hole is claimed, not led")
        self.worker = worker
        self.snapshot = snapshot
        self.request = request
        self.client = client
        self.stored = stored
        self.candidates = candidates
        self.transfer = transfer
        self.hole = hole
        reason = plan.reason
        incoming = Incoming()
        invalidationsBefore = request.tier.invalidations
        startedAt = worker.loop.now
        let listening: Retrieval.Client = client == nil ? .none : isAnswered ? .answered : .waiting
        let asked = request.forRetrieval(snapshot)
        if let hole {
            retrieval = Retrieval(asked, hole: hole.asked, client: listening, now: worker.wallTime)
        } else {
            let known =
                stored == nil && candidates.isEmpty
                ? Retrieval.Stored() : Retrieval.Stored(selected: stored?.cached, candidates: candidates.map(\.cached))
            retrieval = Retrieval(asked, plan, stored: known, client: listening, now: worker.wallTime)
        }
    }

    /// Takes a place among the worker's fetches, by which others find it.
    @discardableResult
    func enrol() -> ConnectionID {
        precondition(id == nil && !isIn(.finished), "a fetch has one life")
        var place: ConnectionID?
        _ = worker.fetches.insert { id in
            place = id
            return self
        }
        guard let place else { preconditionFailure("a fetch that is enrolled has a place") }
        id = place
        return place
    }

    func begin() {
        precondition(id != nil, "a fetch is enrolled before it begins")
        turn { feed(.start) }
    }

    // MARK: the machine

    /// Tells the machine what happened, and does what it returns.
    func feed(_ event: Retrieval.Event) {
        perform(retrieval.on(event, now: worker.wallTime, staleMayServe: staleMayServe))
    }

    /// What the machine waits for. Written out: `==` of another module's enumeration is a call by way of its witness table.
    func isIn(_ phase: Retrieval.Phase) -> Bool {
        switch (retrieval.phase, phase) {
        case (.ready, .ready), (.opening, .opening), (.asked, .asked), (.storing, .storing), (.receiving, .receiving),
            (.pausing, .pausing), (.finished, .finished):
            true
        case (.ready, _), (.opening, _), (.asked, _), (.storing, _), (.receiving, _), (.pausing, _), (.finished, _):
            false
        }
    }

    /// Whether the stored response can stand in for an origin that fails (RFC 9111 §4.2.4). One that misses bytes the client wants
    /// cannot.
    var staleMayServe: Bool {
        guard let stored, hole == nil, stored.body.state != .failed, request.isCovered(by: stored, worker) else {
            return false
        }
        let use = request.handling(of: stored, by: snapshot).use
        return mayServeStaleOnError(stored.terms, for: request.cache, use: use, now: worker.wallTime)
    }

    // MARK: the client

    /// Tells the exchange of the client that asked, if it is still there.
    func notify(_ tell: (Exchange) -> Void) {
        guard let client, let exchange = worker.exchange(at: client) else { return }
        tell(exchange)
    }

    /// The client is gone, or its answer needs nothing more from this fetch.
    func clientLeft() {
        client = nil
        let othersGain =
            switch sink {
            case .store(let record): !isForNobody(record)
            case .fill(let fill, _): !fill.body.isLeftByDisk
            case .none: transfer.map { $0.followerCount > 0 } ?? false
            case .pass, .discard: false
            }
        feed(.clientLeft(othersGain: othersGain))
    }

    /// The client has its whole answer. What the origin still sends is for the store and for others, or is nothing but the end of the
    /// message, after which the connection can be used again.
    func answerDelivered() {
        if case .pass = sink {
            client = nil
            return feed(.clientLeft(othersGain: true))
        }
        clientLeft()
    }

    /// It is no longer stored, and nobody reads it.
    func isForNobody(_ record: StoredResponse) -> Bool { record.body.isWindowed && !record.body.hasReaders }

    // MARK: seen from outside

    /// What the admin endpoint says about it.
    var description: FetchDescription {
        var readers = client == nil ? 0 : 1
        if let transfer { readers += transfer.followerCount }
        let progress = retrieval.progress
        var result = FetchDescription(
            uri: request.uri, age: worker.loop.now.duration(since: startedAt), received: progress.received,
            expected: progress.total, readers: readers, isStored: false)
        switch sink {
        case .store, .fill: result.isStored = true
        case .none, .pass, .discard: break
        }
        return result
    }

    override func timerFired() {
        if isPaused, isIn(.receiving) {
            // The readers are behind, not the origin.
            return worker.loop.timers.schedule(self, after: snapshot.configuration.timeouts.idle)
        }
        if !isIn(.pausing) { worker.counters.add(.timeouts) }
        turn { feed(.timedOut) }
    }

    /// The worker stops.
    func abort() { turn { feed(.cancelled) } }

    /// Does some work in which bodies may grow or end, then lets those on this worker who read them send.
    func turn(_ work: () -> Void) {
        worker.readers.hold()
        work()
        worker.readers.release()
    }

    /// Ends its life on the worker; the machine has finished.
    func end() {
        worker.loop.timers.cancel(self)
        if let id { _ = worker.fetches.remove(id) }
        id = nil
        client = nil
    }
}

/// What an exchange hears from the fetch that works for it.
protocol FetchListener: AnyObject {
    /// An interim head came, before any final head.
    func fetchSentInterim(_ response: ReceivedResponse)
    /// The final head came, and the body is on its way or complete. From here on the body says how it goes on.
    func fetchAnswered(_ answer: FetchedAnswer)
    /// There is no answer; or there was, and its body cannot be completed.
    func fetchFailed(_ refusal: Refusal, denial: Denial?)
    /// The origin switched protocols: its socket is the client's now.
    func fetchSwitched(_ response: ReceivedResponse, origin: consuming Descriptor, early: [UInt8])
}

enum FetchedAnswer {
    /// From the store, where it is or where it is arriving.
    /// - ownFields: all end-to-end fields as they came, where not all are stored and this client is the one they were sent to.
    case stored(StoredResponse, as: Service, ownFields: Fields?)
    /// For this client alone. `body`: nil where no content follows the head.
    case passed(RelayedHead, ReceivedResponse, Body?, TransientTrailers?)
}

/// Bytes of a stored response that nobody has fetched, and the claim on them.
struct Hole {
    let record: StoredResponse
    let fill: Fill

    var asked: PartAsked {
        PartAsked(
            stored: record.cached, start: fill.range.lowerBound, end: fill.range.upperBound,
            wholeLength: record.body.expectedLength)
    }
}
