import Access
import Caching
import EventLoop
import Forwarding
import Framing
import Glibc
import Message
import Storage
import Transaction

/// One request that has to wait for something, and its answer: performs what its `Transaction` decides.
final class Exchange {
    let stream: ClientStream
    let worker: Worker
    let snapshot: Snapshot
    /// Those of the snapshot, whatever a reload makes of them meanwhile.
    private let zones: [Zone]
    let request: OwnedRequest
    var transaction: Transaction
    var selected: StoredResponse?
    /// The newest record under the key, of whatever variant, when the store was asked.
    var newest: StoredRecord?
    /// Other variants under the key that have validators: one of them may turn out to suit (RFC 9111 §4.3.1).
    var candidates: [StoredResponse] = []
    var transfer: Transfer?
    var followTicket: FollowTicket?
    var followTimer: Timer?
    var fetch: Fetch?
    var dial: Dial?
    var ticket: ResolverTicket?
    var upload: RequestUpload?
    var denial: Denial?

    /// The disk was asked for what memory does not hold.
    var hasAskedDisk = false
    /// The record whose body goes out from the disk without coming into memory.
    var readDirectly: StoredResponse?
    /// How often the disk had to be waited for, or did not have what it promised.
    var losses = 0
    /// What is done when the disk has read.
    var afterDisk: (() -> Void)?
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
        transaction = Transaction(request.forTransaction(snapshot))
    }

    func start() {
        guard stream.isAdmitted else {
            note(Denial(reason: .client, text: "this address is not among the clients of this proxy"))
            return refuse(.accessDenied)
        }
        if let local = LocalAnswer(
            request.received, hasDestination: request.destination != nil, instance: worker.shared.instance)
        {
            return answer(local)
        }
        perform(transaction.on(.head))
    }

    /// Carries out one action after the other until something has to be waited for.
    func perform(_ first: Transaction.Action) {
        var action = first
        while true {
            switch action {
            case .identify:
                guard let next = identify() else { return }
                action = next
            case .decide(let resolved):
                guard let next = decide(resolved: resolved) else { return }
                action = next
            case .lookUp:
                guard let next = lookUp() else { return }
                action = next
            case .lead:
                action = lead()
            case .follow:
                return follow()
            case .serve(_, let ttl):
                return serveSelected(ttl: ttl)
            case .serveAndRevalidate(_, let ttl):
                revalidateBehind()
                return serveSelected(ttl: ttl)
            case .fetch(let plan):
                return start(plan)
            case .tunnel:
                return tunnel()
            case .refuse(let refusal):
                return refuse(refusal)
            case .store, .freshen, .serveStale, .relay:
                preconditionFailure("\(action) belongs to a fetch")
            }
        }
    }

    // MARK: access

    func identify() -> Transaction.Action? {
        switch Authentication.check(
            request, worker: worker, snapshot: snapshot, { [weak self] in self?.identified($0) })
        {
        case .waiting: nil
        case .known(let identity):
            {
                become(identity)
                return transaction.on(.identified)
            }()
        case .refused(let refusal): transaction.on(.refused(refusal))
        }
    }

    func identified(_ result: Authentication.Result) {
        switch result {
        case .waiting: return
        case .known(let identity):
            become(identity)
            perform(transaction.on(.identified))
        case .refused(let refusal):
            perform(transaction.on(.refused(refusal)))
        }
    }

    private func become(_ identity: Identity) {
        request.identity = identity
        guard snapshot.cacheRules.dependOnUser else { return }
        request.treat(by: snapshot, zones: zones, worker.shared)
        transaction.treat(use: request.treatment.use, storesParts: request.treatment.ranges != .pass)
    }

    func decide(resolved: Bool) -> Transaction.Action? {
        // The ports of CONNECT are judged without rules, too, and before anything is looked up.
        if snapshot.access.isOpen && request.method != .connect { return transaction.on(.verdict(.allow(rule: nil))) }
        guard resolved else { return note(snapshot.access.decide(request.access, address: nil)) }
        switch Dial.knownAddresses(of: request.host, worker: worker) {
        case .success(let addresses): return note(verdict(addresses))
        case .failure(let refusal): return transaction.on(.refused(refusal))
        case nil:
            ticket = worker.resolver.resolve(request.host) { [weak self] result in
                guard let self else { return }
                ticket = nil
                switch result {
                case .success(let resolution): perform(note(verdict(resolution.addresses)))
                case .failure(let error): perform(transaction.on(.refused(Refusal(error))))
                }
            }
            return nil
        }
    }

    /// Where addresses decide, a request is allowed if one of them may be dialled; the others never are.
    func verdict(_ addresses: [SocketAddress]) -> Verdict {
        var last: Verdict = .deny(Denial(reason: .privateDestination, text: "the host has no address"))
        for address in addresses.compactMap(IPAddress.init) {
            last = snapshot.access.decide(request.access, address: address)
            if case .allow = last { return last }
        }
        return last
    }

    func note(_ verdict: Verdict) -> Transaction.Action {
        if case .deny(let reason) = verdict { denial = reason }
        return transaction.on(.verdict(verdict))
    }

    // MARK: the store

    /// No record suits.
    func decide(among records: [StoredRecord]) -> Transaction.Action {
        guard newest != nil else { return transaction.on(.stored(nil)) }
        candidates = records.compactMap { $0 as? StoredResponse }.filter(\.isCandidate)
        return transaction.on(.variantMissing(hasValidators: !candidates.isEmpty))
    }

    /// One is selected, and its body is at hand.
    func judge(_ selected: StoredResponse) -> Transaction.Action {
        if isFarAhead(of: selected) { return transaction.on(.farAhead) }
        let use = request.treatment(of: selected, by: snapshot).use
        let reuse = reuse(of: selected.terms, for: request.cache, use: use, now: worker.wallTime)
        if case .validate(let why) = reuse, !selected.hasValidator { return transaction.on(.outdated(why)) }
        return transaction.on(.stored(reuse))
    }

    func suits(_ record: StoredResponse) -> Bool {
        record.suits(request) && (request.mayForward || isCovered(by: record))
    }

    func lead() -> Transaction.Action {
        switch request.zone.lead(request.key, request.keyBytes, knownNewest: newest) {
        case .lead(let transfer):
            self.transfer = transfer
            return transaction.on(.leading)
        case .follow(let transfer):
            self.transfer = transfer
            return transaction.on(.following)
        case .lookAgain:
            return transaction.on(.lookAgain)
        }
    }

    func follow() {
        let inbox = worker.loop.inbox
        let worker = WorkerReference(worker)
        let address = stream.address
        followTicket = transfer?.follow(
            Wake { inbox.post { worker.value.exchange(at: address)?.leaderResolved() } },
            limit: snapshot.limits.followersPerTransferMax)
        guard followTicket != nil else { return leaderResolved() }
        let timer = Timer { [weak self] in self?.waitedEnough() }
        self.worker.loop.timers.schedule(timer, after: snapshot.configuration.timeouts.collapse)
        followTimer = timer
    }

    /// The leader takes too long; this request goes on its own.
    func waitedEnough() {
        guard let transfer, let followTicket else { return }
        transfer.cancel(followTicket)
        stopFollowing()
        worker.counters.add(.collapseTimeouts)
        perform(transaction.on(.waitedEnough))
    }

    private func stopFollowing() {
        followTicket = nil
        transfer = nil
        if let followTimer { worker.loop.timers.cancel(followTimer) }
        followTimer = nil
    }

    func leaderResolved() {
        guard let transfer else { return }
        stopFollowing()
        switch transfer.outcome {
        case .published(let record):
            let record = unsafe unsafeDowncast(record, to: StoredResponse.self)
            guard suits(record), mayFollow(record) else {
                return perform(transaction.on(.leaderPublished(suits: false)))
            }
            _ = transaction.on(.leaderPublished(suits: true))
            if record.body.state == .partial { return servePart(record, as: .collapsed) }
            serve(record, as: .collapsed)
        case .failed(let code):
            // The leader's wishes may have forbidden what this client's allow.
            if let selected, mayServeStaleOnError(selected) {
                _ = transaction.on(.leaderPublished(suits: true))
                return serve(selected, as: .staleOnError(.stale, status: 0))
            }
            perform(transaction.on(.leaderFailed(Refusal(rawValue: UInt8(code)) ?? .internalError)))
        case .notShared, nil:
            perform(transaction.on(.leaderNotShared))
        }
    }

    private func mayServeStaleOnError(_ record: StoredResponse) -> Bool {
        record.body.state == .complete
            && Caching.mayServeStaleOnError(
                record.terms, for: request.cache, use: request.treatment(of: record, by: snapshot).use,
                now: worker.wallTime)
    }

    /// Whether what the leader got is for this request as well. Where the leader's origin failed, it publishes what was stored
    /// before, as it was selected or marked as outdated: whether a stale response will do, each request decides for itself.
    private func mayFollow(_ record: StoredResponse) -> Bool {
        guard isEligible(record.terms, for: request.cache) else { return false }
        return (record !== selected && !record.terms.isOutdated) || mayServeStaleOnError(record)
    }

    func serveSelected(ttl: Seconds) {
        guard let selected else { preconditionFailure("nothing is selected") }
        request.tier.touch(selected)
        // Asked for a second time: what was kept from the disk until then goes there.
        if selected.diskID == nil, selected.storage != .session { request.tier.persist(selected) }
        let service = ttl > .zero ? Service.hit : .stale
        if selected.body.state == .partial { return servePart(selected, as: service) }
        serve(selected, as: service)
    }

    func start(_ plan: Transaction.Fetch) {
        let fetch = Fetch(
            worker: worker, snapshot: snapshot, request: request, exchange: self, transaction: transaction, plan: plan,
            stored: selected, transfer: plan.isLeading ? transfer : nil)
        fetch.candidates = candidates
        transfer = nil
        self.fetch = fetch
        fetch.start()
    }

    /// RFC 5861 §3: the client has its answer; the store gets a better one, once.
    func revalidateBehind() {
        guard case .lead(let transfer) = request.zone.lead(request.key, request.keyBytes, knownNewest: newest)
        else { return }
        let (transaction, plan) = Transaction.revalidation(
            self.transaction.request, isConditional: selected?.cached.hasValidator == true)
        Fetch(
            worker: worker, snapshot: snapshot, request: request, exchange: nil, transaction: transaction, plan: plan,
            stored: selected, transfer: transfer
        ).start()
    }

    // MARK: the end

    /// The answer is out.
    func finished() {
        log()
        leave()
    }

    /// The answer broke off.
    func broke() { stream.account.isBroken = true }

    func clientLeft() {
        if !stream.account.isLogged { stream.account.isBroken = true }
        log()
        leave()
    }

    func log() {
        guard !stream.account.isLogged else { return }
        stream.account.isLogged = true
        if worker.log.isOn { worker.log.append(stream.account, request: request) }
    }

    func leave() {
        if let followTicket { transfer?.cancel(followTicket) }
        stopFollowing()
        ticket?.cancel()
        ticket = nil
        dial?.cancel()
        dial = nil
        let fetch = self.fetch
        self.fetch = nil
        fetch?.clientLeft()
    }
}
