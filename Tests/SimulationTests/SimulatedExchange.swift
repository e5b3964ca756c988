import Access
import Caching
import Message
import Transaction

/// One request of a client and its answer: plays the part of the server's `Exchange` around a real `RequestMachine`.
final class SimulatedExchange {
    unowned let world: World
    let id: Int
    let client: Int
    let request: ClientRequest
    let arrivalStep: Int
    var machine: RequestMachine
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
    /// When a request with a signature was looked up first: true time, and the cache's clock.
    var lookedUp: (now: Int64, clock: WallTime)?

    init(_ world: World, id: Int, client: Int, _ request: ClientRequest) {
        self.world = world
        self.id = id
        self.client = client
        self.request = request
        arrivalStep = world.step
        let handling = request.handling
        machine = RequestMachine(
            RequestMachine.Request(
                cache: request.cache, isTunnel: request.method == .connect, isUpgrade: false, hasBody: request.hasBody,
                needsIdentity: world.needsIdentity,
                asksForOriginState: request.ifMatch != nil && handling.ifMatch == .origin,
                collapses: world.collapses, use: handling.use, storesParts: handling.ranges != .pass))
    }

    var handling: CacheHandling { request.handling }
    var mayForward: Bool { !request.cache.directives.onlyIfCached && !handling.use.contains(.cacheOnly) }

    func start() { perform(machine.on(.head)) }

    func perform(_ first: RequestMachine.Action) {
        var action = first
        while true {
            switch action {
            case .identify:
                action = machine.on(world.chance.oneIn(20) ? .refused(.authenticationRequired) : .identified)
            case .decide(let resolved): action = machine.on(.verdict(verdict(resolved)))
            case .lookUp:
                fold()
                action = lookUp()
            case .lead: action = lead()
            case .follow: return
            case .serve: return serveSelected()
            case .serveAndRevalidate:
                revalidateInBackground()
                return serveSelected()
            case .servePublished, .serveStale, .fillHole: return world.violated("\(action) out of order", self)
            case .retrieve(let plan): return retrieve(plan)
            case .tunnel: return end(.refused, "tunnel")
            case .refuse(let refusal): return refuse(refusal)
            }
        }
    }

    private func verdict(_ resolved: Bool) -> Verdict {
        if !resolved, world.chance.oneIn(20) { return .needsAddress }
        let isDenied = world.chance.oneIn(50)
        return isDenied ? .deny(Denial(reason: .rule, text: "no")) : .allow(rule: nil)
    }

    // MARK: the store

    private func lookUp() -> RequestMachine.Action {
        let records = world.store.records[request.uri]
        newest = records.first
        selected = records.first(where: suits)
        guard let selected else {
            guard newest != nil, request.ifMatch == nil else { return machine.on(.stored(nil)) }
            candidates = records.filter { $0.cached.eTag != nil && $0.cached.vary != .star && $0.body.state != .failed }
            return machine.on(.variantMissing(hasValidators: !candidates.isEmpty))
        }
        if request.cache.hasRange, mayForward, selected.body.state == .growing, world.chance.oneIn(10) {
            return machine.on(.farAhead)
        }
        var reuse = reuse(
            of: selected.cached.terms(under: handling), for: request.cache, use: handling.use, now: world.cacheClock)
        if request.ifMatch != nil {
            reuse = Caching.reuse(
                reuse, ofMatch: request.fields, stored: selected.cached.eTag, mayForward: mayForward)
            if reuse == .fetch(.ifMatch) { self.selected = nil }
        }
        if case .validate(let why) = reuse, !selected.cached.hasValidator { return machine.on(.outdated(why)) }
        return machine.on(.stored(reuse))
    }

    func suits(_ record: Record) -> Bool { record.suits(request) && (mayForward || isCovered(by: record)) }

    /// All that the request wants of it is there.
    func isCovered(by record: Record) -> Bool {
        guard record.body.state == .partial else { return true }
        return SimulatedDelivery.choose(record, self).parts.allSatisfy { part in
            part.allSatisfy { record.body.bytes[$0] != nil }
        }
    }

    private func lead() -> RequestMachine.Action {
        guard world.store.records[request.uri].first === newest else { return machine.on(.lookAgain) }
        if let running = world.store.transfers.first(where: { $0.uri == request.uri }) {
            following = running
            running.followers.append(self)
            return machine.on(.following)
        }
        leading = ModelTransfer(uri: request.uri)
        world.store.transfers.append(leading!)
        return machine.on(.leading)
    }

    /// The fetch that was followed has an outcome.
    func leaderResolved(_ outcome: ModelTransfer.Outcome) {
        following = nil
        switch outcome {
        case .published(let record):
            let suits = suits(record)
            let action = machine.on(.leaderPublished(suits: suits))
            guard suits else { return perform(action) }
            guard case .servePublished = action else { return world.violated("a follower was told to \(action)", self) }
            world.note(.collapsed)
            serve(record)
        case .fallback(let record, let failure):
            let takesIt = suits(record) && mayServeStale(record)
            let action = machine.on(.leaderFailed(Refusal(rawValue: failure)!, staleMayServe: takesIt))
            guard case .serveStale = action else { return perform(action) }
            serve(record)
        case .notShared: perform(machine.on(.leaderNotShared))
        case .failed(let code): perform(machine.on(.leaderFailed(Refusal(rawValue: code)!, staleMayServe: false)))
        }
    }

    func mayServeStale(_ record: Record) -> Bool {
        mayServeStaleOnError(
            record.cached.terms(under: handling), for: request.cache, use: handling.use, now: world.cacheClock)
    }

    func collapseTimedOut() {
        following?.followers.removeAll { $0 === self }
        following = nil
        world.note(.collapseTimedOut)
        perform(machine.on(.collapseTimedOut))
    }

    // MARK: fetches

    private func serveSelected() {
        guard let selected else { return world.violated("nothing is selected", self) }
        serve(selected)
    }

    private func retrieve(_ plan: RetrievalPlan) {
        let fetch = SimulatedFetch(world, request, self, plan, stored: selected, candidates: candidates)
        if plan.isLeading { fetch.transfer = leading }
        leading = nil
        self.fetch = fetch
    }

    private func revalidateInBackground() {
        guard !world.store.transfers.contains(where: { $0.uri == request.uri }) else { return }
        let plan = RetrievalPlan(
            reason: .stale, isConditional: selected?.cached.hasValidator == true, isLeading: true)
        let fetch = SimulatedFetch(world, request, nil, plan, stored: selected)
        fetch.transfer = ModelTransfer(uri: request.uri)
        world.store.transfers.append(fetch.transfer!)
        world.note(.revalidatedBehind)
    }

    /// A part of it has just come, as a part of the very same.
    func isConfirmed(_ record: Record) -> Bool { fetch?.hole?.record === record }

    func fetchPart(_ fill: Fill?, of record: Record?) {
        guard let fill, let record else {
            switch machine.on(.partNotKept) {
            case .retrieve(let plan): fetch = SimulatedFetch(world, request, self, plan, stored: nil)
            case let action: world.violated("a part that is not kept led to \(action)", self)
            }
            return
        }
        guard case .fillHole = machine.on(.holeFound) else { return world.violated("a hole is not filled", self) }
        if answer.status == nil { world.oracle.judgeBeforePart(of: self, record, in: world) }
        fetch = SimulatedFetch(
            world, request, self, RetrievalPlan(reason: .partial), stored: record, hole: (record, fill))
    }
}
