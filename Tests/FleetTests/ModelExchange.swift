import Fleet
import Transaction

/// A request that a node answers, of a client or of another node (Exchange): memory, disk, Redis, another request's fetch, and a fetch of its own.
final class ModelExchange {
    enum Answer {
        case response(ModelResponse, PeerVerdict, breaksOff: Bool)
        case refused(PeerObjection)
        /// The origin fails, and nothing stands in.
        case failed
    }

    private let node: ModelNode
    private let request: ModelRequest
    /// Nil: a client asks.
    private let question: PeerQuestion?
    private let depth: Int
    private let asksForNews: Bool
    /// Tells the node that asks that it is worth its while to wait.
    private let working: () -> Void
    private let answer: (Answer, String) -> Void
    private var search = LookUp()
    private var found: ModelStored?
    private var isEnded = false

    private static let collapseMax: UInt64 = 10_000_000_000

    init(
        _ node: ModelNode, _ request: ModelRequest, question: PeerQuestion? = nil, depth: Int = 0,
        asksForNews: Bool = false, working: @escaping () -> Void = {}, answer: @escaping (Answer, String) -> Void
    ) {
        self.node = node
        self.request = request
        self.question = question
        self.depth = depth
        self.asksForNews = asksForNews || request.kind == .noCache
        self.working = working
        self.answer = answer
    }

    /// Exchange+Disk.lookUpStored
    func lookUp() {
        let asker: LookUp.Asker = question == nil ? .client : .node
        look(search.on(.begin(for: asker, backStore: false, fleet: request.key.isShareable)))
    }

    /// Memory and disk of a model are one.
    private func look(_ first: LookUp.Action) {
        var action = first
        while true {
            switch action {
            case .searchMemory:
                found = node.stored(for: request)
                action = search.on(found == nil ? .missing : .found(.atHand))
            case .askFleet:
                return node.readShared(request) { [self] in
                    node.world.after(node.world.microseconds(1...50), on: node) { [self] in
                        look(search.on(.fleetAnswered))
                    }
                }
            case .report: return decide(found!)
            case .reportNone: return missed(nil)
            case .loadHeads, .awaitIndex, .loadBody, .reportBusy:
                preconditionFailure("\(action), although there is no back store")
            }
        }
    }

    private func decide(_ stored: ModelStored) {
        guard node.isUsable(stored), !asksForNews else { return missed(stored) }
        node.world.judge.hit(stored.response, at: node, node.world)
        end(.response(stored.response, .hit, breaksOff: false), search.source == .fleet ? "Redis" : "store")
    }

    private func missed(_ stored: ModelStored?) {
        if question?.isForStoreOnly == true { return end(.refused(.absent), "") }
        working()
        if case .withCredential = request.kind { return fetch(stored, nil) }
        // Who asks for news must not get what was asked for before the news.
        let isAlone = question != nil && asksForNews && !node.world.breaks(.followsForNews)
        guard !isAlone, !node.world.breaks(.neverCollapses) else { return fetch(stored, nil) }
        guard let transfer = node.transfers[request.key] else {
            let transfer = ModelTransfer()
            node.transfers[request.key] = transfer
            return fetch(stored, transfer)
        }
        var isWaiting = true
        transfer.follow { [self] response, breaksOff in
            guard isWaiting else { return }
            isWaiting = false
            guard let response, request.mayUse(response) || node.world.breaks(.followsOtherVariants) else {
                return fetch(stored, nil)
            }
            end(
                .response(response, .fetched, breaksOff: breaksOff && !node.world.breaks(.hidesBreakOffs)),
                "another request's fetch")
        }
        node.world.after(ModelExchange.collapseMax, on: node) { [self] in
            guard isWaiting else { return }
            isWaiting = false
            fetch(stored, nil)
        }
    }

    private func fetch(_ stored: ModelStored?, _ transfer: ModelTransfer?) {
        ModelFetch(
            node, request, stored, transfer, isForPeer: question != nil, depth: depth,
            asksForNews: asksForNews
        ) { [self] end in
            switch end {
            case .response(let response, let source, let breaksOff):
                self.end(.response(response, .fetched, breaksOff: breaksOff), source)
            case .standIn(let response, let source): self.end(.response(response, .stale, breaksOff: false), source)
            case .failed: self.end(question == nil ? .failed : .refused(.unanswered), "")
            }
        }.begin()
    }

    private func end(_ answer: Answer, _ source: String) {
        guard !isEnded else { return }
        isEnded = true
        self.answer(answer, source)
    }
}

extension ModelNode {
    /// A client's request.
    func take(_ request: ModelRequest) {
        guard request.kind != .unsafe else { return forwardUnsafe(request) }
        ModelExchange(self, request) { [unowned self] answer, source in
            switch answer {
            case .response(let response, let verdict, let breaksOff):
                world.judge.end(
                    request, response, from: source, breaksOff: breaksOff, standsIn: verdict == .stale, world)
            case .failed: world.judge.fail(request, world)
            case .refused: world.judge.violated(.answer, "a client is refused: \(request)", world)
            }
        }.lookUp()
    }

    /// The origin changes, and what is stored of the URL is invalid (Fetch+Storing.invalidate).
    private func forwardUnsafe(_ request: ModelRequest) {
        let world = world
        world.after(world.travel) { [unowned self] in
            world.origin.change(request.url)
            let version = world.origin.version(of: request.url)
            world.after(world.travel, on: self) { [unowned self] in
                let key = ModelKey(url: request.url, user: nil)
                hide(key)
                let wasStored = invalidate(key)
                tell(key, wasStored: wasStored, version)
                ownChangeFloors[request.url] = max(ownChangeFloors[request.url, default: 1], version)
                world.judge.end(
                    request,
                    ModelResponse(url: request.url, version: version, user: nil, storedAt: 0, expiresAt: 0),
                    from: "the origin", breaksOff: false, world)
                world.hasChanged(request.url, through: self)
            }
        }
    }

    /// Another node's request has come (Exchange+Peers.startForPeer).
    func takeQuestion(
        _ value: [UInt8], _ request: ModelRequest, depth: Int, asksForNews: Bool, working: @escaping () -> Void,
        answer: @escaping (ModelExchange.Answer) -> Void
    ) {
        switch read(value) {
        case .failure(let objection): answer(.refused(objection))
        case .success(let question):
            guard !request.isPersonal || world.breaks(.asksForWhatIsPersonal) else {
                return answer(.refused(.personal))
            }
            ModelExchange(
                self, request, question: question, depth: depth, asksForNews: asksForNews, working: working
            ) { [unowned self] found, _ in answer(onItsWay(found)) }.lookUp()
        }
    }

    /// A body may break off between the nodes.
    private func onItsWay(_ answer: ModelExchange.Answer) -> ModelExchange.Answer {
        guard case .response(var response, let verdict, let breaksOff) = answer else { return answer }
        let isDamaged = verdict == .hit && world.now < breaksHitsUntil
        guard !breaksOff, verdict != .stale, !world.isCalm, isDamaged || world.percent(2) else { return answer }
        response.isCut = true
        return .response(response, verdict, breaksOff: true)
    }
}
