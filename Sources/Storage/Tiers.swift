package import Disk
internal import Glibc
internal import Synchronization

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
    private let format: RecordFormat?
    /// Bodies over large objects, so that two requests for one have the same body.
    private let largeBodies = LargeBodies()
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

    private func variants(of record: StoredRecord) -> [StoredRecord] {
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

// MARK: From the disk

extension Tiers {
    package enum Loading: Sendable {
        /// There is nothing on the disk for the key that is not in memory.
        case nothing
        /// Records came into memory: look again.
        case loaded
        /// It would block: call again on a thread that may, with `waits`.
        case wouldBlock
        /// The disk is not ready yet: call again when `disk.whenLoaded` says so.
        case notReady
    }

    /// Brings all variants of a key from the disk into memory, without their bodies.
    package func load(_ key: StorageKey, _ keyBytes: [UInt8], waits: Bool) -> Loading {
        guard let disk else { return .nothing }
        let places: [Place]
        switch disk.find(key.folded) {
        case .nothing: return .nothing
        case .loading: return .notReady
        case .places(let found): places = found
        }
        var result = Loading.nothing
        for place in places {
            do throws(DiskReadError) {
                let head = try disk.readHead(place, waits: waits)
                guard head.key == keyBytes else { continue }
                if try adopt(head, key, disk) { result = .loaded }
            } catch {
                switch error {
                case .wouldBlock: return .wouldBlock
                // The store drops what it can not read, and says so.
                case .damaged, .failed: continue
                }
            }
        }
        return result
    }

    private func adopt(_ head: StoredHead, _ key: StorageKey, _ disk: DiskStore) throws(DiskReadError) -> Bool {
        let known = unsafe head.key.withUnsafeBytes { unsafe memory.lookup(key, $0) }
        if known.contains(where: { $0.diskID == head.id }) { return false }
        guard let body = try body(of: head, key, disk) else { return false }
        guard let record = format?.record(key, head, body) else {
            // Of no use to this version.
            disk.remove(head.id, hash: key.folded, key: head.key)
            return false
        }
        record.diskID = head.id
        return memory.shelves.adopt(record) { disk.contains(head.id, hash: key.folded, head.place) }
    }

    private func body(of head: StoredHead, _ key: StorageKey, _ disk: DiskStore) throws(DiskReadError) -> Body? {
        switch head.place.kind {
        case .packed:
            let copy = PackedCopy(
                store: disk, id: head.id, hash: key.folded, place: head.place, checksums: head.checksums)
            let body = Body(copy, shelves: memory.shelves)
            return body.chargeObject() ? body : nil
        case .large:
            return try largeBodies.body(head.id) { () throws(DiskReadError) in
                let object = try disk.openLarge(head, hash: key.folded)
                return Body(object, shelves: memory.shelves)
            }
        }
    }

    /// Its body could not be read: the record goes. Where the object stands elsewhere by now it can be loaded again; where it is
    /// damaged, or the medium can not read it, it goes from the disk as well. A want of descriptors or of memory is not the object's
    /// fault: it stays.
    package func giveUp(_ record: StoredRecord, after read: DiskRead) {
        guard let disk, let packed = record.body.packed, read != .done, read != .wouldBlock else { return }
        memory.remove(record)
        guard read == .damaged || read == .failed(errno: EIO), disk.contains(packed.id, hash: packed.hash, packed.place)
        else { return }
        disk.dropDamaged(packed.id, hash: packed.hash, key: record.keyBytes)
    }

    /// What a new record takes the place of may be on the disk alone, because memory has forgotten it: it would come back when the new
    /// one goes. Of what is not written yet nothing but the key is known: that is not written at all.
    private func forgetOlder(than record: StoredRecord) {
        guard let disk else { return }
        let newest = disk.newestID
        guard disk.isLoaded else {
            return disk.whenLoaded { [self] in
                _ = disk.perform { [self] in forgetOlder(than: record, through: newest, disk, waits: true) }
            }
        }
        forgetOlder(than: record, through: newest, disk, waits: false)
    }

    /// - Parameter newest: of the objects that may be older; those that come later are not.
    private func forgetOlder(than record: StoredRecord, through newest: ObjectID, _ disk: DiskStore, waits: Bool) {
        let hash = record.key.folded
        // In this order: what is written meanwhile is found in the second place, and what memory has is known last.
        let waiting = disk.waiting(hash)
        for _ in 0..<Self.movesMax {
            let places: [Place] = if case .places(let places) = disk.find(hash) { places } else { [] }
            if waiting.isEmpty && places.isEmpty { return }
            let known = variants(of: record).compactMap(\.diskID) + (record.diskID.map { [$0] } ?? [])
            for id in waiting where id <= newest && !known.contains(id) {
                disk.remove(id, hash: hash, key: record.keyBytes)
            }
            var isMoved = false
            for place in places where !known.contains(where: { disk.contains($0, hash: hash, place) }) {
                switch forget(place, ifReplacedBy: record, through: newest, disk, waits: waits) {
                case .done: break
                case .gone: isMoved = true
                case .wouldBlock:
                    // All of it there: what is older is not served meanwhile, as long as memory has the new one.
                    if disk.perform({ [self] in forgetOlder(than: record, through: newest, disk, waits: true) }) {
                        return
                    }
                    isMoved = true
                }
            }
            guard isMoved else { return }
        }
        // Rather too much than what is older.
        _ = disk.removeAll(hash: hash, key: record.keyBytes)
    }

    /// How often an object may be moved while it is looked at.
    private static let movesMax = 8

    private enum Forgetting { case done, gone, wouldBlock }

    private func forget(
        _ place: Place, ifReplacedBy record: StoredRecord, through newest: ObjectID, _ disk: DiskStore, waits: Bool
    ) -> Forgetting {
        do throws(DiskReadError) {
            let head = try disk.readHead(place, waits: waits)
            guard head.key == record.keyBytes, head.id <= newest else { return .done }
            // Nobody reads this body.
            let copy = PackedCopy(store: disk, id: head.id, hash: record.key.folded, place: place, checksums: [])
            let older = format?.record(record.key, head, Body(copy, shelves: memory.shelves))
            if older.map({ record.replaces($0) }) ?? true {
                disk.remove(head.id, hash: record.key.folded, key: record.keyBytes)
            }
            return .done
        } catch { return error == .wouldBlock ? .wouldBlock : .gone }
    }

    /// Whether a record on the disk is asked for so often that its body is worth the memory, more than what would have to go
    /// for it (`Shard.admits`).
    package func deservesMemory(_ record: StoredRecord) -> Bool {
        record.frequency > 1 && memory.shelves.admits(record)
    }
}

extension Body {
    /// A large body as it is on the disk.
    convenience init?(_ object: LargeObject, shelves: Shelves) {
        self.init(expectedLength: object.length, isSparse: true, lengthMax: object.length, shelves: shelves)
        guard chargeObject() else { return nil }
        attach(LargeCopy(object))
        let map = BlockMap(extents: object.extents)
        if map.prefix == object.length {
            published.store(object.length, ordering: .relaxed)
            phase.store(State.complete.rawValue, ordering: .releasing)
            return
        }
        shelves.overdraw(map.footprint)
        held.add(map.footprint, ordering: .relaxed)
        blocks = map
        published.store(map.prefix, ordering: .relaxed)
        phase.store(State.partial.rawValue, ordering: .releasing)
    }
}

/// The bodies over large objects that somebody holds.
private final class LargeBodies: @unchecked Sendable {
    private struct Entry { weak var body: Body? }
    private let lock = LockBank(count: 1)
    private var bodies: [ObjectID: Entry] = [:]
    private var sweepAt = 64

    func add(_ body: Body, _ id: ObjectID) { lock.withLock(0) { put(body, id) } }

    /// The one that is held, or a new one.
    func body(_ id: ObjectID, make: () throws(DiskReadError) -> Body?) throws(DiskReadError) -> Body? {
        if let known = lock.withLock(0, { bodies[id]?.body }) { return known }
        guard let made = try make() else { return nil }
        return lock.withLock(0) {
            // Of two that open it at once, the first has it.
            if let known = bodies[id]?.body { return known }
            put(made, id)
            return made
        }
    }

    private func put(_ body: Body, _ id: ObjectID) {
        if bodies.count >= sweepAt {
            bodies = bodies.filter { $0.value.body != nil }
            sweepAt = max(64, bodies.count * 2)
        }
        bodies[id] = Entry(body: body)
    }
}

extension StorageKey {
    /// What identifies the key in the disk tier's index, while the process lives.
    package var folded: UInt64 { high ^ low }
}

/// The keys seen lately, some thousands of them.
@safe private final class SeenKeys: @unchecked Sendable {
    private static let countMax = 16_384
    private let lock = LockBank(count: 1)
    private var keys = GhostQueue()

    deinit { keys.free() }

    /// Remembers the key, or forgets it if it was remembered.
    func hasSeen(_ key: StorageKey) -> Bool {
        var doomed = Doomed()
        let isKnown = lock.withLock(0) {
            if keys.take(key) { return true }
            keys.note(key, limit: Self.countMax, into: &doomed)
            return false
        }
        doomed.destroy()
        return isKnown
    }
}
