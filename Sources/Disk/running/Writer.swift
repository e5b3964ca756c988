import EventLoop
import Glibc

/// The thread that writes records. It takes the jobs that wait, collects records into large writes at the end of the active
/// segment, publishes the new places in the index, and hands the changes to the batch of the book.
///
/// The order of one batch must hold, because a crash may stop it at any line:
///
/// 1. `Ledger.claim`: the space is reserved before anything is written, so that no file grows beyond the size.
/// 2. `SegmentFile.append`: the bytes reach the kernel. Nobody can find them yet. A crash of the process keeps them, a power
///    cut may lose them; the next start recovers what is whole (`Recovery`).
/// 3. The index gets the new places (`publish`, `moved`): from here on readers find the records.
/// 4. `BookKeeper.record`: the keeper synchronizes the segment and only then commits the changes. The book therefore never
///    names a record that is not on the medium.
///
/// The writer never appends to a file that an earlier process wrote. Whatever stands behind the last whole record of such a
/// file keeps its place and means nothing.
///
/// Threads: every field except `queue` belongs to the writer's thread. Other threads reach the writer through the queue only.
final class Writer: @unchecked Sendable {  // see "Threads" above
    let parts: DiskStoreParts
    let queue: WriterQueue
    let keeper: BookKeeper
    /// Called when space runs short. Does not block.
    let wakeReclaimer: @Sendable () -> Void

    private var active: SegmentFile?
    /// What is written to the active segment next. It is empty while there is none. Its memory is used for all batches.
    private var batch = RecordBatch(.none, at: 0)
    /// What has to happen once the batch is written, in the order of the records. A failed write undoes all of it.
    private var steps: [Step] = []
    /// Bytes that the ledger granted for the batch: always exactly the bytes of the records in it.
    private var claimed: UInt64 = 0
    private var removals: [Removal] = []
    /// Drop records that could not be written. Each batch tries them again.
    private var owed = OwedDrops()
    /// Blocks that are written to one large object and not yet entered into its table.
    var blocks = BlockRun()
    /// Waiting for space did not help. No job waits again until a claim is granted.
    private var hasGivenUpOnSpace = false
    /// The queue has ended and the reclaimer with it: nothing will free space, so no job may wait any more.
    private var isEnding = false
    /// Jobs that wait for space, and jobs that must not overtake those. Everything else is performed at once.
    private var deferred: [WriterJob] = []
    /// The objects that these jobs belong to.
    private var deferredIDs: Set<ObjectID> = []
    /// When the first of the jobs was deferred. Nil if the last claim was granted.
    private var deferredSince: ContinuousClock.Instant?
    /// Bytes of the jobs that were taken from the queue while any job is deferred: the bound of the queue includes them.
    private var heldBytes = 0
    /// How often deferred jobs ask again whether there is space.
    private static let spacePollInterval = Duration.milliseconds(20)
    var madeDirectories: Set<UInt32> = []

    private enum Step {
        case publish(PackedObject, Place)
        case moved(MovedRecord, Place)
        case dropped([Removal])
        /// Drop records in the batch that nobody waits for.
        case noted(ArraySlice<DroppedObject>)
        case renew(ObjectID, hash: UInt64, key: [UInt8], ObjectAttributes, head: [UInt8], serial: UInt64)
        case change(BookChange)
    }

    init(parts: DiskStoreParts, keeper: BookKeeper, queue: WriterQueue, wakeReclaimer: @escaping @Sendable () -> Void) {
        self.parts = parts
        self.keeper = keeper
        self.queue = queue
        self.wakeReclaimer = wakeReclaimer
    }

    // MARK: the thread

    /// The body of the thread. Returns when the queue has ended.
    func run() {
        while case .jobs(let urgent, let jobs, let bytes) = queue.take(
            within: deferred.isEmpty ? nil : Self.spacePollInterval)
        {
            precondition(bytes >= 0, "jobs hold no negative number of bytes")
            heldBytes += bytes
            // The reclaimer waits for its jobs, and the deferred jobs wait for the space that it frees.
            for job in urgent { performOrFail(job) }
            performDeferred()
            for job in jobs { if mustDefer(job) { deferred.append(job) } else { performOrFail(job) } }
            if !queue.isAbandoned {
                finishBlocks()
                writeBatch()
            }
            // The bodies of deferred jobs are still in memory, so nothing is given back to the bound of the queue before all are
            // done.
            if deferred.isEmpty {
                precondition(deferredIDs.isEmpty, "an object is deferred only with one of its jobs")
                queue.done(heldBytes)
                heldBytes = 0
            } else {
                // A victim's file is deleted after the next commit. Do not wait for the interval: the jobs need that space.
                keeper.commitSoon()
            }
        }
        // The reclaimer has ended, so waiting cannot help. Perform or refuse what is deferred: a job that is dropped here
        // would leave its caller waiting for ever.
        isEnding = true
        performDeferred()
        precondition(deferred.isEmpty, "no job is deferred once nothing can free space")
        if !queue.isAbandoned {
            finishSegment()
            settleOwedDrops()
        }
        for job in queue.finish() { fail(job) }
    }

    /// The job will not be performed: tell whoever waits for it.
    private func fail(_ job: WriterJob) {
        switch job {
        case .object, .drop, .owe, .renew, .lostBlock, .abandonLarge: break
        case .makeLarge(let object): object.fail()
        case .block(_, _, _, _, let then), .finishLarge(_, _, let then): then(false)
        case .call(let call): call()
        case .move(_, _, let done), .carry(_, _, let done): done(false)
        }
    }

    /// After `abandon` every job fails: the store ends as if the process were killed.
    private func performOrFail(_ job: WriterJob) {
        if queue.isAbandoned { fail(job) } else { perform(job) }
    }

    /// Carries out one job. Nothing is written to a segment before `writeBatch`, so records are only collected here. Jobs on large
    /// objects write at once.
    private func perform(_ job: WriterJob) {
        switch job {
        case .object(let object, let length): write(object, length)
        case .drop(let removal): removals.append(removal)
        case .owe(let drops): owed.add(drops)
        case .renew(let id, let hash, let key, let attributes, let head, let serial):
            steps.append(.renew(id, hash: hash, key: key, attributes, head: head, serial: serial))
        case .makeLarge(let object): make(object)
        case .block(let object, let block, let source, let offset, let then):
            write(block, of: object, from: source, at: offset, then: then)
        case .finishLarge(let object, let length, let then): finish(object, length, then: then)
        case .abandonLarge(let object): abandon(object)
        case .lostBlock(let object):
            finishBlocks()
            noteCompleteness(of: object)
        case .call(let call):
            finishBlocks()
            writeBatch()
            call()
        case .move(let records, let room, let done): done(move(records, room))
        case .carry(let drops, let room, let done): done(carry(drops, room))
        }
    }

    // MARK: packed objects

    /// Adds a packed object to the batch. It waits for space, or is given up if there is none.
    ///
    /// The claim comes before `ensureActiveSegment`, which may write the batch and wait for the medium: whatever is claimed by then
    /// stays claimed, so no other thread can take that space.
    private func write(_ object: PackedObject, _ length: UInt64) {
        precondition(length % 16 == 0, "records end at a multiple of 16")
        // This look spares work. A removal may still come while the record is written: `publish` decides.
        guard parts.pending.contains(object.hash, object.id), parts.health.isOn else { return refuse(object, length) }
        switch claimSpace(length) {
        case .granted: break
        case .wait: return deferUntilSpace(.object(object, length: length), object.id)
        case .never: return refuse(object, length)
        }
        guard ensureActiveSegment(for: length), let place = added(object) else {
            parts.ledger.withLock { $0.unclaim(length) }
            return refuse(object, length)
        }
        precondition(place.recordLength == length, "a record takes the length that was claimed for it")
        claimed += length
        steps.append(.publish(object, place))
        writeWhereFull()
    }

    /// Returns nil if the record exceeds a limit. That cannot happen to an object that passed `DiskStore.store`.
    private func added(_ object: PackedObject) -> Place? {
        do { return try batch.add(object) } catch { return nil }
    }

    /// Gives up storing the object: releases its share of the quota and everything that was kept for it.
    private func refuse(_ object: PackedObject, _ length: UInt64) {
        if parts.pending.cancel(object.hash, object.id) { parts.lost(object.key) }
        parts.renewals.forget(object.id)
        parts.ledger.withLock { $0.withdraw(length, object.attributes.storageClass) }
    }

    private func writeWhereFull() {
        if batch.byteCount >= parts.tuning.batchBytes { writeBatch() }
    }

    // MARK: space

    /// Claims space in a file for new objects. `wait` means: defer the job and try again, for at most `spaceWaitMax` in all.
    func claimSpace(_ bytes: UInt64) -> Ledger.Claim {
        precondition(bytes > 0, "a record takes space")
        let (claim, isNearlyFull) = parts.ledger.withLock { ($0.claim(bytes, for: .storing), $0.shortfall > 0) }
        if isNearlyFull { wakeReclaimer() }
        switch claim {
        case .granted:
            hasGivenUpOnSpace = false
            deferredSince = nil
            return .granted
        case .never: return .never
        case .wait: break
        }
        // Before the index is loaded the reclaimer cannot choose a victim, so waiting cannot help.
        guard parts.loading.isLoaded, !hasGivenUpOnSpace, !isEnding, !queue.isAbandoned else { return .never }
        let begin = deferredSince ?? .now
        deferredSince = begin
        guard begin.duration(to: .now) < parts.tuning.spaceWaitMax else {
            // From now on objects are refused at once. If each of them waited, a full queue would stand still for minutes.
            hasGivenUpOnSpace = true
            deferredSince = nil
            parts.log(.warning, "no space was freed within \(parts.tuning.spaceWaitMax): responses are not stored")
            return .never
        }
        return .wait
    }

    /// Keeps the job for the next turn.
    func deferUntilSpace(_ job: WriterJob, _ id: ObjectID) {
        precondition(!isEnding, "no job waits once nothing can free space")
        deferred.append(job)
        deferredIDs.insert(id)
    }

    /// Whether the job has to wait behind the deferred ones: jobs that need space keep their order, and so do the jobs of one
    /// object. Removals and the reclaimer's jobs never wait, because they free space.
    private func mustDefer(_ job: WriterJob) -> Bool {
        guard !deferred.isEmpty else { return false }
        switch job {
        case .object(let object, _):
            deferredIDs.insert(object.id)
            return true
        case .makeLarge(let object):
            guard !object.isClaimed else { return false }
            deferredIDs.insert(object.id)
            return true
        case .renew(let id, _, _, _, _, _): return deferredIDs.contains(id)
        case .block(let object, _, _, _, _), .finishLarge(let object, _, _), .lostBlock(let object):
            return deferredIDs.contains(object.id)
        case .call: return true
        case .drop, .owe, .abandonLarge, .move, .carry: return false
        }
    }

    /// Performs the deferred jobs up to the first that has to wait again.
    private func performDeferred() {
        guard !deferred.isEmpty else { return }
        let jobs = deferred
        deferred = []
        deferredIDs = []
        for job in jobs { if mustDefer(job) { deferred.append(job) } else { performOrFail(job) } }
    }

    /// Makes sure that there is an active segment with space for a record of this length. A record that is longer than a
    /// segment may be the first of an empty one.
    private func ensureActiveSegment(for length: UInt64) -> Bool {
        let segmentBytes = parts.ledger.withLock { $0.limits.segment }
        if let active {
            precondition(batch.start == active.end, "the batch is made for the end of the active segment")
            let end = active.end + UInt64(batch.byteCount) + length
            if end <= segmentBytes || active.end + UInt64(batch.byteCount) <= UInt64(SegmentFile.headerBytes) {
                return true
            }
            finishSegment()
        }
        return startSegment()
    }

    /// Creates the next segment file. It has no record yet; its name is synchronized with its first records.
    private func startSegment() -> Bool {
        precondition(active == nil && batch.isEmpty, "one segment is active at a time")
        let header = UInt64(SegmentFile.headerBytes)
        // Nothing can be copied or dropped without a segment, so its header may use the space reserved for moving.
        guard parts.ledger.withLock({ $0.claim(header, for: .moving) }) == .granted else { return false }
        let number = parts.nextNumber()
        do throws(DiskFileError) {
            let file = try SegmentFile.create(
                parts.directory.segmentPath(number), parts.identity(number), created: DiskStoreParts.wallClock, room: 0,
                calls: parts.calls)
            parts.ledger.withLock { ledger in
                // The claim becomes the length of the file under one hold of the lock, so the sum of both never changes.
                ledger.begin(number, .shared)
                ledger.grew(number, by: header)
            }
            parts.files.add(file)
            active = file
            batch.restart(file.identity, at: file.end)
            return true
        } catch {
            parts.ledger.withLock { $0.unclaim(header) }
            failed(error, "cannot create a segment")
            return false
        }
    }

    /// Writes the batch and closes the active segment.
    private func finishSegment() {
        writeBatch()
        retireSegment()
    }

    /// Closes the segment: from now on it may become a victim. Its last bytes may not be on the medium yet, and the reclaimer may read
    /// them, which is fine: it copies them to a segment that is synchronized before the book names the copies.
    private func retireSegment() {
        guard let file = active else { return }
        precondition(claimed == 0, "a segment is closed with its batch written or given up")
        active = nil
        batch.restart(.none, at: 0)
        do throws(DiskFileError) { try file.finish() } catch { failed(error, "cannot finish a segment") }
        let number = file.identity.number
        parts.ledger.withLock { $0.close(number) }
        // The keeper synchronizes the file before it commits this end: the book never covers bytes that a power cut can take.
        keeper.record([], touched: .segment(file), end: BookSegment(coveredEnd: file.end, isClosed: true))
    }

    /// Counts a failed write and turns the store off. It stays off until a probe succeeds.
    func failed(_ error: DiskFileError, _ what: String) {
        parts.counters.writeErrors.count()
        parts.health.turnOff("\(what): \(error)")
    }

    // MARK: the batch

    /// Writes the collected records, with drop records for the pending removals at the end, then applies the steps.
    ///
    /// A crash before the write loses the records; nobody was told that they are stored. A crash between the write and the commit of the
    /// book keeps them: the next start finds them behind the end that the book knows. A removal that was requested before the crash and
    /// not yet written may be undone by it, unless `DiskStore.flush` has returned.
    func writeBatch() {
        repeat {
            addDrops()
            let done = steps
            steps = []
            guard append() else {
                for step in done { undo(step) }
                // `undo` adds no removals, so the loop ends.
                continue
            }
            var changes: [BookChange] = []
            changes.reserveCapacity(done.count)
            var renewed: [(ObjectID, UInt64)] = []
            for step in done { apply(step, &changes, &renewed) }
            record(changes, renewed)
            // An object that was removed while it was being written needs a drop record of its own: write another batch.
        } while !removals.isEmpty
        precondition(steps.isEmpty && claimed == 0, "nothing is collected or claimed behind a written batch")
        queue.noteProgress()
    }

    /// Hands changes to the keeper, together with the segment to synchronize before they are committed.
    private func record(_ changes: [BookChange], _ renewed: [(ObjectID, UInt64)]) {
        guard let active else { return keeper.record(changes, renewed: renewed) }
        let end = BookSegment(coveredEnd: active.end, isClosed: false)
        keeper.record(changes, renewed: renewed, touched: .segment(active), end: end)
    }

    /// Writes the batch to the active segment. Returns false if it could not be written; the segment is closed then.
    private func append() -> Bool {
        guard let active, !batch.isEmpty else {
            precondition(claimed == 0, "space is claimed for records in the batch only")
            return true
        }
        do throws(DiskFileError) {
            try active.append(batch)
            let bytes = UInt64(batch.byteCount)
            precondition(bytes == claimed, "the batch takes the bytes that were claimed for it")
            precondition(active.end == batch.end, "the segment ends behind the batch")
            claimed = 0
            precondition(active.end % 16 == 0, "records end at a multiple of 16")
            parts.ledger.withLock { $0.grew(active.identity.number, by: bytes) }
            batch.restart(active.identity, at: active.end)
            return true
        } catch {
            parts.ledger.withLock { $0.unclaim(claimed) }
            claimed = 0
            failed(error, "cannot write to a segment")
            // `append` cut the file back to its old end, or refuses every further write: no half batch is ever found.
            retireSegment()
            return false
        }
    }

    /// Adds drop records for the pending removals, and for earlier ones that are still owed. Whatever there is no space for is owed until
    /// a later batch; until it is written, only the book remembers that the object was removed.
    private func addDrops() {
        guard !removals.isEmpty || !owed.isEmpty else { return }
        var drops = owed.take()
        if !removals.isEmpty {
            drops += removals.map { DroppedObject(id: $0.id, segment: $0.segment) }
            // This comes first: the book learns of the removals even if no drop record can be written.
            steps.append(.dropped(removals))
            removals = []
        }
        let rest = parts.health.isOn ? addDropRecords(drops) : drops[...]
        owed.add(rest)
        if rest.count < drops.count { steps.append(.noted(drops.dropLast(rest.count))) }
    }

    /// Writes what is still owed before the writer ends. The next process does not know of it. If there is no space, the files of
    /// victims are deleted first.
    private func settleOwedDrops() {
        guard !owed.isEmpty, keeper.commitNow() else { return }
        finishSegment()
    }

    /// Collects drop records. Returns those for which there is no space.
    private func addDropRecords(_ drops: [DroppedObject]) -> ArraySlice<DroppedObject> {
        var rest = drops[...]
        while !rest.isEmpty {
            let part = Array(rest.prefix(Self.dropsMax))
            precondition(part.count <= RecordCodec.dropsMax, "one record holds these drops")
            let bytes = UInt64(RecordHeader.byteCount + part.count * DroppedObject.byteCount)
            guard parts.ledger.withLock({ $0.claim(bytes, for: .moving) }) == .granted else { return rest }
            guard ensureActiveSegmentForDrops() else {
                parts.ledger.withLock { $0.unclaim(bytes) }
                return rest
            }
            claimed += bytes
            batch.add(drops: part, storedAt: DiskStoreParts.wallClock)
            rest = rest.dropFirst(part.count)
        }
        return rest
    }

    private static let dropsMax = 4096

    /// Drop records may exceed the length of a segment a little: closing the segment here would start another batch in the
    /// middle of this one.
    private func ensureActiveSegmentForDrops() -> Bool { active != nil || startSegment() }

    /// Makes one step visible. Runs after the bytes are written and before the keeper is told: readers may find the record,
    /// and a crash now loses nothing, because the next start scans what the book does not cover.
    private func apply(_ step: Step, _ changes: inout [BookChange], _ renewed: inout [(ObjectID, UInt64)]) {
        switch step {
        case .publish(let object, let place): publish(object, place, &changes)
        case .moved(let record, let place): moved(record, place, &changes)
        case .dropped(let removals): drop(removals, &changes)
        case .noted: break
        case .change(let change): changes.append(change)
        case .renew(let id, let hash, let key, let attributes, let head, let serial):
            // A later renewal has a job of its own in the queue. If none waits, it was merged or the object is gone.
            guard parts.renewals.latest(of: id)?.serial == serial,
                parts.index.setRenewed(hash, id, attributes.storageClass)
            else { return }
            changes.append(.renew(id, key: key, attributes, head: head))
            renewed.append((id, serial))
        }
    }

    /// Takes back one step of a batch that could not be written. Removals and renewals still go into the book, and drop records are owed.
    private func undo(_ step: Step) {
        switch step {
        case .publish(let object, let place): refuse(object, place.recordLength)
        case .moved: break  // the record stays at its old place; `copy` returns false to the reclaimer
        case .dropped(let removals):
            var changes: [BookChange] = []
            drop(removals, &changes)
            keeper.record(changes)
        case .noted(let drops): owed.add(drops)
        case .change(let change): keeper.record([change])
        case .renew:
            var changes: [BookChange] = []
            var renewed: [(ObjectID, UInt64)] = []
            apply(step, &changes, &renewed)
            keeper.record(changes, renewed: renewed)
        }
    }

    /// Files of large objects are deleted only after the commit that removes their entries: a crash before it leaves both.
    private func drop(_ removals: [Removal], _ changes: inout [BookChange]) {
        for removal in removals {
            if removal.isInBook { changes.append(.remove(removal.id, key: removal.key)) }
            if removal.isLarge { keeper.deleteAfterCommit(removal.segment) }
        }
    }

    /// Whether a place lies within what was written to the active segment.
    private func isInActive(_ place: Place) -> Bool {
        guard let active else { return false }
        return place.segment == active.identity.number && place.offset + place.recordLength <= active.end
    }

    /// Makes an object visible whose record was just written, unless it was removed in the meantime. The index comes first and the book
    /// later, so no reader has to wait for a commit.
    private func publish(_ object: PackedObject, _ place: Place, _ changes: inout [BookChange]) {
        let attributes = object.attributes
        precondition(isInActive(place), "a place is published after its record was written")
        // Under the lock of the shard of `pending`: a removal or a renewal sees the object either as pending or in the index, never
        // neither, and a renewal that saw it as pending is seen here.
        let isPublished = parts.pending.publish(object.hash, object.id) {
            guard
                let entry = DiskIndexEntry(
                    hash: object.hash, id: object.id, place: place, storageClass: attributes.storageClass,
                    isRenewed: parts.renewals.latest(of: object.id) != nil)
            else { preconditionFailure("a place that was encoded fits into an index entry") }
            let isNew = parts.addToIndex(entry, wasPromised: true)
            precondition(isNew, "an object number is stored once")
        }
        // Removed while it was written: its bytes are in the file, so it needs a drop record.
        guard isPublished else {
            parts.ledger.withLock { $0.withdraw(place.recordLength, attributes.storageClass) }
            return removals.append(
                Removal(id: object.id, key: object.key, segment: place.segment, isLarge: false, isInBook: false))
        }
        parts.counters.storedObjects.count()
        parts.counters.storedBytes.count(place.bodyLength)
        changes.append(.put(BookEntry(id: object.id, key: object.key, place: place, attributes: attributes)))
    }
}

// MARK: for the reclaimer

extension Writer {
    /// Copies records into the active segment. `room` was claimed by the reclaimer; what is not used is given back.
    private func move(_ records: [MovedRecord], _ room: UInt64) -> Bool {
        precondition(!records.isEmpty && room > 0, "the reclaimer moves something, and has claimed space for it")
        writeBatch()
        let isWritten = copy(records, room)
        // Objects that were removed during the copy need drop records. `room` included them, and no other thread claims for
        // moving while the reclaimer waits for this call, so their space is still there.
        writeBatch()
        return isWritten
    }

    /// Copies records until one fails. What was copied before that is valid: the records have new places and count there.
    private func copy(_ records: [MovedRecord], _ room: UInt64) -> Bool {
        var left = room
        defer { parts.ledger.withLock { $0.unclaim(left) } }
        for record in records {
            let length = record.recordLength
            guard parts.health.isOn, length <= left, ensureActiveSegment(for: length), let place = added(record) else {
                return false
            }
            precondition(place.recordLength == length, "a moved record takes the length that was claimed")
            // The claim of the reclaimer becomes that of the batch. `append` uses it up or gives it back.
            left -= length
            claimed += length
            steps.append(.moved(record, place))
            if batch.byteCount >= 2 * parts.tuning.batchBytes, !flushed() { return false }
        }
        return flushed()
    }

    /// Writes the batch without the pending removals.
    private func flushed() -> Bool {
        let done = steps
        steps = []
        guard append() else {
            for step in done { undo(step) }
            return false
        }
        var changes: [BookChange] = []
        var renewed: [(ObjectID, UInt64)] = []
        for step in done { apply(step, &changes, &renewed) }
        record(changes, renewed)
        return true
    }

    private func added(_ record: MovedRecord) -> Place? {
        let head = StoredHead(
            id: record.id, place: record.from, key: record.key, attributes: record.attributes, head: record.head,
            checksums: record.checksums)
        do { return try batch.add(copyOf: head, body: record.body.allBytes) } catch { return nil }
    }

    /// Publishes the new place of a copied record. Index and ledger change under one hold of the ledger's lock.
    private func moved(_ record: MovedRecord, _ place: Place, _ changes: inout [BookChange]) {
        precondition(place.kind == .packed && record.from.kind == .packed, "only packed records are moved")
        precondition(isInActive(place), "a place is published after its record was written")
        let hash = parts.options.hash(record.key)
        // The copy lacks a renewal that came after the record was read. The object stays marked, and readers go on asking for it.
        let isLater = parts.renewals.latest(of: record.id).map { $0.serial > record.renewal ?? 0 } ?? false
        var attributes = record.attributes
        let isMoved = parts.ledger.withLock { ledger in
            guard let current = parts.index.entry(hash, record.id), current.isAt(record.from),
                let entry = DiskIndexEntry(
                    hash: hash, id: record.id, place: place, storageClass: current.storageClass, isRenewed: isLater),
                parts.index.move(from: record.from, to: entry)
            else { return false }
            attributes.storageClass = current.storageClass
            ledger.move(
                record.from.recordLength, from: record.from.segment, to: place.segment, place.recordLength,
                current.storageClass)
            return true
        }
        // Removed or moved during the copy: the new place must not come back when the book is rebuilt.
        guard isMoved else {
            return removals.append(
                Removal(id: record.id, key: record.key, segment: place.segment, isLarge: false, isInBook: false))
        }
        // The new record contains the renewed head. Its entry in the book has none from this commit on (`BookWriter.put`).
        if !isLater { parts.renewals.forget(record.id, through: record.renewal ?? 0) }
        parts.counters.movedBytes.count(place.recordLength)
        changes.append(.put(BookEntry(id: record.id, key: record.key, place: place, attributes: attributes)))
    }

    /// Writes drop records for the reclaimer. The claim is released and made anew, record by record.
    private func carry(_ drops: [DroppedObject], _ room: UInt64) -> Bool {
        precondition(!drops.isEmpty && room > 0, "the reclaimer has claimed space for its drop records")
        writeBatch()
        parts.ledger.withLock { $0.unclaim(room) }
        let isAdded = parts.health.isOn && addDropRecords(drops).isEmpty
        return flushed() && isAdded
    }
}
