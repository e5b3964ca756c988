internal import Glibc

/// From the back store to memory.
extension Tiers {
    package enum Loading: Sendable {
        /// The back store has nothing under the key that is not in memory.
        case nothing
        /// Responses came into memory: look again.
        case loaded
        /// It would block: call again, with `waits`, on a thread of `BackStore.perform`.
        case wouldBlock
        /// The back store is not loaded yet: call again when `BackStore.whenLoaded` says so.
        case notReady
    }

    /// Brings all variants of a key from the back store into memory, without their bodies.
    package func load(_ key: StorageKey, _ keyBytes: [UInt8], waits: Bool) -> Loading {
        guard let backStore else { return .nothing }
        let places: [StoredPlace]
        switch backStore.find(key) {
        case .nothing: return .nothing
        case .loading: return .notReady
        case .found(let found): places = found
        }
        var result = Loading.nothing
        for place in places {
            do throws(BackStoreReadError) {
                let copy = try backStore.readHead(place, waits: waits)
                // Another key with the same hash.
                guard copy.keyBytes == keyBytes else { continue }
                if try adopt(copy, key, from: backStore) { result = .loaded }
            } catch {
                switch error {
                case .wouldBlock: return .wouldBlock
                // The back store drops what it cannot read, and logs it.
                case .damaged, .failed: continue
                }
            }
        }
        return result
    }

    private func adopt(
        _ copy: StoredCopy, _ key: StorageKey, from backStore: any BackStore
    ) throws(BackStoreReadError) -> Bool {
        let known = unsafe copy.keyBytes.withUnsafeBytes { unsafe memory.lookup(key, $0) }
        if known.contains(where: { $0.storedID == copy.id }) { return false }
        guard let body = try body(of: copy, key, on: backStore) else { return false }
        guard let record = format?.record(key, copy, body) else {
            // This version has no use for it.
            backStore.remove(copy.id, key, copy.keyBytes)
            return false
        }
        record.storedID = copy.id
        // Asked under the shard's lock: what is removed from the back store from here on is removed from memory as well.
        return memory.shelves.adopt(record) { backStore.contains(copy.id, key, at: copy.place) }
    }

    private func body(
        of copy: StoredCopy, _ key: StorageKey, on backStore: any BackStore
    ) throws(BackStoreReadError) -> Body? {
        switch copy.place.form {
        case .whole:
            let body = Body(WholeCopy(copy, key, on: backStore), shelves: memory.shelves)
            return body.chargeObject() ? body : nil
        case .blocks:
            return try largeBodies.body(copy.id) { () throws(BackStoreReadError) in
                Body(try backStore.openBlocks(at: copy.place, key), shelves: memory.shelves)
            }
        }
    }

    /// Removes a response whose body could not be read. From memory always: where the response has been moved it can be
    /// loaded again. From the back store only where the copy itself is bad, damaged or unreadable by the medium; a lack of
    /// descriptors or of memory is not the response's fault.
    package func removeUnreadable(_ record: StoredRecord, after read: BackStoreRead) {
        guard let whole = record.body.whole, read != .done, read != .wouldBlock else { return }
        memory.remove(record)
        guard read == .damaged || read == .failed(errno: EIO), whole.isCurrent else { return }
        whole.backStore.removeDamaged(whole.id, whole.key, record.keyBytes)
    }

    /// Removes from the back store what a new response replaces there. Memory may have forgotten the older one: it would
    /// come back when the new one goes. Of what waits to be written nothing but the key is known: it is not written at all.
    func removeOlder(than record: StoredRecord) {
        guard let backStore else { return }
        let newest = backStore.newestID
        guard backStore.isLoaded else {
            return backStore.whenLoaded { [self] in
                let isAccepted = backStore.perform { [self] in
                    removeOlder(than: record, through: newest, on: backStore, waits: true)
                }
                // Too much rather than what is older.
                if !isAccepted { _ = backStore.removeAll(record.key, record.keyBytes) }
            }
        }
        removeOlder(than: record, through: newest, on: backStore, waits: false)
    }

    /// - Parameter newest: responses up to this one may be older; those that come later are not.
    private func removeOlder(
        than record: StoredRecord, through newest: StoredID, on backStore: any BackStore, waits: Bool
    ) {
        // The order matters: what is written meanwhile is found at the second look, and what memory has is asked last.
        let waiting = backStore.waiting(record.key)
        for _ in 0..<Self.movesMax {
            let places: [StoredPlace] = if case .found(let places) = backStore.find(record.key) { places } else { [] }
            if waiting.isEmpty && places.isEmpty { return }
            let known = variants(of: record).compactMap(\.storedID) + (record.storedID.map { [$0] } ?? [])
            for id in waiting where id <= newest && !known.contains(id) {
                backStore.remove(id, record.key, record.keyBytes)
            }
            var isMoved = false
            for place in places where !known.contains(where: { backStore.contains($0, record.key, at: place) }) {
                switch remove(at: place, ifReplacedBy: record, through: newest, on: backStore, waits: waits) {
                case .done: break
                case .gone: isMoved = true
                case .wouldBlock:
                    // What is older is not served meanwhile, as long as memory has the new one.
                    if backStore.perform({ [self] in
                        removeOlder(than: record, through: newest, on: backStore, waits: true)
                    }) {
                        return
                    }
                    isMoved = true
                }
            }
            guard isMoved else { return }
        }
        // Too much rather than what is older.
        _ = backStore.removeAll(record.key, record.keyBytes)
    }

    /// How often responses may be moved on the back store while they are looked at.
    private static let movesMax = 8

    private enum Look { case done, gone, wouldBlock }

    private func remove(
        at place: StoredPlace, ifReplacedBy record: StoredRecord, through newest: StoredID,
        on backStore: any BackStore, waits: Bool
    ) -> Look {
        do throws(BackStoreReadError) {
            let copy = try backStore.readHead(place, waits: waits)
            guard copy.keyBytes == record.keyBytes, copy.id <= newest else { return .done }
            // Only the heads are compared: nobody reads this body, whatever its form.
            let body = Body(WholeCopy(copy, record.key, on: backStore), shelves: memory.shelves)
            let older = format?.record(record.key, copy, body)
            if older.map({ record.replaces($0) }) ?? true {
                backStore.remove(copy.id, record.key, record.keyBytes)
            }
            return .done
        } catch { return error == .wouldBlock ? .wouldBlock : .gone }
    }

    /// Whether the body of a response that is on the back store is to come into memory: it is used often, and more than
    /// what would be evicted for it (`Shard.admits`).
    package func isWorthMemory(_ record: StoredRecord) -> Bool {
        record.frequency > 1 && memory.shelves.admits(record)
    }
}
