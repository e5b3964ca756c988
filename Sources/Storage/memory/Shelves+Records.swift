internal import Synchronization

// Operations on stored responses and transfers, each under the lock of one shard.
extension Shelves {
    @inline(__always)
    func lookup(_ key: StorageKey, _ keyBytes: UnsafeRawBufferPointer) -> [StoredRecord] {
        read(shardIndex(key)) { shard in unsafe shard.table.variants(key, keyBytes) ?? [] }
    }

    @inline(__always)
    func newest(_ key: StorageKey, _ keyBytes: UnsafeRawBufferPointer) -> StoredRecord? {
        read(shardIndex(key)) { shard in unsafe shard.table.newest(key, keyBytes) }
    }

    /// - Returns: the responses that were removed for it. Nil if the response was not stored.
    func insert(_ record: StoredRecord) -> [StoredRecord]? {
        let state = record.body.state
        guard state != .failed, state != .moved, !record.body.isWindowed, chargeOnce(record) else { return nil }
        switch state {
        case .growing: record.body.home = record.key
        case .partial: if record.body.home == nil { record.body.home = record.key }
        case .complete, .failed, .moved: break
        }
        return change(shardIndex(record.key)) { shard, doomed in
            shard.insert(record, variantsMax: variantsPerKeyMax, into: &doomed)
        }
    }

    /// Stores a response unless memory has one that replaces it. Returns false, too, if the budget has no room for a response that was not charged before
    /// (`chargeAnyway`).
    /// - Parameter isValid: called under the lock. If it returns false, the response is not stored.
    func adopt(_ record: StoredRecord, isValid: () -> Bool) -> Bool {
        guard chargeOnce(record) else { return false }
        record.body.home = record.key
        return change(shardIndex(record.key)) { shard, doomed in
            isValid() && shard.adopt(record, variantsMax: variantsPerKeyMax, into: &doomed)
        }
    }

    func replace(_ old: StoredRecord, with new: StoredRecord) -> Bool {
        precondition(old.key == new.key && old.keyBytes == new.keyBytes, "a response is replaced under its own key")
        guard chargeOnce(new) else { return false }
        return change(shardIndex(new.key)) { shard, doomed in shard.replace(old, with: new, into: &doomed) }
    }

    func remove(_ record: StoredRecord) {
        change(shardIndex(record.key)) { shard, doomed in _ = shard.remove(record, into: &doomed) }
    }

    func forget(_ record: StoredRecord) {
        change(shardIndex(record.key)) { shard, doomed in shard.forget(record, into: &doomed) }
    }

    func invalidate(_ key: StorageKey, _ keyBytes: UnsafeRawBufferPointer) -> Int {
        invalidations.add(1, ordering: .releasing)
        return unsafe invalidateNow(key, keyBytes)
    }

    private func invalidateNow(_ key: StorageKey, _ keyBytes: UnsafeRawBufferPointer) -> Int {
        change(shardIndex(key)) { shard, doomed in
            // Later requests lead a transfer of their own.
            if let running = shard.transfers.remove(key) {
                running.isOutdated.store(true, ordering: .releasing)
            }
            return unsafe shard.removeAll(key, keyBytes, into: &doomed)
        }
    }

    /// Updates the weight of the response with this body, after the body has ended.
    func reweigh(_ body: Body, _ key: StorageKey) {
        change(shardIndex(key)) { shard, _ in
            if let record = shard.table.record(carrying: body, key) { shard.reweigh(record) }
        }
    }

    func removeRecord(carrying body: Body, _ key: StorageKey) {
        change(shardIndex(key)) { shard, doomed in
            if let record = shard.table.record(carrying: body, key) { _ = shard.remove(record, into: &doomed) }
        }
    }

    /// The stored responses of one shard, for use without its lock.
    func records(inShard index: Int) -> [StoredRecord] {
        read(index) { shard in
            var records: [StoredRecord] = []
            records.reserveCapacity(shard.recordCount)
            shard.table.forEach { records.append(contentsOf: $0) }
            return records
        }
    }

    private func chargeOnce(_ record: StoredRecord) -> Bool {
        guard record.charge == 0 else { return true }
        let bytes = record.footprint
        precondition(bytes > 0, "an object takes memory")
        guard charge(bytes) else { return false }
        record.charge = bytes
        return true
    }

    /// Charges a response that the back store has, beyond the budget where nothing can be evicted for it: memory may hold nothing but bodies of transfers
    /// under way, and the response is served all the same. The next charge evicts it.
    func chargeAnyway(_ record: StoredRecord) {
        guard !chargeOnce(record) else { return }
        record.charge = record.footprint
        overdraw(record.charge)
    }
}

// MARK: Transfers under way

extension Shelves {
    func lead(
        _ key: StorageKey, _ keyBytes: [UInt8], knownNewest: StoredRecord?, askedAt now: Duration?, mayLead: Bool
    ) -> Leadership {
        read(shardIndex(key)) { shard in
            let newest = unsafe keyBytes.withUnsafeBytes { unsafe shard.table.variants(key, $0)?.first }
            guard newest === knownNewest else { return .lookAgain }
            if let now, shard.keptApart.contains(key, now: now) { return .keptApart }
            let running = shard.transfers[key]
            // A request for another key with the same hash leads, and nobody can join it.
            if let running, running.keyBytes == keyBytes {
                return .follow(Transfer(running, self, isLeader: false))
            }
            guard mayLead else { return .nobodyLeads }
            let state = TransferState(key: key, keyBytes: keyBytes)
            if running == nil { shard.transfers.insert(state) }
            return .lead(Transfer(state, self, isLeader: true))
        }
    }

    /// Closes the transfers under way to further followers, and marks them so that their responses are not stored.
    func outdateTransfers() {
        invalidations.add(1, ordering: .releasing)
        for index in 0..<shardCount {
            read(index) { shard in
                shard.transfers.removeAll { $0.isOutdated.store(true, ordering: .releasing) }
            }
        }
    }

    /// Removes a transfer from its shard, and sets its outcome. Returns the wakes to call.
    func settle(_ transfer: TransferState, _ outcome: Transfer.Outcome, _ sharing: Transfer.Sharing) -> [Wake] {
        read(shardIndex(transfer.key)) { shard in
            shard.transfers.remove(transfer)
            switch sharing {
            case .unknown: break
            case .proven: shard.keptApart.remove(transfer.key)
            case .refuted(let end): shard.keptApart.insert(transfer.key, until: end)
            }
            return transfer.settle(outcome)
        }
    }
}
