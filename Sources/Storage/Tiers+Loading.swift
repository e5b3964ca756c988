package import Disk
internal import Glibc

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
    func forgetOlder(than record: StoredRecord) {
        guard let disk else { return }
        let newest = disk.newestID
        guard disk.isLoaded else {
            return disk.whenLoaded { [self] in
                let isAccepted = disk.perform { [self] in
                    forgetOlder(than: record, through: newest, disk, waits: true)
                }
                // Rather too much than what is older.
                if !isAccepted { _ = disk.removeAll(hash: record.key.folded, key: record.keyBytes) }
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
