import Access
import Caching
import EventLoop
import Forwarding
import Framing
import Message
import Routing
import Storage
import Transaction

/// One request that has to wait for something, and its answer: does what its `RequestMachine` decides.
///
/// It knows its client by a `ClientStream` and its fetch by a number. What it waits for is one thing at a time (`Waiting`).
final class Exchange: FetchListener {
    /// What the exchange waits for, with what is needed to stop waiting.
    enum Waiting {
        case nothing
        /// The credentials are being checked on another thread.
        case identity
        case addresses(ResolverTicket)
        /// The disk is being read, or loaded. `then`: what is done afterwards; nil: the store is asked again.
        case disk(then: (() -> Void)?)
        /// It leads a transfer that has not begun.
        case leading(Transfer)
        case leader(Transfer, FollowTicket, Timer)
        case fetch(ConnectionID)
        case tunnel(LinkOpener)
    }

    /// What the store holds for the request, and how it was asked.
    struct LookUp {
        var selected: StoredResponse?
        /// The newest stored response under the key, of whatever variant, when the store was asked.
        var newest: StoredRecord?
        /// Other variants under the key that have validators: one of them may turn out to suit (RFC 9111 §4.3.1).
        var candidates: [StoredResponse] = []
        /// The disk was asked for what memory does not hold.
        var hasAskedDisk = false
        /// The stored response whose body goes out from the disk without coming into memory.
        var readDirectly: StoredResponse?
        /// How often the disk had to be waited for, or did not have what it promised.
        var losses = 0
    }

    let stream: ClientStream
    let worker: Worker
    let snapshot: Snapshot
    /// Those of the snapshot, whatever a reload makes of them meanwhile.
    private let zones: [Zone]
    let request: OwnedRequest
    var machine: RequestMachine
    var waiting = Waiting.nothing
    var lookUp = LookUp()
    /// An origin waits for the request's body.
    var isUploading = false
    /// One of the tunnels that `limits.tunnels_max` bounds.
    var tunnelPlace: Occupancy.Place?
    var denial: Denial?
    /// How the stored response came to be served that the answer is made of.
    var service: Service = .hit
    /// All of the answer is queued, or in the hands of a delivery.
    var isAnswered = false
    /// The client waits for `100 Continue` before it sends its body (RFC 9110 §10.1.1).
    var awaitsContinue: Bool

    init(stream: ClientStream, request: OwnedRequest) {
        self.stream = stream
        worker = stream.worker
        snapshot = stream.worker.snapshot
        zones = stream.worker.zones
        self.request = request
        awaitsContinue = request.head.minorVersion >= 1 && request.fields.contains(.expect)
        machine = RequestMachine(request.forMachine(snapshot))
    }

    func start() {
        guard stream.isAdmitted else {
            note(Denial(reason: .client, text: "this address is not among the clients of this proxy"))
            return refuse(.accessDenied)
        }
        guard stream.hasPlace else { return refuse(.tooManyRequests) }
        if let local = LocalAnswer(
            request.received, hasDestination: request.destination != nil, instance: worker.shared.instance)
        {
            return answer(local)
        }
        feed(.head)
    }

    // MARK: the machine

    /// Tells the machine what was found, and does what it returns.
    func feed(_ event: RequestMachine.Event) { perform(machine.on(event)) }

    /// Carries out one action after the other until something has to be waited for.
    func perform(_ first: RequestMachine.Action) {
        var next: RequestMachine.Action? = first
        while let action = next { next = step(action) }
    }

    /// - Returns: what comes next; nil: something is waited for, or the answer is on its way.
    private func step(_ action: RequestMachine.Action) -> RequestMachine.Action? {
        switch action {
        case .identify: return identify()
        case .decide(let resolved): return decide(resolved: resolved)
        case .lookUp: return lookUpStored()
        case .lead: return lead()
        case .follow: follow()
        case .serve(_, let ttl): serveSelected(ttl: ttl)
        case .serveAndRevalidate(_, let ttl):
            revalidateBehind()
            serveSelected(ttl: ttl)
        case .servePublished, .serveStale, .fillHole:
            preconditionFailure("whoever tells the machine of this serves it")
        case .retrieve(let plan): retrieve(plan)
        case .tunnel: tunnel()
        case .refuse(let refusal): refuse(refusal)
        }
        return nil
    }

    // MARK: access

    private func identify() -> RequestMachine.Action? {
        let result = Authentication.check(
            request, worker: worker, snapshot: snapshot, { [weak self] in self?.identified($0) })
        switch result {
        case .waiting:
            waiting = .identity
            return nil
        case .known(let identity):
            become(identity)
            return machine.on(.identified)
        case .refused(let refusal): return machine.on(.refused(refusal))
        }
    }

    private func identified(_ result: Authentication.Result) {
        guard case .identity = waiting else { return }
        waiting = .nothing
        switch result {
        case .waiting: return
        case .known(let identity):
            become(identity)
            feed(.identified)
        case .refused(let refusal): feed(.refused(refusal))
        }
    }

    private func become(_ identity: Identity) {
        request.identity = identity
        guard snapshot.cacheRules.dependOnUser else { return }
        request.applyRules(by: snapshot, zones: zones, worker.shared)
        machine.apply(use: request.handling.use, storesParts: request.handling.ranges != .pass)
    }

    private func decide(resolved: Bool) -> RequestMachine.Action? {
        // The ports of CONNECT are judged without rules, too, and before anything is looked up.
        if snapshot.access.isOpen && request.method != .connect { return machine.on(.verdict(.allow(rule: nil))) }
        guard resolved else { return note(snapshot.access.decide(request.access, address: nil)) }
        switch HostAddresses.known(of: request.host, worker: worker) {
        case .success(let addresses): return note(verdict(addresses))
        case .failure(let failure): return machine.on(.refused(Refusal(failure)))
        case nil: break
        }
        let ticket = worker.resolver.resolve(request.host) { [weak self] result in
            guard let self else { return }
            waiting = .nothing
            switch result {
            case .success(let resolution): perform(note(verdict(resolution.addresses)))
            case .failure(let error): feed(.refused(Refusal(NameFailure(error))))
            }
        }
        waiting = .addresses(ticket)
        return nil
    }

    /// Where addresses decide, a request is allowed if one of them may be dialled. The others never are.
    private func verdict(_ addresses: [SocketAddress]) -> Verdict {
        var last: Verdict = .deny(Denial(reason: .privateDestination, text: "the host has no address"))
        for address in addresses.compactMap(IPAddress.init) {
            last = snapshot.access.decide(request.access, address: address)
            if case .allow = last { return last }
        }
        return last
    }

    private func note(_ verdict: Verdict) -> RequestMachine.Action {
        if case .deny(let reason) = verdict { denial = reason }
        return machine.on(.verdict(verdict))
    }

    func note(_ denial: Denial) { self.denial = denial }

    func note(violation: FramingError) { stream.account.violation = violation }

    // MARK: the store

    /// No stored response suits.
    func decide(among records: [StoredRecord]) -> RequestMachine.Action {
        guard lookUp.newest != nil else { return machine.on(.stored(nil)) }
        lookUp.candidates = records.compactMap { $0 as? StoredResponse }.filter(\.isCandidate)
        return machine.on(.variantMissing(hasValidators: !lookUp.candidates.isEmpty))
    }

    /// One is selected, and its body is at hand.
    func judge(_ selected: StoredResponse) -> RequestMachine.Action {
        if isFarAhead(of: selected) { return machine.on(.farAhead) }
        let use = request.handling(of: selected, by: snapshot).use
        let reuse = reuse(of: selected.terms, for: request.cache, use: use, now: worker.wallTime)
        if case .validate(let why) = reuse, !selected.hasValidator { return machine.on(.outdated(why)) }
        return machine.on(.stored(reuse))
    }

    func suits(_ record: StoredResponse) -> Bool {
        record.suits(request) && (request.mayForward || request.isCovered(by: record, worker))
    }

    private func serveSelected(ttl: Seconds) {
        guard let selected = lookUp.selected else { preconditionFailure("what is served was selected") }
        request.tier.touch(selected)
        // Asked for a second time: what was kept from the disk until then goes there.
        if selected.storedID == nil, selected.storage != .session { request.tier.persist(selected) }
        serveRecord(selected, as: ttl > .zero ? .hit : .stale)
    }

    // MARK: leading and following

    private func lead() -> RequestMachine.Action {
        switch request.zone.lead(request.key, request.keyBytes, knownNewest: lookUp.newest) {
        case .lead(let transfer):
            waiting = .leading(transfer)
            return machine.on(.leading)
        case .follow(let transfer):
            waiting = .leading(transfer)
            return machine.on(.following)
        case .lookAgain: return machine.on(.lookAgain)
        }
    }

    private func follow() {
        guard case .leading(let transfer) = waiting else { preconditionFailure("a follower has a transfer") }
        let address = stream.address
        let inbox = worker.loop.inbox
        let reference = WorkerReference(worker)
        let ticket = transfer.follow(
            Wake { inbox.post { reference.value.exchange(at: address)?.leaderResolved(transfer) } },
            limit: snapshot.limits.followersPerTransferMax)
        guard let ticket else { return resolved(by: transfer) }
        let timer = Timer { [weak self] in self?.waitedEnough() }
        waiting = .leader(transfer, ticket, timer)
        worker.loop.timers.schedule(timer, after: snapshot.configuration.timeouts.collapse)
    }

    /// The leader takes too long: this request goes on its own.
    private func waitedEnough() {
        guard case .leader(let transfer, let ticket, _) = waiting else { return }
        transfer.cancel(ticket)
        waiting = .nothing
        worker.counters.add(.collapseTimeouts)
        feed(.waitedEnough)
    }

    private func leaderResolved(_ transfer: Transfer) {
        guard case .leader(let followed, _, let timer) = waiting, followed === transfer else { return }
        worker.loop.timers.cancel(timer)
        resolved(by: transfer)
    }

    private func resolved(by transfer: Transfer) {
        waiting = .nothing
        switch transfer.outcome {
        case .published(let record):
            let record = unsafe unsafeDowncast(record, to: StoredResponse.self)
            let action = machine.on(.leaderPublished(suits: suits(record) && mayFollow(record)))
            guard case .servePublished = action else { return perform(action) }
            serveRecord(record, as: .collapsed)
        case .failed(let code):
            // The leader's wishes may have forbidden what this client's allow.
            let stale = lookUp.selected.flatMap { mayServeStaleOnError($0) ? $0 : nil }
            let refusal = Refusal(rawValue: UInt8(code)) ?? .internalError
            let action = machine.on(.leaderFailed(refusal, staleMayServe: stale != nil))
            guard case .serveStale = action, let stale else { return perform(action) }
            serve(stale, as: .staleOnError(.stale, status: 0))
        case .notShared, nil:
            feed(.leaderNotShared)
        }
    }

    private func mayServeStaleOnError(_ record: StoredResponse) -> Bool {
        record.body.state == .complete
            && Caching.mayServeStaleOnError(
                record.terms, for: request.cache, use: request.handling(of: record, by: snapshot).use,
                now: worker.wallTime)
    }

    /// Whether what the leader got is for this request as well. Where the leader's origin failed, it publishes what was stored
    /// before, as it was selected or marked as outdated: whether a stale response will do, each request decides for itself.
    private func mayFollow(_ record: StoredResponse) -> Bool {
        guard isEligible(record.terms, for: request.cache) else { return false }
        return (record !== lookUp.selected && !record.terms.isOutdated) || mayServeStaleOnError(record)
    }

    // MARK: retrieving

    private func retrieve(_ plan: RetrievalPlan) {
        var transfer: Transfer?
        if plan.isLeading, case .leading(let led) = waiting { transfer = led }
        precondition(plan.isLeading == (transfer != nil), "who leads has a transfer to resolve")
        listen(
            to: Fetch(
                worker: worker, snapshot: snapshot, request: request, client: stream.address, plan: plan,
                stored: lookUp.selected, candidates: lookUp.candidates, transfer: transfer))
    }

    /// Lets the fetch begin, in place of the one before it.
    func listen(to fetch: Fetch) {
        letFetchGo()
        waiting = .fetch(fetch.enrol())
        fetch.begin()
    }

    /// The fetch that works for this exchange; nil: there is none, or it is done.
    var fetch: Fetch? {
        guard case .fetch(let id) = waiting else { return nil }
        return worker.fetches[id]
    }

    /// What the answer needs comes another way: the fetch goes on without this client, or ends.
    func letFetchGo() {
        guard let fetch else { return }
        waiting = .nothing
        fetch.clientLeft()
    }

    /// RFC 5861 §3: the client has its answer; the store gets a better one, once.
    private func revalidateBehind() {
        let led = request.zone.lead(request.key, request.keyBytes, knownNewest: lookUp.newest)
        guard case .lead(let transfer) = led else { return }
        let selected = lookUp.selected
        let plan = RetrievalPlan(
            reason: .stale, isConditional: selected?.cached.hasValidator == true, isLeading: true)
        let fetch = Fetch(
            worker: worker, snapshot: snapshot, request: request, client: nil, plan: plan, stored: selected,
            transfer: transfer)
        fetch.enrol()
        fetch.begin()
    }

    // MARK: the end

    /// The answer is out.
    func finished() {
        log()
        if let fetch {
            waiting = .nothing
            fetch.answerDelivered()
        }
        leave()
    }

    /// The answer broke off.
    func broke() { stream.account.isBroken = true }

    func clientLeft() {
        if !stream.account.isLogged { stream.account.isBroken = true }
        log()
        leave()
    }

    private func log() {
        guard !stream.account.isLogged else { return }
        stream.account.isLogged = true
        if worker.log.isOn { worker.log.append(stream.account, request: request) }
    }

    private func leave() {
        let left = waiting
        waiting = .nothing
        switch left {
        case .nothing, .identity, .disk: break
        case .addresses(let ticket): ticket.cancel()
        case .leading(let transfer): transfer.resolve(.notShared)
        case .leader(let transfer, let ticket, let timer):
            transfer.cancel(ticket)
            worker.loop.timers.cancel(timer)
        case .fetch(let id): worker.fetches[id]?.clientLeft()
        case .tunnel(let opener): opener.cancel()
        }
    }
}
