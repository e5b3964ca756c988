import EventLoop
import Glibc

/// The thread that writes: takes what waits, gathers records into large writes at the end of the active segment,
/// publishes them in the index, and hands the changes to the book's batch. In this order, so that the book never
/// knows of what is not written.
///
/// A file that an earlier run wrote is never appended to: what stands behind its last whole record stays without
/// meaning.
final class Writer: @unchecked Sendable {  // all but the queue belongs to the thread
    let parts: DiskStoreParts
    let queue: WriterQueue
    let keeper: BookKeeper
    /// Called where room is needed.
    let wakeReclaimer: @Sendable () -> Void

    private var active: SegmentFile?
    private var batch: RecordBatch?
    /// What is to be done when the batch is written.
    private var steps: [Step] = []
    /// Bytes of the ledger that were claimed for the batch: as many as it has.
    private var claimed: UInt64 = 0
    private var removals: [Removal] = []
    /// Blocks that are written and not yet in their table, all of one object.
    var blocks = BlockRun()
    /// Waiting for room came to nothing: until some is granted nobody waits again.
    private var hasGivenUpOnSpace = false
    /// Jobs that wait for room, and those that are to come behind them: nothing else waits.
    private var deferred: [WriterJob] = []
    /// Of the objects in there.
    private var deferredIDs: Set<ObjectID> = []
    /// Since when nothing was granted.
    private var deferredSince: ContinuousClock.Instant?
    /// Of jobs that were taken, as long as some of them wait: so that the queue's bound holds for them.
    private var heldBytes = 0
    /// Between two looks whether there is room.
    private static let spacePollInterval = Duration.milliseconds(20)
    var madeDirectories: Set<UInt32> = []

    private enum Step {
        case publish(PackedObject, Place)
        case moved(MovedRecord, Place)
        case dropped([Removal])
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

    /// Until the queue ends. The body of a thread.
    func run() {
        while case .jobs(let urgent, let jobs, let bytes) = queue.take(within: deferred.isEmpty ? nil : Self.spacePollInterval) {
            heldBytes += bytes
            for job in urgent { performOrFail(job) }
            performDeferred()
            for job in jobs { if mustDefer(job) { deferred.append(job) } else { performOrFail(job) } }
            if !queue.isAbandoned {
                finishBlocks()
                writeBatch()
            }
            if deferred.isEmpty {
                queue.done(heldBytes)
                heldBytes = 0
            } else {
                // What is written can be reclaimed when the book knows it, and what was emptied goes then.
                keeper.commitSoon()
            }
        }
        // The reclaimer has ended: nothing will make room any more.
        hasGivenUpOnSpace = true
        performDeferred()
        if !queue.isAbandoned { finishSegment() }
        for job in queue.finish() { fail(job) }
    }

    /// Nobody will write it: who waits for it is told.
    private func fail(_ job: WriterJob) {
        switch job {
        case .object, .drop, .renew, .lostBlock: break
        case .makeLarge(let object): object.fail()
        case .block(_, _, _, _, let then): then(false)
        case .call(let call): call()
        case .move(_, _, let done), .carry(_, _, let done): done(false)
        }
    }

    private func performOrFail(_ job: WriterJob) {
        if queue.isAbandoned { fail(job) } else { perform(job) }
    }

    private func perform(_ job: WriterJob) {
        switch job {
        case .object(let object, let length): write(object, length)
        case .drop(let removal): removals.append(removal)
        case .renew(let id, let hash, let key, let attributes, let head, let serial):
            steps.append(.renew(id, hash: hash, key: key, attributes, head: head, serial: serial))
        case .makeLarge(let object): make(object)
        case .block(let object, let block, let source, let offset, let then):
            write(block, of: object, from: source, at: offset, then: then)
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

    private func write(_ object: PackedObject, _ length: UInt64) {
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
        claimed += length
        steps.append(.publish(object, place))
        writeWhereFull()
    }

    private func added(_ object: PackedObject) -> Place? {
        do { return try batch?.add(object) } catch { return nil }
    }

    /// It is not stored after all.
    private func refuse(_ object: PackedObject, _ length: UInt64) {
        if parts.pending.cancel(object.hash, object.id) {
            parts.counters.lostObjects.count()
            parts.counters.droppedObjects.count()
        }
        parts.renewals.forget(object.id)
        parts.ledger.withLock { $0.withdraw(length, object.attributes.storageClass) }
    }

    private func writeWhereFull() {
        guard let batch, batch.byteCount >= parts.tuning.batchBytes else { return }
        writeBatch()
    }

    // MARK: room

    /// Asks for room; `wait`: it is asked again soon, for at most `spaceWaitMax`.
    func claimSpace(_ bytes: UInt64) -> Ledger.Claim {
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
        // Before the index is loaded nobody knows what may go.
        guard parts.loading.isLoaded, !hasGivenUpOnSpace, !queue.isAbandoned else { return .never }
        let begin = deferredSince ?? .now
        deferredSince = begin
        guard begin.duration(to: .now) < parts.tuning.spaceWaitMax else {
            hasGivenUpOnSpace = true
            deferredSince = nil
            parts.log(.warning, "no room could be made in \(parts.tuning.spaceWaitMax): objects are not stored")
            return .never
        }
        return .wait
    }

    /// Comes again, with those that wait.
    func deferUntilSpace(_ job: WriterJob, _ id: ObjectID) {
        deferred.append(job)
        deferredIDs.insert(id)
    }

    /// What needs room is stored in the order in which it came, and what belongs to it comes behind it.
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
        case .block(let object, _, _, _, _), .lostBlock(let object): return deferredIDs.contains(object.id)
        case .call: return true
        case .drop, .move, .carry: return false
        }
    }

    /// Tries again what waits, up to the first that has to wait on.
    private func performDeferred() {
        guard !deferred.isEmpty else { return }
        let jobs = deferred
        deferred = []
        deferredIDs = []
        for job in jobs { if mustDefer(job) { deferred.append(job) } else { performOrFail(job) } }
    }

    /// An active segment into which a record of this length still goes.
    private func ensureActiveSegment(for length: UInt64) -> Bool {
        let segmentBytes = parts.ledger.withLock { $0.limits.segment }
        if let active, let batch {
            let end = active.end + UInt64(batch.byteCount) + length
            if end <= segmentBytes || active.end + UInt64(batch.byteCount) <= UInt64(SegmentFile.headerBytes) {
                return true
            }
            finishSegment()
        }
        return startSegment()
    }

    private func startSegment() -> Bool {
        let header = UInt64(SegmentFile.headerBytes)
        // The header is what makes room for anything else: it may take from what is kept for copying.
        guard parts.ledger.withLock({ $0.claim(header, for: .moving) }) == .granted else { return false }
        let number = parts.nextNumber()
        do throws(DiskFileError) {
            let file = try SegmentFile.create(
                parts.directory.segmentPath(number), parts.identity(number), created: DiskStoreParts.wallClock, room: 0,
                calls: parts.calls)
            parts.ledger.withLock { ledger in
                ledger.begin(number, .shared)
                ledger.grew(number, by: header)
            }
            parts.files.add(file)
            active = file
            batch = RecordBatch(file.identity, at: file.end)
            return true
        } catch {
            parts.ledger.withLock { $0.unclaim(header) }
            failed(error, "a segment could not be made")
            return false
        }
    }

    /// The active segment gets nothing more.
    private func finishSegment() {
        writeBatch()
        retireSegment()
    }

    private func retireSegment() {
        guard let file = active else { return }
        active = nil
        batch = nil
        do throws(DiskFileError) { try file.finish() } catch { failed(error, "a segment could not be finished") }
        let number = file.identity.number
        parts.ledger.withLock { $0.close(number) }
        keeper.record([], touched: .segment(file), end: BookSegment(coveredEnd: file.end, isClosed: true))
    }

    func failed(_ error: DiskFileError, _ what: String) {
        parts.counters.writeErrors.count()
        parts.health.turnOff("\(what): \(error)")
    }

    // MARK: the batch

    /// Writes what was gathered, with the drops at its end, and does what was to be done then.
    func writeBatch() {
        repeat {
            addDrops()
            let done = steps
            steps = []
            guard append() else {
                for step in done { undo(step) }
                continue
            }
            var changes: [BookChange] = []
            changes.reserveCapacity(done.count)
            var renewed: [(ObjectID, UInt64)] = []
            for step in done { apply(step, &changes, &renewed) }
            record(changes, renewed)
            // What was removed while it was written needs a drop record.
        } while !removals.isEmpty
    }

    private func record(_ changes: [BookChange], _ renewed: [(ObjectID, UInt64)]) {
        guard let active else { return keeper.record(changes, renewed: renewed) }
        let end = BookSegment(coveredEnd: active.end, isClosed: false)
        keeper.record(changes, renewed: renewed, touched: .segment(active), end: end)
    }

    /// False: it could not be written; the segment gets nothing more.
    private func append() -> Bool {
        guard let active, let written = batch, !written.isEmpty else { return true }
        do throws(DiskFileError) {
            try active.append(written)
            let bytes = UInt64(written.byteCount)
            precondition(bytes == claimed, "what is written was claimed")
            claimed = 0
            parts.ledger.withLock { $0.grew(active.identity.number, by: bytes) }
            batch = RecordBatch(active.identity, at: active.end)
            return true
        } catch {
            parts.ledger.withLock { $0.unclaim(claimed) }
            claimed = 0
            failed(error, "a segment could not be written")
            retireSegment()
            return false
        }
    }

    /// Where no room is left for a drop record, or the store is off, the book alone has to remember.
    private func addDrops() {
        guard !removals.isEmpty else { return }
        let removed = removals
        removals = []
        steps.append(.dropped(removed))
        guard parts.health.isOn else { return }
        let drops = removed.map { DroppedObject(id: $0.id, segment: $0.segment) }
        _ = addDropRecords(drops)
    }

    private func addDropRecords(_ drops: [DroppedObject]) -> Bool {
        var rest = drops[...]
        while !rest.isEmpty {
            let part = Array(rest.prefix(Self.dropsMax))
            let bytes = UInt64(RecordHeader.byteCount + part.count * DroppedObject.byteCount)
            guard parts.ledger.withLock({ $0.claim(bytes, for: .moving) }) == .granted else { return false }
            guard ensureActiveSegmentForDrops() else {
                parts.ledger.withLock { $0.unclaim(bytes) }
                return false
            }
            claimed += bytes
            batch?.add(drops: part, storedAt: DiskStoreParts.wallClock)
            rest = rest.dropFirst(part.count)
        }
        return true
    }

    private static let dropsMax = 4096

    /// They may go a little beyond a segment's length: closing it here would begin anew with what is being written.
    private func ensureActiveSegmentForDrops() -> Bool { active != nil || startSegment() }

    private func apply(_ step: Step, _ changes: inout [BookChange], _ renewed: inout [(ObjectID, UInt64)]) {
        switch step {
        case .publish(let object, let place): publish(object, place, &changes)
        case .moved(let record, let place): moved(record, place, &changes)
        case .dropped(let removals): drop(removals, &changes)
        case .change(let change): changes.append(change)
        case .renew(let id, let hash, let key, let attributes, let head, let serial):
            // Where a later one waits it will come; where none does it was merged, or the object is gone.
            guard parts.renewals.latest(of: id)?.serial == serial,
                parts.index.setRenewed(hash, id, attributes.storageClass)
            else { return }
            changes.append(.renew(id, key: key, attributes, head: head))
            renewed.append((id, serial))
        }
    }

    /// The bytes could not be written.
    private func undo(_ step: Step) {
        switch step {
        case .publish(let object, let place): refuse(object, place.recordLength)
        case .moved: break  // they stay where they are; who asked is told
        case .dropped(let removals):
            var changes: [BookChange] = []
            drop(removals, &changes)
            keeper.record(changes)
        case .change(let change): keeper.record([change])
        case .renew:
            var changes: [BookChange] = []
            var renewed: [(ObjectID, UInt64)] = []
            apply(step, &changes, &renewed)
            keeper.record(changes, renewed: renewed)
        }
    }

    private func drop(_ removals: [Removal], _ changes: inout [BookChange]) {
        for removal in removals {
            if removal.isInBook { changes.append(.remove(removal.id, key: removal.key)) }
            if removal.isLarge { keeper.deleteAfterCommit(removal.segment) }
        }
    }

    private func publish(_ object: PackedObject, _ place: Place, _ changes: inout [BookChange]) {
        let attributes = object.attributes
        guard
            let entry = DiskIndexEntry(
                hash: object.hash, id: object.id, place: place, storageClass: attributes.storageClass,
                isRenewed: parts.renewals.latest(of: object.id) != nil)
        else { preconditionFailure("what could be encoded can be named") }
        let isPublished = parts.pending.publish(object.hash, object.id) {
            let isNew = parts.addToIndex(entry, wasPromised: true)
            precondition(isNew, "an object is stored once")
        }
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
    private func move(_ records: [MovedRecord], _ room: UInt64) -> Bool {
        writeBatch()
        let isWritten = copy(records, room)
        // Nobody but the reclaimer, which waits, claims for moving: what the drops need of this is there.
        writeBatch()
        return isWritten
    }

    private func copy(_ records: [MovedRecord], _ room: UInt64) -> Bool {
        var left = room
        defer { parts.ledger.withLock { $0.unclaim(left) } }
        for record in records {
            let length = record.recordLength
            guard parts.health.isOn, length <= left, ensureActiveSegment(for: length), let place = added(record) else {
                return false
            }
            precondition(place.recordLength == length, "a record takes what it said")
            left -= length
            claimed += length
            steps.append(.moved(record, place))
            if let batch, batch.byteCount >= 2 * parts.tuning.batchBytes, !flushed() { return false }
        }
        return flushed()
    }

    /// Writes the batch without the drops that wait.
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
        do { return try batch?.add(copyOf: head, body: record.body.allBytes) } catch { return nil }
    }

    private func moved(_ record: MovedRecord, _ place: Place, _ changes: inout [BookChange]) {
        let hash = parts.options.hash(record.key)
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
        guard isMoved else {
            return removals.append(
                Removal(id: record.id, key: record.key, segment: place.segment, isLarge: false, isInBook: false))
        }
        if !isLater { parts.renewals.forget(record.id, through: record.renewal ?? 0) }
        parts.counters.movedBytes.count(place.recordLength)
        changes.append(.put(BookEntry(id: record.id, key: record.key, place: place, attributes: attributes)))
    }

    private func carry(_ drops: [DroppedObject], _ room: UInt64) -> Bool {
        writeBatch()
        parts.ledger.withLock { $0.unclaim(room) }
        let isAdded = parts.health.isOn && addDropRecords(drops)
        return flushed() && isAdded
    }
}
