import Access
import Caching
import Message
import Transaction

/// One request of a client and its answer: plays the part of the server's `Exchange` around a real `Transaction`.
final class SimulatedExchange {
    unowned let world: World
    let id: Int
    let client: Int
    let request: ClientRequest
    let arrivalStep: Int
    var transaction: Transaction
    var selected: Record?
    var candidates: [Record] = []
    /// The fetch of somebody else that it waits for.
    var following: ModelTransfer?
    /// The fetch it leads, until that has begun.
    var leading: ModelTransfer?
    var fetch: SimulatedFetch?
    var answer = ClientAnswer()
    var delivery: SimulatedDelivery?
    private var newest: Record?

    init(_ world: World, id: Int, client: Int, _ request: ClientRequest) {
        self.world = world
        self.id = id
        self.client = client
        self.request = request
        arrivalStep = world.step
        let treatment = request.treatment
        transaction = Transaction(
            Transaction.Request(
                cache: request.cache, isTunnel: request.method == .connect, isUpgrade: false, hasBody: request.hasBody,
                needsIdentity: world.needsIdentity, asksForOriginState: request.ifMatch != nil,
                collapses: world.collapses, use: treatment.use, storesParts: treatment.ranges != .pass))
    }

    var treatment: CacheTreatment { request.treatment }
    var mayForward: Bool { !request.cache.directives.onlyIfCached && !treatment.use.contains(.cacheOnly) }

    func start() { perform(transaction.on(.head)) }

    func perform(_ first: Transaction.Action) {
        var action = first
        while true {
            switch action {
            case .identify:
                action = transaction.on(world.chance.oneIn(20) ? .refused(.authenticationRequired) : .identified)
            case .decide(let resolved): action = transaction.on(.verdict(verdict(resolved)))
            case .lookUp: action = lookUp()
            case .lead: action = lead()
            case .follow: return
            case .serve: return serveSelected()
            case .serveAndRevalidate:
                revalidateBehind()
                return serveSelected()
            case .fetch(let plan): return start(plan)
            case .tunnel: return end(.refused, "tunnel")
            case .refuse(let refusal): return refuse(refusal)
            case .store, .freshen, .serveStale, .relay: return world.violated("\(action) outside a fetch", self)
            }
        }
    }

    private func verdict(_ resolved: Bool) -> Verdict {
        if !resolved, world.chance.oneIn(20) { return .needsAddress }
        let isDenied = world.chance.oneIn(50)
        return isDenied ? .deny(Denial(reason: .rule, text: "no")) : .allow(rule: nil)
    }

    // MARK: the store

    private func lookUp() -> Transaction.Action {
        let records = world.store.records[request.uri]
        newest = records.first
        selected = records.first(where: suits)
        guard let selected else {
            guard newest != nil else { return transaction.on(.stored(nil)) }
            candidates = records.filter { $0.cached.eTag != nil && $0.cached.vary != .star && $0.body.state != .failed }
            return transaction.on(.variantMissing(hasValidators: !candidates.isEmpty))
        }
        if request.cache.hasRange, mayForward, selected.body.state == .growing, world.chance.oneIn(10) {
            return transaction.on(.farAhead)
        }
        let reuse = reuse(of: selected.cached, for: request.cache, use: treatment.use, now: world.cacheClock)
        if case .validate(let why) = reuse, !selected.cached.hasValidator { return transaction.on(.outdated(why)) }
        return transaction.on(.stored(reuse))
    }

    func suits(_ record: Record) -> Bool { record.suits(request) && (mayForward || isCovered(by: record)) }

    /// All that the request wants of it is there.
    func isCovered(by record: Record) -> Bool {
        guard record.body.state == .partial else { return true }
        return SimulatedDelivery.choose(record, self).parts.allSatisfy { part in
            part.allSatisfy { record.body.bytes[$0] != nil }
        }
    }

    private func lead() -> Transaction.Action {
        guard world.store.records[request.uri].first === newest else { return transaction.on(.lookAgain) }
        if let running = world.store.transfers.first(where: { $0.uri == request.uri }) {
            following = running
            running.followers.append(self)
            return transaction.on(.following)
        }
        leading = ModelTransfer(uri: request.uri)
        world.store.transfers.append(leading!)
        return transaction.on(.leading)
    }

    /// The fetch that was followed has an outcome.
    func leaderResolved(_ outcome: ModelTransfer.Outcome) {
        following = nil
        switch outcome {
        case .published(let record):
            let suits = suits(record)
            let action = transaction.on(.leaderPublished(suits: suits))
            guard suits else { return perform(action) }
            guard case .serve = action else { return world.violated("a follower was told to \(action)", self) }
            world.note(.collapsed)
            serve(record)
        case .fallback(let record, let failure):
            guard suits(record), mayServeStale(record) else {
                return perform(transaction.on(.leaderFailed(Refusal(rawValue: failure)!)))
            }
            _ = transaction.on(.leaderPublished(suits: true))
            serve(record)
        case .notShared: perform(transaction.on(.leaderNotShared))
        case .failed(let code): perform(transaction.on(.leaderFailed(Refusal(rawValue: code)!)))
        }
    }

    func mayServeStale(_ record: Record) -> Bool {
        mayServeStaleOnError(record.cached, for: request.cache, use: treatment.use, now: world.cacheClock)
    }

    func waitedEnough() {
        following?.followers.removeAll { $0 === self }
        following = nil
        world.note(.waitedEnough)
        perform(transaction.on(.waitedEnough))
    }

    // MARK: fetches

    private func serveSelected() {
        guard let selected else { return world.violated("nothing is selected", self) }
        serve(selected)
    }

    private func start(_ plan: Transaction.Fetch) {
        let fetch = SimulatedFetch(world, request, self, transaction, plan, stored: selected)
        fetch.candidates = candidates
        if plan.isLeading { fetch.transfer = leading }
        leading = nil
        self.fetch = fetch
        world.fetches.append(fetch)
    }

    private func revalidateBehind() {
        guard !world.store.transfers.contains(where: { $0.uri == request.uri }) else { return }
        let (transaction, plan) = Transaction.revalidation(
            self.transaction.request, isConditional: selected?.cached.hasValidator == true)
        let fetch = SimulatedFetch(world, request, nil, transaction, plan, stored: selected)
        fetch.transfer = ModelTransfer(uri: request.uri)
        world.store.transfers.append(fetch.transfer!)
        world.fetches.append(fetch)
        world.note(.revalidatedBehind)
    }

    /// A part of it has just come, as a part of the very same.
    func isConfirmed(_ record: Record) -> Bool { fetch?.part != nil && fetch?.hole?.record === record }

    func fetchPart(_ fill: Fill?, of record: Record?) {
        let (transaction, plan) = Transaction.alone(self.transaction.request, .partial)
        let fetch = SimulatedFetch(world, request, self, transaction, plan, stored: record)
        if let fill, let record {
            if answer.status == nil { world.oracle.judgeBeforePart(of: self, record, in: world) }
            fetch.hole = (record, fill)
            fetch.part = PartAsked(stored: record.cached, start: fill.start, end: fill.end)
        }
        self.fetch = fetch
        world.fetches.append(fetch)
    }
}
