import Access
import Accounts
import Authentication
import Caching
import Credentials
import EventLoop
import Forwarding
import Framing
import LimitTables
import Limiting
import Message
import Releases
import Routing
import Storage
import Transaction

/// The driver of one request that cannot be answered at once: carries out the decisions of its `RequestMachine`.
///
/// Its client connection owns the exchange; all of it runs on the worker's thread. The exchange reaches its client through a
/// `ClientStream` only, and its fetch through a number that stops resolving when the fetch ends. It waits for one thing at
/// a time (`Waiting`). Threads of the store, leaders on other workers and helper threads never hold a reference to it: they
/// post a job with its address (`ClientStream.Address`), and the job does nothing if the exchange has ended by then.
final class Exchange: FetchListener {
    /// What the exchange waits for, with the handle that cancels the wait.
    enum Waiting {
        case nothing
        /// The credentials cover the body of the request, which is arriving.
        case coveredBody
        /// The credentials are being checked on another thread.
        case identity
        case addresses(ResolverTicket)
        /// The look-up has asked somebody who answers later.
        case store(StoreQuestion)
        /// A thread of the back store reads the body of a response that is about to be served. `then` runs afterwards.
        case bodyToServe(then: () -> Void)
        /// Leads a transfer, or is about to follow one; no fetch works on it for this exchange yet.
        case leading(Transfer)
        case leader(Transfer, FollowTicket, Timer)
        case fetch(ConnectionID)
        /// A body of which an index is made: it has to be whole, or is being filtered (then nil). `then` runs afterwards.
        case index((Body, WaitTicket)?, then: () -> Void)
        case tunnel(TunnelDialler)
    }

    /// What the look-up waits for.
    enum StoreQuestion {
        /// A thread of the back store reads heads.
        case heads
        /// The back store is loading its index.
        case index
        /// Another node may have shared a response.
        case fleet
        /// A thread of the back store reads the body of the response that was found.
        case body
    }

    /// What the look-up in the store found.
    struct Stored {
        var selected: StoredResponse?
        /// The newest stored response under the key, of any variant, at the time of the look-up. A transfer that publishes a
        /// newer one makes the look-up out of date (`Leadership.lookAgain`).
        var newest: StoredRecord?
        /// Other variants under the key that have validators: the origin may select one of them (RFC 9111 §4.3.1).
        var candidates: [StoredResponse] = []
        /// What memory had when the request came, for the first look-up. Nil: not known.
        var known: KnownNewest?
        /// The stored response whose body lies in the worker's disk buffer and goes out from there.
        var readDirectly: StoredResponse?
    }

    /// What the memory of the default zone had under a key just before the exchange began. The first look-up need not search it again: if a
    /// response has been stored since, `lead` says so.
    struct KnownNewest {
        var key: StorageKey
        /// The newest response, of any variant. Nil: there was none.
        var response: StoredResponse?

        // The `==` that the compiler makes is called through a witness table from other modules.
        func isUnder(_ key: StorageKey) -> Bool { self.key.low == key.low && self.key.high == key.high }
    }

    let stream: ClientStream
    let worker: Worker
    let snapshot: Snapshot
    /// The zones of `snapshot`, which a reload does not change for this request. Empty if there are no rules that choose one.
    let zones: [Zone]
    let request: OwnedRequest
    /// How redirects led to this request. Nil: it is what the client asked for.
    let detour: Detour?
    /// The methods of the machine call nothing outside it, so no two accesses overlap: the unchecked access is exclusive.
    var machine: RequestMachine {
        _read { yield unsafe uncheckedMachine }
        _modify { yield unsafe &uncheckedMachine }
    }
    @exclusivity(unchecked) private var uncheckedMachine: RequestMachine
    /// Where stored responses have been looked for. As for `machine`, no two accesses overlap.
    var lookUp: LookUp {
        _read { yield unsafe uncheckedLookUp }
        _modify { yield unsafe &uncheckedLookUp }
    }
    @exclusivity(unchecked) private var uncheckedLookUp = LookUp()
    var waiting = Waiting.nothing
    var stored: Stored
    /// The fetch has sent the head and waits for the request's body.
    var isUploading = false
    /// How many more bytes of the request's body are read and dropped, so that the next request can follow behind it. Nil: none.
    var discardAllowance: Int?
    /// The place of this tunnel among those that `limits.tunnels_max` bounds; nil before a tunnel opens.
    var tunnelPlace: Occupancy.Place?
    var denial: Denial?
    /// What was in force before the client was examined, where its identity is kept for longer than the request.
    private var proofBasis: ConnectionProof.Basis?
    /// The limit that the request has met, if that is why it is refused.
    var excess: LimitExcess?
    /// Content of the request, as far as it has been taken. Counted where a limit concerns the request.
    var uploadedBytes: UInt64 = 0
    /// The address for which the rules were asked last. Nil: it did not matter.
    private var judgedAddress: IPAddress?
    /// The release that the client does not get, if that is why the request is refused.
    var withheld: Withheld?
    /// The number of the access rule that allowed the request; nil if no rule matched.
    private(set) var allowedBy: Int?
    /// The rules decide about the tunnel when the client has named a server in it.
    private(set) var awaitsServerName = false
    /// How the stored response that makes the answer came to be served.
    var service: Service = .hit
    /// The final head is queued. A `Delivery` sends the body, if there is one.
    var isAnswered = false
    /// The client may be waiting for `100 Continue` before it sends its body (RFC 9110 §10.1.1).
    var awaitsContinue: Bool
    /// The node of the fleet that asks knows that the origin is being asked.
    var hasToldPeer = false

    init(stream: ClientStream, request: OwnedRequest, known: consuming KnownNewest? = nil) {
        self.stream = stream
        stored = Stored(known: known)
        worker = stream.worker
        snapshot = stream.worker.snapshot
        zones = stream.worker.snapshot.cacheRulesAreTrivial ? [] : stream.worker.zones
        self.request = request
        detour = nil
        awaitsContinue = request.head.minorVersion >= 1 && request.head.fields.present.contains(.expect)
        unsafe uncheckedMachine = RequestMachine(request.forMachine(snapshot, worker.shared, now: worker.uptime))
    }

    /// Goes on for the client of `other`, under the same configuration.
    init(after other: Exchange, _ request: OwnedRequest, _ detour: Detour) {
        stored = Stored()
        stream = other.stream
        worker = other.worker
        snapshot = other.snapshot
        zones = other.zones
        self.request = request
        self.detour = detour
        awaitsContinue = false
        unsafe uncheckedMachine = RequestMachine(request.forMachine(snapshot, worker.shared, now: worker.uptime))
    }

    func start() {
        precondition(!isAnswered && isAtRest, "an exchange starts once")
        if stream.isSocks { stream.account.isSocks = true }
        if let peer = request.peer { return startForPeer(peer.result) }
        guard stream.isAdmitted else {
            note(Denial(reason: .client, text: "this address is not among the clients of this proxy"))
            return refuse(.accessDenied)
        }
        guard stream.hasPlace else { return refuse(.tooManyRequests) }
        if case .overloaded = worker.shared.overload.state { return refuse(.overloaded) }
        guard settleProof() else { return }
        if snapshot.isCertificateRequired, request.identity == nil, stream.program == nil {
            note(Denial(reason: .client, text: "the client has shown no certificate that this proxy knows"))
            return refuse(.accessDenied)
        }
        begin()
    }

    /// Looks at what proves the identity of the connection. Returns false if it has ended, and the request is refused.
    ///
    /// Outside of tunnels the client can prove itself in another way: a 407 says how, or it shows another certificate with its next connection.
    private func settleProof() -> Bool {
        guard request.hasLostProof else { return true }
        request.connectionProof = nil
        stream.closeAfterwards(.identityEnded)
        guard stream.isInTunnel else { return true }
        note(Denial.ofEndedProof)
        refuse(.accessDenied)
        return false
    }

    /// Answers what is for Larder itself. About everything else the machine decides.
    func begin() {
        if let local = LocalAnswer(
            request, hasDestination: request.destination != nil, instance: worker.shared.instance,
            pages: snapshot.pages)
        {
            return answer(local)
        }
        feed(.head)
    }

    /// Whether nothing is waited for.
    private var isAtRest: Bool { if case .nothing = waiting { true } else { false } }

    // MARK: the machine

    /// Passes an event to the machine and performs the action that it returns.
    func feed(_ event: RequestMachine.Event) { perform(machine.on(event)) }

    /// Performs actions until the exchange waits for something or its answer has begun.
    ///
    /// A loop in place of recursion: a look-up that finds nothing and leads at once costs no stack.
    func perform(_ first: RequestMachine.Action) {
        var next: RequestMachine.Action? = first
        while let action = next { next = step(action) }
    }

    /// Performs one action. Returns the next one, or nil if the exchange now waits or its answer has begun.
    private func step(_ action: RequestMachine.Action) -> RequestMachine.Action? {
        switch action {
        case .identify: return identify()
        case .decide(let resolved): return decide(resolved: resolved)
        case .lookUp:
            fold()
            return lookUpStored()
        case .lead: return lead(mayLead: true)
        case .join: return lead(mayLead: false)
        case .follow: follow()
        case .serve(_, let ttl): serveSelected(ttl: ttl)
        case .serveAndRevalidate(_, let ttl):
            revalidateInBackground()
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
        if mustAwaitCoveredBody {
            waiting = .coveredBody
            sendContinue()
            stream.uploadSoon()
            return nil
        }
        if request.provesAgain != nil || request.method == .connect || request.isUpgrade {
            proofBasis = ConnectionProof.Basis(worker)
        }
        let result =
            if let credentials = request.provesAgain {
                Authentication.check(
                    again: credentials, client: request.client, worker: worker, { [weak self] in self?.identified($0) })
            } else {
                Authentication.check(
                    request, of: stream, worker: worker, snapshot: snapshot, { [weak self] in self?.identified($0) })
            }
        guard case .waiting = result else { return take(result) }
        waiting = .identity
        return nil
    }

    private func take(_ result: Authentication.Result) -> RequestMachine.Action {
        switch result {
        case .waiting: preconditionFailure("there is nothing to take yet")
        case .known(let identity, let reply):
            setIdentity(identity, reply)
            return machine.on(.identified)
        case .refused(.authenticationRequired) where request.provesAgain != nil && stream.isInTunnel:
            stream.closeAfterwards(.identityEnded)
            note(Denial.ofEndedProof)
            return machine.on(.refused(.accessDenied))
        case .refused(let refusal): return machine.on(.refused(refusal))
        }
    }

    /// Digest with `auth-int` covers the body. One that is known to be short is awaited; others are refused.
    private var mustAwaitCoveredBody: Bool {
        guard let body = stream.body, !body.isWhole, body.violation == nil,
            case .length(let length) = request.bodyLength,
            length <= min(Exchange.coveredBodyBytesMax, stream.heldBodyBytesMax),
            let authenticator = snapshot.authenticator
        else { return false }
        return request.fields.first(.proxyAuthorization).map { authenticator.coverBody(Array($0)) } ?? false
    }

    private static let coveredBodyBytesMax: UInt64 = 64 << 10

    var awaitsCoveredBody: Bool { if case .coveredBody = waiting { true } else { false } }

    /// More of the body has arrived. Goes on when it is whole.
    func coveredBodyGrew() {
        guard let body = stream.body, !body.isWhole, body.violation == nil else {
            waiting = .nothing
            if let action = identify() { perform(action) }
            return
        }
        stream.resumeReading()
    }

    private func identified(_ result: Authentication.Result) {
        guard case .identity = waiting else { return }
        if case .waiting = result { return }
        waiting = .nothing
        perform(take(result))
    }

    private func setIdentity(_ identity: Identity, _ reply: AuthenticationReply?) {
        precondition(
            !lookUp.hasBegun, "the key of a request changes only before the look-up")
        request.identity = identity
        if let basis = proofBasis {
            if let proof = request.connectionProof {
                proof.renew(identity, on: basis)
            } else if identity.scheme != .certificate {
                request.connectionProof = ConnectionProof(
                    identity, by: request.fields.first(.proxyAuthorization).map { Secret($0) }, on: basis)
            }
        }
        stream.authenticationReply = reply
        guard snapshot.cacheRulesDependOnUser else { return }
        request.applyRules(by: snapshot, zones: zones, worker.shared, now: worker.moment)
        machine.apply(
            use: request.handling.use, storesParts: request.handling.storesParts,
            takesWhole: request.takesWhole(worker.shared, now: worker.uptime), collapses: request.collapses(snapshot),
            asksForOriginState: request.asksForOriginState)
    }

    private func decide(resolved: Bool) -> RequestMachine.Action? {
        // Rules and closed networks do not concern the origin inside this process.
        if snapshot.isBuiltIn(request) { return machine.on(.verdict(.allow(rule: nil))) }
        if !resolved, !snapshot.limitPlan.isEmpty, request.peer == nil, let refusal = meetsLimit() {
            return machine.on(.refused(refusal))
        }
        // The ports of CONNECT are restricted even if no rules are configured, and before any name is resolved.
        if snapshot.access.isOpen && request.method != .connect { return note(.allow(rule: nil)) }
        guard resolved else { return note(worker.decide(request.access, address: nil, snapshot)) }
        switch HostAddresses.known(of: request.host, worker: worker) {
        case .success(let addresses): return note(verdict(addresses))
        case .failure(let failure): return machine.on(.refused(Refusal(failure)))
        case nil: break
        }
        let ticket = HostAddresses.ask(for: request, snapshot, worker: worker) { [weak self] result in
            guard let self, case .addresses = waiting else { return }
            waiting = .nothing
            switch result {
            case .success(let addresses): perform(note(verdict(addresses)))
            case .failure(let failure): feed(.refused(Refusal(failure)))
            }
        }
        waiting = .addresses(ticket)
        return nil
    }

    private func verdict(_ addresses: [SocketAddress]) -> Verdict {
        let judged = worker.decide(request.access, amongst: addresses, snapshot)
        judgedAddress = judged.address
        return judged.verdict
    }

    private func note(_ verdict: Verdict) -> RequestMachine.Action {
        // Report-only rules are told once, when the verdict is known.
        if snapshot.access.hasReports, verdict != .needsAddress, verdict != .needsServerName {
            worker.noteReports(request, address: judgedAddress, snapshot, in: &stream.account)
        }
        switch verdict {
        case .deny(let reason):
            let reason = answerable(reason)
            denial = reason
            return machine.on(.verdict(.deny(reason)))
        case .allow, .needsServerName:
            if case .allow(let rule) = verdict { allowedBy = rule } else { awaitsServerName = true }
            if let fault = request.placeholderFault {
                worker.notePlaceholderFault(fault, request)
                return note(.deny(Denial(reason: .credential, text: fault.text)))
            }
            if request.isReleaseUnclear {
                withheld = Withheld("the release", .unclear)
                return machine.on(.refused(.releaseUndated))
            }
        case .needsAddress: break
        }
        return machine.on(.verdict(verdict))
    }

    /// The denial as this client can be told of it: inside a tunnel a 407 would come from the origin, and a certificate is shown before there is
    /// a request.
    private func answerable(_ denial: Denial) -> Denial {
        let mayAsk = !stream.isInTunnel && snapshot.readsCredentials
        return denial.asksForCredentials && !mayAsk ? denial.withoutCredentials : denial
    }

    /// Takes the verdict about a request of which its fetch has found out more than was known before. Returns why it is refused; nil: it goes on.
    func note(_ verdict: Verdict, onceMoreFor address: IPAddress?) -> Refusal? {
        judgedAddress = address
        if snapshot.access.hasReports {
            worker.noteReports(request, address: address, snapshot, in: &stream.account)
        }
        switch verdict {
        case .deny(let reason):
            let reason = answerable(reason)
            denial = reason
            return Refusal(reason)
        case .allow(let rule):
            allowedBy = rule
            return nil
        case .needsAddress, .needsServerName: preconditionFailure("the address is known, and there is no tunnel")
        }
    }

    func note(_ denial: Denial) { self.denial = denial }

    func note(violation: FramingError) { stream.account.violation = violation }

    // MARK: the store

    /// The client is known, and nothing has been looked for: what its address stands for decides the key.
    private func fold() {
        guard request.mayFold(worker.provenAccess),
            request.fold(by: snapshot, worker.shared, now: worker.uptime, wallTime: worker.wallTime)
        else { return }
        worker.counters.add(request.handling.folding == .proven ? .foldedProven : .foldedUnproven)
        machine.apply(
            use: request.handling.use, storesParts: request.handling.storesParts,
            takesWhole: request.takesWhole(worker.shared, now: worker.uptime), collapses: request.collapses(snapshot),
            asksForOriginState: request.asksForOriginState)
    }

    /// Reports that no stored response was selected, with the variants that the origin may select from.
    func reportNoneSelected(among records: [StoredRecord]?) -> RequestMachine.Action {
        // The validators of other variants would take the place of the client's `If-Match`.
        guard let records, !request.hasIfMatch else { return machine.on(.stored(nil)) }
        stored.candidates = records.compactMap { $0 as? StoredResponse }.filter(request.mayValidate)
        return machine.on(.variantMissing(hasValidators: !stored.candidates.isEmpty))
    }

    /// Reports the selected stored response. Its body must be in memory or in the worker's disk buffer, or be large.
    func reportSelected() -> RequestMachine.Action {
        guard let selected = stored.selected else { preconditionFailure("what is reported was found") }
        if !machine.request.takesWhole, isFarAhead(of: selected) { return machine.on(.farAhead) }
        let handling = request.handling(of: selected, by: snapshot)
        let terms = request.terms(of: selected)
        var reuse = reuse(of: terms, for: request.cache, use: handling.use, now: worker.wallTime)
        reuse = Caching.reuse(
            reuse, of: terms, for: request.cache, handling: handling, now: worker.wallTime,
            isPaused: selected.body.isComplete
                && worker.shared.letsStandIn(for: request.origin.endpoint, handling, now: worker.loop.now.sinceStart))
        if request.hasIfMatch {
            reuse = Caching.reuse(
                reuse, ofMatch: request.fields, stored: selected.cached.eTag, mayForward: request.mayForward)
            // Nor may it be served stale if the origin fails.
            if reuse == .fetch(.ifMatch) { stored.selected = nil }
        }
        if case .validate(let why) = reuse, !selected.hasValidator { return machine.on(.outdated(why)) }
        return machine.on(.stored(reuse))
    }

    func suits(_ record: StoredResponse) -> Bool {
        record.suits(request) && (request.mayForward || request.isCovered(by: record, worker))
    }

    private func serveSelected(ttl: Seconds) {
        guard var selected = stored.selected else { preconditionFailure("what is served was selected") }
        request.tier.touch(selected)
        // Of a body that is still arriving, the next use notes it.
        if selected.body.state == .complete, let noting = selected.noting(addressOf: request),
            request.tier.replace(selected, with: noting)
        {
            stored.selected = noting
            selected = noting
        }
        let isFresh = ttl > .zero
        if isFresh, detour == nil, unsafe !worker.scratch.pointee.isOpen {
            stream.keepShortWay(after: request, by: snapshot)
        }
        guard isFresh else { return serveRecord(selected, as: .stale) }
        switch lookUp.source {
        case .fleet?: return serveRecord(selected, as: .shared)
        case .disk?: if request.peer == nil { worker.counters.add(.hitsFromDisk) }
        case .memory?: break
        case nil: preconditionFailure("what is served has a source")
        }
        serveRecord(selected, as: .hit)
    }

    // MARK: leading and following

    /// - Parameter mayLead: false if the request joins a transfer that is under way, and begins none.
    private func lead(mayLead: Bool) -> RequestMachine.Action {
        precondition(isAtRest, "what is waited for here would never be cancelled")
        if request.peer != nil { tellPeerOfWork() }
        let now = worker.loop.now.sinceStart
        switch request.zone.lead(
            request.key, request.keyBytes, knownNewest: stored.newest, askedAt: now, mayLead: mayLead)
        {
        case .lead(let transfer):
            waiting = .leading(transfer)
            return machine.on(.leading)
        case .follow(let transfer):
            waiting = .leading(transfer)
            return machine.on(.following)
        case .keptApart: return machine.on(.keptApart)
        case .nobodyLeads: return machine.on(.nobodyLeads)
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
        let timer = Timer { [weak self] in self?.collapseTimedOut() }
        waiting = .leader(transfer, ticket, timer)
        worker.timers.schedule(timer, after: snapshot.configuration.timeouts.collapse)
    }

    /// The leader took longer than `timeouts.collapse`: this request asks the origin itself.
    private func collapseTimedOut() {
        guard case .leader(let transfer, let ticket, _) = waiting else { return }
        // The wake may be on its way all the same. `leaderResolved` ignores it, because nothing waits for a leader by then.
        transfer.cancel(ticket)
        waiting = .nothing
        worker.counters.add(.collapseTimeouts)
        feed(.collapseTimedOut)
    }

    private func leaderResolved(_ transfer: Transfer) {
        guard case .leader(let followed, _, let timer) = waiting, followed === transfer else { return }
        worker.timers.cancel(timer)
        resolved(by: transfer)
    }

    private func resolved(by transfer: Transfer) {
        waiting = .nothing
        switch transfer.outcome {
        case .published(let record):
            let record = unsafe unsafeDowncast(record, to: StoredResponse.self)
            let use = use(ofPublished: record)
            if use == .validate { (stored.selected, stored.candidates) = (record, []) }
            let action = machine.on(.leaderPublished(use))
            guard case .servePublished = action else { return perform(action) }
            serveRecord(record, as: .collapsed)
        case .failed(let code):
            // The leader's request may have forbidden a stale response that this client accepts.
            let stale = stored.selected.flatMap { mayServeStaleOnError($0) ? $0 : nil }
            let refusal = Refusal(rawValue: UInt8(code)) ?? .internalError
            let action = machine.on(.leaderFailed(refusal, staleMayServe: stale != nil))
            guard case .serveStale = action, let stale else { return perform(action) }
            serve(stale, as: .staleOnError(.stale, status: 0))
        case .notShared, nil:
            feed(.leaderNotShared)
        }
    }

    private func mayServeStaleOnError(_ record: StoredResponse) -> Bool {
        record.body.isComplete
            && Caching.mayServeStaleOnError(
                request.terms(of: record), for: request.cache, use: request.handling(of: record, by: snapshot).use,
                now: worker.wallTime)
    }

    /// How this request can use the response that the leader published. It is decided as for any stored response: the leader's client may be
    /// the only one that it is for.
    ///
    /// A leader whose origin failed publishes the response that was stored before, unchanged or marked as outdated. Each
    /// follower then decides from its own directives whether a stale response will do.
    private func use(ofPublished record: StoredResponse) -> RequestMachine.PublishedUse {
        guard suits(record) else { return .unsuitable }
        if request.handling.provesBodies, !machine.request.takesWhole, isFarAhead(of: record) { return .unsuitable }
        if record === stored.selected || record.terms.isOutdated {
            return mayServeStaleOnError(record) ? .serve : .unsuitable
        }
        let reuse = reuse(
            of: request.terms(of: record), for: request.cache,
            use: .ofPublished(request.handling(of: record, by: snapshot).use), now: worker.wallTime)
        return RequestMachine.PublishedUse(reuse, hasValidator: record.hasValidator)
    }

    // MARK: retrieving

    private func retrieve(_ plan: RetrievalPlan) {
        if request.peer != nil { tellPeerOfWork() }
        var transfer: Transfer?
        if plan.isLeading, case .leading(let led) = waiting { transfer = led }
        precondition(plan.isLeading == (transfer != nil), "who leads has a transfer to resolve")
        listen(
            to: Fetch(
                worker: worker, snapshot: snapshot, request: request, client: stream.address, plan: plan,
                stored: stored.selected, candidates: stored.candidates, transfer: transfer))
    }

    /// Detaches the fetch that worked for this exchange, if any, and starts `fetch` in its place.
    func listen(to fetch: Fetch) {
        detachFetch()
        precondition(mayListen, "what is waited for here would never be cancelled")
        if fetch.isUnverified { stream.account.isUnverified = true }
        // Before the fetch begins: it may fail within `begin`, and tells this exchange so.
        waiting = .fetch(fetch.enrol())
        fetch.begin()
    }

    /// Whether a fetch can take the place of what is waited for: nothing, a fetch that has ended, or the transfer that it will resolve.
    private var mayListen: Bool {
        switch waiting {
        case .nothing, .leading, .fetch: true
        case .coveredBody, .identity, .addresses, .store, .bodyToServe, .leader, .index, .tunnel: false
        }
    }

    /// The fetch that works for this exchange. Nil if there is none, or if it has ended.
    var fetch: Fetch? {
        guard case .fetch(let id) = waiting else { return nil }
        return worker.fetches[id]
    }

    /// Detaches the fetch, because the answer comes another way. The fetch goes on for the store and for others, or ends.
    func detachFetch() {
        guard let fetch else { return }
        // Before the call, which may run until another request of this worker gets the fetch's connection.
        waiting = .nothing
        fetch.clientLeft()
    }

    /// Validates the selected response without a client, after it was served stale (RFC 5861 §3). Does nothing if a transfer for
    /// the key is already under way, or if the origin has asked not to be asked for a while.
    private func revalidateInBackground() {
        let (origin, now) = (request.origin.endpoint, worker.loop.now.sinceStart)
        guard !worker.shared.originPauses.withLock({ $0.isPaused(origin, now: now) }) else { return }
        let led = request.zone.lead(request.key, request.keyBytes, knownNewest: stored.newest)
        guard case .lead(let transfer) = led else { return }
        let selected = stored.selected
        let plan = RetrievalPlan(
            reason: .stale, isConditional: selected?.cached.hasValidator == true, isLeading: true)
        let fetch = Fetch(
            worker: worker, snapshot: snapshot, request: request, client: nil, plan: plan, stored: selected,
            transfer: transfer)
        fetch.enrol()
        fetch.begin()
    }

    // MARK: the end

    /// The last byte of the answer is in the socket's buffer. The connection releases the exchange afterwards.
    func finished() {
        // Logged while the account is still that of this request: the next one may begin as soon as the connection is idle.
        log()
        if let fetch {
            waiting = .nothing
            fetch.answerDelivered()
        }
        stopWaiting()
    }

    /// The answer has been sent. What is still to come of the request changes nothing of its log line.
    func answerSent() { log() }

    /// Records for the log that the answer broke off.
    func markBroken() { stream.account.isBroken = true }

    /// The connection closed. It is releasing its resources, so nothing here may write to it.
    func clientLeft() {
        if !stream.account.isLogged { stream.account.isBroken = true }
        log()
        stopWaiting()
    }

    private func log() {
        guard !stream.account.isLogged else { return }
        stream.account.isLogged = true
        // What a client of another node asks for is counted and learned there.
        guard request.peer == nil else { return logLine() }
        countEcosystem()
        if worker.learner != nil { observe() }
        logLine()
    }

    private func logLine() {
        guard worker.log.isOn else { return }
        worker.log.append(
            stream.account, request: detour?.first ?? request, redirectedTo: detour.map { _ in request.uri })
    }

    /// Notes the request for the jobs that learn.
    func observe() {
        worker.observe(stream.account, request, snapshot, requestBytes: stream.body?.contentBytes ?? 0)
    }

    private func countEcosystem() {
        guard let rule = request.handling.rule, let recipe = snapshot.recipe(ofRule: rule) else { return }
        worker.shared.ecosystems.withLock { $0[recipe, default: EcosystemCounts()].add(stream.account) }
    }

    /// Stops waiting, and releases what was waited for. A transfer that this exchange leads without a fetch is resolved here:
    /// otherwise its followers would wait until their time limit.
    private func stopWaiting() {
        // Emptied first, so that each wait is cancelled once.
        let left = waiting
        waiting = .nothing
        switch left {
        case .nothing, .coveredBody, .identity, .store, .bodyToServe: break
        case .addresses(let ticket): ticket.cancel()
        case .leading(let transfer): transfer.resolve(.notShared)
        case .leader(let transfer, let ticket, let timer):
            transfer.cancel(ticket)
            worker.timers.cancel(timer)
        case .fetch(let id): worker.fetches[id]?.clientLeft()
        case .index(let wait, _): if let (body, ticket) = wait { body.cancel(ticket) }
        case .tunnel(let opener): opener.cancel()
        }
    }
}

extension Denial {
    /// A 407 inside a tunnel would come from the origin.
    fileprivate static let ofEndedProof = Denial(
        reason: .notAuthenticated, text: "the log-in with which this tunnel was opened has ended: open the tunnel again"
    )
}
