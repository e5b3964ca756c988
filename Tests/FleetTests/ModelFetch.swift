import Fleet

/// Gets a response from other nodes or from the origin, and stores it (Fetch, PeerQuest).
final class ModelFetch {
    private let node: ModelNode
    private let world: FleetWorld
    private let request: ModelRequest
    private let stored: ModelStored?
    private let transfer: ModelTransfer?
    private let isForPeer: Bool
    private let depth: Int
    private let clientAsksForNews: Bool
    /// How it ends: with a response, whose body may break off, with one that is stale and stands in, or without.
    enum End {
        case response(ModelResponse, source: String, breaksOff: Bool)
        case standIn(ModelResponse, source: String)
        case failed
    }

    private let then: (End) -> Void
    private let invalidationsBefore: Int

    private var plan = ModelNode.Plan()
    /// The node that is asked, and waited for.
    private var asked: Ask?
    /// A node that was slow, and is listened to while the origin is asked.
    private var standby: Ask?
    /// Counts the requests to the origin. The answer to an earlier one is not heard.
    private var originTry = 0
    private var isEnded = false

    private static let connectMax: UInt64 = 250_000_000
    private static let answerMax: UInt64 = 50_000_000
    private static let firstByteMax: UInt64 = 5_000_000_000

    /// One question to another node.
    private final class Ask {
        let node: Int
        let isForStoreOnly: Bool
        let permit: Circuit.Permit
        var isWorking = false
        var isSettled = false

        init(_ node: Int, isForStoreOnly: Bool, _ permit: Circuit.Permit) {
            self.node = node
            self.isForStoreOnly = isForStoreOnly
            self.permit = permit
        }
    }

    init(
        _ node: ModelNode, _ request: ModelRequest, _ stored: ModelStored?, _ transfer: ModelTransfer?,
        isForPeer: Bool, depth: Int, asksForNews: Bool,
        then: @escaping (End) -> Void
    ) {
        self.node = node
        world = node.world
        self.request = request
        self.stored = stored
        self.transfer = transfer
        self.isForPeer = isForPeer
        self.depth = depth
        clientAsksForNews = asksForNews
        self.then = then
        invalidationsBefore = node.invalidations
    }

    func begin() {
        if !request.isPersonal || world.breaks(.asksForWhatIsPersonal) {
            plan = node.plan(
                request.key, isForPeer: isForPeer, looksIntoStores: stored == nil && !clientAsksForNews)
        }
        next()
    }

    private func next() {
        while !plan.asks.isEmpty {
            let (peer, isForStoreOnly) = plan.asks.removeFirst()
            guard let permit = node.permit(to: peer) else { continue }
            return ask(peer, isForStoreOnly, permit)
        }
        askOrigin()
    }

    // MARK: other nodes

    private func ask(_ peer: Int, _ isForStoreOnly: Bool, _ permit: Circuit.Permit) {
        world.judge.question(
            for: request, from: node, to: peer, depth: depth + 1, isForStoreOnly: isForStoreOnly, world)
        let ask = Ask(peer, isForStoreOnly: isForStoreOnly, permit)
        asked = ask
        let value = node.question(isForStoreOnly: isForStoreOnly)
        let asksForNews = plan.asksForNews || clientAsksForNews
        world.trace(
            "\(node.name): asks n\(peer) for \(request)\(isForStoreOnly ? ", store only" : "")\(asksForNews ? ", news" : "")"
        )
        guard let other = world.nodes[peer] else {
            // It is down: refused at once, or silence.
            return later(world.percent(50) ? world.travel : ModelFetch.connectMax, ask) { $0.failed(ask) }
        }
        let isReused = world.percent(60)
        guard world.passes(node.index, peer), isReused || world.passes(peer, node.index) else {
            // On a connection that exists the request has gone out. Otherwise there is none in time.
            return isReused
                ? waitForAnswer(ask) : later(ModelFetch.connectMax, ask) { $0.failed(ask) }
        }
        waitForAnswer(ask)
        let (from, to) = (node, peer)
        world.after(world.travel) { [self] in
            guard !other.isDead else { return reply(after: 0, from: to) { $0.failed(ask) } }
            other.takeQuestion(
                value, request, depth: depth + 1, asksForNews: asksForNews,
                working: { [self] in
                    guard !from.isDead else { return }
                    reply(after: 0, from: to) { $0.isWorking(ask) }
                },
                answer: { [self] answer in
                    // It comes behind the interim response.
                    reply(after: 1_000_000, from: to) { $0.answered(ask, answer) }
                })
            breakOff(ask, with: other)
        }
    }

    /// A connection to a node that dies ends, or it does not.
    private func breakOff(_ ask: Ask, with other: ModelNode) {
        guard !ask.isSettled, !isEnded else { return }
        world.after(20_000_000, on: node) { [self] in
            guard other.isDead else { return breakOff(ask, with: other) }
            if world.percent(70) { failed(ask) }
        }
    }

    private func reply(after delay: UInt64, from peer: Int, _ then: @escaping (ModelFetch) -> Void) {
        guard world.passes(peer, node.index) else { return }
        world.after(delay + world.travel, on: node) { [self] in then(self) }
    }

    private func later(_ delay: UInt64, _ ask: Ask, _ then: @escaping (ModelFetch) -> Void) {
        world.after(delay, on: node) { [self] in if asked === ask, !isEnded { then(self) } }
    }

    private func waitForAnswer(_ ask: Ask) {
        guard !world.breaks(.waitsForever) else { return }
        later(ModelFetch.answerMax, ask) { $0.isLate(ask) }
    }

    /// Fetch.peerIsLate: the origin is asked as well.
    private func isLate(_ ask: Ask) {
        guard !ask.isWorking, !ask.isSettled else { return }
        world.trace("\(node.name): n\(ask.node) is late for \(request)")
        asked = nil
        standby = ask
        plan.asks = []
        askOrigin()
    }

    /// A late node that says so does not stop the origin.
    private func isWorking(_ ask: Ask) {
        guard !isEnded, !ask.isWorking, !ask.isSettled, asked === ask else { return }
        ask.isWorking = true
        if !world.breaks(.waitsForever) { later(ModelFetch.firstByteMax, ask) { $0.failed(ask) } }
    }

    private func isHeard(_ ask: Ask) -> Bool { asked === ask || standby === ask }

    /// What comes from the origin is dropped.
    private func returnTo(_ ask: Ask) {
        guard standby === ask else { return }
        standby = nil
        asked = ask
        originTry += 1
    }

    private func answered(_ ask: Ask, _ answer: ModelExchange.Answer) {
        guard !isEnded, !ask.isSettled, isHeard(ask) else { return }
        returnTo(ask)
        switch answer {
        case .response(let said, let verdict, let breaksOff):
            settle(ask, isFailure: false)
            // Another node says how old it is.
            let response = said.moved(by: world.clock(of: node.index) - world.clock(of: ask.node))
            if verdict == .stale, !world.breaks(.takesStaleForFresh) {
                guard stored == nil, !ask.isForStoreOnly else {
                    world.trace("\(node.name): n\(ask.node) has \(request) stale")
                    asked = nil
                    return next()
                }
                return standIn(response, "n\(ask.node)")
            }
            if breaksOff, verdict == .hit { node.noteBreakOff(of: ask.node) }
            end(response, from: ask.node, breaksOff: breaksOff)
        case .refused(let objection):
            world.trace("\(node.name): n\(ask.node) refuses \(request): \(objection)")
            settle(ask, isFailure: false)
            asked = nil
            next()
        case .failed: preconditionFailure("a node is told why there is no answer")
        }
    }

    private func failed(_ ask: Ask) {
        guard !isEnded, !ask.isSettled, isHeard(ask) else { return }
        settle(ask, isFailure: true)
        if standby === ask {
            standby = nil
        } else {
            asked = nil
            next()
        }
    }

    private func settle(_ ask: Ask, isFailure: Bool) {
        guard !ask.isSettled else { return }
        ask.isSettled = true
        if isFailure { world.judge.failed(for: node, ask.node, world) }
        node.settle(ask.permit, of: ask.node, isFailure: isFailure)
    }

    // MARK: the origin

    private func askOrigin() {
        originTry += 1
        let number = originTry
        world.after(world.travel) { [self] in
            world.origin.requests[request.url, default: 0] += 1
            let version = world.origin.version(of: request.url)
            let (isFailing, bornAt) = (world.origin.isFailing, world.now)
            if isFailing { world.origin.lastFailure = world.now }
            world.trace("the origin answers \(node.name) for \(request): \(isFailing ? "503" : "version \(version)")")
            let slowness = world.microseconds(world.percent(10) ? 10_000...400_000 : 500...10_000)
            world.after(slowness + world.travel, on: node) { [self] in
                guard number == originTry, !isEnded else { return }
                guard !isFailing else { return originFailed() }
                let breaksOff = !world.isCalm && world.percent(3)
                let response = ModelResponse(
                    url: request.url, version: version, user: request.kind.user,
                    variant: ModelOrigin.varies(request.url) ? request.variant : nil, isCut: breaksOff,
                    storedAt: node.seconds, expiresAt: node.seconds + ModelOrigin.lifetime(of: request.url),
                    bornAt: bornAt)
                end(response, from: nil, breaksOff: breaksOff)
            }
        }
    }

    /// What is stored stands in, unless it may have been purged (Staleness.swift). A node that is late may still answer.
    private func originFailed() {
        if let standby {
            self.standby = nil
            asked = standby
            return later(ModelFetch.firstByteMax, standby) { $0.failed(standby) }
        }
        guard let stored, !stored.isDoubted || world.breaks(.standsInForDoubted), !clientAsksForNews else {
            return end(with: .failed)
        }
        standIn(stored.response, "what stands in")
    }

    private func standIn(_ response: ModelResponse, _ source: String) {
        end(with: .standIn(response, source: source))
    }

    private func end(with end: End) {
        isEnded = true
        if let standby { settle(standby, isFailure: true) }
        if let asked { settle(asked, isFailure: false) }
        if let transfer, node.transfers[request.key] === transfer { node.transfers[request.key] = nil }
        transfer?.resolve(nil, breaksOff: false)
        then(end)
    }

    // MARK: storing

    private func end(_ response: ModelResponse, from peer: Int?, breaksOff: Bool) {
        isEnded = true
        if let standby { settle(standby, isFailure: true) }
        if let asked { settle(asked, isFailure: false) }
        if let transfer, node.transfers[request.key] === transfer { node.transfers[request.key] = nil }
        // Who reads along sees that it breaks off. Nobody else gets it.
        let isShared = breaksOff ? !isOutdated : store(response, isFromPeer: peer != nil)
        if breaksOff, world.breaks(.storesWhatBrokeOff) { _ = store(response, isFromPeer: peer != nil) }
        transfer?.resolve(isShared ? response : nil, breaksOff: breaksOff)
        then(.response(response, source: peer.map { "n\($0)" } ?? "the origin", breaksOff: breaksOff))
    }

    private var isOutdated: Bool {
        !world.breaks(.storesOutdated) && (transfer?.isOutdated ?? (node.invalidations != invalidationsBefore))
    }

    private func store(_ response: ModelResponse, isFromPeer: Bool) -> Bool {
        if case .withCredential = request.kind { return false }
        let record = ModelStored(response)
        let slot = ModelSlot(key: request.key, variant: response.variant)
        let isConfirmed = stored.map { $0.response.version == response.version && node.memory[slot] === $0 }
        guard isConfirmed == true || !isOutdated else { return false }
        node.memory[slot] = record
        let isKept: Bool =
            switch plan.keeping {
            case .always: true
            case .ifUnanswered: !isFromPeer
            case .never: false
            }
        if isKept { node.disk?.stored[slot] = record } else { node.disk?.stored[slot] = nil }
        if !isFromPeer { node.share(record, request.key) }
        return true
    }
}
