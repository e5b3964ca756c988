internal import Synchronization

/// The memory tier: stored responses by key, within a strict budget. It is divided into shards, each with a lock that is held only
/// briefly, and evicts by S3-FIFO (`Shard`). All workers use it at once. It does not know HTTP: keys and heads are bytes.
///
/// Everything counts against the budget: the pages of bodies with the size that malloc(3) gives them, heads, keys, objects, their
/// share of the tables, and responses that were evicted and are still being sent.
package final class MemoryTier: Sendable {
    let shelves: Shelves

    /// - Parameters:
    ///   - budget: in bytes.
    ///   - shards: a power of two.
    ///   - objectMax: the length of the longest body that is stored, in bytes.
    ///   - variantsPerKeyMax: the most variants of one key. Beyond it the oldest are removed.
    package init(budget: Int, shards: Int = 64, objectMax: Int, variantsPerKeyMax: Int) {
        shelves = Shelves(
            budget: budget, shards: shards, objectMax: objectMax, variantsPerKeyMax: variantsPerKeyMax)
    }

    deinit { removeAll() }

    /// Returns all variants that are stored under the key, newest first. Compares the bytes of the key in full and allocates nothing.
    /// It does not count as a use: call `touch` for the response that is served.
    package func lookup(_ key: StorageKey, _ keyBytes: UnsafeRawBufferPointer) -> [StoredRecord] {
        unsafe shelves.lookup(key, keyBytes)
    }

    /// Returns the first of the variants that `lookup` returns, in less time.
    package func newest(_ key: StorageKey, _ keyBytes: UnsafeRawBufferPointer) -> StoredRecord? {
        unsafe shelves.newest(key, keyBytes)
    }

    /// Counts one use of a stored response.
    package func touch(_ record: StoredRecord) { record.markUsed() }

    /// Makes a response visible, and replaces the same variant. Its body may still be growing; then only the thread of its writer may
    /// call this. Returns false, and stores nothing, if the body failed or became a window, or if the budget has no space.
    package func insert(_ record: StoredRecord) -> Bool { shelves.insert(record) != nil }

    /// Replaces `old` by a response with a freshened head and the same body. Returns false, and changes nothing, if `old` is no longer
    /// stored or the budget has no space.
    package func replace(_ old: StoredRecord, with new: StoredRecord) -> Bool { shelves.replace(old, with: new) }

    /// Removes a response. Does nothing if it is not stored.
    package func remove(_ record: StoredRecord) { shelves.remove(record) }

    /// Removes a response whose body the back store has lost. Its key is remembered like that of one that was evicted.
    func forget(_ record: StoredRecord) { shelves.forget(record) }

    /// Removes all variants of a key. Returns how many there were.
    package func invalidate(_ key: StorageKey, _ keyBytes: UnsafeRawBufferPointer) -> Int {
        unsafe shelves.invalidate(key, keyBytes)
    }

    /// Makes a body to be stored. Returns nil if it is longer than `lengthMax`, or the budget has no space.
    /// - Parameters:
    ///   - expectedLength: the length in bytes. Nil if it is not known.
    ///   - lengthMax: the most bytes of the body. Nil stands for `objectMax`.
    package func makeBody(expectedLength: Int?, lengthMax: Int? = nil) -> Body? {
        if let length = expectedLength, length < 0 || length > lengthMax ?? shelves.objectMax { return nil }
        let body = Body(expectedLength: expectedLength, lengthMax: lengthMax, shelves: shelves)
        return body.chargeObject() ? body : nil
    }

    /// Makes a partial body, in which any range may be present (`Body.claim`). Only present bytes count: the body may be longer than
    /// `objectMax`, but never holds more than that. Returns nil if it is longer than 1 TiB, or the budget has no space.
    /// - Parameter heldMax: the most bytes that it holds, instead of `objectMax`.
    package func makeSparseBody(length: Int, heldMax: Int? = nil) -> Body? {
        guard (0...BodyLayout.sparseLengthMax).contains(length) else { return nil }
        let body = Body(expectedLength: length, isSparse: true, lengthMax: heldMax, shelves: shelves)
        guard body.chargeObject() else { return nil }
        if length == 0 { return body.finish() ? body : nil }
        return body.beginPartial() ? body : nil
    }

    /// Makes a growing body of unknown length for a back store (Body+Moving.swift). Returns nil if the budget has no room for the
    /// object.
    func makeLargeBody(_ copy: LargeCopy, lengthMax: Int) -> Body? {
        let body = Body(expectedLength: nil, isSparse: true, lengthMax: lengthMax, shelves: shelves)
        guard body.chargeObject() else { return nil }
        body.attach(copy)
        return body
    }

    /// Makes a body that is only passed on. It is never stored and never refused, evicts nothing, and holds the bytes that its only
    /// reader has not taken yet. One thread writes and reads it (Body+Passing.swift).
    /// - Parameters:
    ///   - expectedLength: any length. Nil if it is not known.
    ///   - window: how many bytes the writer may be ahead of the reader before it has to pause.
    package func makeWindow(expectedLength: Int?, window: Int) -> Body {
        precondition(window > 0 && expectedLength ?? 0 >= 0, "a window has room, and a body has a length")
        let body = Body(expectedLength: expectedLength, shelves: shelves)
        body.chargeObjectAnyway()
        body.beginPassing(bytesMax: window)
        return body
    }

    /// The budget in bytes.
    var budget: Int { shelves.limit.load(ordering: .relaxed) }

    /// Sets the budget in bytes, and evicts until it is kept.
    package func setBudget(_ budget: Int) {
        precondition(budget >= 0, "a budget is not negative")
        shelves.limit.store(budget, ordering: .relaxed)
        _ = shelves.charge(0)
    }

    /// Decides who fetches a response that is not stored. The decision is made under the lock of the shard, so that one request leads
    /// and all others follow.
    /// - Parameters:
    ///   - knownNewest: the first response that `lookup` returned. Nil if it returned none.
    ///   - now: the time since the start of the process, if the caller can do without a transfer (`Leadership.keptApart`). Nil if not.
    ///   - mayLead: whether the caller begins a transfer if none is under way.
    package func lead(
        _ key: StorageKey, _ keyBytes: [UInt8], knownNewest: StoredRecord?, askedAt now: Duration? = nil,
        mayLead: Bool = true
    ) -> Leadership {
        shelves.lead(key, keyBytes, knownNewest: knownNewest, askedAt: now, mayLead: mayLead)
    }
}

// MARK: All stored responses

extension MemoryTier {
    /// Removes the responses for which `condition` holds. Blocks, and pauses now and then, so that a purge of many delays nobody. Returns how many
    /// there were, and how many bytes they had. The condition is evaluated without a lock, shard by shard: responses that are inserted meanwhile may
    /// be missed, but not those that are freshened meanwhile.
    /// - Parameter free: gets what was removed, in portions, and drops it, perhaps on other threads (`StoredRecord.allocator`).
    package func purge(
        dryRun: Bool, free: (consuming [[StoredRecord]]) -> Void = { _ in }, where condition: (StoredRecord) -> Bool
    ) -> (records: Int, bytes: Int) {
        var purged = (records: 0, bytes: 0)
        for index in 0..<shelves.shardCount {
            while purge(shard: index, dryRun: dryRun, &purged, free, where: condition) {}
        }
        return purged
    }

    /// - Returns: whether a matching response left the shard in between. Then look again, because the same response may be stored
    ///   with a new head.
    private func purge(
        shard index: Int, dryRun: Bool, _ purged: inout (records: Int, bytes: Int),
        _ free: (consuming [[StoredRecord]]) -> Void, where condition: (StoredRecord) -> Bool
    ) -> Bool {
        var matching = shelves.records(inShard: index).filter(condition)
        guard !matching.isEmpty else { return false }
        let count = matching.count
        var found = (records: 0, bytes: 0)
        while !matching.isEmpty {
            if matching.count < count { Shelves.letOthersGoOn() }
            let start = max(0, matching.count - Self.purgedAtOnce)
            var doomed = Doomed()
            let (records, bytes) = shelves.change(index, &doomed) { shard, doomed in
                var found = (records: 0, bytes: 0)
                for record in matching[start...] where record.place != .nowhere {
                    found = (found.records + 1, found.bytes + record.weight)
                    if !dryRun { _ = shard.remove(record, into: &doomed) }
                }
                return found
            }
            found = (found.records + records, found.bytes + bytes)
            matching.removeLast(matching.count - start)
            free(doomed.takeResponses())
            doomed.destroy()
        }
        purged = (purged.records + found.records, purged.bytes + found.bytes)
        return !dryRun && found.records < count
    }

    /// So many are removed under one lock of their shard, and freed at once.
    package static let purgedAtOnce = 256

    /// The number of invalidations and purges so far. If it changed since a request was sent, its response may be older than the last
    /// of them. Meant for fetches that lead no transfer; a transfer has exact knowledge (`Transfer.isOutdated`).
    package var invalidations: Int { shelves.invalidations.load(ordering: .acquiring) }

    /// To be called before a purge: responses of transfers under way are then neither stored nor shared with later requests.
    package func outdateTransfers() { shelves.outdateTransfers() }

    package func removeAll() {
        _ = purge(dryRun: false) { _ in true }
        while shelves.dropSparePage() {}
    }

    /// Visits every stored response, shard by shard, without holding a lock.
    package func forEach(_ visit: (StoredRecord) -> Void) {
        for index in 0..<shelves.shardCount { shelves.records(inShard: index).forEach(visit) }
    }

    /// Lists stored responses, one part of the tier at a time, so that the caller holds few at once. A part may be empty. Responses that
    /// are inserted or removed meanwhile may be missed.
    /// - Parameter cursor: where the previous part ended. Nil begins the list.
    /// - Returns: the responses, and where the next part begins. `next` is nil for the last part.
    package func page(after cursor: RecordCursor?) -> (records: [StoredRecord], next: RecordCursor?) {
        let index = cursor?.shard ?? 0
        precondition(index < shelves.shardCount, "a cursor is used with the tier that gave it")
        return (shelves.records(inShard: index), index + 1 < shelves.shardCount ? RecordCursor(shard: index + 1) : nil)
    }

    package var statistics: MemoryTierStatistics {
        var sum = MemoryTierStatistics()
        for index in 0..<shelves.shardCount { shelves.read(index) { $0.add(to: &sum) } }
        sum.spareBytes = shelves.spare.byteCount
        sum.budgetBytes = shelves.limit.load(ordering: .relaxed)
        sum.usedBytes = shelves.charged.load(ordering: .relaxed) - sum.spareBytes
        sum.refused = shelves.refused.load(ordering: .relaxed)
        sum.overdrawn = shelves.overdrawn.load(ordering: .relaxed)
        return sum
    }
}

/// A position between two parts of a listing (`MemoryTier.page`). Valid only for the tier that returned it.
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
