/// One cache: the memory tier, and a back store behind it where there is one.
///
/// The memory tier is a cache of the back store (docs/decisions/0013). A stored response is written through when it is
/// whole; one that only the back store has comes into memory with its head, and its body is read when it is wanted.
/// Removals go to the back store first, so that nothing that was removed is read from there again.
package final class Tiers: Sendable {
    package let memory: MemoryTier
    package let backStore: (any BackStore)?
    let format: ResponseFormat?
    /// Large bodies that are in use, so that two requests for one share it.
    let largeBodies = LargeBodies()
    private let refusedOnce = SeenKeys()

    package init(memory: MemoryTier, backStore: (any BackStore)? = nil, format: ResponseFormat? = nil) {
        precondition(backStore == nil || format != nil, "what goes to the back store has a format")
        self.memory = memory
        self.backStore = backStore
        self.format = format
    }

    /// Bytes of the longest body that is stored in one piece; longer ones are stored in blocks.
    package static let wholeBytesMax = 1 << 20

    // MARK: as the memory tier

    package func lookup(_ key: StorageKey, _ keyBytes: UnsafeRawBufferPointer) -> [StoredRecord] {
        unsafe memory.lookup(key, keyBytes)
    }

    /// Counts one use of a stored response.
    package func touch(_ record: StoredRecord) {
        // On the path of a hit: of a response that is used often, its own count is all that is read here.
        if record.frequency < StoredRecord.usesMax, let id = record.storedID {
            backStore?.countUse(of: id, record.key)
        }
        memory.touch(record)
    }

    /// As `MemoryTier.insert`; the responses that it replaces leave the back store, too.
    package func insert(_ record: StoredRecord) -> Bool {
        guard let displaced = memory.shelves.insert(record) else { return false }
        for other in displaced { removeFromBackStore(other) }
        removeOlder(than: record)
        return true
    }

    /// As `MemoryTier.replace`; on the back store the response gets its new head.
    package func replace(_ old: StoredRecord, with new: StoredRecord) -> Bool {
        new.storedID = old.storedID
        guard memory.replace(old, with: new) else { return false }
        // Between those two lines another thread may have written the old one, and given it a number.
        if let id = old.storedID, new.storedID != id, !new.takeStoredID(id) { removeFromBackStore(old) }
        if let backStore, let id = new.storedID, let form = format?.form(new) {
            backStore.renew(ResponseToStore(id: id, key: new.key, keyBytes: new.keyBytes, form: form))
        }
        return true
    }

    package func remove(_ record: StoredRecord) {
        // The back store first, so that nobody brings the response back into memory from there.
        removeFromBackStore(record)
        memory.remove(record)
        // Another thread may have written it before it left memory.
        removeFromBackStore(record)
        // The same response may be in memory again: under a new head, or evicted and read from the back store.
        for other in variants(of: record) where other !== record && isSame(other, record) {
            removeFromBackStore(other)
            memory.remove(other)
        }
    }

    func variants(of record: StoredRecord) -> [StoredRecord] {
        unsafe record.keyBytes.withUnsafeBytes { unsafe memory.lookup(record.key, $0) }
    }

    private func isSame(_ one: StoredRecord, _ other: StoredRecord) -> Bool {
        one.body === other.body || one.storedID != nil && one.storedID == other.storedID
    }

    func removeFromBackStore(_ record: StoredRecord) {
        guard let backStore, let id = record.storedID else { return }
        backStore.remove(id, record.key, record.keyBytes)
    }

    /// Removes all variants of a key; returns how many.
    package func invalidate(_ key: StorageKey, _ keyBytes: [UInt8]) -> Int {
        let onBackStore = backStore?.removeAll(key, keyBytes) ?? 0
        let inMemory = unsafe keyBytes.withUnsafeBytes { unsafe memory.invalidate(key, $0) }
        // What another thread wrote in between was not yet marked as removed.
        let late = backStore?.removeAll(key, keyBytes) ?? 0
        return max(onBackStore + late, inMemory)
    }

    package func makeBody(expectedLength: Int?, lengthMax: Int? = nil) -> Body? {
        memory.makeBody(expectedLength: expectedLength, lengthMax: lengthMax)
    }

    package func makeSparseBody(length: Int, heldMax: Int? = nil) -> Body? {
        memory.makeSparseBody(length: length, heldMax: heldMax)
    }

    /// As `MemoryTier.makeWindow`.
    package func makeWindow(expectedLength: Int?, window: Int) -> Body {
        memory.makeWindow(expectedLength: expectedLength, window: window)
    }

    package func lead(
        _ key: StorageKey, _ keyBytes: UnsafeRawBufferPointer, knownNewest: StoredRecord?
    ) -> Leadership {
        unsafe memory.lead(key, keyBytes, knownNewest: knownNewest)
    }

    package var invalidations: Int { memory.invalidations }

    /// Empties the memory; what is on the back store stays.
    package func clearMemory() { memory.removeAll() }
}

// MARK: To the back store

extension Tiers {
    /// Writes a complete response to the back store soon, unless it is there or is for this process alone. What the back
    /// store refuses now is not written later; it counts its refusals.
    package func persist(_ record: StoredRecord) {
        guard let backStore, backStore.isOn, record.storedID == nil, !record.isRevoked,
            record.body.state == .complete, record.body.isResident, var form = format?.form(record)
        else { return }
        let id = backStore.nextID()
        // Of two threads that serve it at once, the one that gives it its number writes it.
        guard record.takeStoredID(id) else { return }
        var outcome = write(record, id, form, to: backStore)
        if outcome == .pinnedQuotaFull {
            // Kept as long as there is room: the back store has counted it and told the operator.
            form.attributes.retention = .permanent
            outcome = write(record, id, form, to: backStore)
        }
        if outcome != .accepted { record.storedID = nil }
        // Whoever removed it meanwhile may not have seen its number.
        if record.isRevoked { backStore.remove(id, record.key, record.keyBytes) }
    }

    /// Whether a response under the key was refused before: for what is stored at its second request only, and is too
    /// large to wait in memory for that.
    package func wasSeenBefore(_ key: StorageKey) -> Bool { refusedOnce.hasSeen(key) }

    private func write(
        _ record: StoredRecord, _ id: StoredID, _ form: ResponseForm, to backStore: any BackStore
    ) -> StoringOutcome {
        let response = ResponseToStore(id: id, key: record.key, keyBytes: record.keyBytes, form: form)
        let length = record.body.length
        guard length > Self.wholeBytesMax else { return backStore.store(response, body: record.body) }
        // It became large in memory, because its length was not known.
        switch backStore.makeBlocks(for: response, length: length) {
        case .failure(let refusal): return refusal.outcome
        case .success(let blocks):
            for block in 0..<(length + Body.blockBytes - 1) / Body.blockBytes {
                blocks.write(block: block, of: record.body) { _ in }
            }
            return .accepted
        }
    }

    /// Makes a stored response with a large body of which nothing is there yet. Its blocks go to the back store as they
    /// become whole.
    /// - Parameters:
    ///   - length: of the body, more than `wholeBytesMax`.
    ///   - make: the response over the body.
    /// - Returns: nil: the back store does not accept it.
    package func makeLargeRecord(length: Int, _ make: (Body) -> StoredRecord) -> StoredRecord? {
        guard let backStore, length > Self.wholeBytesMax,
            let body = memory.makeSparseBody(length: length, heldMax: length)
        else { return nil }
        let record = make(body)
        guard var form = format?.form(record) else { return nil }
        let id = backStore.nextID()
        func blocks() -> Result<any BodyBlocks, StoringRefusal> {
            backStore.makeBlocks(
                for: ResponseToStore(id: id, key: record.key, keyBytes: record.keyBytes, form: form), length: length)
        }
        var made = blocks()
        if case .failure(let refusal) = made, refusal.outcome == .pinnedQuotaFull {
            form.attributes.retention = .permanent
            made = blocks()
        }
        guard case .success(let blocks) = made else { return nil }
        body.attach(LargeCopy(blocks))
        largeBodies.add(body, id)
        record.storedID = id
        return record
    }
}
