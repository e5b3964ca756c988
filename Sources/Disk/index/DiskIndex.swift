import EventLoop

/// Where the objects of a store stand, in memory: what counts while it runs. The book is its durable form.
///
/// An open hash table in shards, each with a lock that is held for a few dozen nanoseconds, or while its shard grows.
/// Knows nothing of files: whether there is still something at a place is for those who read there.
@safe final class DiskIndex: @unchecked Sendable {  // each shard is reached under its lock alone
    private let shards: [Locked<DiskIndexShard>]
    private let shardShift: UInt64

    /// - Parameter shardCount: a power of two.
    init(shardCount: Int = 64) {
        precondition(shardCount > 0 && shardCount & (shardCount - 1) == 0, "shards are chosen by bits of the hash")
        shards = (0..<shardCount).map { _ in Locked(DiskIndexShard()) }
        shardShift = 64 - UInt64(shardCount.trailingZeroBitCount)
    }

    /// Objects whose key may have this hash, newest first: the one that was stored last.
    func find(_ hash: UInt64) -> [DiskIndexEntry] {
        shard(of: hash).withLock { shard in
            var found: [DiskIndexEntry] = []
            shard.forEach(hash) { found.append($0) }
            if found.count > 1 { found.sort { $0.id > $1.id } }
            return found
        }
    }

    func entry(_ hash: UInt64, _ id: ObjectID) -> DiskIndexEntry? {
        shard(of: hash).withLock { $0.first(hash) { $0.id == id } }
    }

    func entry(_ hash: UInt64, at place: Place) -> DiskIndexEntry? {
        shard(of: hash).withLock { $0.first(hash) { $0.isAt(place) } }
    }

    /// Puts an object in. Where its number is in already: false, and nothing is changed.
    @discardableResult
    func insert(_ entry: DiskIndexEntry) -> Bool {
        precondition(!entry.isFree, "an entry names a record")
        return shard(of: entry.hash).withLock { shard in
            guard shard.first(entry.hash, where: { $0.id == entry.id }) == nil else { return false }
            shard.insert(entry)
            return true
        }
    }

    /// The object was copied from `old` to the place in `entry`: compare and set. Its use mark begins anew with what
    /// `entry` has.
    /// - Returns: false where it is no longer at `old`; nothing is changed.
    func move(from old: Place, to entry: DiskIndexEntry) -> Bool {
        update(entry.hash, where: { $0.id == entry.id && $0.isAt(old) }, { $0 = entry })
    }

    /// Takes an object out; returns it as it was.
    func remove(_ hash: UInt64, _ id: ObjectID) -> DiskIndexEntry? {
        shard(of: hash).withLock { $0.remove(hash) { $0.id == id } }
    }

    /// Takes an object out where it still is at the place.
    func remove(_ hash: UInt64, at place: Place) -> DiskIndexEntry? {
        shard(of: hash).withLock { $0.remove(hash) { $0.isAt(place) } }
    }

    /// Takes out all that may be under a key; returns them.
    func removeAll(_ hash: UInt64) -> [DiskIndexEntry] {
        shard(of: hash).withLock { shard in
            var removed: [DiskIndexEntry] = []
            while let entry = shard.remove(hash, where: { _ in true }) { removed.append(entry) }
            return removed
        }
    }

    /// One use more.
    func touch(_ hash: UInt64, _ id: ObjectID) {
        update(hash, where: { $0.id == id }, { $0.uses += 1 })
    }

    /// One use less.
    func decrementUses(_ hash: UInt64, _ id: ObjectID) {
        update(hash, where: { $0.id == id }, { $0.uses = $0.uses == 0 ? 0 : $0.uses - 1 })
    }

    /// There is a renewed head in the book from now on.
    /// - Parameter storageClass: what it is kept under from now on.
    /// - Returns: false where there is no such object.
    @discardableResult
    func setRenewed(_ hash: UInt64, _ id: ObjectID, _ storageClass: StorageClass) -> Bool {
        update(hash, where: { $0.id == id }) { entry in
            entry.isRenewed = true
            entry.storageClass = storageClass
        }
    }

    func setClass(_ hash: UInt64, _ id: ObjectID, _ storageClass: StorageClass) {
        update(hash, where: { $0.id == id }, { $0.storageClass = storageClass })
    }

    /// Sees all entries, shard by shard, each as it was at one moment. Slow, and for what is rare. `body` must not
    /// call the index.
    func forEach(_ body: (DiskIndexEntry) -> Void) {
        for shard in shards { shard.withLock { $0.forEach(body) } }
    }

    /// Room for about so many objects.
    func reserve(_ count: Int) {
        for shard in shards { shard.withLock { $0.reserve(count / shards.count) } }
    }

    var count: Int { shards.reduce(0) { $0 + $1.withLock { $0.count } } }

    /// Bytes of memory that the tables take.
    var tableBytes: Int { shards.reduce(0) { $0 + $1.withLock { $0.tableBytes } } }

    @discardableResult
    private func update(
        _ hash: UInt64, where matches: (DiskIndexEntry) -> Bool, _ change: (inout DiskIndexEntry) -> Void
    ) -> Bool {
        shard(of: hash).withLock { $0.update(hash, where: matches, change) }
    }

    private func shard(of hash: UInt64) -> Locked<DiskIndexShard> {
        // The slot in a shard follows from bits that are mixed: those at the top may be taken here.
        shards[shardShift == 64 ? 0 : Int(hash >> shardShift)]
    }
}
