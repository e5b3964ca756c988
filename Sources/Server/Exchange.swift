import Access
import Caching
import EventLoop
import Framing
import Glibc
import Message
import Storage
import Transaction

/// One request that has to wait for something, and its answer: performs what its `Transaction` decides.
final class Exchange {
    let client: ClientConnection
    let worker: Worker
    let snapshot: Snapshot
    let request: OwnedRequest
    private var transaction: Transaction
    private var selected: StoredResponse?
    /// The newest record under the key, of whatever variant, when the store was asked.
    private var newest: StoredRecord?
    private var transfer: Transfer?
    private var followTicket: FollowTicket?
    private var fetch: Fetch?
    private var dial: Dial?
    private var ticket: ResolverTicket?
    private var upload: RequestUpload?
    private var denial: Denial?

    /// How the body of a response that is passed on is framed.
    private var framing: ForwardedHead.Framing = .none
    /// All of the answer is queued, or in the hands of a delivery.
    private(set) var isAnswered = false
    /// The client waits for `100 Continue` before it sends its body (RFC 9110 §10.1.1).
    private var awaitsContinue: Bool

    init(client: ClientConnection, request: OwnedRequest) {
        self.client = client
        worker = client.worker
        snapshot = client.worker.snapshot
        self.request = request
        awaitsContinue = request.head.minorVersion >= 1 && request.fields.contains(.expect)
        let isUpgrade =
            request.method == .get && request.head.minorVersion >= 1
            && ForwardedHead.isUpgrade(request.options, request.fields)
        transaction = Transaction(
            Transaction.Request(
                cache: request.cache, isTunnel: request.method == .connect, isUpgrade: isUpgrade,
                hasBody: request.hasBody, needsIdentity: snapshot.users != nil,
                asksForOriginState: !request.head.fields.present.isDisjoint(with: [.ifMatch, .ifUnmodifiedSince]),
                collapses: snapshot.configuration.cache.collapse))
    }

    func start() {
        guard client.isAdmitted else {
            note(Denial(reason: .client, text: "this address is not among the clients of this proxy"))
            return refuse(.accessDenied)
        }
        if let local = LocalAnswer(request, instance: worker.shared.instance) { return answer(local) }
        perform(transaction.on(.head))
    }

    /// Carries out one action after the other until something has to be waited for.
    private func perform(_ first: Transaction.Action) {
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
                action = lookUp()
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

    private func identify() -> Transaction.Action? {
        switch Authentication.check(
            request, worker: worker, snapshot: snapshot, { [weak self] in self?.identified($0) })
        {
        case .waiting: nil
        case .known(let user):
            {
                request.user = user
                return transaction.on(.identified)
            }()
        case .refused(let refusal): transaction.on(.refused(refusal))
        }
    }

    private func identified(_ result: Authentication.Result) {
        switch result {
        case .waiting: return
        case .known(let user):
            request.user = user
            perform(transaction.on(.identified))
        case .refused(let refusal):
            perform(transaction.on(.refused(refusal)))
        }
    }

    private func decide(resolved: Bool) -> Transaction.Action? {
        guard !snapshot.access.isOpen else { return transaction.on(.verdict(.allow(rule: nil))) }
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
    private func verdict(_ addresses: [SocketAddress]) -> Verdict {
        var last: Verdict = .deny(Denial(reason: .privateDestination, text: "the host has no address"))
        for address in addresses.compactMap(IPAddress.init) {
            last = snapshot.access.decide(request.access, address: address)
            if case .allow = last { return last }
        }
        return last
    }

    private func note(_ verdict: Verdict) -> Transaction.Action {
        if case .deny(let reason) = verdict { denial = reason }
        return transaction.on(.verdict(verdict))
    }

    // MARK: the store

    private func lookUp() -> Transaction.Action {
        let records = worker.shared.lookup(request.key, request.keyBytes)
        newest = records.first
        selected = records.lazy.compactMap { $0 as? StoredResponse }.first(where: suits)
        guard let selected else { return transaction.on(newest == nil ? .stored(nil) : .variantMissing) }
        let reuse = reuse(of: selected.terms, for: request.cache, now: worker.wallTime)
        if case .validate(let why) = reuse, !selected.cached.hasValidator { return transaction.on(.outdated(why)) }
        return transaction.on(.stored(reuse))
    }

    private func suits(_ record: StoredResponse) -> Bool {
        guard record.body.state != .failed, !record.body.isWindowed else { return false }
        guard let secondaryKey = record.secondaryKey else { return true }
        let bytes = request.bytes
        return secondaryKey.matches(request.head.fields, bytes: bytes.span)
    }

    private func lead() -> Transaction.Action {
        switch worker.shared.lead(request.key, request.keyBytes, knownNewest: newest) {
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

    private func follow() {
        let inbox = worker.loop.inbox
        let worker = WorkerReference(worker)
        let id = client.id
        let number = client.exchangeNumber
        followTicket = transfer?.follow(
            Wake { inbox.post { worker.value.clients[id]?.exchange(number)?.leaderResolved() } },
            limit: snapshot.limits.followersPerTransferMax)
        if followTicket == nil { leaderResolved() }
    }

    private func leaderResolved() {
        guard let transfer else { return }
        followTicket = nil
        self.transfer = nil
        switch transfer.outcome {
        case .published(let record):
            let record = unsafe unsafeDowncast(record, to: StoredResponse.self)
            guard suits(record) else { return perform(transaction.on(.leaderPublished(suits: false))) }
            _ = transaction.on(.leaderPublished(suits: true))
            serve(record, as: .collapsed)
        case .failed(let code):
            perform(transaction.on(.leaderFailed(Refusal(rawValue: UInt8(code)) ?? .internalError)))
        case .notShared, nil:
            perform(transaction.on(.leaderNotShared))
        }
    }

    private func serveSelected(ttl: Seconds) {
        guard let selected else { preconditionFailure("nothing is selected") }
        worker.shared.tier.touch(selected)
        serve(selected, as: ttl > .zero ? .hit : .stale)
    }

    private func start(_ plan: Transaction.Fetch) {
        let fetch = Fetch(
            worker: worker, snapshot: snapshot, request: request, exchange: self, transaction: transaction, plan: plan,
            stored: selected, transfer: plan.isLeading ? transfer : nil)
        transfer = nil
        self.fetch = fetch
        fetch.start()
    }

    /// RFC 5861 §3: the client has its answer; the store gets a better one, once.
    private func revalidateBehind() {
        guard case .lead(let transfer) = worker.shared.lead(request.key, request.keyBytes, knownNewest: newest)
        else { return }
        let (transaction, plan) = Transaction.revalidation(
            self.transaction.request, isConditional: selected?.cached.hasValidator == true)
        Fetch(
            worker: worker, snapshot: snapshot, request: request, exchange: nil, transaction: transaction, plan: plan,
            stored: selected, transfer: transfer
        ).start()
    }

    // MARK: answers from the store

    func serve(_ record: StoredResponse, as service: Service) {
        isAnswered = true
        if case .miss = service {} else { fetch = nil }
        let answer = StoredAnswer(record, to: request, service: service, now: worker.wallTime)
        client.account.status = answer.status
        client.account.outcome = service.outcome
        count(service)
        client.queue {
            answer.appendHead(
                minorVersion: request.head.minorVersion, persists: client.persists, to: &$0)
        }
        if answer.endsWithConnection { client.persists = false }
        guard let delivery = answer.delivery else { return client.flush() }
        client.delivery = delivery
        // Of a response that is just being stored, the first bytes follow at once: head and body go out together.
        if case .miss = service { return }
        client.flush()
    }

    private func count(_ service: Service) {
        switch service {
        case .hit: worker.counters.add(.hits)
        case .stale, .staleOnError: worker.counters.add(.staleHits)
        case .revalidated: worker.counters.add(.revalidated)
        case .collapsed: worker.counters.add(.collapsed)
        case .miss: worker.counters.add(.misses)
        }
    }

    /// The fetch tells of every piece that arrives; no wake-up is needed.
    var isToldOfProgress: Bool { fetch != nil }

    func bodyAdvanced() { client.flush() }

    // MARK: passing a response on

    func relayInterim(_ response: ReceivedResponse) {
        guard request.head.minorVersion >= 1 else { return }
        if response.status == 100 { awaitsContinue = false }
        client.queue {
            ForwardedHead.appendResponse(response, to: &$0)
            HeadWriter.append("\r\n", to: &$0)
        }
        client.flush()
    }

    func relayHead(
        _ response: ReceivedResponse, length: BodyLength, reason why: CacheStatus.ForwardReason,
        notStored: NotStoredReason?
    ) {
        worker.counters.add(.passed)
        client.account.status = response.status
        client.account.outcome = .passed
        framing = ForwardedHead.framing(of: length, minorVersion: request.head.minorVersion)
        let tellsLength = request.method == .head || response.status == 304
        if tellsLength { framing = .none }
        if framing == .untilClose { client.persists = false }
        var cacheStatus = CacheStatus(.forwarded(why))
        cacheStatus.forwardStatus = response.status
        cacheStatus.detail = notStored?.rawValue
        client.queue {
            ForwardedHead.appendResponse(response, to: &$0)
            ForwardedHead.appendProxyFields(response, now: worker.wallTime, to: &$0)
            HeadWriter.append("Cache-Status: ", to: &$0)
            cacheStatus.append(to: &$0)
            HeadWriter.append("\r\n", to: &$0)
            ForwardedHead.appendFraming(framing, to: &$0)
            // A response without content may still say how long it would be (HEAD, 304; RFC 9110 §8.6).
            if tellsLength, let told = response.fields.first(.contentLength) {
                appendFieldLine(.contentLength, told, to: &$0)
            }
            HeadWriter.appendConnection(persists: client.persists, minorVersion: request.head.minorVersion, to: &$0)
        }
    }

    func relay(_ bytes: UnsafeRawBufferPointer) {
        client.account.bodyBytes += bytes.count
        guard framing == .chunked else { return unsafe client.send(bytes) }
        client.queue { appendChunkHeader(bytes.count, to: &$0) }
        unsafe client.queue(bytes)
        client.queue { HeadWriter.append("\r\n", to: &$0) }
    }

    func relayTurnEnded() { client.flush() }

    var isBehind: Bool { client.unsentBytes >= snapshot.limits.relayBufferBytesMax }

    func relayEnd(trailers: Fields?) {
        fetch = nil
        if framing == .chunked { client.queue { appendLastChunk(trailers: ForwardedHead.trailers(trailers), to: &$0) } }
        isAnswered = true
        client.flush()
    }

    /// What was passed on so far can not be completed: the client must see that (RFC 9112 §8).
    func relayFailed(_ refusal: Refusal) {
        fetch = nil
        client.account.refusal = refusal
        client.abort()
    }

    /// Everything queued is out.
    /// - Returns: that was the whole answer.
    func outputDrained() -> Bool {
        if !isAnswered { fetch?.resume() }
        return isAnswered
    }

    // MARK: the request's body

    func upload(to fetch: Fetch) {
        upload = RequestUpload(request.bodyLength, limits: snapshot.limits)
        self.fetch = fetch
        client.uploadSoon()
    }

    /// The next move is the client's: it has a body to send and nothing to wait for.
    var owesBody: Bool { isUploading && !awaitsContinue }

    /// The client stopped in the middle of its request.
    func bodyIsLate() {
        let fetch = self.fetch
        self.fetch = nil
        fetch?.clientLeft()
        refuse(.requestTimeout)
    }

    var isUploading: Bool { upload.map { !$0.isComplete } ?? false }

    func mayUploadMore() {
        guard isUploading else { return }
        uploadMore()
    }

    func uploadMore() {
        guard isUploading, let fetch else { return }
        do throws(FramingError) {
            var inbound = client.takeInbound()
            defer { client.putBack(inbound) }
            let wantsMore = try upload!.send(&inbound, to: fetch)
            if wantsMore { client.resumeReading() } else { client.pauseReading() }
        } catch {
            worker.counters.count(error)
            client.persists = false
            let fetch = self.fetch
            self.fetch = nil
            fetch?.clientLeft()
            guard !isAnswered else { return client.abort() }
            refuse(.malformedRequestBody)
        }
    }

    /// The answer is out before the whole request was in: the connection can not be used further.
    var leavesRequestUnread: Bool { request.hasBody && upload?.isComplete != true }

    // MARK: other ways

    private func answer(_ local: LocalAnswer) {
        switch local {
        case .refusal(let refusal):
            refuse(refusal)
        case .response(let status, let fields, let body):
            isAnswered = true
            client.account.status = status
            client.account.outcome = .local
            var date: [UInt8] = []
            appendHTTPDate(worker.wallTime, to: &date)
            client.queue {
                appendStatusLine(status, reason: nil, to: &$0)
                appendFieldLine(.date, date, to: &$0)
                HeadWriter.append("Cache-Status: larder; detail=local\r\n", to: &$0)
                for line in fields.lines { appendFieldLine(fields.name(of: line), fields.value(of: line), to: &$0) }
                HeadWriter.append(.contentLength, body.count, to: &$0)
                HeadWriter.appendConnection(persists: client.persists, minorVersion: request.head.minorVersion, to: &$0)
                $0.append(contentsOf: body)
            }
            client.flush()
        }
    }

    func refuse(_ refusal: Refusal) {
        fetch = nil
        isAnswered = true
        worker.counters.add(refusal.isOfOrigin ? .failed : .refused)
        worker.counters.refusals.add(Int(refusal.rawValue), 1)
        client.account.status = refusal.status
        client.account.outcome = refusal.isOfOrigin ? .failed : .refused
        client.account.refusal = refusal
        // After a refused CONNECT come bytes that were meant for the tunnel, or none: they are no requests.
        let isRefusedTunnel = request.method == .connect && (refusal != .authenticationRequired || client.hasUnreadBytes)
        if request.hasBody || isRefusedTunnel { client.persists = false }
        let response = ErrorResponse(
            refusal, request: request, denial: denial, challenge: snapshot.users == nil ? nil : snapshot.challenge)
        client.queue {
            response.append(
                isHead: request.method == .head, persists: client.persists, minorVersion: request.head.minorVersion,
                date: worker.wallTime, to: &$0)
        }
        client.flush()
    }

    func note(_ denial: Denial) { self.denial = denial }

    func note(violation: FramingError) { client.account.violation = violation }

    private func tunnel() {
        let dial = Dial(worker: worker, request: request.access, snapshot: snapshot) { [weak self] outcome in
            guard let self else { return }
            self.dial = nil
            switch outcome {
            case .failed(let refusal): refuse(refusal)
            case .denied(let denial):
                note(denial)
                refuse(Refusal(denial))
            case .connected(let fd, _): openTunnel(fd)
            }
        }
        self.dial = dial
        dial.start()
    }

    private func openTunnel(_ fd: CInt) {
        Sockets.setNoDelay(fd)
        worker.counters.add(.tunnels)
        client.account.status = 200
        client.account.outcome = .tunnel
        TunnelOpener.open(
            client: client, worker: worker, origin: fd,
            greeting: Array("HTTP/1.1 200 Connection established\r\nCache-Status: larder; fwd=method\r\n\r\n".utf8),
            early: [],
            request: request)
    }

    func switchProtocols(_ response: ReceivedResponse, origin: CInt, early: [UInt8]) {
        fetch = nil
        worker.counters.add(.upgrades)
        client.account.status = 101
        client.account.outcome = .tunnel
        var greeting: [UInt8] = []
        ForwardedHead.appendResponse(response, to: &greeting)
        HeadWriter.append("Connection: Upgrade\r\n", to: &greeting)
        appendFieldLine(.upgrade, response.fields.first(.upgrade) ?? ArraySlice("websocket".utf8), to: &greeting)
        HeadWriter.append("Via: 1.1 larder\r\n\r\n", to: &greeting)
        TunnelOpener.open(
            client: client, worker: worker, origin: origin, greeting: greeting, early: early, request: request)
    }

    // MARK: the end

    /// The answer is out.
    func finished() {
        log()
        leave()
    }

    /// The answer broke off.
    func broke() { client.account.isBroken = true }

    func clientLeft() {
        if !client.account.isLogged { client.account.isBroken = true }
        log()
        leave()
    }

    private func log() {
        guard !client.account.isLogged else { return }
        client.account.isLogged = true
        if worker.log.isOn { worker.log.append(client.account, request: request) }
    }

    private func leave() {
        if let followTicket { transfer?.cancel(followTicket) }
        transfer = nil
        ticket?.cancel()
        ticket = nil
        dial?.cancel()
        dial = nil
        let fetch = self.fetch
        self.fetch = nil
        fetch?.clientLeft()
    }
}
