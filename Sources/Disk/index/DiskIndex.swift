import EventLoop

/// Where each object of a store is, in memory. This index is what counts while the store runs; the book is its durable form.
///
/// An open hash table in shards. Each shard has a lock, held for a few dozen nanoseconds, or longer while the shard grows. The
/// index knows nothing of files: whether a record is still at its place is seen by whoever reads there.
@safe final class DiskIndex: @unchecked Sendable {  // each shard is only reached under its lock
    private let shards: [Locked<DiskIndexShard>]
    private let shardShift: UInt64

    /// - Parameter shardCount: a power of two.
    init(shardCount: Int = 64) {
        precondition(shardCount > 0 && shardCount & (shardCount - 1) == 0, "shards are chosen by bits of the hash")
        shards = (0..<shardCount).map { _ in Locked(DiskIndexShard()) }
        shardShift = 64 - UInt64(shardCount.trailingZeroBitCount)
    }

    /// The objects whose key may have this hash, the last stored one first.
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

    /// Adds an object. Returns false, and changes nothing, if its number is there already.
    @discardableResult
    func insert(_ entry: DiskIndexEntry) -> Bool {
        precondition(!entry.isFree, "an entry leads to a record")
        return shard(of: entry.hash).withLock { shard in
            guard shard.first(entry.hash, where: { $0.id == entry.id }) == nil else { return false }
            shard.insert(entry)
            return true
        }
    }

    /// Moves an object that was copied from `old` to the place in `entry`: compare and set. Its use mark becomes that of `entry`.
    /// - Returns: false if the object is no longer at `old`. Nothing is changed then.
    func move(from old: Place, to entry: DiskIndexEntry) -> Bool {
        precondition(!entry.isFree, "an entry leads to a record")
        return update(entry.hash, where: { $0.id == entry.id && $0.isAt(old) }, { $0 = entry })
    }

    /// Removes an object and returns its entry.
    func remove(_ hash: UInt64, _ id: ObjectID) -> DiskIndexEntry? {
        shard(of: hash).withLock { $0.remove(hash) { $0.id == id } }
    }

    /// Removes an object if it is still at the place.
    func remove(_ hash: UInt64, at place: Place) -> DiskIndexEntry? {
        shard(of: hash).withLock { $0.remove(hash) { $0.isAt(place) } }
    }

    /// Removes and returns all objects that may have the key.
    func removeAll(_ hash: UInt64) -> [DiskIndexEntry] {
        shard(of: hash).withLock { shard in
            var removed: [DiskIndexEntry] = []
            while let entry = shard.remove(hash, where: { _ in true }) { removed.append(entry) }
            return removed
        }
    }

    /// Counts one use.
    func touch(_ hash: UInt64, _ id: ObjectID) {
        update(hash, where: { $0.id == id }, { $0.uses += 1 })
    }

    /// Takes one use away.
    func decrementUses(_ hash: UInt64, _ id: ObjectID) {
        update(hash, where: { $0.id == id }, { $0.uses = $0.uses == 0 ? 0 : $0.uses - 1 })
    }

    /// Notes that the object has a renewed head, which is in the book or on its way there.
    /// - Parameter storageClass: the class of the renewed object.
    /// - Returns: false if there is no such object.
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

    /// Visits all entries, shard by shard, each as it was at one moment. Slow: for rare cases only. `body` must not call the
    /// index.
    func forEach(_ body: (DiskIndexEntry) -> Void) {
        for shard in shards { shard.withLock { $0.forEach(body) } }
    }

    /// Makes room for about this many objects.
    func reserve(_ count: Int) {
        for shard in shards { shard.withLock { $0.reserve(count / shards.count) } }
    }

    var count: Int { shards.reduce(0) { $0 + $1.withLock { $0.count } } }

    /// The memory that the tables take.
    var tableBytes: Int { shards.reduce(0) { $0 + $1.withLock { $0.tableBytes } } }

    @discardableResult
    private func update(
        _ hash: UInt64, where matches: (DiskIndexEntry) -> Bool, _ change: (inout DiskIndexEntry) -> Void
    ) -> Bool {
        shard(of: hash).withLock { $0.update(hash, where: matches, change) }
    }

    private func shard(of hash: UInt64) -> Locked<DiskIndexShard> {
        // The top bits choose the shard. The slot within it is chosen by mixed bits, which do not depend on these alone.
        shards[shardShift == 64 ? 0 : Int(hash >> shardShift)]
    }
}
