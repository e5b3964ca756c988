import Caching
import Message
import Transaction

/// All that happens in one run: an origin, a cache, clients, two clocks that need not agree, and chance.
final class World {
    /// What has to happen now and then, or the simulation shows nothing.
    enum Happening: CaseIterable {
        case collapsed, collapseTimedOut, revalidatedBehind, holeOnTheWay, confirmedSomethingElse, stored, freshened,
            aliased
        case freshenedByHead, outdatedByHead, staleOnError, invalidated, partFetched, partLied, interim, partStored,
            combined,
            resumed
        case keptApart, notJoined, followerValidated, reselected
        case followed, followedStored, followedTwice, looped, redirected
        case foundOnDisk, diskBusy
        case matchedStored, foldedProven, foldedUnproven, forbidden
        case keptPartial, servedStored, passedOn, refused, broken, notModified, part, transformed, left
    }

    let seed: UInt64
    var chance: Chance
    var origin: Origin
    var store: ModelStore
    var oracle: Oracle
    var ledger = Ledger()
    let policy: CachePolicy
    let handlings: [CacheHandling]
    let needsIdentity: Bool
    let collapses: Bool
    /// How often a transfer that broke off is taken up again without having come further.
    let resumptionsMax: Int
    /// In so many percent of all cases the origin can not be reached or answers 5xx, clients want parts, connections break.
    let failures: Int
    let ranges: Int
    /// A simple world in which parts of several versions meet.
    let isAboutParts: Bool
    let cuts: Int
    /// Addresses have signatures, which the keys of the cache leave out.
    let isSigned: Bool
    var signatures = Signatures()
    /// Memory may lack what is stored: a disk has it.
    let hasDisk: Bool
    /// How many redirects the cache follows for a request. Nil: its clients get them.
    let redirectsMax: Int?
    var clients: [Client]
    var exchanges: [SimulatedExchange] = []
    var fetches: [SimulatedFetch] = []
    /// Transfers with an outcome that their followers have not heard of.
    var resolved: [ModelTransfer] = []
    private(set) var step = 0
    private(set) var counts: [Happening: Int] = [:]
    private(set) var violation: String?
    private(set) var events: [String] = []
    private var lastExchange = 0
    /// True time in seconds, and by how much the clocks of origin and cache are off.
    private var now: Int64 = 1_800_000_000
    /// How far into that second it is, in 1/1024 s.
    private var fraction: Int64 = 0
    private let originSkew: Int64
    private var cacheSkew: Int64

    static let resourceCount = 4
    private static let eventsMax = 40

    init(seed: UInt64) {
        self.seed = seed
        var chance = Chance(seed: seed)
        originSkew = chance.oneIn(3) ? Int64(chance.below(400)) - 200 : 0
        cacheSkew = chance.oneIn(3) ? Int64(chance.below(400)) - 200 : 0
        isAboutParts = chance.oneIn(4)
        origin = Origin(&chance, resourceCount: World.resourceCount, now: now + originSkew, isSimple: isAboutParts)
        store = ModelStore(resourceCount: World.resourceCount)
        oracle = Oracle(resourceCount: World.resourceCount)
        var policy = CachePolicy()
        policy.staleOnErrorMax = Seconds(chance.pick([0, 30, 604_800]))
        self.policy = policy
        handlings = (0..<World.resourceCount).map { [isAboutParts] _ in
            isAboutParts ? CacheHandling() : World.handling(&chance)
        }
        needsIdentity = chance.oneIn(4)
        collapses = !chance.oneIn(3)
        resumptionsMax = chance.pick([0, 1, 4])
        failures = chance.pick([0, 5, 5, 25])
        ranges = isAboutParts ? 80 : chance.pick([0, 20, 70])
        cuts = chance.pick([0, 10, 40])
        isSigned = chance.oneIn(4)
        redirectsMax = !isSigned && chance.oneIn(2) ? 1 + chance.below(3) : nil
        hasDisk = chance.oneIn(2)
        clients = (0..<3).map { Client(id: $0) }
        self.chance = chance
    }

    private static func handling(_ chance: inout Chance) -> CacheHandling {
        var handling = CacheHandling()
        handling.compression = chance.pick([.no, .no, .onTheFly])
        handling.ranges = chance.pick([.sparse, .sparse, .sparse, .pass])
        handling.ifMatch = chance.pick([.origin, .stored])
        if chance.oneIn(3) { handling.failureStatuses = .tooManyRequests }
        guard chance.oneIn(3) else { return handling }
        let uses: [CacheUse] = [
            .revalidateAlways, .cacheFirst, .cacheOnly, .noRead, .noRead, .noRead, .noWrite, .staleOnError,
            [.cacheFirst, .staleOnError],
        ]
        handling.use = chance.pick([[], chance.pick(uses)])
        if chance.oneIn(3) { handling.ttl = Seconds(chance.pick([0, 5, 60])) }
        if chance.oneIn(3) { handling.negativeTTL = Seconds(20) }
        handling.respectsCacheControl = !chance.oneIn(4)
        return handling
    }

    var trueTime: Int64 { now }
    var originClock: Int64 { now + originSkew }
    var cacheClock: WallTime {
        WallTime(secondsSinceEpoch: now + cacheSkew) + TimeSpan(ticks: fraction)
    }

    /// A little time goes by with every step.
    private func tick() {
        fraction += Int64(chance.below(100))
        now += fraction / ticksPerSecond
        fraction %= ticksPerSecond
    }

    static func target(_ uri: Int) -> TargetURI { TargetURI(Array("http://origin.example/\(uri)".utf8))! }
    static func index(of uri: TargetURI) -> Int? {
        Int(String(decoding: uri.pathAndQuery.dropFirst(), as: UTF8.self)).flatMap { $0 < resourceCount ? $0 : nil }
    }

    // MARK: steps

    func run(_ steps: Int) {
        for _ in 0..<steps where violation == nil { advance() }
        guard violation == nil else { return }
        drain() ? balance() : violated("something waits for ever", exchanges.first)
    }

    func advance() {
        step += 1
        tick()
        switch chance.below(100) {
        case ..<18: if exchanges.count < 6 { arrive() }
        case ..<55: if !fetches.isEmpty { chance.pick(fetches).advance() }
        case ..<80: if !exchanges.isEmpty { chance.pick(exchanges).read(1 + chance.below(24)) }
        case ..<91: passTime()
        case ..<94: disturb()
        default: interrupt()
        }
        settle()
    }

    /// No new requests: what is under way has to end. False: something waits for ever.
    private func drain() -> Bool {
        for _ in 0..<3000 where violation == nil && !(exchanges.isEmpty && fetches.isEmpty) {
            step += 1
            for fetch in fetches { fetch.advance() }
            for exchange in exchanges { exchange.read(100) }
            settle()
        }
        return exchanges.isEmpty && fetches.isEmpty
    }

    private func settle() {
        while !resolved.isEmpty {
            let transfer = resolved.removeFirst()
            let followers = transfer.followers
            transfer.followers = []
            for follower in followers where follower.answer.end == nil { follower.leaderResolved(transfer.outcome!) }
        }
        fetches.removeAll { $0.isFinished }
    }

    private func arrive() {
        lastExchange += 1
        let client = chance.below(clients.count)
        let request = clients[client].request(
            &chance, resourceCount: World.resourceCount, ranges: ranges, handlings, isSigned: isSigned)
        if isSigned {
            request.sign(
                signatures.pick(
                    &chance, client: client, uri: request.uri, now: now, originClock: originClock,
                    cacheClock: cacheClock))
        }
        let exchange = SimulatedExchange(self, id: lastExchange, client: client, request)
        exchanges.append(exchange)
        trace("exchange \(exchange.id) of client \(client): \(request.summary)")
        exchange.start()
    }

    private func passTime() {
        now += Int64(chance.below(chance.oneIn(100) ? 1_000_000 : chance.oneIn(6) ? 40 : 3))
        // The cache's clock is set.
        if chance.oneIn(200) { cacheSkew += Int64(chance.below(200)) - 100 }
    }

    /// The origin changes, or the store does.
    private func disturb() {
        let uri = chance.below(World.resourceCount)
        switch chance.below(5) {
        case 0, 1: origin.resources[uri].edit(&chance, now: originClock)
        case 2: origin.resources[uri].adjust(&chance)
        case 3:
            guard let record = store.records[uri].last, chance.oneIn(3) else { return }
            store.remove(record)
        default:
            guard let record = store.records[uri].first, chance.oneIn(3) else { return }
            _ = store.replace(record, with: record.outdated)
        }
    }

    /// A client goes, or has waited for another's fetch long enough.
    private func interrupt() {
        guard !exchanges.isEmpty else { return }
        let exchange = chance.pick(exchanges)
        if exchange.following != nil {
            exchange.collapseTimedOut()
        } else if chance.oneIn(10) {
            exchange.leave()
        }
    }

    // MARK: what is seen of it

    func note(_ happening: Happening) { counts[happening, default: 0] += 1 }

    func trace(_ event: @autoclosure () -> String) {
        events.append("step \(step), clock \(cacheClock.secondsSinceEpoch): \(event())")
        if events.count > 2 * World.eventsMax { events.removeFirst(World.eventsMax) }
    }

    func violated(_ rule: String, _ exchange: SimulatedExchange?) {
        guard violation == nil else { return }
        violation = """
            seed \(seed), step \(step)\(exchange.map { ", exchange \($0.id): \($0.request.summary)" } ?? ""): \(rule)
            \(exchange.map { "handling: \($0.handling.use.words.map(\.rawValue)) ttl \(String(describing: $0.handling.ttl?.count)) respects \($0.handling.respectsCacheControl)" } ?? "")
            \(events.suffix(World.eventsMax).joined(separator: "\n"))
            """
    }
}
