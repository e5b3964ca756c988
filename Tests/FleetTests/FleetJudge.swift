import Fleet

/// Knows what no client of the simulated fleet must see, without a line of the code that decides it.
struct FleetJudge {
    enum Rule {
        /// A node that has applied a purge serves nothing of what it concerned.
        case purge
        /// After an unsafe request through a node, the node serves nothing from before.
        case change
        /// Nothing of one user reaches another one, a node or the Redis.
        case identity
        /// Who is asked does not ask on.
        case hops
        /// Who knows the same members knows the same owners.
        case owners
        /// Each request ends with a version that the origin has had, whatever fails.
        case answer
        /// Nodes that are well ask the origin once.
        case asksOnce
        /// Nothing of one variant is served for another one.
        case variant
        /// A body that breaks off is not served as a whole one.
        case whole
        /// A node whose stored bodies break off is left alone for a while.
        case circuit
        /// What an unsafe request has changed, all nodes learn.
        case spread
        /// What was said to be purged on a node stays so, whatever becomes of the node.
        case said
        /// After a soft purge the old response is served where the origin fails, and is called stale then.
        case soft
        /// Nothing is called fresh beyond its lifetime, whatever the clocks say.
        case fresh
    }

    private(set) var violation: (rule: Rule, text: String)?
    private var waiting: [Int: ModelRequest] = [:]
    /// For each purge that was issued the version of each URL below which nothing may be served.
    private var purges: [ModelPurge] = []
    /// What the purges were that are in the stream of the Redis, or have been.
    private(set) var sentFloors = ModelFloors()
    /// For each node that `larder purge` has said to have applied a purge, what its clients must not get less than: hard purges.
    private var saidFloors: [Int: [Int: Int]] = [:]
    /// How many purges were said to be applied on all nodes, and on fewer.
    private(set) var saidCounts = (all: 0, fewer: 0)
    /// What unsafe requests were to, of which an entry is in the stream, or has been.
    private(set) var sentChangeFloors: [Int: Int] = [:]
    private var changes: [String: [Int: Int]] = [:]
    /// When bodies broke off that a node had stored, for each node that has asked it.
    private var breakOffs: [Way: [UInt64]] = [:]
    /// When a node last failed otherwise for one that has asked it. Its circuit opens and closes at other times then.
    private var otherFailures: [Way: UInt64] = [:]
    private(set) var brokenOffCount = 0
    private(set) var answered = 0
    private(set) var standInCount = 0
    private(set) var failedCount = 0
    private(set) var sources: Set<String> = []

    /// One client's request causes no more questions of one node to another: its node asks the owner and the stand-in, and each of them looks into
    /// the store of one other node.
    static let questionsMax = 4
    /// So many in this time open a circuit, which then stays so for a second at least, and half a minute at most.
    static let breakOffsMax = 3
    static let failureWindow: UInt64 = 10_000_000_000
    static let openMin: UInt64 = 1_000_000_000
    static let openMax: UInt64 = 30_000_000_000
    /// No answer takes longer, whatever is broken but the origin.
    static let answerMax: UInt64 = 60_000_000_000

    // MARK: purges

    mutating func issue(_ what: ModelPurge.What, _ origin: ModelOrigin) -> ModelPurge {
        let urls =
            switch what {
            case .url(let url), .softly(let url): [url]
            case .everything, .everythingStale: Array(0..<FleetWorld.urlCount)
            }
        let floors = Dictionary(uniqueKeysWithValues: urls.map { ($0, origin.version(of: $0)) })
        let isSoft = if case .softly = what { true } else { false }
        let purge = ModelPurge(
            number: purges.count, what: what,
            floors: isSoft ? ModelFloors(soft: floors) : ModelFloors(hard: floors))
        purges.append(purge)
        return purge
    }

    mutating func isSent(_ purge: ModelPurge) { sentFloors.raise(purge.floors) }

    /// What the operator is told of a purge that the server has taken.
    mutating func isSaid(_ purge: ModelPurge, _ applied: [Int], of count: Int) {
        if applied.count == count { saidCounts.all += 1 } else { saidCounts.fewer += 1 }
        for node in applied { saidFloors[node, default: [:]].merge(purge.floors.hard) { max($0, $1) } }
    }

    func purge(_ number: Int) -> ModelPurge { purges[number] }

    /// - Parameter isHeard: false if the node that tells of it has another secret.
    mutating func isSent(change floors: [Int: Int], _ run: String, _ number: UInt64, isHeard: Bool) {
        changes["\(run) \(number)"] = floors
        if isHeard { sentChangeFloors.merge(floors) { max($0, $1) } }
    }

    func changeFloors(_ run: String, _ number: UInt64) -> [Int: Int] { changes["\(run) \(number)", default: [:]] }

    /// What a request that begins at a node now must not get less than.
    func floors(at node: ModelNode, _ url: Int, _ kind: ModelRequest.Kind) -> ModelRequest.Floors {
        // An unsafe request changes what is stored for everybody. What users have for themselves goes with their own requests.
        let changed = max(node.changeFloors[url, default: 1], node.ownChangeFloors[url, default: 1])
        let change = if case .withOwnKey = kind { 1 } else { changed }
        var purges = node.purgeFloors
        purges.raise(node.ownPurgeFloors)
        return ModelRequest.Floors(
            purge: purges.hard[url, default: 1], soft: purges.soft[url, default: 1], change: change,
            said: saidFloors[node.index, default: [:]][url, default: 1])
    }

    // MARK: requests

    mutating func begin(_ request: ModelRequest) { waiting[request.id] = request }

    /// A stored response is served as a fresh one.
    mutating func hit(_ response: ModelResponse, at node: ModelNode, _ world: FleetWorld) {
        let age = world.now - response.bornAt
        // A part of a second is rounded, and what the origin sends is on its way for a while.
        guard age > UInt64(ModelOrigin.lifetime(of: response.url) + 2) * 1_000_000_000 else { return }
        violated(.fresh, "\(node.name) calls /\(response.url) fresh, \(age / 1_000_000) ms after it was made", world)
    }

    /// A client is told that there is no answer, because the origin fails.
    mutating func fail(_ request: ModelRequest, _ world: FleetWorld) {
        guard waiting.removeValue(forKey: request.id) != nil else {
            return violated(.answer, "request \(request) is answered twice", world)
        }
        failedCount += 1
        if world.origin.lastFailure < request.began {
            violated(.answer, "request \(request) fails, and the origin is well", world)
        }
    }

    mutating func end(
        _ request: ModelRequest, _ response: ModelResponse, from source: String, breaksOff: Bool,
        standsIn: Bool = false, _ world: FleetWorld
    ) {
        guard waiting.removeValue(forKey: request.id) != nil else {
            return violated(.answer, "request \(request) is answered twice", world)
        }
        answered += 1
        sources.insert(source.hasPrefix("n") ? "another node" : source)
        world.trace("\(request.node.name): client \(request) gets version \(response.version) from \(source)")
        if response.url != request.url { violated(.answer, "request \(request) gets another URL", world) }
        if !(1...world.origin.version(of: request.url)).contains(response.version) {
            violated(.answer, "request \(request) gets a version that has never been", world)
        }
        let gets = "\(request) at \(request.node.name) gets version \(response.version) from \(source)"
        if response.version < request.floors.purge {
            violated(.purge, "\(gets), and what is before \(request.floors.purge) was purged", world)
        }
        if response.version < request.floors.said {
            violated(.said, "\(gets), and it was said that all before \(request.floors.said) is purged there", world)
        }
        if !standsIn, response.version < request.floors.soft {
            violated(
                .soft, "\(gets) as a fresh one, and what is before \(request.floors.soft) was purged softly", world)
        }
        if standsIn { standInCount += 1 }
        if response.version < request.floors.change {
            violated(.change, "\(gets), and the node has changed it to \(request.floors.change)", world)
        }
        if breaksOff { brokenOffCount += 1 }
        if response.isCut, !breaksOff { violated(.whole, "\(gets), which lacks its end", world) }
        if request.kind != .unsafe, ModelOrigin.varies(request.url), response.variant != request.variant {
            violated(.variant, "request \(request) gets variant \(response.variant ?? -1)", world)
        }
        if response.user != nil, response.user != request.kind.user {
            violated(.identity, "request \(request) gets what is of user \(response.user ?? -1)", world)
        }
    }

    /// A node asks another one.
    mutating func question(
        for request: ModelRequest, from node: ModelNode, to peer: Int, depth: Int, isForStoreOnly: Bool,
        _ world: FleetWorld
    ) {
        if hasOpened(Way(node, peer), world.now) {
            violated(.circuit, "\(node.name) asks n\(peer) again, whose bodies break off", world)
        }
        request.questions += 1
        if request.isPersonal { violated(.identity, "another node is asked for what is personal: \(request)", world) }
        if request.questions > FleetJudge.questionsMax {
            violated(.hops, "\(request) causes too many questions", world)
        }
        if depth > 2 || (depth == 2 && !isForStoreOnly) {
            violated(.hops, "who is asked for \(request) asks on", world)
        }
    }

    /// Whether a circuit is certainly open. It is if it was closed when the bodies began to break off, so only the first ones count.
    private func hasOpened(_ way: Way, _ now: UInt64) -> Bool {
        guard let times = breakOffs[way], times.count >= FleetJudge.breakOffsMax else { return false }
        let last = times[FleetJudge.breakOffsMax - 1]
        return last - times[0] < FleetJudge.failureWindow && now - last < FleetJudge.openMin
            && otherFailures[way].map { now - $0 > FleetJudge.openMax } ?? true
    }

    /// A body broke off that the other node had stored.
    mutating func brokeOff(for node: ModelNode, at peer: Int, _ world: FleetWorld) {
        let way = Way(node, peer)
        breakOffs[way, default: []].removeAll { world.now - $0 > FleetJudge.openMax }
        breakOffs[way, default: []].append(world.now)
    }

    /// It gave no answer.
    mutating func failed(for node: ModelNode, _ peer: Int, _ world: FleetWorld) {
        otherFailures[Way(node, peer)] = world.now
    }

    /// The node has learned anew who the others are.
    mutating func forgetBreakOffs(of node: ModelNode) {
        breakOffs = breakOffs.filter { $0.key.node != ObjectIdentifier(node) }
    }

    private struct Way: Hashable {
        let node: ObjectIdentifier
        let peer: Int

        init(_ node: ModelNode, _ peer: Int) {
            self.node = ObjectIdentifier(node)
            self.peer = peer
        }
    }

    mutating func write(_ response: ModelResponse, _ key: [UInt8], _ world: FleetWorld) {
        if response.user != nil || key.contains(UInt8(ascii: "#")) {
            violated(.identity, "what is of user \(response.user ?? -1) is put into Redis", world)
        }
    }

    /// Clients of a node that died wait no longer.
    mutating func forget(_ node: ModelNode) { waiting = waiting.filter { $0.value.node !== node } }

    mutating func checkWaiting(_ world: FleetWorld) {
        guard
            let late = waiting.values.filter({ world.now - $0.began > FleetJudge.answerMax }).min(by: { $0.id < $1.id })
        else { return }
        violated(.answer, "request \(late) has no answer", world)
    }

    mutating func checkNothingWaits(_ world: FleetWorld) {
        guard let first = waiting.values.min(by: { $0.id < $1.id }) else { return }
        violated(.answer, "request \(first) has no answer at the end", world)
    }

    /// All that unsafe requests have changed was told.
    mutating func checkNothingIsKept(_ world: FleetWorld) {
        for node in world.nodes.compactMap({ $0 }) where node.changes.waitingCount > 0 {
            violated(.spread, "\(node.name) has told nobody of \(node.changes.waitingCount) changes", world)
        }
    }

    /// All nodes with the same members name the same owner.
    mutating func checkAgreement(_ world: FleetWorld) {
        for key in (0...FleetWorld.lastURL).map({ ModelKey(url: $0, user: nil) }) {
            let rankings = Set(world.ownNodes.map { $0.ranking(of: key) })
            if rankings.count != 1 {
                violated(.owners, "nodes do not agree on who owns /\(key.url): \(rankings)", world)
            }
        }
    }

    mutating func violated(_ rule: Rule, _ text: String, _ world: FleetWorld) {
        guard violation == nil else { return }
        world.trace(text)
        violation = (rule, "seed \(world.seed), \(world.count) nodes: \(text)")
    }
}

struct ModelPurge {
    enum What: Equatable {
        case url(Int), everything
        /// What is there becomes stale.
        case softly(Int)
        /// Nothing is removed, and everything is validated.
        case everythingStale
    }

    let number: Int
    let what: What
    let floors: ModelFloors

    func concerns(_ url: Int) -> Bool {
        switch what {
        case .url(let own), .softly(let own): own == url
        case .everything, .everythingStale: true
        }
    }

    /// As it is in the stream.
    var bytes: [UInt8] { Array("\(number)".utf8) }
}

/// Of each URL the version below which nothing is served: after purges, and after soft ones.
struct ModelFloors: Equatable {
    var hard: [Int: Int] = [:]
    var soft: [Int: Int] = [:]

    mutating func raise(_ other: ModelFloors) {
        hard.merge(other.hard) { max($0, $1) }
        soft.merge(other.soft) { max($0, $1) }
    }
}
