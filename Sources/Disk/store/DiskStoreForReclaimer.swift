import EventLoop

/// What the reclaimer needs of the running store, in terms of its index, queue and book.
///
/// Threads: the reclaimer's thread makes every call. `move` and `carry` hand a job to the writer and wait for it, so the writer must
/// never wait for the reclaimer. It does not: it defers jobs that need space.
final class DiskStoreForReclaimer: ReclaimerStore {
    private let parts: DiskStoreParts
    private let keeper: BookKeeper
    private let queue: WriterQueue
    private let reader: DiskStoreReader

    init(parts: DiskStoreParts, keeper: BookKeeper, queue: WriterQueue, reader: DiskStoreReader) {
        self.parts = parts
        self.keeper = keeper
        self.queue = queue
        self.reader = reader
    }

    // Head parts alone are decoded, because most records of a victim are not copied. A damaged body is detected by `read`, and
    // whatever stands behind a head that cannot be read by `deleteAfterCommit`.
    func scan(_ segment: UInt32, _ visit: (VictimRecord) -> Bool) throws(DiskReadError) {
        var scan = RecordScan(try parts.files.file(segment, waits: true), depth: .heads, mode: .search)
        while let found = try scan.next() {
            switch found {
            case .object(let head), .damagedObject(let head, _): if !visit(.object(head)) { return }
            case .drops(let drops, _, _): if !visit(.drops(drops)) { return }
            case .damaged: break
            }
        }
    }

    func status(of head: StoredHead) -> RecordStatus? {
        // By the place and not by the number: the object may live on in a later copy, and this record is dead then.
        parts.index.entry(parts.options.hash(head.key), at: head.place).map(RecordStatus.init)
    }

    func read(_ head: StoredHead) throws(DiskReadError) -> MovedRecord? {
        precondition(head.place.kind == .packed, "only packed records are moved")
        // Take the number first: a renewal after this line counts as later than what is read below.
        let serial = parts.renewals.lastSerial
        let file = try parts.files.file(head.place.segment, waits: true)
        let body = BytesInMemory(length: Int(head.place.bodyLength))
        switch unsafe file.readBody(
            of: head.place, checksums: head.checksums, offset: 0, into: body.room, waits: true)
        {
        case .done: break
        case .damaged: throw .damaged
        case .wouldBlock: throw .wouldBlock
        case .failed(let code): throw .failed(errno: code)
        }
        // Look the record up after it was read: a removal before this line needs no copy. A removal after it is noticed by the
        // writer, which compares the place again when it publishes the copy.
        guard let entry = parts.index.entry(parts.options.hash(head.key), at: head.place) else { return nil }
        let renewed = entry.isRenewed ? try reader.renewed(head, waits: true) : head
        return MovedRecord(
            id: head.id, key: head.key, from: head.place, attributes: renewed.attributes, head: renewed.head,
            checksums: head.checksums, body: body, renewal: serial)
    }

    func move(_ records: [MovedRecord], room: UInt64) -> Bool {
        precondition(records.reduce(0) { $0 + $1.recordLength } <= room, "space was claimed for all records")
        return wait { done in .move(records, room: room, done: done) } ?? false
    }

    func noteEmptied(_ segment: UInt32) {
        guard let unit = parts.ledger.withLock({ $0.units[segment] }) else { return }
        precondition(unit.kind == .shared && unit.isClosed, "records are copied from closed segments")
        keeper.noteEmptied(segment, length: unit.fileBytes)
    }

    func carry(_ drops: [DroppedObject], room: UInt64) -> Bool {
        wait { done in .carry(drops, room: room, done: done) } ?? false
    }

    func owe(_ drops: [DroppedObject]) { _ = queue.put(.owe(drops)) }

    // From here on nobody finds the object, and the next commit takes it out of the book. The caller writes its drop record, which
    // matters if the book is lost before the file is deleted.
    func evict(_ head: StoredHead) {
        guard let entry = parts.removeFromIndex(parts.options.hash(head.key), at: head.place) else { return }
        evicted(entry, key: head.key)
    }

    func dropDamaged(_ head: StoredHead) {
        guard let entry = parts.removeFromIndex(parts.options.hash(head.key), at: head.place) else { return }
        reader.damaged(entry, key: head.key)
    }

    func status(ofLarge segment: UInt32) -> RecordStatus? {
        guard let (hash, id) = parts.large.known(segment) else { return nil }
        return parts.index.entry(hash, id).map(RecordStatus.init)
    }

    func decrementUses(large segment: UInt32) {
        guard let (hash, id) = parts.large.known(segment) else { return }
        parts.index.decrementUses(hash, id)
    }

    func evict(large segment: UInt32) -> ObjectID? {
        guard let (hash, id) = parts.large.known(segment) else { return nil }
        // Read the key first: `removeFromIndex` takes the open object out of the registry.
        let key = reader.key(ofLarge: segment)
        guard let entry = parts.removeFromIndex(hash, id) else { return nil }
        evicted(entry, key: key ?? [])
        return entry.id
    }

    private func evicted(_ entry: DiskIndexEntry, key: [UInt8]) {
        parts.counters.evictedObjects.count()
        parts.counters.evictedBytes.count(entry.place.bodyLength)
        // Recorded before `deleteAfterCommit` is called: the file is deleted only after a commit that has this.
        keeper.record([.remove(entry.id, key: key)])
    }

    func deleteAfterCommit(_ segment: UInt32) {
        // Whatever is still in the index stands behind a head that cannot be read: the scan did not meet it.
        if parts.ledger.withLock({ $0.units[segment]?.objectCount ?? 0 }) > 0 {
            var places: [Place] = []
            parts.index.forEach { entry in
                if entry.place.segment == segment { places.append(entry.place) }
            }
            for place in places { keeper.reportDamaged(place) }
        }
        keeper.deleteAfterCommit(segment)
    }

    func commitSoon() { keeper.commitSoon() }

    func commitAndDelete() { _ = keeper.commitNow() }

    /// Gives the writer a job and waits for its outcome. Returns nil if the writer has ended.
    private func wait(_ job: (@escaping @Sendable (Bool) -> Void) -> WriterJob) -> Bool? {
        let answer = BlockingAnswer()
        guard queue.putUrgent(job { answer.give($0) }) else { return nil }
        return answer.wait()
    }
}

extension RecordStatus {
    init(_ entry: DiskIndexEntry) { self.init(useMark: entry.uses, isPinned: entry.storageClass == .pinned) }
}
