internal import CLarder
internal import Glibc
internal import Synchronization

/// What bodies, stored responses and transfers share with their tier: the shards, the budget, the spare pages. It lives as long as
/// the last of them. The tier empties it when the tier itself is destroyed.
///
/// The budget is one count for all shards. Memory is charged before it is allocated, and released after it is freed, so the budget is
/// never exceeded, except by `overdraw` and `take`. If it does not suffice, responses are evicted, first from shards that have at
/// least their share. This keeps the shards even, and no shard is emptied by one body with many pages.
///
/// Locks: a thread never holds two locks of the tier at once, neither of two shards nor of a shard and a body.
@safe final class Shelves: @unchecked Sendable {
    let limit: Atomic<Int>
    /// Bytes that are charged, including spare pages.
    let charged = Atomic<Int>(0)
    let refused = Atomic<Int>(0)
    let overdrawn = Atomic<Int>(0)
    let invalidations = Atomic<Int>(0)
    private let cursor = Atomic<Int>(0)
    private let lastID = Atomic<UInt64>(0)

    let shardCount: Int
    let variantsPerKeyMax: Int
    let objectMax: Int
    private let shards: UnsafeMutablePointer<Shard>
    /// The bytes in the queues of each shard, which can be read without its lock.
    private let shardBytes: UnsafeMutablePointer<Atomic<Int>>
    private let shardLocks: LockBank
    /// The locks that protect the readers of bodies. The address of a body selects its lock.
    let waiting = LockBank(count: 64)
    let spare: SparePages
    /// Where the longer pages of bodies are. Nil: the system gives no such memory.
    let arena: PageArena?

    init(budget: Int, shards count: Int, objectMax: Int, variantsPerKeyMax: Int) {
        precondition(count > 0 && count & (count - 1) == 0, "the number of shards is a power of two")
        limit = Atomic(budget)
        shardCount = count
        self.objectMax = objectMax
        self.variantsPerKeyMax = variantsPerKeyMax
        shardLocks = LockBank(count: count)
        arena = PageArena(byteCount: Shelves.arenaBytes(budget: budget))
        spare = SparePages(budget: budget, arena: arena)
        unsafe shards = .allocate(capacity: count)
        unsafe shardBytes = .allocate(capacity: count)
        for index in 0..<count {
            unsafe (shards + index).initialize(to: Shard())
            unsafe (shardBytes + index).initialize(to: Atomic(0))
        }
    }

    deinit {
        for index in 0..<shardCount { unsafe shards[index].free() }
        unsafe shards.deinitialize(count: shardCount)
        unsafe shards.deallocate()
        unsafe shardBytes.deinitialize(count: shardCount)
        unsafe shardBytes.deallocate()
    }

    /// How many addresses the pages of a tier take: several times the budget, because a page may take less than its slot, and because
    /// the budget may be raised later. Addresses cost nothing.
    private static func arenaBytes(budget: Int) -> Int {
        let words = 64 * PageArena.slotBytes
        return max(1, min(4 * (budget / words + 1), 1 << 40 / words)) * words
    }

    /// Returns a number that no other reader or wait of this tier has.
    func nextID() -> UInt64 { lastID.add(1, ordering: .relaxed).newValue }

    @inline(__always)
    func shardIndex(_ key: StorageKey) -> Int { Int(truncatingIfNeeded: key.high) & (shardCount &- 1) }

    /// Calls `body` with a shard, under its lock.
    @inline(__always)
    func read<Result>(_ index: Int, _ body: (inout Shard) -> Result) -> Result {
        shardLocks.withLock(index) { unsafe body(&shards[index]) }
    }

    /// Calls `body` with a shard, under its lock. What `body` adds to `Doomed` is destroyed after the lock is released.
    @inline(__always)
    func change<Result>(_ index: Int, _ body: (inout Shard, inout Doomed) -> Result) -> Result {
        var doomed = Doomed()
        let result = change(index, &doomed, body)
        doomed.destroy()
        return result
    }

    /// Calls `body` with a shard, under its lock. What is to be destroyed is left to the caller.
    @inline(__always)
    func change<Result>(_ index: Int, _ doomed: inout Doomed, _ body: (inout Shard, inout Doomed) -> Result) -> Result {
        shardLocks.withLock(index) {
            let result = unsafe body(&shards[index], &doomed)
            unsafe shardBytes[index].store(shards[index].bytes, ordering: .relaxed)
            return result
        }
    }
}

// MARK: The budget

extension Shelves {
    /// Takes `bytes` from the budget, and evicts responses if necessary. Returns false, and charges nothing, if there is not enough
    /// space.
    /// - Parameter isNeedless: asked first, and after each eviction. Once it says so, nothing is charged, and the result is true. It takes a page
    ///   that an evicted response left, which would be given to the system here only to get a new one from it.
    func charge(_ bytes: Int, unless isNeedless: () -> Bool = { false }) -> Bool {
        precondition(bytes >= 0, "a charge is not negative")
        guard bytes <= limit.load(ordering: .relaxed) else { return refuse() }
        var idle = 0
        while !isNeedless(), !tryCharge(bytes) {
            if dropSparePage() { continue }
            switch evictOne(afterIdle: idle) {
            case .evicted, .progressed: idle = 0
            case .nothing: idle += 1
            }
            // Every shard was asked twice, and has only responses whose bodies still grow.
            if idle > 2 * shardCount { return refuse() }
        }
        return true
    }

    /// Whether the body of a response that has been used more than once may come into memory. It may if there is space, of which a sixteenth is kept
    /// for new responses.
    func admits(_ record: StoredRecord) -> Bool {
        let limit = limit.load(ordering: .relaxed)
        let hasSpace = charged.load(ordering: .relaxed) + record.body.length < limit - limit / 16
        return hasSpace && record.frequency > 1 || read(shardIndex(record.key)) { shard in shard.admits(record) }
    }

    /// Charges bytes beyond the limit: a few pages of a body whose transfer would break off without them.
    func overdraw(_ bytes: Int) {
        precondition(bytes >= 0, "a charge is not negative")
        charged.add(bytes, ordering: .relaxed)
        overdrawn.add(1, ordering: .relaxed)
    }

    /// Charges or releases (if `bytes` is negative) the bytes of a body that is only passed on. There is no limit, and nothing is
    /// evicted.
    func take(_ bytes: Int) {
        let left = charged.add(bytes, ordering: .relaxed).newValue
        precondition(left >= 0, "what is given back was charged")
    }

    func release(_ bytes: Int) {
        let left = charged.subtract(bytes, ordering: .relaxed).newValue
        precondition(bytes >= 0 && left >= 0, "what is given back was charged")
    }

    private func refuse() -> Bool {
        refused.add(1, ordering: .relaxed)
        return false
    }

    private func tryCharge(_ bytes: Int) -> Bool {
        var seen = charged.load(ordering: .relaxed)
        while true {
            guard seen + bytes <= limit.load(ordering: .relaxed) else { return false }
            let (done, current) = charged.weakCompareExchange(
                expected: seen, desired: seen + bytes, ordering: .relaxed)
            if done { return true }
            seen = current
        }
    }

    /// Evicts from a shard that has its share. If there is none, or if that one has nothing in line, what the budget has went to bodies that still grow,
    /// or that have left their queue and are being written or sent. Then all shards are asked for what nobody has used, and after that for anything.
    /// - Parameter idle: how many shards had nothing to evict.
    private func evictOne(afterIdle idle: Int) -> Shard.Eviction {
        let index: Int
        let reach: Shard.Reach
        if idle == 0 {
            let hasShare: Bool
            (index, hasShare) = shardToEvictFrom()
            reach = hasShare ? .inLine : .unused
        } else {
            index = nextShard()
            reach = idle <= shardCount ? .unused : .all
        }
        return change(index) { shard, doomed in shard.evict(reach, into: &doomed) }
    }

    private func nextShard() -> Int { cursor.add(1, ordering: .relaxed).oldValue & (shardCount - 1) }

    /// The next shard that has at least its share, or the fullest if none has. Each call begins one shard further.
    private func shardToEvictFrom() -> (index: Int, hasShare: Bool) {
        let share = charged.load(ordering: .relaxed) / shardCount
        let start = nextShard()
        var fullest = (index: start, bytes: -1)
        for step in 0..<shardCount {
            let index = (start &+ step) & (shardCount - 1)
            let bytes = unsafe shardBytes[index].load(ordering: .relaxed)
            if bytes >= share { return (index, true) }
            if bytes > fullest.bytes { fullest = (index, bytes) }
        }
        return (fullest.index, false)
    }
}

extension Shelves {
    /// A pause of a purge. Whoever waits for the lock of a shard gets it meanwhile.
    static func letOthersGoOn() { usleep(200) }
}
