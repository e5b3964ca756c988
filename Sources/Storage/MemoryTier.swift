internal import Synchronization

/// The memory tier: stored responses by key, in shards with a short lock each, within a strict budget, evicted by
/// S3-FIFO (`Shard`). Used by all workers at once. It knows nothing of HTTP: keys and heads are bytes.
///
/// Everything counts against the budget: pages at their malloc size, heads, keys, objects, their share of the tables,
/// and what was evicted but is still being sent.
package final class MemoryTier: Sendable {
    let shelves: Shelves

    /// - Parameters:
    ///   - budget: bytes.
    ///   - shards: a power of two.
    ///   - objectMax: longest body stored, in bytes.
    ///   - variantsPerKeyMax: variants kept under one key; the oldest give way.
    package init(budget: Int, shards: Int = 64, objectMax: Int, variantsPerKeyMax: Int) {
        shelves = Shelves(
            budget: budget, shards: shards, objectMax: objectMax, variantsPerKeyMax: variantsPerKeyMax)
    }

    deinit { removeAll() }

    /// All variants stored under the key, newest first; [] where there are none. Compares the key bytes in full. Marks
    /// nothing: call `touch` for the one that is served. Allocates nothing.
    package func lookup(_ key: StorageKey, _ keyBytes: UnsafeRawBufferPointer) -> [StoredRecord] {
        unsafe shelves.lookup(key, keyBytes)
    }

    /// Counts one use of a stored response.
    package func touch(_ record: StoredRecord) { record.markUsed() }

    /// Makes a stored response visible, in place of the same variant; also while its body still grows, then from the
    /// writer's thread. False: its body failed or became a window, or the budget has no room for it.
    package func insert(_ record: StoredRecord) -> Bool { shelves.insert(record) != nil }

    /// Puts a stored response with a freshened head and the same body where `old` is. False: nothing changed, because
    /// `old` is no longer there or the budget has no room.
    package func replace(_ old: StoredRecord, with new: StoredRecord) -> Bool { shelves.replace(old, with: new) }

    /// Removes a stored response; no effect where it is not there.
    package func remove(_ record: StoredRecord) { shelves.remove(record) }

    /// Removes all variants of a key; returns how many.
    package func invalidate(_ key: StorageKey, _ keyBytes: UnsafeRawBufferPointer) -> Int {
        unsafe shelves.invalidate(key, keyBytes)
    }

    /// A body to be stored. Returns nil where it is longer than `lengthMax`, or the budget has no room.
    /// - Parameters:
    ///   - expectedLength: nil: not known.
    ///   - lengthMax: bytes it may have; nil: `objectMax`.
    package func makeBody(expectedLength: Int?, lengthMax: Int? = nil) -> Body? {
        if let length = expectedLength, length < 0 || length > lengthMax ?? shelves.objectMax { return nil }
        let body = Body(expectedLength: expectedLength, lengthMax: lengthMax, shelves: shelves)
        return body.chargeObject() ? body : nil
    }

    /// A body of which any ranges may be there (`Body.claim`). Only what is held counts, so it may be longer than
    /// `objectMax`, but holds no more than that at once. Returns nil where it is longer than 1 TiB, or the budget has no
    /// room.
    /// - Parameter heldMax: in place of `objectMax`.
    package func makeSparseBody(length: Int, heldMax: Int? = nil) -> Body? {
        guard (0...BodyLayout.sparseLengthMax).contains(length) else { return nil }
        let body = Body(expectedLength: length, isSparse: true, lengthMax: heldMax, shelves: shelves)
        guard body.chargeObject() else { return nil }
        if length == 0 { return body.finish() ? body : nil }
        return body.beginPartial() ? body : nil
    }

    /// A body that is only passed on: it is never stored and never refused, evicts nothing, and holds what its one reader
    /// has not taken yet. One thread writes and reads it; how, is said in Body+Passing.swift.
    /// - Parameters:
    ///   - expectedLength: nil: not known. Any length will do.
    ///   - window: bytes the writer may be ahead of the reader before it is to pause.
    package func makeWindow(expectedLength: Int?, window: Int) -> Body {
        precondition(window > 0 && expectedLength ?? 0 >= 0, "a window has room, and a body has a length")
        let body = Body(expectedLength: expectedLength, shelves: shelves)
        body.chargeObjectAnyway()
        body.beginPassing(bytesMax: window)
        return body
    }

    /// Sets the budget, in bytes, and evicts down to it.
    package func setBudget(_ budget: Int) {
        precondition(budget >= 0, "a budget is not negative")
        shelves.limit.store(budget, ordering: .relaxed)
        _ = shelves.charge(0)
    }

    /// Decides who fetches what is not there: under the lock of the shard, so that one leads and all others follow.
    /// - Parameter knownNewest: the first response that the look-up gave; nil where it gave none.
    package func lead(
        _ key: StorageKey, _ keyBytes: UnsafeRawBufferPointer, knownNewest: StoredRecord?
    ) -> Leadership {
        unsafe shelves.lead(key, keyBytes, knownNewest: knownNewest)
    }
}

// MARK: All stored responses

extension MemoryTier {
    /// Removes the responses for which `condition` holds; returns how many and their bytes. Asks outside the locks, shard by
    /// shard, so it may miss responses that come meanwhile, but not those that get a new head meanwhile.
    package func purge(dryRun: Bool, where condition: (StoredRecord) -> Bool) -> (records: Int, bytes: Int) {
        var purged = (records: 0, bytes: 0)
        for index in 0..<shelves.shardCount { while purge(shard: index, dryRun: dryRun, &purged, where: condition) {} }
        return purged
    }

    /// - Returns: whether one that matched left in between: look again, because the same response may stand there under a
    ///   new head.
    private func purge(
        shard index: Int, dryRun: Bool, _ purged: inout (records: Int, bytes: Int),
        where condition: (StoredRecord) -> Bool
    ) -> Bool {
        let matching = shelves.records(inShard: index).filter(condition)
        guard !matching.isEmpty else { return false }
        let found = shelves.change(index) { shard, doomed in
            var found = (records: 0, bytes: 0)
            for record in matching where record.place != .nowhere {
                found = (found.records + 1, found.bytes + record.weight)
                if !dryRun { _ = shard.remove(record, into: &doomed) }
            }
            return found
        }
        purged = (purged.records + found.records, purged.bytes + found.bytes)
        return !dryRun && found.records < matching.count
    }

    /// Counts invalidations and purges. Where it has changed since a request was sent, the response may be older than the
    /// last of them. For fetches that lead no transfer; a transfer knows more exactly (`Transfer.isOutdated`).
    package var invalidations: Int { shelves.invalidations.load(ordering: .acquiring) }

    /// Before a purge: what transfers under way bring is not stored, whatever it is, nor shared with later requests.
    package func outdateTransfers() { shelves.outdateTransfers() }

    package func removeAll() {
        _ = purge(dryRun: false) { _ in true }
        while shelves.dropSparePage() {}
    }

    /// Visits every stored response, shard by shard, outside the locks.
    package func forEach(_ visit: (StoredRecord) -> Void) {
        for index in 0..<shelves.shardCount { shelves.records(inShard: index).forEach(visit) }
    }

    /// The stored responses, a part of the tier at a time: for listings that hold little at once. A part may be empty.
    /// Responses that come or go meanwhile may be missed.
    /// - Parameter cursor: where the part before ended; nil: the beginning.
    /// - Returns: the responses, and where the next part begins; nil: this was the last.
    package func page(after cursor: RecordCursor?) -> (records: [StoredRecord], next: RecordCursor?) {
        let index = cursor?.shard ?? 0
        precondition(index < shelves.shardCount, "a cursor is used with the tier that gave it")
        return (shelves.records(inShard: index), index + 1 < shelves.shardCount ? RecordCursor(shard: index + 1) : nil)
    }

    package var statistics: MemoryTierStatistics {
        var sum = MemoryTierStatistics()
        for index in 0..<shelves.shardCount { shelves.read(index) { $0.add(to: &sum) } }
        sum.spareBytes = shelves.spare.pageCount * SparePages.pageSize
        sum.budgetBytes = shelves.limit.load(ordering: .relaxed)
        sum.usedBytes = shelves.charged.load(ordering: .relaxed) - sum.spareBytes
        sum.refused = shelves.refused.load(ordering: .relaxed)
        sum.overdrawn = shelves.overdrawn.load(ordering: .relaxed)
        return sum
    }
}

/// A place between two parts of a listing (`MemoryTier.page`). Valid for the tier that gave it.
package struct RecordCursor: Hashable, Sendable { let shard: Int }

extension Shard {
    fileprivate func add(to sum: inout MemoryTierStatistics) {
        sum.recordCount += recordCount
        sum.smallCount += small.count
        sum.smallBytes += small.bytes
        sum.mainCount += main.count
        sum.mainBytes += main.bytes
        sum.ghostCount += ghost.count
        sum.transferCount += transfers.count
        sum.evictions += evictions
        sum.evictedBytes += evictedBytes
    }
}
