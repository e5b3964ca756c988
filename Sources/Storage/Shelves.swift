internal import CLarder
internal import Synchronization

/// What bodies, stored responses and transfers share with the tier that made them: the shards, the budget, the spare
/// pages. It lives until the last of them goes; the tier empties it when it goes itself.
///
/// The budget is one count for all shards, charged before memory is allocated and released after it is freed, so it is
/// never exceeded (but see `overdraw` and `take`). Where it does not suffice, responses are evicted, from shards that hold
/// at least their share first: that keeps shards even, and a body of many pages from emptying one of them.
///
/// No two locks are ever held at once: not of two shards, nor of a shard and of a body.
@safe final class Shelves: @unchecked Sendable {
    let limit: Atomic<Int>
    /// Bytes charged, spare pages among them.
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
    /// Bytes in each shard's queues, to be read without its lock.
    private let shardBytes: UnsafeMutablePointer<Atomic<Int>>
    private let shardLocks: LockBank
    /// Guard the readers of bodies and the followers of transfers. Each object uses the lock that its address picks.
    let waiting = LockBank(count: 64)
    let spare: SparePages

    init(budget: Int, shards count: Int, objectMax: Int, variantsPerKeyMax: Int) {
        precondition(count > 0 && count & (count - 1) == 0, "the number of shards is a power of two")
        clarder_malloc_keep_pages()
        limit = Atomic(budget)
        shardCount = count
        self.objectMax = objectMax
        self.variantsPerKeyMax = variantsPerKeyMax
        shardLocks = LockBank(count: count)
        spare = SparePages(budget: budget)
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

    /// A number no other reader or wait of this tier has.
    func nextID() -> UInt64 { lastID.add(1, ordering: .relaxed).newValue }

    @inline(__always)
    func shardIndex(_ key: StorageKey) -> Int { Int(truncatingIfNeeded: key.high) & (shardCount &- 1) }

    /// Looks at a shard under its lock.
    @inline(__always)
    func read<Result>(_ index: Int, _ body: (inout Shard) -> Result) -> Result {
        shardLocks.withLock(index) { unsafe body(&shards[index]) }
    }

    /// Changes a shard under its lock. What the change gives up is destroyed after the lock is released.
    @inline(__always)
    func change<Result>(_ index: Int, _ body: (inout Shard, inout Doomed) -> Result) -> Result {
        var doomed = Doomed()
        let result = shardLocks.withLock(index) {
            let result = unsafe body(&shards[index], &doomed)
            unsafe shardBytes[index].store(shards[index].bytes, ordering: .relaxed)
            return result
        }
        doomed.destroy()
        return result
    }
}

// MARK: The budget

extension Shelves {
    /// Takes `bytes` from the budget, evicting what it must. False: the budget has no room; nothing is charged.
    func charge(_ bytes: Int) -> Bool {
        precondition(bytes >= 0, "a charge is not negative")
        guard bytes <= limit.load(ordering: .relaxed) else { return refuse() }
        var idle = 0
        while !tryCharge(bytes) {
            if dropSparePage() { continue }
            switch evictOne() {
            case .evicted, .progressed: idle = 0
            case .nothing: idle += 1
            }
            // Every shard was asked twice, and holds only responses whose bodies still grow.
            if idle > 2 * shardCount { return refuse() }
        }
        return true
    }

    /// Whether the body of a response may come into memory. Where there is room it may; a sixteenth is left for what is new.
    func admits(_ record: StoredRecord) -> Bool {
        let limit = limit.load(ordering: .relaxed)
        if charged.load(ordering: .relaxed) + record.body.length < limit - limit / 16 { return true }
        return read(shardIndex(record.key)) { shard in shard.admits() }
    }

    /// Charges in spite of the limit: the few pages of a body that must go on or break its transfer.
    func overdraw(_ bytes: Int) {
        precondition(bytes >= 0, "a charge is not negative")
        charged.add(bytes, ordering: .relaxed)
        overdrawn.add(1, ordering: .relaxed)
    }

    /// Charges, or gives back, the bytes of a body that is only passed on: without a limit, and evicting nothing.
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

    private func evictOne() -> Shard.Eviction {
        change(shardToEvictFrom()) { shard, doomed in shard.evict(into: &doomed) }
    }

    /// The next shard, in turn, that holds at least its share; where none does, the fullest. Every call moves on.
    private func shardToEvictFrom() -> Int {
        let share = charged.load(ordering: .relaxed) / shardCount
        let start = cursor.add(1, ordering: .relaxed).oldValue
        var fullest = (index: start & (shardCount - 1), bytes: -1)
        for step in 0..<shardCount {
            let index = (start &+ step) & (shardCount - 1)
            let bytes = unsafe shardBytes[index].load(ordering: .relaxed)
            if bytes >= share { return index }
            if bytes > fullest.bytes { fullest = (index, bytes) }
        }
        return fullest.index
    }
}
