import EventLoop
import Glibc
import Synchronization

/// A disk store: one directory, used by one process. Every call is for any thread, and none blocks unless it says so.
///
/// It knows nothing of HTTP: keys and heads are bytes.
package final class DiskStore: @unchecked Sendable {
    let parts: DiskStoreParts
    private let keeper: BookKeeper
    private let queue: WriterQueue
    private let reader: DiskStoreReader
    private let linesOfPinned = RareLine()
    private let linesOfBusy = RareLine()
    private let threads: DiskStoreThreads

    private init(_ parts: DiskStoreParts, _ threads: DiskStoreThreads) {
        self.parts = parts
        self.threads = threads
        keeper = threads.keeper
        queue = threads.queue
        reader = threads.reader
    }

    // MARK: opening and closing

    /// Opens a store. Blocks, but not for long: only the structure of the book is checked here, and its entries are read in the
    /// background (`whenLoaded`).
    package static func open(_ options: DiskOptions, calls: any DiskCalls) throws(DiskRefusal) -> DiskStore {
        try open(options, calls: calls, DiskStoreTuning())
    }

    static func open(
        _ options: DiskOptions, calls: any DiskCalls, _ tuning: DiskStoreTuning
    ) throws(DiskRefusal) -> DiskStore {
        let opening = try DiskStoreOpening(options, tuning, calls: calls)
        let threads = try DiskStoreThreads.start(opening)
        return DiskStore(opening.parts, threads)
    }

    /// Writes what waits, commits, synchronizes, and ends the threads. Blocks. No other call may follow.
    package func close() { threads.end(.orderly) }

    /// Ends like a killed process: nothing that waits is written or committed. For tests.
    func abandon() { threads.end(.sudden) }

    package enum State: Sendable, Equatable {
        case on
        /// Nothing is written until there is space or the error is gone. What is stored can be read.
        case off(reason: String)
    }
    package var state: State { parts.health.state }
    /// The same without the reason. Cheap.
    package var isOn: Bool { parts.health.isOn }
    /// Whether the index is filled. Until then, or until the store ends, `find` returns `.loading` when it has nothing.
    package var isLoaded: Bool { parts.loading.isLoaded }
    /// Blocks until the store is loaded, for `loadWaitMax` at most. Returns false if it is not loaded then.
    @discardableResult
    package func waitUntilLoaded() -> Bool { parts.loading.wait(parts.tuning.loadWaitMax) }
    /// Calls `call` once when the store is loaded or has ended, on any thread; at once if that is so already.
    package func whenLoaded(_ call: @escaping @Sendable () -> Void) { parts.loading.whenOver(call) }

    /// How many bytes of bodies and heads may wait to be written.
    package func setQueue(bytesMax: Int) { queue.setBound(bytesMax) }
    /// Whether at least half of that waits. Cheap.
    package var isBehind: Bool { queue.isHalfFull }
    /// Whether that is so and nothing was written for some seconds: waiting for the store may take for ever.
    package var isStuck: Bool { queue.isStuck(for: parts.tuning.stuckAfter) }
    /// Calls `call` once, on any thread, when the store is no longer behind or has ended: at once if that is so already.
    package func whenCaughtUp(_ call: @escaping @Sendable () -> Void) { queue.whenLow(call) }

    /// What `store` would return for an object now.
    /// - Parameters:
    ///   - bytes: the length of its body, as far as it is known.
    ///   - isNow: whether it would be given to the store at once, and not when its body has come.
    package func prospect(bytes: Int, _ storageClass: StorageClass, isNow: Bool) -> StoreOutcome {
        guard parts.health.isOn else { return .off }
        if queue.isHalfFull, isStuck || isNow && queue.isFull { return .busy }
        if storageClass == .pinned, !parts.ledger.withLock({ $0.mayPromise(UInt64(max(bytes, 1)), storageClass) }) {
            return .pinnedQuotaFull
        }
        return .taken
    }

    /// Takes effect at once. A size below `Directory.sizeMin` is raised to it.
    package func setLimits(size: UInt64, pinned: UInt64, syncInterval: Duration) {
        let size = max(size, Directory.sizeMin)
        parts.ledger.withLock { $0.setLimits(DiskStoreParts.limits(size, pinned, parts.tuning)) }
        threads.wakeReclaimer()
        keeper.setSyncInterval(syncInterval)
        queue.signalSpace()
    }

    package var statistics: DiskStatistics {
        var statistics = DiskStatistics()
        parts.ledger.withLock { ledger in
            statistics.sizeBytes = ledger.limits.size
            // What is claimed is in files already, if it is for objects that grow, or will be soon.
            statistics.usedBytes = ledger.fileBytes + ledger.bookBytes + ledger.claimedBytes
            statistics.liveBytes = ledger.liveBytes
            statistics.pinnedLimitBytes = ledger.limits.pinned
            statistics.pinnedBytes = ledger.pinnedBytes
            statistics.objectCount = ledger.objectCount
            statistics.largeCount = ledger.largeCount
            statistics.segmentCount = ledger.segmentCount
            statistics.bookBytes = ledger.bookBytes
        }
        statistics.waitingBytes = queue.waitingBytes
        parts.counters.fill(&statistics)
        return statistics
    }

    // MARK: reading

    package enum Found: Sendable, Equatable {
        case nothing
        /// Places of objects whose key may be this one, the last stored one first. The caller compares the keys.
        case places([Place])
        /// The index is still being filled and has nothing yet.
        case loading
    }
    package func find(_ hash: UInt64) -> Found {
        let isOver = parts.loading.isOver  // read before the look, or an object added in between would be missed
        let entries = parts.index.find(hash)
        if entries.isEmpty { return isOver ? .nothing : .loading }
        return .places(entries.map(\.place))
    }

    /// Whether the object is still at this place.
    package func contains(_ id: ObjectID, hash: UInt64, _ place: Place) -> Bool {
        parts.index.entry(hash, id)?.isAt(place) ?? false
    }

    /// Whether the object is still stored, at any place.
    package func contains(_ id: ObjectID, hash: UInt64) -> Bool { parts.index.entry(hash, id) != nil }

    /// Reads the head at a place. If it is damaged, the object is removed, counted and logged. Throws `damaged` also if the object
    /// is no longer there.
    /// - Parameter waits: whether the call may block. If it may not, `wouldBlock` is thrown instead.
    package func readHead(_ place: Place, waits: Bool) throws(DiskReadError) -> StoredHead {
        try reader.readHead(place, waits: waits)
    }

    /// Reads blocks of the body of a packed object. `offset` is a multiple of `blockBytes`; `room` is a buffer for whole blocks, and
    /// may end with the body. The caller answers `damaged` with `dropDamaged`.
    package func readBody(
        of place: Place, checksums: [UInt32], offset: Int, into room: UnsafeMutableRawBufferPointer, waits: Bool
    ) -> DiskRead {
        unsafe reader.readBody(of: place, checksums: checksums, offset: offset, into: room, waits: waits)
    }

    /// Bytes of the body of a packed object that `readBody` has verified before, to be sent from the file. Nil if that may block.
    package func cachedBody(of place: Place, from offset: Int, count: Int) -> OpenFileRange? {
        reader.cachedBody(of: place, from: offset, count: count)
    }

    /// Objects whose key may be this one and which wait to be written: `find` does not return them.
    package func waiting(_ hash: UInt64) -> [WaitingHead] {
        parts.pending.waiting(hash).map { object in
            let renewal = parts.renewals.latest(of: object.id)
            return WaitingHead(
                id: object.id, key: object.key, attributes: renewal?.attributes ?? object.attributes,
                head: renewal?.head ?? object.head)
        }
    }

    /// Counts one use. Objects in use are kept longer.
    package func touch(_ id: ObjectID, hash: UInt64) { parts.index.touch(hash, id) }

    /// Runs `work`, which may block, on another thread. Returns false if too much waits.
    package func perform(_ work: @escaping @Sendable () -> Void) -> Bool { threads.pool.submit(work) }

    // MARK: writing

    /// A number for an object to be stored.
    package func nextID() -> ObjectID { parts.nextID() }
    /// The last number given out.
    package var newestID: ObjectID { ObjectID(rawValue: parts.lastIDGiven) }

    /// Has an object of at most 1 MiB written soon. Nothing is stored unless this returns `taken`. The object can be found once it
    /// is written.
    /// - Parameter isPromised: whether the object is taken however much waits. Whoever promises that holds back by `isBehind`.
    package func store(_ object: PackedObject, isPromised: Bool = false) -> StoreOutcome {
        guard parts.health.isOn else { return .off }
        guard object.body.byteCount <= parts.tuning.packedBytesMax, let length = recordLength(object) else {
            return .tooLarge
        }
        let storageClass = object.attributes.storageClass
        guard parts.ledger.withLock({ $0.promise(length, storageClass) }) else {
            refusedPinned(object.key)
            return .pinnedQuotaFull
        }
        // Before the job is queued: the writer refuses an object that does not wait.
        parts.pending.add(object)
        if queue.put(.object(object, length: length), bytes: Int(length), isBounded: !isPromised) { return .taken }
        parts.pending.cancel(object.hash, object.id)
        parts.ledger.withLock { $0.withdraw(length, storageClass) }
        refusedBusy(object.key)
        return .busy
    }

    /// Counts the refusal and logs it once a minute.
    private func refusedBusy(_ key: [UInt8]) {
        parts.counters.refusedBusy.count()
        guard linesOfBusy.isDue() else { return }
        parts.log(
            .warning,
            "\(DiskStoreParts.text(key)) and perhaps others are not on the disk: too much waits to be written already")
    }

    /// Returns nil if the object is too long for a record, or for a segment of this store.
    private func recordLength(_ object: PackedObject) -> UInt64? {
        let attributes = object.attributes
        guard
            let head = RecordCodec.headPartLength(
                kind: .packed, key: object.key, attributes: attributes, head: object.head,
                bodyLength: object.body.byteCount)
        else { return nil }
        let length = UInt64(head) + padded(UInt64(object.body.byteCount), to: 16)
        let segmentBytes = parts.ledger.withLock { $0.limits.segment }
        return length <= segmentBytes - UInt64(SegmentFile.headerBytes) ? length : nil
    }

    package enum StoreOutcome: Sendable, Equatable {
        case taken
        /// Too much waits to be written.
        case busy
        case off
        case tooLarge
        case pinnedQuotaFull
    }

    /// Removes an object, also one that waits to be written.
    package func remove(_ id: ObjectID, hash: UInt64, key: [UInt8]) {
        parts.loading.removed(id)
        // In this order, here and in `removeAll`. The loader and the writer move an object towards the index; a removal that looked
        // there first could miss an object on its way.
        if parts.pending.cancel(hash, id) { return parts.renewals.forget(id) }
        if let entry = parts.removeFromIndex(hash, id) { removed(entry, key) }
    }

    /// Removes an object that was found damaged, counts it and logs it.
    package func dropDamaged(_ id: ObjectID, hash: UInt64, key: [UInt8]) {
        parts.loading.removed(id)
        if let entry = parts.removeFromIndex(hash, id) { reader.damaged(entry, key: key) }
    }

    /// Removes all objects under the key. Returns how many there may have been: objects whose keys are not in memory are chosen by
    /// their hash.
    package func removeAll(hash: UInt64, key: [UInt8]) -> Int {
        parts.loading.removedAll(hash, through: ObjectID(rawValue: parts.lastIDGiven))
        let cancelled = parts.pending.cancelAll(hash)
        for id in cancelled { parts.renewals.forget(id) }
        let entries = parts.removeAllFromIndex(hash)
        for entry in entries { removed(entry, key) }
        return cancelled.count + entries.count
    }

    private func removed(_ entry: DiskIndexEntry, _ key: [UInt8]) {
        let isLarge = entry.place.kind == .large
        // A copy, because threads of the store free it. If they freed the keys that a worker allocated, a purge would leave the worker a
        // million pieces to collect at once (decision 29).
        let key = unsafe key.withUnsafeBytes { unsafe Array($0) }
        let removal = Removal(
            id: entry.id, key: key, segment: entry.place.segment, isLarge: isLarge, isInBook: true)
        _ = queue.put(.drop(removal))
    }

    /// Gives an object a renewed head, which goes into the book. If the storage class differs, the object moves to that class,
    /// provided its quota has room. A head that is too long for a record is refused, and the object stays as it was.
    package func renew(_ id: ObjectID, hash: UInt64, key: [UInt8], attributes: ObjectAttributes, head: [UInt8]) {
        var attributes = attributes
        // The writer must not publish the object in between: it would be found neither in the index nor as pending, and the renewal
        // would be lost.
        let serial: UInt64? = parts.pending.holding(hash, id) { isWaiting in
            if let entry = parts.index.entry(hash, id) {
                let place = entry.place
                let length = RecordCodec.headPartLength(
                    kind: place.kind, key: key, attributes: attributes, head: head, bodyLength: Int(place.bodyLength))
                guard length != nil else { return nil }
                attributes.storageClass = reclassified(hash, id, attributes.storageClass)
            } else if !isWaiting {
                return nil
            }
            guard let serial = parts.renewals.add(id, attributes, head: head) else { return nil }
            parts.index.setRenewed(hash, id, attributes.storageClass)
            return serial
        }
        guard let serial else { return }
        let bytes = key.count + head.count
        _ = queue.put(
            .renew(id, hash: hash, key: key, attributes, head: head, serial: serial), bytes: bytes)
    }

    /// The class that the object has from now on.
    private func reclassified(_ hash: UInt64, _ id: ObjectID, _ storageClass: StorageClass) -> StorageClass {
        parts.ledger.withLock { ledger in
            guard let entry = parts.index.entry(hash, id) else { return storageClass }
            let place = entry.place
            guard entry.storageClass != storageClass else { return storageClass }
            guard ledger.reclassify(place.recordLength, in: place.segment, to: storageClass) else {
                return entry.storageClass
            }
            parts.index.setClass(hash, id, storageClass)
            return storageClass
        }
    }

    /// Waits until everything requested before is written, in the book, and on the medium. Blocks. If something was removed while the
    /// index was being filled, this waits for the end of that too: the removal reaches book and segments only then.
    /// - Returns: false if that failed, if anything taken since the last flush could not be written, or if the index is not filled
    ///   within `loadWaitMax`.
    package func flush() -> Bool {
        if parts.loading.hasRemovals, !waitUntilLoaded() { return false }
        let answer = BlockingAnswer()
        // The writer makes this call when all jobs before it are done, so the keeper has their changes when it is asked to commit.
        let isTaken = queue.put(.call { [keeper] in keeper.commit { answer.give($0) } }, isUrgent: true)
        let isDone = isTaken && answer.wait()
        let isWhole = parts.counters.lostObjects.exchange(0, ordering: .relaxed) == 0
        return isDone && isWhole && parts.health.isOn
    }

    // MARK: notes

    /// Keeps a few bytes in the book, in place of an earlier note with the name. Blocks. Returns false if they could not be written.
    package func keep(_ note: [UInt8], as name: String) -> Bool {
        guard parts.health.isOn else { return false }
        do throws(BookError) {
            try parts.book.commit([.note(name: name, note)])
            return true
        } catch { return false }
    }

    /// The note with the name. Blocks. Nil if there is none, or if it cannot be read.
    package func note(_ name: String) -> [UInt8]? { (try? parts.book.note(name)) ?? nil }

    // MARK: large objects

    /// Makes a large object without any blocks. Does not block: the writer creates the file. If that fails, writing every block ends
    /// in false.
    /// - Parameter length: of the body. All space is claimed first. Nil: not known yet; space is claimed as the object grows, and
    ///   nobody finds the object before `LargeObject.finish`.
    package func makeLarge(
        id: ObjectID, hash: UInt64, key: [UInt8], attributes: ObjectAttributes, head: [UInt8], length: Int?
    ) -> Result<LargeObject, StoreRefusal> {
        guard parts.health.isOn else { return .failure(StoreRefusal(.off)) }
        guard
            let headLength = RecordCodec.headPartLength(
                kind: .large, key: key, attributes: attributes, head: head, bodyLength: length ?? 0),
            let wholeBytes = LargeFile.fileBytes(key: key, attributes: attributes, head: head, length: length ?? 0)
        else { return .failure(StoreRefusal(.tooLarge)) }
        let fileBytes = length == nil ? UInt64(headLength) + Writer.growthBytes : wholeBytes
        let place = Place(
            kind: .large, segment: parts.nextNumber(), offset: 0, headLength: UInt32(headLength),
            bodyLength: UInt64(length ?? 0))
        let promised = length == nil ? fileBytes : place.recordLength
        let storageClass = attributes.storageClass
        let claim: Ledger.Claim
        switch claimLarge(promised, fileBytes, storageClass) {
        case .success(let granted): claim = granted
        case .failure(let refusal):
            if refusal.outcome == .pinnedQuotaFull { refusedPinned(key) }
            return .failure(refusal)
        }
        let object = LargeObject(
            new: id, hash: hash, key: key, attributes: attributes, head: head, place: place, grows: length == nil,
            fileBytes: fileBytes, promisedBytes: promised, isClaimed: claim == .granted, parts: parts, queue: queue)
        // Before the job is queued, as in `store`.
        parts.pending.add(object)
        // Blocks are not bounded by the queue, so its beginning is not either: whoever writes holds back by `isBehind`.
        if !isStuck, queue.put(.makeLarge(object), bytes: headLength) { return .success(object) }
        parts.pending.cancel(hash, id)
        parts.ledger.withLock { ledger in
            ledger.withdraw(promised, storageClass)
            if claim == .granted { ledger.unclaim(fileBytes) }
        }
        refusedBusy(key)
        return .failure(StoreRefusal(.busy))
    }

    private func claimLarge(
        _ promised: UInt64, _ fileBytes: UInt64, _ storageClass: StorageClass
    ) -> Result<Ledger.Claim, StoreRefusal> {
        parts.ledger.withLock { ledger in
            guard ledger.promise(promised, storageClass) else {
                return .failure(StoreRefusal(.pinnedQuotaFull))
            }
            // Claimed here and not only by the writer: the caller learns at once that an object can never have room.
            let claim = ledger.claim(fileBytes, for: .storing)
            guard claim != .never else {
                ledger.withdraw(promised, storageClass)
                return .failure(StoreRefusal(.tooLarge))
            }
            return .success(claim)
        }
    }

    /// Counts the refusal and logs it once a minute.
    private func refusedPinned(_ key: [UInt8]) {
        parts.counters.refusedPinned.count()
        guard linesOfPinned.isDue() else { return }
        parts.log(
            .error,
            "the quota of pinned responses is full: \(DiskStoreParts.text(key)) and others are kept as permanent; "
                + "purge pinned ones or raise `pinned`"
        )
    }

    package struct StoreRefusal: Error, Equatable, Sendable {
        package var outcome: StoreOutcome
        package init(_ outcome: StoreOutcome) {
            precondition(outcome != .taken, "what is taken is not refused")
            self.outcome = outcome
        }
    }

    /// The large object at a place, with its table of blocks. May block.
    package func openLarge(_ head: StoredHead, hash: UInt64) throws(DiskReadError) -> LargeObject {
        try openLarge(at: head.place, hash: hash)
    }

    /// The same by its place alone.
    package func openLarge(at place: Place, hash: UInt64) throws(DiskReadError) -> LargeObject {
        try reader.openLarge(place.segment, hash)
    }

    // MARK: listing

    /// Entries of the book in the order of host and path. Blocks. Sees everything that was stored before the last `flush`.
    /// - Parameters:
    ///   - cursor: where the last page ended. Nil: begin at the first entry.
    /// - Returns: nil if the book cannot be read, which is logged.
    package func page(after cursor: BookCursor?, in range: BookRange, limit: Int) -> (
        entries: [BookEntry], next: BookCursor?
    )? {
        listed { book throws(BookError) in try book.page(after: cursor, in: range, limit: limit) }
    }

    /// The same for the objects with a tag.
    package func page(after cursor: BookCursor?, tag: [UInt8], limit: Int) -> (
        entries: [BookEntry], next: BookCursor?
    )? {
        listed { book throws(BookError) in try book.page(after: cursor, tag: tag, limit: limit) }
    }

    private func listed(
        _ page: (Book) throws(BookError) -> (entries: [BookEntry], next: BookCursor?)
    ) -> (entries: [BookEntry], next: BookCursor?)? {
        do throws(BookError) {
            return try page(parts.book)
        } catch {
            parts.counters.readErrors.count()
            parts.log(.error, "cannot list the book: \(error)")
            return nil
        }
    }
}
