import Access
import Accounts
import Caching
import EventLoop
import Forwarding
import Framing
import Message
import Routing
import Origins
import Storage
import Transaction
import Transport

/// The driver of one `Retrieval`: owns the stream to the origin, the sink of the body and the time limits; reports events to the
/// machine and performs the actions that it returns.
///
/// The worker owns the fetch (`Worker.fetches`), no client does. The fetch finds its client by an address and makes five calls to it
/// (`FetchListener`). Bytes reach the client through the `Body` alone: the fetch writes it, a `Delivery` reads it. When the client
/// leaves, the retrieval goes on if the store, a follower or another reader needs the response; otherwise it ends.
///
/// Any call to a listener or to a body may run code that ends this fetch: a client that fails while it is written to may be the last
/// one interested. `turn` delays such writes until the work under way is done. Code that goes on after a call checks `isIn(_:)` first.
final class Fetch: TimedObject, OriginStreamOwner {
    enum Link {
        case none
        /// A stream was requested: a connection is being opened, or the request waits for a free one.
        case waiting(StreamRequest)
        case lent(OriginStream)
    }

    /// Where the bytes of the body go: the machine's decision, with the objects that carry it out.
    enum Sink {
        case none
        /// Through a bounded window to the client that asked, and to nobody else.
        case pass(Body, TransientTrailers?)
        case store(StoredResponse)
        case fill(Fill, of: StoredResponse)
        case discard
    }

    let worker: Worker
    let snapshot: Snapshot
    let request: OwnedRequest
    let terms: OriginTerms
    /// Whether the origin is asked over TLS that does not prove who it is.
    var isUnverified: Bool { request.head.target.scheme == .https && !terms.tls.provesOrigin }
    let reason: CacheStatus.ForwardReason
    /// The transfer that other requests follow. This fetch resolves it exactly once. Nil if this fetch does not lead.
    let transfer: Transfer?
    /// The machine calls nothing but `staleMayServe`, which does not ask the machine, so no two accesses overlap: the unchecked access is
    /// exclusive.
    var retrieval: Retrieval {
        _read { yield unsafe uncheckedRetrieval }
        _modify { yield unsafe &uncheckedRetrieval }
    }
    @exclusivity(unchecked) private var uncheckedRetrieval: Retrieval
    /// The client that the answer is for. Nil if the client left, or if there never was one.
    var client: ClientStream.Address?
    /// The stored response that is validated, and that may be served stale if the origin fails.
    var stored: StoredResponse?
    /// Other variants whose validators are sent: a 304 may select one of them (RFC 9111 §4.3.1).
    let candidates: [StoredResponse]
    /// The missing bytes of a stored response that this fetch retrieves; nil for an ordinary request.
    var hole: Hole?
    /// The number of this fetch among the worker's; nil before `enrol` and after `end`.
    private(set) var id: ConnectionID?
    var link = Link.none
    var sink = Sink.none
    /// Encodes the body of the request. Nil: it is sent as it is.
    var encoder: ContentEncoder?
    /// Bytes of the request's body that have been sent or queued, over all connections.
    var sentBytes: UInt64 = 0
    /// The client's request broke off. Its origin gets a reset, so that it cannot take a part of the request for the whole.
    var cutsRequest = false
    var isPaused = false
    var diskWait = DiskWait()
    /// The framing of the body that came last was invalid: it did not break off.
    var hasMalformedBody = false
    /// Holds the response to the rates of `bandwidth`. Nil: without limit.
    let brake: FlowBrake?
    /// The machine calls nothing: the unchecked access is exclusive.
    var way: Approach {
        _read { yield unsafe uncheckedWay }
        _modify { yield unsafe &uncheckedWay }
    }
    @exclusivity(unchecked) private var uncheckedWay = Approach(needs: Approach.Needs())
    /// A PAC file is asked for the routes.
    var routeWait: RouteWait?
    /// What a PAC file has answered, until a connection is asked for.
    var routes: RoutePlan?
    /// What the request proves with a credential of Larder's own. Nil if it has none, and while nothing has been decided.
    var credentialUse: CredentialUse?
    /// The log-in of the connection with that credential. Nil if the credential logs in no connection.
    var legs: LogInLegs?
    /// What it proves to the next proxy that reads it.
    var proxyLogIn = ProxyLogInState.none
    /// The routes whose proxies have not accepted Larder's log-in for this request.
    var refusedRoutes: [Route] = []
    var expectation = OwnExpectation.none
    /// The body of the request waits until the origin has shown that it accepts the credentials.
    var holdsBody: Bool { expectation == .pending }
    /// For the next bytes of a head.
    var limitForHead: Duration { holdsBody ? Fetch.continueTimeout : terms.firstByte }
    /// Replaces placeholders by secrets. Nil if no credential has placeholders, or if there is nothing to look at.
    ///
    /// Reading and setting it calls nothing: the unchecked access is exclusive.
    var substitution: Substitution? {
        get { unsafe uncheckedSubstitution }
        set { unsafe uncheckedSubstitution = newValue }
    }
    @exclusivity(unchecked) private var uncheckedSubstitution: Substitution?
    /// The body of the request, if it must be whole before anything of the request is sent.
    ///
    /// Reading and setting it calls nothing: the unchecked access is exclusive.
    var keptBody: KeptBody? {
        get { unsafe uncheckedKeptBody }
        set { unsafe uncheckedKeptBody = newValue }
    }
    @exclusivity(unchecked) private var uncheckedKeptBody: KeptBody?
    /// Asks other nodes of the fleet first. Nil: the origin alone is asked.
    var quest: PeerQuest?
    /// Proves the body that is being stored. Nil if no rule asks for that.
    var proof: BodyProof?
    /// What the content goes through before it goes into the sink.
    /// Nil: it goes as it comes. Filters call nobody but those to whom they pass content on, and it is not changed meanwhile: the unchecked access is
    /// exclusive.
    var filters: ContentFilters? {
        _read { yield unsafe uncheckedFilters }
        _modify { yield unsafe &uncheckedFilters }
    }
    @exclusivity(unchecked) private var uncheckedFilters: ContentFilters?
    /// Whether the content goes, or will go, through a filter: it is not taken as it comes, and a part of it is not kept.
    var filtersContent: Bool { filters != nil || substitution?.secrets != nil }
    /// The tier's count of invalidations when the fetch began. If the count has grown, the response may be older than what
    /// invalidated it, and is not stored (RFC 9111 §4.4).
    var invalidationsBefore: Int
    private let startedAt: MonotonicTime
    /// When `terms.total` is over.
    private let lastMoment: MonotonicTime?

    /// - Parameters:
    ///   - client: nil if nobody waits for the answer.
    ///   - stored: the stored response that was selected.
    ///   - hole: missing bytes of a stored response, which are retrieved in place of what the client asked for.
    ///   - isAnswered: the client has its final head already. Only with `hole`.
    init(
        worker: Worker, snapshot: Snapshot, request: OwnedRequest, client: ClientStream.Address?, plan: RetrievalPlan,
        stored: StoredResponse? = nil, candidates: [StoredResponse] = [], transfer: Transfer? = nil, hole: Hole? = nil,
        isAnswered: Bool = false
    ) {
        precondition(hole == nil || transfer == nil, "a hole is claimed, not led")
        precondition(plan.isLeading == (transfer != nil), "who leads has a transfer to resolve")
        precondition(!isAnswered || hole != nil, "a client that has its head waits for missing bytes only")
        self.worker = worker
        self.snapshot = snapshot
        self.request = request
        self.client = client
        self.stored = stored
        self.candidates = candidates
        self.transfer = transfer
        self.hole = hole
        reason = plan.reason
        invalidationsBefore = request.tier.invalidations
        request.sentAfterInvalidation = worker.shared.invalidationMarks.last
        startedAt = worker.loop.now
        terms = snapshot.origins.terms(for: request.access)
        brake = snapshot.limitsBandwidth ? worker.brake(for: request, terms, snapshot) : nil
        lastMoment = terms.total.map { worker.loop.now.advanced(by: $0) }
        let listening: Retrieval.Client = client == nil ? .none : isAnswered ? .answered : .waiting
        let asked = request.forRetrieval(snapshot, terms)
        if let hole {
            unsafe uncheckedRetrieval = Retrieval(asked, hole: hole.asked, client: listening, now: worker.wallTime)
        } else {
            let known =
                stored == nil && candidates.isEmpty
                ? nil : Retrieval.Stored(selected: stored?.cached, candidates: candidates.map(\.cached))
            unsafe uncheckedRetrieval = Retrieval(asked, plan, stored: known, client: listening, now: worker.wallTime)
        }
    }

    /// An unsafe request has invalidated something, and what its answer stores is newer.
    func noteInvalidations() {
        invalidationsBefore = request.tier.invalidations
        request.sentAfterInvalidation = worker.shared.invalidationMarks.last
    }

    /// Hands the fetch to the worker, and returns the number by which others find it.
    @discardableResult
    func enrol() -> ConnectionID {
        precondition(id == nil && !isIn(.finished), "a fetch has one life")
        let place = worker.fetches.insert(self)
        id = place
        return place
    }

    func begin() {
        precondition(id != nil, "a fetch is enrolled before it begins")
        brake?.start { [unowned self] in released() }
        if worker.shared.fleet != nil {
            quest = makeQuest()
            if let quest { request.isOwnedElsewhere = quest.keeping != .always }
        }
        way = Approach(needs: needs, asksNodes: quest != nil)
        worker.retryBudget.noteRequest(percent: snapshot.configuration.retries.budgetPercent)
        turn { feed(.start) }
    }

    // MARK: the machine

    /// Reports an event to the machine and performs the action that it returns.
    func feed(_ event: Retrieval.Event) {
        perform(retrieval.on(event, now: worker.wallTime, staleMayServe: staleMayServe))
    }

    /// Whether the machine is in `phase`. Written out, because `==` on another module's enumeration is a call through its witness
    /// table.
    func isIn(_ phase: Retrieval.Phase) -> Bool {
        switch (retrieval.phase, phase) {
        case (.ready, .ready), (.opening, .opening), (.asked, .asked), (.storing, .storing), (.receiving, .receiving),
            (.pausing, .pausing), (.retrying, .retrying), (.finished, .finished):
            true
        case (.ready, _), (.opening, _), (.asked, _), (.storing, _), (.receiving, _), (.pausing, _), (.retrying, _),
            (.finished, _):
            false
        }
    }

    /// Whether the stored response may be served if the origin fails (RFC 9111 §4.2.4). It may not if bytes are missing that the client
    /// asked for.
    var staleMayServe: Bool {
        guard let stored, hole == nil, stored.body.state != .failed, request.isCovered(by: stored, worker) else {
            return false
        }
        let use = request.handling(of: stored, by: snapshot).use
        return mayServeStaleOnError(request.terms(of: stored), for: request.cache, use: use, now: worker.wallTime)
    }

    var hasNoLink: Bool { if case .none = link { true } else { false } }

    // MARK: the client

    /// Calls the exchange that this fetch works for, if it is still under way.
    func notify(_ tell: (Exchange) -> Void) {
        guard let client, let exchange = worker.exchange(at: client) else { return }
        tell(exchange)
    }

    /// The client left, or its answer needs nothing more from this fetch. The fetch may have ended when this returns, but it never calls the
    /// exchange again: `client` is nil before the machine is told.
    func clientLeft() {
        client = nil
        let isStillNeeded =
            switch sink {
            case .store(let record): !isUnneeded(record)
            case .fill(let fill, _): !fill.body.isLeftByDisk
            // No head has come yet. If there are followers, the fetch goes on for them.
            case .none: transfer.map { $0.followerCount > 0 } ?? false
            case .pass, .discard: false
            }
        feed(.clientLeft(isStillNeeded: isStillNeeded))
    }

    /// The client has its whole answer. A response that is only passed on is read to its end all the same: only framing is left of it, and
    /// the connection can be reused afterwards.
    func answerDelivered() {
        if case .pass = sink {
            client = nil
            return feed(.clientLeft(isStillNeeded: true))
        }
        clientLeft()
    }

    /// The client's answer comes from where this response redirects. What is left of a short body is read, so that the connection can be reused.
    func redirectFollowed() {
        let isShort =
            switch sink {
            case .pass(let body, _): body.expectedLength.map { $0 <= snapshot.limits.relayBufferBytesMax } ?? false
            case .discard: true
            case .none, .store, .fill: false
            }
        guard isShort else { return clientLeft() }
        client = nil
        feed(.clientLeft(isStillNeeded: true))
    }

    /// True if the response has left the store and no client reads its body.
    func isUnneeded(_ record: StoredResponse) -> Bool { record.body.isWindowed && !record.body.hasReaders }

    // MARK: seen from outside

    /// What the admin endpoint reports about this fetch.
    func report(_ id: TransferID) -> TransferReport {
        var readers = client == nil ? 0 : 1
        if let transfer { readers += transfer.followerCount }
        let progress = retrieval.progress
        var result = TransferReport(
            id: id, requestID: worker.text(of: request.id), tunnelID: worker.text(of: request.tunnel), uri: request.uri,
            method: request.access.methodText, client: request.access.client.map { "\($0)" }, state: transferState,
            age: worker.loop.now.duration(since: startedAt), received: progress.received,
            expected: progress.total, sent: sentBytes, readers: readers, isStored: false)
        if let body = storedBody {
            result.isStored = true
            result.readers = max(result.readers, body.readerCount)
        }
        return result
    }

    /// For the log: `GET http://a.example/`.
    var subject: String { "\(request.access.methodText) \(Diagnostics.masked(request.uri))" }

    /// The body that other requests can read as well.
    private var storedBody: Body? {
        switch sink {
        case .store(let record), .fill(_, let record): record.body
        case .none, .pass, .discard: nil
        }
    }

    private var transferState: TransferReport.State {
        switch retrieval.phase {
        case .ready, .opening, .finished: .connecting
        case .asked: brake?.isHolding == true ? .held : .waiting
        case .storing, .receiving: isPaused || brake?.isHolding == true ? .held : .receiving
        case .pausing, .retrying: .pausing
        }
    }

    /// Sets the time limit of what is waited for now. The limit of the whole response may come first.
    func wait(_ limit: Duration) {
        guard let lastMoment else { return worker.timers.schedule(self, after: limit) }
        worker.timers.schedule(self, after: min(limit, lastMoment.duration(since: worker.loop.now)))
    }

    /// The request for a stream has a time limit of its own.
    func waitForConnection() {
        guard let lastMoment else { return worker.timers.cancel(self) }
        worker.timers.schedule(self, after: lastMoment.duration(since: worker.loop.now))
    }

    override func timerFired() {
        if let lastMoment, worker.loop.now >= lastMoment {
            worker.counters.add(.timeouts)
            return turn { feed(.outOfTime) }
        }
        if way.need != nil || way.isRouting {
            worker.counters.add(.timeouts)
            cancelRouteWait()
            return turn { approach(.timedOut) }
        }
        if brake?.isHolding == true, isIn(.asked) || isIn(.receiving) {
            // Nothing was read because the rate did not allow it.
            return wait(isIn(.asked) ? limitForHead : terms.idle)
        }
        if isPaused, isIn(.receiving), diskWait.isUnderWay { return turn { resume() } }
        if isPaused, isIn(.receiving) {
            // The origin is paused because readers are behind, so the time limit does not apply to it.
            return wait(terms.idle)
        }
        if holdsBody, isIn(.asked) { return turn { releaseBody() } }
        if way.awaitsNode, isIn(.asked) { return turn { peerFailed(.late) } }
        if !isIn(.pausing), !isIn(.retrying) { worker.counters.add(.timeouts) }
        if isIn(.receiving) { quest?.brokeOff() }
        turn { feed(.timedOut) }
    }

    /// Ends the fetch because an administrator wants that.
    func cancel() {
        worker.counters.add(.transfersCancelled)
        let isShared = (storedBody?.readerCount ?? 0) > 1
        turn { feed(.stopped(isShared: isShared)) }
    }

    /// Ends the fetch because the worker stops.
    func abort() { turn { feed(.cancelled) } }

    /// Runs work in which bodies may grow or end. Readers on this worker send afterwards, not from within the work.
    func turn(_ work: () -> Void) {
        // The readers that `work` wakes send at its end, or where it flushes them on purpose (`endOfRead`).
        worker.readers.hold()
        work()
        worker.readers.release()
    }

    func cancelRouteWait() {
        if let wait = routeWait.take() { worker.cancel(wait) }
    }

    /// Removes the fetch from the worker. The machine has finished; no event reaches it from here on.
    func end() {
        precondition(isIn(.finished), "the machine decides when a retrieval ends")
        precondition(hasNoLink, "a stream that nobody ends would be lent for ever")
        worker.timers.cancel(self)
        brake?.stop()
        approach(.over)
        quest?.end()
        if credentialUse != nil { settleCredentials() }
        cancelRouteWait()
        if snapshot.routesHaveCredentials { settleProxyLogIn() }
        if let id { _ = worker.fetches.remove(id) }
        id = nil
        client = nil
    }
}

/// The five calls that a fetch makes to the exchange that it works for.
protocol FetchListener: AnyObject {
    /// An interim head was received, before any final head.
    func fetchSentInterim(_ response: ReceivedResponse)
    /// The client gets a stored response, complete or still arriving. `ownFields`: all end-to-end fields as received, if the store keeps only
    /// some of them and this client is the one that they were sent to.
    func fetchStored(_ record: StoredResponse, as service: Service, ownFields: Fields?)
    /// The client alone gets the response.
    ///
    /// - Parameters:
    ///   - content: all of the content, if it came together with the head. Valid within the call.
    ///   - body: the exchange reads from it what follows the head. Nil if that is `content`, or nothing.
    func fetchPassed(
        _ head: RelayedHead, _ response: ReceivedResponse, _ content: UnsafeRawBufferPointer, _ body: Body?,
        _ trailers: TransientTrailers?)
    /// The origin gave no answer, or the body of its answer cannot be completed.
    func fetchFailed(_ refusal: Refusal, denial: Denial?)
    /// The origin switched protocols. The listener owns its transport from here on. `early`: bytes that followed the 101.
    func fetchSwitched(_ response: ReceivedResponse, origin: consuming Transport, early: [UInt8])
}

/// Missing bytes of a stored response, and the claim on them: nobody else fetches them while `fill` is held.
struct Hole {
    let record: StoredResponse
    let fill: Fill

    var asked: PartAsked {
        PartAsked(
            stored: record.cached, start: fill.range.lowerBound, end: fill.range.upperBound,
            wholeLength: record.body.expectedLength)
    }
}
