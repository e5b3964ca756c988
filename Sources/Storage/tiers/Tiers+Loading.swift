internal import Glibc

// From the back store to memory.
extension Tiers {
    package enum Loading: Sendable {
        /// The back store has no response under the key that is not in memory.
        case nothing
        /// Responses came into memory: look them up again.
        case loaded
        /// The call would block: repeat it with `waits` on a thread of `BackStore.perform`.
        case wouldBlock
        /// The index of the back store is not complete: repeat the call when `BackStore.whenLoaded` calls.
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
        // All variants are made and charged before the first is stored: charging for one could evict another.
        var copies: [(copy: StoredCopy, record: StoredRecord)] = []
        for place in places {
            do throws(BackStoreReadError) {
                let copy = try backStore.readHead(place, waits: waits)
                // The response has another key with the same hash.
                guard copy.keyBytes == keyBytes else { continue }
                if let record = try record(of: copy, key, from: backStore) { copies.append((copy, record)) }
            } catch {
                switch error {
                case .wouldBlock: return .wouldBlock
                // The back store drops what it cannot read, and logs it.
                case .damaged, .failed: continue
                }
            }
        }
        var result = Loading.nothing
        for (copy, record) in copies {
            // The condition is evaluated under the lock of the shard: a thread that removes the response later finds it in memory.
            if memory.shelves.adopt(record, isValid: { backStore.contains(copy.id, key, at: copy.place) }) {
                result = .loaded
            }
        }
        return result
    }

    /// Nil if memory has the response already, or if its head cannot be decoded.
    private func record(
        of copy: StoredCopy, _ key: StorageKey, from backStore: any BackStore
    ) throws(BackStoreReadError) -> StoredRecord? {
        let known = unsafe copy.keyBytes.withUnsafeBytes { unsafe memory.lookup(key, $0) }
        if known.contains(where: { $0.storedID == copy.id }) { return nil }
        let body = try body(of: copy, key, on: backStore)
        guard let format, let stored = format.record(key, copy, body) else {
            // This version cannot decode the head.
            backStore.remove(copy.id, key, copy.keyBytes)
            return nil
        }
        let record = isDoubted(copy.id) ? format.doubted(stored) : stored
        record.storedID = copy.id
        memory.shelves.chargeAnyway(record)
        return record
    }

    private func body(
        of copy: StoredCopy, _ key: StorageKey, on backStore: any BackStore
    ) throws(BackStoreReadError) -> Body {
        switch copy.place.form {
        case .whole:
            let body = Body(WholeCopy(copy, key, on: backStore), shelves: memory.shelves)
            body.chargeObjectAnyway()
            return body
        case .blocks:
            return try largeBodies.body(copy.id) { () throws(BackStoreReadError) in
                Body(try backStore.openBlocks(at: copy.place, key), shelves: memory.shelves)
            }
        }
    }

    /// Removes a response whose body could not be read.
    ///
    /// It always leaves memory: if it was only moved, it can be loaded again. It leaves the back store only if the copy is damaged or
    /// the medium cannot read it (`EIO`). Other errors, such as a lack of descriptors or memory, say nothing about the copy.
    package func removeUnreadable(_ record: StoredRecord, after read: BackStoreRead) {
        guard let whole = record.body.whole, read != .done, read != .wouldBlock else { return }
        memory.forget(record)
        guard read == .damaged || read == .failed(errno: EIO), whole.isCurrent else { return }
        whole.backStore.removeDamaged(whole.id, whole.key, record.keyBytes)
    }

    /// Puts a response in the place of one whose body cannot be read to its end: its body is in memory and lacks what cannot be read. All who read
    /// the old body go on with it, and have the rest fetched (`Body.claim`). Does not block: what would have to be waited for is missing as well.
    ///
    /// A damaged copy leaves the back store. If the response has left memory meanwhile, or the back store has moved or removed it, the new one is
    /// for these readers alone and is not stored.
    /// - Parameter make: makes the same response from another body.
    /// - Returns: nil if the body is not on the back store in one piece, or memory has no room.
    package func rescue(_ record: StoredRecord, _ make: (StoredRecord, Body) -> StoredRecord) -> StoredRecord? {
        let old = record.body
        guard let whole = old.whole, !old.isResident else { return nil }
        if let rescued = old.rescued { return rescued }
        guard let body = memory.makeSparseBody(length: old.length, heldMax: old.length) else { return nil }
        body.fill(from: whole)
        body.home = record.key
        let current = variants(of: record).first { $0.body === old }
        let rescued = make(current ?? record, body)
        let first = old.setRescued(rescued)
        guard first === rescued else { return first }
        let isDamaged = whole.isCurrent
        if !isDamaged || current.map({ memory.replace($0, with: rescued) }) != true {
            rescued.revoke()
            if let current { memory.remove(current) }
        }
        if isDamaged { whole.backStore.removeDamaged(whole.id, whole.key, record.keyBytes) }
        return rescued
    }

    /// Removes the responses from the back store that `record` replaces. Memory may have forgotten them, and they would come back when
    /// `record` is evicted.
    func removeOlder(than record: StoredRecord) {
        guard let backStore else { return }
        let newest = backStore.newestID
        guard backStore.isLoaded else {
            return backStore.whenLoaded { [self] in
                let isAccepted = backStore.perform { [self] in
                    removeOlder(than: record, through: newest, on: backStore, waits: true)
                }
                // Better to remove too much than to leave an older response.
                if !isAccepted { _ = backStore.removeAll(record.key, record.keyBytes) }
            }
        }
        removeOlder(than: record, through: newest, on: backStore, waits: false)
    }

    /// - Parameter newest: responses with a higher number are newer than `record`, and stay.
    private func removeOlder(
        than record: StoredRecord, through newest: StoredID, on backStore: any BackStore, waits: Bool
    ) {
        // The order matters. A response that is written between the first two calls is found by the second. Memory is asked last.
        let waiting = backStore.waiting(record.key)
        for _ in 0..<Self.movesMax {
            let places: [StoredPlace] = if case .found(let places) = backStore.find(record.key) { places } else { [] }
            if waiting.isEmpty && places.isEmpty { return }
            let known = variants(of: record).compactMap(\.storedID) + (record.storedID.map { [$0] } ?? [])
            for response in waiting where response.id <= newest && !known.contains(response.id) {
                remove(StoredCopy(waiting: response), ifReplacedBy: record, on: backStore)
            }
            var isMoved = false
            for place in places where !known.contains(where: { backStore.contains($0, record.key, at: place) }) {
                switch remove(at: place, ifReplacedBy: record, through: newest, on: backStore, waits: waits) {
                case .done: break
                case .gone: isMoved = true
                case .wouldBlock:
                    // Meanwhile the older response is not served, as long as memory has the new one.
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
        // Better to remove too much than to leave an older response.
        _ = backStore.removeAll(record.key, record.keyBytes)
    }

    /// How often the look-up is repeated because the back store moved responses in between.
    private static let movesMax = 8

    private enum Look { case done, gone, wouldBlock }

    private func remove(
        at place: StoredPlace, ifReplacedBy record: StoredRecord, through newest: StoredID,
        on backStore: any BackStore, waits: Bool
    ) -> Look {
        do throws(BackStoreReadError) {
            let copy = try backStore.readHead(place, waits: waits)
            if copy.id <= newest { remove(copy, ifReplacedBy: record, on: backStore) }
            return .done
        } catch {
            switch error {
            case .wouldBlock: return .wouldBlock
            // The response was not moved, so its head is damaged. Nobody can be served from it, and the back store drops it and counts
            // the damage. Removed from here, it would not be counted.
            case .damaged where has(place, record.key, backStore): return .done
            case .damaged, .failed: return .gone
            }
        }
    }

    /// Removes a response that was stored or accepted earlier, if `record` replaces it or if its head cannot be decoded.
    private func remove(_ copy: StoredCopy, ifReplacedBy record: StoredRecord, on backStore: any BackStore) {
        guard copy.keyBytes == record.keyBytes else { return }
        // Only heads are compared. Nobody reads this body, so its form does not matter.
        let body = Body(WholeCopy(copy, record.key, on: backStore), shelves: memory.shelves)
        let older = format?.record(record.key, copy, body)
        if older.map({ record.replaces($0) }) ?? true {
            backStore.remove(copy.id, record.key, record.keyBytes)
        }
    }

    /// Whether the back store still finds a response at this place.
    private func has(_ place: StoredPlace, _ key: StorageKey, _ backStore: any BackStore) -> Bool {
        if case .found(let places) = backStore.find(key) { return places.contains(place) }
        return false
    }

    /// Whether the body of a response on the back store should come into memory: the response is used often, and more often than
    /// the one that would be evicted for it (`Shard.admits`).
    package func isWorthMemory(_ record: StoredRecord) -> Bool { memory.shelves.admits(record) }
}

extension StoredCopy {
    /// A response that waits to be written and so has no place yet.
    fileprivate init(waiting response: ResponseToStore) {
        let nowhere = StoredPlace(form: .whole, bodyBytes: 0, bytes: 0, location: StoredPlace.Location(0, 0))
        self.init(
            id: response.id, place: nowhere, keyBytes: response.keyBytes, attributes: response.form.attributes,
            head: response.form.head, checksums: [])
    }
}
