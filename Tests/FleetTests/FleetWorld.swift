import Fleet

/// A fleet in one thread and without I/O: nodes, the Redis, an origin, clients, the network between them, and what goes wrong. Everything follows from the seed.
///
/// Work is a queue of jobs, each at its time. A job of a node that has died is dropped.
final class FleetWorld {
    let seed: UInt64
    /// The rule that is broken, so that the judge has something to find.
    let breach: Breach?
    let count: Int
    /// Whether the nodes ask each other.
    let hasOwners: Bool
    private var numbers: SeededNumbers
    private var queue = JobQueue()
    /// In nanoseconds. It begins late, so that the first nodes are no new members.
    private(set) var now: UInt64 = 2_000_000_000_000
    let redis = ModelRedis()
    var origin = ModelOrigin()
    var judge = FleetJudge()
    /// All that have ever been, because what they have sent may still be under way.
    private var allNodes: [ModelNode] = []
    /// Nil while a node is down.
    var nodes: [ModelNode?] = []
    /// What is left of a node that is down. Nil: it has no disk.
    var disks: [KeptDisk?] = []
    /// By how many seconds the clock of each node is ahead.
    private let clocks: [Int64]
    /// A node with another secret. Nil: there is none.
    let stranger: Int?
    /// To search what is stored for what a purge concerns may take long.
    let searchesSlowly: Bool
    /// What disks were at some time: a machine may be set back to that.
    private var pastDisks: [KeptDisk?]
    /// Who is a member, whether the others know it or not.
    var members: Set<Int>
    /// One-way: nothing passes from the one to the other.
    var cuts: Set<Way> = []
    var lossPercent = 0
    var isCalm = false
    var marks: [StaleReason: Int] = [:]
    private let isTraced: Bool
    private(set) var events: [String] = []
    private var lastRequest = 0

    /// When it began, in seconds since 1970.
    private static let epoch: Int64 = 1_700_000_000
    static let urlCount = 3
    /// Nobody has asked for it before the end.
    static let lastURL = urlCount
    static let users = 2
    static let variants = 2

    struct Way: Hashable {
        var from: Int
        var to: Int
        static let redis = -1
    }

    init(seed: UInt64, breach: Breach? = nil, isTraced: Bool = false) {
        self.seed = seed
        self.breach = breach
        self.isTraced = isTraced
        numbers = SeededNumbers(state: seed)
        count = Int.random(in: 2...5, using: &numbers)
        hasOwners = Int.random(in: 0..<4, using: &numbers) > 0
        members = Set(0..<count)
        var clocks: [Int64] = []
        for _ in 0..<count {
            clocks.append([0, 0, 0, 5, -5, 60, -60, 3600, -3600][Int.random(in: 0..<9, using: &numbers)])
        }
        self.clocks = clocks
        stranger = count > 2 && Int.random(in: 0..<6, using: &numbers) == 0 ? count - 1 : nil
        searchesSlowly = Int.random(in: 0..<3, using: &numbers) == 0
        pastDisks = Array(repeating: nil, count: count)
        for _ in 0..<count {
            disks.append(percent(50) ? KeptDisk() : nil)
            nodes.append(nil)
        }
        for index in 0..<count { start(index, joinedAt: 0) }
    }

    func breaks(_ rule: Breach) -> Bool { breach == rule }

    // MARK: chance

    func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &numbers) }
    func percent(_ share: Int) -> Bool { below(100) < share }
    func random() -> UInt64 { numbers.next() }
    func microseconds(_ range: ClosedRange<Int>) -> UInt64 { UInt64(Int.random(in: range, using: &numbers)) * 1000 }
    func pick<Element>(_ elements: [Element]) -> Element { elements[below(elements.count)] }

    /// How long a message takes. Messages that overtake each other are on different connections.
    var travel: UInt64 {
        switch isCalm ? 0 : below(100) {
        case ..<75: microseconds(100...1500)
        case ..<93: microseconds(1500...40_000)
        default: microseconds(40_000...500_000)
        }
    }

    // MARK: time

    /// By the clock of a node.
    func seconds(of node: Int) -> Int64 { FleetWorld.epoch + Int64(now / 1_000_000_000) + clocks[node] }
    /// By the clock of the Redis.
    var serverMilliseconds: Int64 { FleetWorld.epoch * 1000 + Int64(now / 1_000_000) }
    func clock(of node: Int) -> Int64 { clocks[node] }

    func after(_ delay: UInt64, on node: ModelNode? = nil, _ job: @escaping () -> Void) {
        queue.add(at: now + delay) { if node?.isDead != true { job() } }
    }

    /// Does what is due until a moment.
    func run(until end: UInt64) {
        while judge.violation == nil, let job = queue.next(until: end) {
            now = max(now, job.at)
            job.work()
        }
        now = max(now, end)
    }

    func run(for duration: UInt64) { run(until: now + duration) }

    // MARK: the network

    /// Whether a message that is sent now arrives.
    func passes(_ from: Int, _ to: Int) -> Bool {
        !cuts.contains(Way(from: from, to: to)) && (isCalm || !percent(lossPercent))
    }

    // MARK: a run

    /// Steps with faults, then none, until everything that was begun has ended.
    func play(steps: Int = 400) {
        for _ in 0..<steps where judge.violation == nil {
            run(for: microseconds(percent(10) ? 1000...400_000 : 100...30_000))
            step()
            judge.checkWaiting(self)
        }
        calm()
        // What the nodes were to learn of members arrives late, and in any order. In the end they know.
        run(for: 3_000_000_000)
        for node in upNodes { node.setMembers(members) }
        askOn()
        run(for: 80_000_000_000)
        judge.checkNothingWaits(self)
        judge.checkAgreement(self)
        judge.checkNothingIsKept(self)
        // With one that refuses all others there is more than one question.
        if hasOwners, stranger == nil { askTogether() }
    }

    func end() { queue = JobQueue() }

    private func step() {
        switch below(100) {
        case ..<62: request()
        case ..<70: origin.change(below(FleetWorld.urlCount))
        case ..<75: changeAndPurge()
        case ..<81: changeUnsafely()
        default: disturb()
        }
    }

    private var upNodes: [ModelNode] { nodes.compactMap { $0 } }
    /// Without the one that has another secret.
    var ownNodes: [ModelNode] { upNodes.filter { $0.index != stranger } }

    private func request(_ kind: ModelRequest.Kind? = nil, url: Int? = nil) {
        guard !upNodes.isEmpty else { return }
        let drawn: ModelRequest.Kind =
            switch below(20) {
            case 0: .withCredential(below(FleetWorld.users))
            case 1, 2: .withOwnKey(below(FleetWorld.users))
            case 3: .noCache
            default: .plain
            }
        ask(pick(upNodes), kind ?? drawn, url ?? below(FleetWorld.urlCount))
    }

    /// Somebody sends an unsafe request, perhaps while others ask the origin for the same.
    private func changeUnsafely() {
        let url = below(FleetWorld.urlCount)
        if percent(30) { for _ in 0..<2 { request(.noCache, url: url) } }
        request(.unsafe, url: url)
    }

    /// Whoever has sent it looks what has become of it.
    func hasChanged(_ url: Int, through node: ModelNode) {
        guard percent(50) else { return }
        after(microseconds(0...3_000), on: node) { [unowned self, unowned node] in ask(node, .plain, url) }
    }

    /// A client asks a node.
    private func ask(_ node: ModelNode, _ kind: ModelRequest.Kind, _ url: Int) {
        lastRequest += 1
        let request = ModelRequest(
            id: lastRequest, url: url, variant: below(FleetWorld.variants), kind: kind, node: node,
            floors: judge.floors(at: node, url, kind), began: now)
        trace("\(node.name): client \(request) begins, versions from \(request.floors)")
        judge.begin(request)
        node.take(request)
    }

    /// Clients ask on for longer than the shortest lifetime, and nothing changes any more.
    private func askOn() {
        for _ in 0..<30 where judge.violation == nil {
            run(for: microseconds(200_000...800_000))
            request(.plain, url: percent(70) ? 0 : nil)
        }
    }

    /// Somebody publishes, and purges what was there before, perhaps a moment later.
    private func changeAndPurge() {
        let url = below(FleetWorld.urlCount)
        if percent(90) { origin.change(url) }
        let isEverything = percent(5)
        let isSoft = percent(25)
        after(percent(50) ? 0 : microseconds(0...20_000)) { [unowned self] in
            guard !upNodes.isEmpty else { return }
            let node = pick(upNodes)
            let purge = judge.issue(isEverything ? .everything : isSoft ? .softly(url) : .url(url), origin)
            trace("\(node.name): purge \(purge.number) is issued: \(purge.what)")
            node.purge(purge)
        }
    }

    /// Clients ask for what is being purged, while the node searches and afterwards.
    func isBeingApplied(_ purge: ModelPurge, on node: ModelNode, until end: UInt64) {
        guard percent(40), let url = Set(purge.floors.hard.keys).union(purge.floors.soft.keys).min() else { return }
        for latest in [end, end, end + 30_000_000] {
            after(microseconds(0...Int((latest - now) / 1000)), on: node) { [unowned self, unowned node] in
                ask(node, .plain, url)
            }
        }
    }

    /// Whoever is told that something is purged looks at once whether it is so.
    func isSaid(_ purge: ModelPurge, _ applied: [Int], of count: Int) {
        judge.isSaid(purge, applied, of: count)
        for index in applied where percent(50) {
            guard let node = nodes[index], let url = purge.floors.hard.keys.sorted().first else { continue }
            after(microseconds(0...2_000), on: node) { [unowned self, unowned node] in ask(node, .plain, url) }
        }
    }

    // MARK: nodes

    func start(_ index: Int, joinedAt: UInt64? = nil) {
        let node = ModelNode(self, index, disk: disks[index])
        nodes[index] = node
        allNodes.append(node)
        node.setMembers(members, joinedAt: joinedAt)
        node.begin()
        guard disks[index]?.stored.isEmpty == false, percent(50) else { return }
        // Clients have waited for it to be back.
        for latest in [10_000, 30_000, 30_000, 300_000] {
            after(microseconds(0...latest), on: node) { [unowned self, unowned node] in
                ask(node, .plain, below(FleetWorld.urlCount))
            }
        }
    }

    private func crash(_ index: Int) {
        guard let node = nodes[index] else { return }
        trace("\(node.name): dies")
        node.die()
        judge.forget(node)
        nodes[index] = nil
        if percent(20) {
            disks[index] = disks[index].map { _ in KeptDisk() }
        } else if percent(20), let past = pastDisks[index], disks[index] != nil {
            trace("\(node.name): its disk is set back")
            disks[index] = past.copy()
        }
        after(microseconds(1000...3_000_000)) { [unowned self] in if nodes[index] == nil { start(index) } }
    }

    /// A node joins or leaves, and the others learn of it one by one.
    private func changeMembers() {
        let index = below(count)
        if members.contains(index) {
            guard members.count > 1 else { return }
            members.remove(index)
        } else {
            members.insert(index)
        }
        let view = members
        trace("members are \(view.sorted())")
        for node in upNodes {
            after(microseconds(0...2_000_000), on: node) { [unowned node] in node.setMembers(view) }
        }
    }

    // MARK: faults

    private func disturb() {
        let index = below(count)
        switch below(29) {
        case ..<4: cut(Way(from: index, to: Way.redis), bothWays: percent(70))
        case ..<6: cut(Way(from: Way.redis, to: index), bothWays: false)
        case ..<9:
            let other = below(count)
            if other != index { cut(Way(from: index, to: other), bothWays: percent(50)) }
        case 9: lossPercent = pick([0, 0, 2, 10])
        case 10, 11: crash(index)
        case 12: if percent(50) { redis.restart(self) }
        case 13:
            redis.refusesWrites = true
            after(microseconds(1000...2_000_000)) { [unowned self] in redis.refusesWrites = false }
        case 14, 15: redis.evict(self)
        case 16: if percent(40) { redis.forgetEpoch() }
        case 17:
            redis.isUp = false
            redis.closeAll(self)
            after(microseconds(1000...2_000_000)) { [unowned self] in redis.isUp = true }
        case 18: changeMembers()
        case 19: cuts = []
        case 20, 21, 22:
            let end = now + microseconds(300_000...4_000_000)
            nodes[index]?.breaksHitsUntil = end
        case 25: redis.loseRegister()
        case 26: pastDisks[index] = disks[index]?.copy()
        case 27, 28:
            origin.isFailing = true
            trace("the origin fails")
            if percent(60) { askForStale() }
            after(microseconds(1000...1_500_000)) { [unowned self] in
                origin.isFailing = false
                origin.lastFailure = now
                trace("the origin is well")
            }
        default: nodes[index]?.evict()
        }
    }

    /// While the origin fails, clients ask for what was purged softly a moment ago.
    private func askForStale() {
        let url = below(FleetWorld.urlCount)
        if !upNodes.isEmpty { pick(upNodes).purge(judge.issue(.softly(url), origin)) }
        for _ in 0..<8 { after(microseconds(0...1_500_000)) { [unowned self] in request(.plain, url: url) } }
    }

    private func cut(_ way: Way, bothWays: Bool) {
        var ways: Set<Way> = [way]
        if bothWays { ways.insert(Way(from: way.to, to: way.from)) }
        trace("cut \(ways.map { "\($0.from)→\($0.to)" }.sorted())")
        cuts.formUnion(ways)
        after(microseconds(1000...3_000_000)) { [unowned self] in cuts.subtract(ways) }
    }

    // MARK: the end

    private func calm() {
        isCalm = true
        (cuts, lossPercent, redis.refusesWrites, redis.isUp) = ([], 0, false, true)
        if origin.isFailing { (origin.isFailing, origin.lastFailure) = (false, now) }
        for index in 0..<count where nodes[index] == nil { start(index) }
        trace("all is well from here on")
    }

    /// Everything is well: all nodes together ask the origin once.
    private func askTogether() {
        guard judge.violation == nil else { return }
        let node = pick(ownNodes)
        for other in ownNodes + ownNodes + ownNodes + [node] {
            after(microseconds(0...30_000)) { [unowned self, unowned other] in
                ask(other, .plain, FleetWorld.lastURL)
            }
        }
        run(for: 5_000_000_000)
        judge.checkNothingWaits(self)
        let asked = origin.requests[FleetWorld.lastURL, default: 0]
        if asked != 1 {
            judge.violated(.asksOnce, "\(count) nodes that are well asked the origin \(asked) times", self)
        }
    }

    // MARK: what is seen of it

    func trace(_ event: @autoclosure () -> String) {
        guard isTraced else { return }
        let time = (now - 2_000_000_000_000) / 1000
        events.append("\(Double(time) / 1000) ms  \(event())")
        if events.count > 400 { events.removeFirst(200) }
    }
}

/// Counts the versions of each URL.
struct ModelOrigin {
    /// Of each URL the version that is current. The first one is 1.
    private var versions: [Int: Int] = [:]
    /// GET requests.
    var requests: [Int: Int] = [:]

    /// It answers with 503.
    var isFailing = false
    /// When it answered so last.
    var lastFailure: UInt64 = 0

    /// In seconds.
    static func lifetime(of url: Int) -> Int64 { url == 0 ? 3 : 3600 }

    func version(of url: Int) -> Int { versions[url, default: 1] }
    mutating func change(_ url: Int) { versions[url, default: 1] += 1 }

    /// Whether what it sends depends on a field of the request (`Vary`).
    static func varies(_ url: Int) -> Bool { url == 1 }
    /// Longer than what goes into Redis.
    static func isLong(_ url: Int) -> Bool { url == 2 }
}

/// A client's request to a node.
final class ModelRequest: CustomStringConvertible {
    enum Kind: Equatable {
        case plain, noCache
        /// With `Authorization`: the answer is for this user, and is not stored.
        case withCredential(Int)
        /// Stored for this user alone, under a key of its own.
        case withOwnKey(Int)
        case unsafe

        var user: Int? {
            switch self {
            case .withCredential(let user), .withOwnKey(let user): user
            case .plain, .noCache, .unsafe: nil
            }
        }
    }

    let id: Int
    let url: Int
    /// What its fields ask for, where the response varies.
    let variant: Int
    let kind: Kind
    let node: ModelNode
    /// Earlier versions must not be served, because of a purge, a soft purge, an unsafe request, and what was said of purges.
    struct Floors {
        let purge: Int
        let soft: Int
        let change: Int
        let said: Int
    }

    let floors: Floors
    let began: UInt64
    /// Questions to other nodes that the request has caused.
    var questions = 0

    init(
        id: Int, url: Int, variant: Int, kind: Kind, node: ModelNode, floors: Floors, began: UInt64
    ) {
        self.id = id
        self.url = url
        self.variant = variant
        self.kind = kind
        self.node = node
        self.floors = floors
        self.began = began
    }

    var isPersonal: Bool { kind.user != nil }
    var key: ModelKey {
        if case .withOwnKey(let user) = kind { ModelKey(url: url, user: user) } else { ModelKey(url: url, user: nil) }
    }
    /// Whether the response may answer it.
    func mayUse(_ response: ModelResponse) -> Bool { response.variant.map { $0 == variant } ?? true }
    var description: String { "\(id) \(kind) /\(url)\(ModelOrigin.varies(url) ? " variant \(variant)" : "")" }
}

struct ModelKey: Hashable, Comparable {
    var url: Int
    /// Whose key it is. Nil: everybody's.
    var user: Int?

    var bytes: [UInt8] { Array("http://origin.example/\(url)\(user.map { "#\($0)" } ?? "")".utf8) }
    /// As `FleetDesk.isShareable` decides.
    var isShareable: Bool { !bytes.contains(UInt8(ascii: "#")) }

    static func < (a: ModelKey, b: ModelKey) -> Bool { (a.url, a.user ?? -1) < (b.url, b.user ?? -1) }
}

/// What a response is stored under (RFC 9111 §4.1).
struct ModelSlot: Hashable, Comparable {
    var key: ModelKey
    /// Nil: the response does not vary.
    var variant: Int?

    static func < (a: ModelSlot, b: ModelSlot) -> Bool {
        a.key == b.key ? (a.variant ?? -1) < (b.variant ?? -1) : a.key < b.key
    }
}

/// A response: which version of which URL, and for whom.
struct ModelResponse: Equatable {
    var url: Int
    var version: Int
    /// Nil: for everybody.
    var user: Int?
    /// Nil: for all requests.
    var variant: Int?
    /// Its body lacks its end. Who gets it is told so by the way in which it ends, and remembers it.
    var isCut = false
    /// In seconds, by the clock of the node that has it.
    var storedAt: Int64
    var expiresAt: Int64
    /// When the origin made it, for the judge.
    var bornAt: UInt64 = 0

    /// The same by a clock that is so much ahead.
    func moved(by seconds: Int64) -> ModelResponse {
        var moved = self
        moved.storedAt += seconds
        moved.expiresAt += seconds
        return moved
    }
}

/// A stored response. Its identity tells whether it is the one that was there before.
final class ModelStored {
    let response: ModelResponse
    /// To be validated before it is used, whatever its lifetime says.
    let isOutdated: Bool
    /// It may have been purged: until it is validated it does not stand in for the origin either.
    let isDoubted: Bool

    init(_ response: ModelResponse, isOutdated: Bool = false, isDoubted: Bool = false) {
        self.response = response
        self.isOutdated = isOutdated || isDoubted
        self.isDoubted = isDoubted
    }
}

/// What a disk keeps while its node is down.
final class KeptDisk {
    var stored: [ModelSlot: ModelStored] = [:]
    var position: StreamPosition?
    /// What the judge may expect of who has applied the purges up to the position.
    var floors = ModelFloors()
    var changeFloors: [Int: Int] = [:]

    func copy() -> KeptDisk {
        let copy = KeptDisk()
        (copy.stored, copy.position, copy.floors, copy.changeFloors) = (stored, position, floors, changeFloors)
        return copy
    }
}

/// Jobs in the order of their times; of those at one time the first that was added comes first.
struct JobQueue {
    private var heap: [(at: UInt64, order: UInt64, work: () -> Void)] = []
    private var lastOrder: UInt64 = 0

    mutating func add(at time: UInt64, _ work: @escaping () -> Void) {
        lastOrder += 1
        heap.append((time, lastOrder, work))
        var child = heap.count - 1
        while child > 0, precedes(child, (child - 1) / 2) {
            heap.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    mutating func next(until end: UInt64) -> (at: UInt64, work: () -> Void)? {
        guard let first = heap.first, first.at <= end else { return nil }
        heap.swapAt(0, heap.count - 1)
        heap.removeLast()
        var parent = 0
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2] where child < heap.count && precedes(child, least) {
                least = child
            }
            guard least != parent else { break }
            heap.swapAt(parent, least)
            parent = least
        }
        return (first.at, first.work)
    }

    private func precedes(_ a: Int, _ b: Int) -> Bool { (heap[a].at, heap[a].order) < (heap[b].at, heap[b].order) }
}
