import Access
import Caching
import Message
import Transaction

/// One request of a client and its answer: plays the part of the server's `Exchange` around a real `RequestMachine`.
final class SimulatedExchange {
    unowned let world: World
    let id: Int
    let client: Int
    /// What the client asked for.
    let first: ClientRequest
    /// What it is asked for now: where redirects led.
    private(set) var request: ClientRequest
    /// When the present request began.
    private(set) var arrivalStep: Int
    private var trail: RedirectTrail
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
    private var lookUp = LookUp()
    /// What the look-up waits for. Nil: for nothing.
    private var awaited: LookUp.Event?
    /// Memory holds no response of the key: the disk has them all.
    private var isForgotten = false
    /// The body of the selected response has been read from the disk.
    private var isBodyRead = false
    /// When a request with a signature was looked up first: true time, and the cache's clock.
    var lookedUp: (now: Int64, clock: WallTime)?

    init(_ world: World, id: Int, client: Int, _ request: ClientRequest) {
        self.world = world
        self.id = id
        self.client = client
        first = request
        self.request = request
        trail = RedirectTrail(request.method, World.target(request.uri))
        arrivalStep = world.step
        machine = RequestMachine(SimulatedExchange.asked(request, world, needsIdentity: world.needsIdentity))
    }

    private static func asked(
        _ request: ClientRequest, _ world: World, needsIdentity: Bool
    ) -> RequestMachine.Request {
        let handling = request.handling
        return RequestMachine.Request(
            cache: request.cache, isTunnel: request.method == .connect, isUpgrade: false, hasBody: request.hasBody,
            needsIdentity: needsIdentity, asksForOriginState: request.ifMatch != nil && handling.ifMatch == .origin,
            collapses: world.collapses, use: handling.use, storesParts: handling.ranges != .pass)
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
                guard let next = lookUpStored() else { return }
                action = next
            case .lead: action = lead(mayLead: true)
            case .join: action = lead(mayLead: false)
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

    // MARK: redirects

    /// Follows a redirect in place of an answer, as `Exchange.hasFollowed` does. False: the client gets the response.
    func hasFollowed(_ status: UInt16, _ fields: Fields, isStored: Bool) -> Bool {
        guard let countMax = world.redirectsMax, RedirectStep.concerns(status: status) else { return false }
        let redirect = Redirect(
            status: status, locations: fields.all(.location), method: request.method, isSafe: request.cache.isSafe,
            content: request.hasBody ? .sent : .none)
        switch trail.step(redirect, countMax: countMax) {
        case .passOn:
            world.note(.redirected)
            return false
        case .refuse(let refusal):
            if refusal == .redirectLoop { world.note(.looped) }
            leaveFetch()
            refuse(refusal)
        case .follow(let following):
            guard let uri = World.index(of: following.target) else { return false }
            trail.follow(following, request.method)
            world.note(isStored ? .followedStored : .followed)
            if trail.count == 2 { world.note(.followedTwice) }
            leaveFetch()
            goOn(
                ClientRequest(
                    after: request, uri: uri, handling: world.handlings[uri], becomesGet: following.becomesGet))
        }
        return true
    }

    /// The fetch goes on for the store and for its followers.
    private func leaveFetch() {
        let fetch = self.fetch
        self.fetch = nil
        fetch?.clientLeft()
    }

    private func goOn(_ next: ClientRequest) {
        request = next
        arrivalStep = world.step
        (selected, newest, candidates) = (nil, nil, [])
        machine = RequestMachine(SimulatedExchange.asked(next, world, needsIdentity: false))
        lookUp = LookUp()
        (isForgotten, isBodyRead) = (false, false)
        world.trace("exchange \(id) goes on: \(next.summary)")
        start()
    }

    private func verdict(_ resolved: Bool) -> Verdict {
        if !resolved, world.chance.oneIn(20) { return .needsAddress }
        let isDenied = world.chance.oneIn(50)
        return isDenied ? .deny(Denial(reason: .rule, text: "no")) : .allow(rule: nil)
    }

    // MARK: the store

    /// Returns nil if the exchange now waits for the disk.
    private func lookUpStored() -> RequestMachine.Action? {
        if !lookUp.hasBegun { isForgotten = world.hasDisk && world.chance.oneIn(3) }
        return look(lookUp.on(.begin(for: .client, backStore: world.hasDisk, fleet: false)))
    }

    private func look(_ first: LookUp.Action) -> RequestMachine.Action? {
        var action = first
        while true {
            let event: LookUp.Event?
            switch action {
            case .searchMemory: event = searchMemory()
            case .loadHeads: event = loadHeads()
            case .awaitIndex:
                awaited = .indexLoaded
                event = nil
            case .loadBody: event = loadBody()
            case .report: return reportSelected()
            case .reportNone: return reportNone()
            case .reportBusy:
                world.note(.diskBusy)
                selected = nil
                return machine.on(.stored(nil))
            case .askFleet:
                world.violated("a fleet is asked that does not exist", self)
                return nil
            }
            guard let event else { return nil }
            action = lookUp.on(event)
        }
    }

    private func searchMemory() -> LookUp.Event {
        let records = world.store.records[request.uri]
        // Of the shelf, which compares it when somebody leads.
        newest = records.first
        selected = isForgotten ? nil : records.first(where: suits)
        guard let selected else { return .missing }
        let isOnDisk = world.hasDisk && !isBodyRead && selected.body.state == .complete && world.chance.oneIn(3)
        return .found(request.method == .head ? .unneeded : isOnDisk ? .whole : .atHand)
    }

    private func loadHeads() -> LookUp.Event? {
        switch world.chance.below(8) {
        case 0: return .busy
        case 1: return .indexLoading
        case 2...4:
            awaited = .headsLoaded
            return nil
        default:
            guard isForgotten else { return .noHeads }
            isForgotten = false
            return .headsLoaded
        }
    }

    private func loadBody() -> LookUp.Event? {
        switch world.chance.below(6) {
        case 0: return .busy
        case 1:
            if let selected { world.store.remove(selected) }
            return .bodyUnreadable
        case 2, 3:
            awaited = .bodyRead
            return nil
        default: return .bodyAtHand
        }
    }

    /// Goes on if the exchange waits for the disk. Returns false if it does not.
    func diskAnswers() -> Bool {
        guard let event = awaited else { return false }
        awaited = nil
        if case .headsLoaded = event { isForgotten = false }
        if case .bodyRead = event { isBodyRead = true }
        if let next = look(lookUp.on(event)) { perform(next) }
        return true
    }

    private func reportNone() -> RequestMachine.Action {
        let records = isForgotten ? [] : world.store.records[request.uri]
        guard !records.isEmpty, request.ifMatch == nil else { return machine.on(.stored(nil)) }
        candidates = records.filter { $0.cached.eTag != nil && $0.cached.vary != .star && $0.body.state != .failed }
        return machine.on(.variantMissing(hasValidators: !candidates.isEmpty))
    }

    private func reportSelected() -> RequestMachine.Action? {
        guard let selected, world.store.records[request.uri].contains(where: { $0 === selected }) else {
            world.violated("what is selected is not stored", self)
            return nil
        }
        if lookUp.source == .disk { world.note(.foundOnDisk) }
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

    private func lead(mayLead: Bool) -> RequestMachine.Action {
        guard world.store.records[request.uri].first === newest else { return machine.on(.lookAgain) }
        if world.store.keepsApart(request.uri, now: world.trueTime) {
            world.note(.keptApart)
            return machine.on(.keptApart)
        }
        if let running = world.store.transfers.first(where: { $0.uri == request.uri }) {
            let action = machine.on(.following)
            guard case .follow = action else {
                world.note(.notJoined)
                return action
            }
            following = running
            running.followers.append(self)
            return action
        }
        guard mayLead else { return machine.on(.nobodyLeads) }
        leading = ModelTransfer(uri: request.uri)
        world.store.transfers.append(leading!)
        return machine.on(.leading)
    }

    /// The fetch that was followed has an outcome.
    func leaderResolved(_ outcome: ModelTransfer.Outcome) {
        following = nil
        switch outcome {
        case .published(let record):
            let use = use(ofPublished: record)
            if use == .validate {
                (selected, candidates) = (record, [])
                world.note(.followerValidated)
            }
            let action = machine.on(.leaderPublished(use))
            guard use == .serve else { return perform(action) }
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

    private func use(ofPublished record: Record) -> RequestMachine.PublishedUse {
        guard suits(record) else { return .unsuitable }
        let reuse = reuse(
            of: record.cached.terms(under: handling), for: request.cache, use: .ofPublished(handling.use),
            now: world.cacheClock)
        return RequestMachine.PublishedUse(reuse, hasValidator: record.cached.hasValidator)
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
