package import Disk

/// What of a record goes to the disk beside its key and its body.
package struct DiskForm: Sendable {
    package var attributes: ObjectAttributes
    /// What a record is made of again.
    package var head: [UInt8]

    package init(attributes: ObjectAttributes, head: [UInt8]) {
        self.attributes = attributes
        self.head = head
    }
}

/// How the module above writes its records, and makes them again.
package struct RecordFormat: Sendable {
    /// nil: it never goes to the disk.
    package var form: @Sendable (StoredRecord) -> DiskForm?
    /// nil: the head can not be read; it is of another version, most likely.
    package var record: @Sendable (StorageKey, StoredHead, Body) -> StoredRecord?

    package init(
        form: @escaping @Sendable (StoredRecord) -> DiskForm?,
        record: @escaping @Sendable (StorageKey, StoredHead, Body) -> StoredRecord?
    ) {
        self.form = form
        self.record = record
    }
}

/// One cache: the memory tier, and the disk tier behind it where there is one.
///
/// The memory tier is a cache of the disk tier (docs/decisions/0013): what is stored goes through to the disk when it is whole,
/// and what is only on the disk comes into memory as a record whose body is read when it is wanted. Removals go to the disk first, so that
/// nothing is read from there that was removed.
package final class Tiers: Sendable {
    package let memory: MemoryTier
    package let disk: DiskStore?
    let format: RecordFormat?
    /// Bodies over large objects, so that two requests for one have the same body.
    let largeBodies = LargeBodies()
    private let turnedAway = SeenKeys()

    package init(memory: MemoryTier, disk: DiskStore? = nil, format: RecordFormat? = nil) {
        precondition(disk == nil || format != nil, "what goes to the disk has a format")
        self.memory = memory
        self.disk = disk
        self.format = format
    }

    /// Longest body that is stored in one piece, beside others.
    package static let packedLengthMax = 1 << 20

    // MARK: as the memory tier

    package func lookup(_ key: StorageKey, _ keyBytes: UnsafeRawBufferPointer) -> [StoredRecord] {
        unsafe memory.lookup(key, keyBytes)
    }

    /// Counts one use of a record.
    package func touch(_ record: StoredRecord) {
        // Where it is counted as used often there is nothing to tell.
        if let disk, record.frequency < StoredRecord.usesMax, let id = record.diskID {
            disk.touch(id, hash: record.key.folded)
        }
        memory.touch(record)
    }

    /// As `MemoryTier.insert`; those it takes the place of leave the disk, too.
    package func insert(_ record: StoredRecord) -> Bool {
        guard let displaced = memory.shelves.insert(record) else { return false }
        for other in displaced { removeFromDisk(other) }
        forgetOlder(than: record)
        return true
    }

    /// As `MemoryTier.replace`; on the disk the record gets its new head.
    package func replace(_ old: StoredRecord, with new: StoredRecord) -> Bool {
        // Another than this is being stored under that number: it has none of its own.
        new.diskID = old.diskID
        guard memory.replace(old, with: new) else { return false }
        // It may have been given to the disk meanwhile.
        if let id = old.diskID, new.diskID != id, !new.takeDiskID(id) { removeFromDisk(old) }
        if let disk, let id = new.diskID, let form = format?.form(new) {
            disk.renew(
                id, hash: new.key.folded, key: new.keyBytes, attributes: form.attributes, head: form.head)
        }
        return true
    }

    package func remove(_ record: StoredRecord) {
        // First, so that nobody brings it back into memory from there.
        removeFromDisk(record)
        memory.remove(record)
        // It may have been given to the disk meanwhile.
        removeFromDisk(record)
        // Or have got a new head, or have left memory and been read again: that is the same.
        for other in variants(of: record) where other !== record && isSame(other, record) {
            removeFromDisk(other)
            memory.remove(other)
        }
    }

    func variants(of record: StoredRecord) -> [StoredRecord] {
        unsafe record.keyBytes.withUnsafeBytes { unsafe memory.lookup(record.key, $0) }
    }

    private func isSame(_ one: StoredRecord, _ other: StoredRecord) -> Bool {
        one.body === other.body || one.diskID != nil && one.diskID == other.diskID
    }

    func removeFromDisk(_ record: StoredRecord) {
        guard let disk, let id = record.diskID else { return }
        disk.remove(id, hash: record.key.folded, key: record.keyBytes)
    }

    /// Takes all variants of a key out; returns how many.
    package func invalidate(_ key: StorageKey, _ keyBytes: [UInt8]) -> Int {
        let onDisk = disk?.removeAll(hash: key.folded, key: keyBytes) ?? 0
        let inMemory = unsafe keyBytes.withUnsafeBytes { unsafe memory.invalidate(key, $0) }
        // What was given to the disk in between did not know yet that it was taken out.
        let late = disk?.removeAll(hash: key.folded, key: keyBytes) ?? 0
        return max(onDisk + late, inMemory)
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

    /// Empties the memory; what is on the disk stays.
    package func clearMemory() { memory.removeAll() }
}

// MARK: To the disk

extension Tiers {
    /// Writes a complete record to the disk soon, if that is where it belongs and it is not there. What the disk does not take now is
    /// not written: it counts that.
    package func persist(_ record: StoredRecord) {
        guard let disk, disk.isOn, record.diskID == nil, !record.isRevoked, record.body.state == .complete,
            record.body.isResident, var form = format?.form(record)
        else { return }
        let id = disk.nextID()
        // Of two hits at once one writes it.
        guard record.takeDiskID(id) else { return }
        var outcome = write(record, id, form, disk)
        if outcome == .pinnedQuotaFull {
            // Kept as long as there is room: the store has counted and said that it was to be pinned.
            form.attributes.storageClass = .permanent
            outcome = write(record, id, form, disk)
        }
        if outcome != .taken { record.diskID = nil }
        // Who took it out meanwhile may not have seen its number.
        if record.isRevoked { disk.remove(id, hash: record.key.folded, key: record.keyBytes) }
    }

    /// Whether something under the key was turned away before: for what is admitted at the second time and too large to wait in memory
    /// for that.
    package func hasSeen(_ key: StorageKey) -> Bool { turnedAway.hasSeen(key) }

    private func write(
        _ record: StoredRecord, _ id: ObjectID, _ form: DiskForm, _ disk: DiskStore
    ) -> DiskStore.StoreOutcome {
        guard record.body.length <= Self.packedLengthMax else { return persistLarge(record, id, form, disk) }
        return disk.store(
            PackedObject(
                id: id, hash: record.key.folded, key: record.keyBytes, attributes: form.attributes, head: form.head,
                body: record.body))
    }

    /// What became large in memory, because its length was not known.
    private func persistLarge(
        _ record: StoredRecord, _ id: ObjectID, _ form: DiskForm, _ disk: DiskStore
    ) -> DiskStore.StoreOutcome {
        switch makeLarge(record, id, form, record.body.length, disk) {
        case .failure(let refusal): return refusal.outcome
        case .success(let object):
            for block in 0..<object.blockCount {
                object.write(block: block, from: record.body, at: block * blockBytes) { _ in }
            }
            return .taken
        }
    }

    /// A record over a body of which nothing is there yet, and whose whole blocks go to the disk as they come.
    /// - Parameters:
    ///   - length: of the body, more than `packedLengthMax`.
    ///   - make: the record over the body.
    /// - Returns: nil: the disk does not take it.
    package func makeLargeRecord(
        length: Int, _ make: (Body) -> StoredRecord
    ) -> StoredRecord? {
        guard let disk, length > Self.packedLengthMax,
            let body = memory.makeSparseBody(length: length, heldMax: length)
        else { return nil }
        let record = make(body)
        guard var form = format?.form(record) else { return nil }
        let id = disk.nextID()
        var made = makeLarge(record, id, form, length, disk)
        if case .failure(let refusal) = made, refusal.outcome == .pinnedQuotaFull {
            form.attributes.storageClass = .permanent
            made = makeLarge(record, id, form, length, disk)
        }
        guard case .success(let object) = made else { return nil }
        body.attach(LargeCopy(object))
        largeBodies.add(body, id)
        record.diskID = id
        return record
    }

    private func makeLarge(
        _ record: StoredRecord, _ id: ObjectID, _ form: DiskForm, _ length: Int, _ disk: DiskStore
    ) -> Result<LargeObject, DiskStore.StoreRefusal> {
        disk.makeLarge(
            id: id, hash: record.key.folded, key: record.keyBytes, attributes: form.attributes, head: form.head,
            length: length)
    }
}

extension StorageKey {
    /// What identifies the key in the disk tier's index, while the process lives.
    package var folded: UInt64 { high ^ low }
}
