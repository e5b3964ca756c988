import Authentication
import EventLoop
import Fleet
import LimitTables
import Limiting
import Message
import Redis

/// What the nodes of a fleet count together.
struct CountedTogether: Sendable {
    let limits: LimitTable
    let attempts: AttemptLedger
    /// Whether clients have to log in.
    let authenticates: @Sendable () -> Bool
    /// Somebody has to wait now because of log-ins that failed: called where it may be because of other nodes.
    let waitBegan: @Sendable () -> Void
}

/// Counts limits, budgets and failed log-ins together with the other nodes. It belongs to the thread of its node.
///
/// Four times in a second it tells the others what this node has let through, as one entry of a stream, reads what they say, and compares the budgets in
/// use with Redis (FleetCounting+Budgets.swift). Workers count on `LimitAccount`s and never wait; what others use is written into the same accounts.
final class FleetCounting {
    let terms: FleetTerms
    let counted: CountedTogether
    let loop: EventLoop
    let link: RedisLink
    let figures: Locked<FleetFigures>
    private var clock: PreciseTimer!
    private let news: LimitNews
    /// The buckets that are in use, here or by a budget.
    private(set) var entries: [LimitBucket: Entry] = [:]
    private var byName: [BucketName: Entry] = [:]
    private var others = OthersUse()
    /// Those whose news have not been told.
    private var untold: [Entry] = []
    private let run = UInt64.random(in: 0...UInt64.max)
    private var number: UInt64 = 0
    private var isTelling = false
    private var isReading = false
    /// Up to which entry of the stream was read over this connection.
    private var position: StreamID?
    /// What is read now was there before this connection, and may be of any age.
    private var isCatchingUp = true
    private var lastTick: MonotonicTime?
    private var ticks: UInt64 = 0
    /// The rules whose figures the nodes count together, as they were at the beginning of this turn.
    private(set) var rules: [String: LimitTerms] = [:]
    /// When the news of the others could be read last.
    private var lastHeard: MonotonicTime?
    /// What Redis does not take at the moment.
    private var refused: Set<Purpose> = []
    /// Whether the others are not heard of, so that rates and places are held to a share.
    private var isAlone = true
    /// Whether budgets are.
    private(set) var budgetsAreAlone = true

    enum Purpose { case news, budgets }

    // Budgets
    /// When all budgets of a rule were reset last, in milliseconds since 1970.
    var resets: [String: UInt64] = [:]
    var isAskingResets = false
    var exchangesUnderWay = 0
    /// Those that are to be compared with Redis, the first one first.
    var waitingExchanges: [Entry] = []
    /// Where the round through budgets that nobody uses at the moment is.
    var round: [Entry] = []

    static let wait = Duration.seconds(2)
    private static let interval = Duration.milliseconds(250)
    /// Where a bucket is used that the node did not know, it looks sooner, but not more often than this.
    private static let intervalMin = Duration.milliseconds(20)
    /// Who has not been heard of for so long is not there.
    static let silenceMax = Duration.seconds(3)
    /// A bucket that nobody has used for so long is looked at no more.
    private static let entryLifetime = Duration.seconds(10)
    /// How often what is under way is told again, though it has not changed.
    private static let repetition = Duration.seconds(5)
    /// About so many entries stay in the stream.
    private static let streamEntriesMax = 256
    /// Together they are shorter than the longest reply that is read.
    private static let entriesPerRead = 32
    /// In seconds.
    private static let streamLifetime = 60
    /// News that are older say nothing of rates any more, or of anything. In milliseconds.
    private static let rateAgeMax: UInt64 = 10_000
    private static let newsAgeMax: UInt64 = 60_000

    /// A bucket that is in use.
    final class Entry {
        let account: LimitAccount
        let share: LimitShare
        let name: BucketName
        var usedAt: MonotonicTime
        fileprivate var said: (underWay: Int, connections: Int) = (0, 0)
        fileprivate var saidAt: MonotonicTime?
        fileprivate var isUntold = false
        var budget: BudgetState?
        var isWaitingForExchange = false
        var isExchanging = false

        init(_ account: LimitAccount, _ share: LimitShare, _ name: BucketName, now: MonotonicTime) {
            self.account = account
            self.share = share
            self.name = name
            usedAt = now
        }
    }

    init(
        _ terms: FleetTerms, _ counted: CountedTogether, loop: EventLoop, link: RedisLink,
        figures: Locked<FleetFigures>
    ) {
        self.terms = terms
        self.counted = counted
        self.loop = loop
        self.link = link
        self.figures = figures
        news = counted.limits.news ?? LimitNews()
        clock = PreciseTimer(loop) { [unowned self] in tick() }
    }

    func start() { clock.start(at: loop.now.advanced(by: FleetCounting.interval)) }

    func stop() { clock.stop() }

    func linkOpened() {
        // What was missed is read once more. The server may be another one.
        position = nil
        isCatchingUp = true
        lastHeard = loop.now
        refused = []
        for entry in entries.values {
            note(entry)
            enqueueExchange(entry)
        }
        countSoon()
    }

    /// A bucket is used that the node does not know.
    func countSoon() {
        guard let last = lastTick else { return }
        let soon = max(loop.now, last.advanced(by: FleetCounting.intervalMin))
        if let deadline = clock.deadline, deadline <= soon { return }
        clock.start(at: soon)
    }

    private func tick() {
        let now = loop.now
        lastTick = now
        ticks += 1
        rules = counted.limits.sharedRules
        clock.start(at: now.advanced(by: FleetCounting.interval))
        takeUsed(now)
        judgeLink(now)
        if link.isOpen { tell(now) } else { dropUntold() }
        if link.isOpen, isNeeded { listen() }
        tendBudgets(now)
        if ticks.isMultiple(of: 20) { sweep(now) }
        // Said when it is so: budgets are held to their share by now.
        figures.withLock { $0.countsAlone = (isAlone || budgetsAreAlone) && isNeeded }
    }

    /// Whether anything is counted together.
    private var isNeeded: Bool { !rules.isEmpty || counted.authenticates() }

    // MARK: the buckets of this node

    private func takeUsed(_ now: MonotonicTime) {
        for account in news.take() {
            guard let share = account.share, let entry = entry(of: account, share, now) else { continue }
            share.forgetNote()
            entry.usedAt = now
            note(entry)
            enqueueExchange(entry)
        }
    }

    func entry(of account: LimitAccount, _ share: LimitShare, _ now: MonotonicTime) -> Entry? {
        if let known = entries[account.bucket], known.account === account { return known }
        let (kind, subject) = account.bucket.subject.stored
        let name = BucketName(rule: account.bucket.rule, kind: kind, name: subject, hash: terms.hash)
        let entry = Entry(account, share, name, now: now)
        entries[account.bucket] = entry
        byName[name] = entry
        let sums = others.sums(of: name, now: now.nanoseconds)
        account.owe(requests: sums.requests, bytes: sums.bytes, now: now.nanoseconds)
        share.noteOthers(underWay: sums.underWay, connections: sums.connections)
        return entry
    }

    private func note(_ entry: Entry) {
        guard !entry.isUntold else { return }
        entry.isUntold = true
        untold.append(entry)
    }

    private func sweep(_ now: MonotonicTime) {
        for name in others.sweep(now: now.nanoseconds) { applyPlaces(of: name, now) }
        let wall = loop.wallSeconds
        for (bucket, entry) in entries {
            let places = entry.account.places
            let isInUse = places.underWay > 0 || places.connections > 0
            if isInUse, entry.saidAt.map({ now.duration(since: $0) >= FleetCounting.repetition }) ?? true {
                note(entry)
            }
            // A note may get lost between two threads.
            if places != entry.said || entry.share.hasDebts { note(entry) }
            guard !isInUse, now.duration(since: entry.usedAt) > FleetCounting.entryLifetime, !entry.isUntold,
                !entry.isWaitingForExchange, !entry.isExchanging, entry.said == (0, 0), entry.mayBeForgotten(wall),
                // The account has them already. Whoever uses it next would take them off once more.
                others.sums(of: entry.name, now: now.nanoseconds) == OthersUse.Sums()
            else { continue }
            entry.share.forgetNote(isKnown: false)
            entries[bucket] = nil
            if byName[entry.name] === entry { byName[entry.name] = nil }
        }
    }

    // MARK: whether the others are heard of

    private func judgeLink(_ now: MonotonicTime) {
        // Nothing is asked where nothing is configured.
        if link.isOpen, !isNeeded { lastHeard = now }
        let isHeard =
            link.isOpen && !refused.contains(.news)
            && lastHeard.map { now.duration(since: $0) < FleetCounting.silenceMax } ?? false
        isAlone = !isHeard
        budgetsAreAlone = !link.isOpen || refused.contains(.budgets)
        news.shares.store(isAlone ? UInt64(nodeCount) : 1, ordering: .relaxed)
    }

    /// The nodes that were there when this one heard of them last, itself included.
    var nodeCount: Int { max(1, figures.withLock { $0.nodes.count }) }

    /// Notes whether Redis takes a write. Returns whether it has.
    func isTaken(_ result: Result<RedisReply, RedisFailure>, _ purpose: Purpose) -> Bool {
        guard case .success(let reply) = result else { return false }
        if reply.errorCode == nil { refused.remove(purpose) } else { refused.insert(purpose) }
        return reply.errorCode == nil
    }

    // MARK: telling

    private func tell(_ now: MonotonicTime) {
        guard !isTelling else { return }
        var told = FleetNews(run: run, number: number + 1, issuedAt: wallMilliseconds)
        for entry in untold.prefix(FleetNews.itemsMax) {
            entry.isUntold = false
            let debts = entry.share.takeDebts()
            let places = entry.account.places
            // While this node holds to its share, it owes the others nothing. It tries whether Redis takes writes again.
            let isQuiet = isAlone ? !refused.contains(.news) : debts.requests == 0 && debts.bytes == 0
            guard !isQuiet || places != entry.said || places.underWay > 0 || places.connections > 0 else { continue }
            entry.said = places
            entry.saidAt = now
            told.buckets.append(
                FleetNews.Bucket(
                    name: entry.name, requests: isAlone ? 0 : debts.requests, bytes: isAlone ? 0 : debts.bytes,
                    underWay: UInt32(clamping: places.underWay), connections: UInt32(clamping: places.connections)))
        }
        untold.removeFirst(min(untold.count, FleetNews.itemsMax))
        (told.failures, told.nonces) = counted.attempts.withAttempts { attempts in
            (
                attempts.failures.takeUntold(FleetNews.itemsMax).map { FleetNews.Failure($0) },
                attempts.nonces.takeUntold(FleetNews.itemsMax).map { FleetNews.Nonce($0) }
            )
        }
        guard !told.isEmpty else { return }
        number += 1
        isTelling = true
        link.send(
            [redisWord("XADD"), SharedKeys.news, redisWord("MAXLEN"), redisWord("~")]
                + [Array("\(FleetCounting.streamEntriesMax)".utf8), redisWord("*"), redisWord("n")],
            value: told.encoded(hash: terms.hash), within: FleetCounting.wait
        ) { [unowned self] result in
            isTelling = false
            if isTaken(result, .news) { return figures.withLock { $0.newsSent += 1 } }
            // It has to be said again what is under way. What was let through is not: it may have been said.
            for bucket in told.buckets {
                guard let entry = byName[bucket.name] else { continue }
                entry.saidAt = nil
                note(entry)
            }
        }
        link.send(
            [redisWord("EXPIRE"), SharedKeys.news, Array("\(FleetCounting.streamLifetime)".utf8)],
            within: FleetCounting.wait
        ) { _ in }
    }

    /// Nobody can be told. What is let through meanwhile is this node's share; what is under way is told when there is a connection.
    private func dropUntold() {
        for entry in untold {
            entry.isUntold = false
            entry.said = (0, 0)
            _ = entry.share.takeDebts()
        }
        untold = []
    }

    var wallMilliseconds: UInt64 { UInt64(max(0, loop.wallMilliseconds)) }

    // MARK: listening

    private func listen() {
        guard !isReading else { return }
        isReading = true
        let start = position.map { Array("(".utf8) + $0.text } ?? redisWord("-")
        link.send(
            [
                redisWord("XRANGE"), SharedKeys.news, start, redisWord("+"), redisWord("COUNT"),
                Array("\(FleetCounting.entriesPerRead)".utf8),
            ], within: FleetCounting.wait
        ) { [unowned self] result in
            isReading = false
            guard let items = (try? result.get())?.array else { return }
            lastHeard = loop.now
            for item in items { read(item) }
            if items.count == FleetCounting.entriesPerRead { return listen() }
            isCatchingUp = false
        }
    }

    private func read(_ item: RedisReply) {
        guard let parts = item.array, parts.count == 2, let id = parts[0].data.flatMap({ StreamID($0) }) else { return }
        position = id
        let now = loop.now
        guard let fields = parts[1].array, fields.count == 2, let bytes = fields[1].data,
            let told = FleetNews(bytes, hash: terms.hash)
        else { return figures.withLock { $0.newsRefused += 1 } }
        guard told.run != run else { return }
        let wall = wallMilliseconds
        let age = max(wall, told.issuedAt) - min(wall, told.issuedAt)
        // Somebody who can write to Redis may add an entry once more.
        guard age < FleetCounting.newsAgeMax else {
            if !isCatchingUp { figures.withLock { $0.newsRefused += 1 } }
            return
        }
        guard others.isNew(told, now: now.nanoseconds) else { return }
        figures.withLock { $0.newsHeard += 1 }
        for var bucket in told.buckets {
            if age > FleetCounting.rateAgeMax { (bucket.requests, bucket.bytes) = (0, 0) }
            others.note(bucket, of: told.run, now: now.nanoseconds)
            guard let entry = byName[bucket.name] else { continue }
            entry.account.owe(requests: bucket.requests, bytes: bucket.bytes, now: now.nanoseconds)
            applyPlaces(of: bucket.name, now)
        }
        takeAttempts(of: told, wall)
    }

    private func applyPlaces(of name: BucketName, _ now: MonotonicTime) {
        guard let entry = byName[name] else { return }
        let sums = others.sums(of: name, now: now.nanoseconds)
        entry.share.noteOthers(underWay: sums.underWay, connections: sums.connections)
    }

    private func takeAttempts(of told: FleetNews, _ wall: UInt64) {
        guard !told.failures.isEmpty || !told.nonces.isEmpty else { return }
        let time = loop.now.sinceStart
        let begins = counted.attempts.withAttempts { attempts in
            let before = attempts.failures.waitsBegun
            for failure in told.failures { attempts.failures.count(SharedFailure(failure), now: time) }
            for nonce in told.nonces {
                attempts.nonces.count(
                    NonceCounts.Told(nonce), valid: wall - min(wall, FleetCounting.nonceAgeMax)...wall)
            }
            return attempts.failures.waitsBegun != before
        }
        if begins { counted.waitBegan() }
    }

    /// In milliseconds. Nonces that are older are not valid, or are known to this node already.
    private static let nonceAgeMax: UInt64 = 86_400_000
}

extension FleetNews.Failure {
    fileprivate init(_ failure: SharedFailure) {
        self.init(
            high: failure.name.high, low: failure.name.low, count: UInt16(clamping: failure.count),
            isOfUser: failure.isOfUser)
    }
}

extension SharedFailure {
    fileprivate init(_ failure: FleetNews.Failure) {
        self.init(
            name: SipHash.Digest(low: failure.low, high: failure.high), count: Int(failure.count),
            isOfUser: failure.isOfUser)
    }
}

extension FleetNews.Nonce {
    fileprivate init(_ told: NonceCounts.Told) {
        self.init(issued: told.nonce.issued, number: told.nonce.number, highest: told.highest, used: told.used)
    }
}

extension NonceCounts.Told {
    fileprivate init(_ nonce: FleetNews.Nonce) {
        self.init(
            nonce: DigestNonce(issued: nonce.issued, number: nonce.number), highest: nonce.highest, used: nonce.used)
    }
}
