import EventLoop
import Glibc

/// Fills the index when a store starts: from the book, and from the records that the segments have beyond it. It runs on a
/// thread of its own while the store is already in use.
///
/// 1. `measure`: tell the ledger all files. Nothing may be written before: the ledger would count too little.
/// 2. `recoverTails`: read each segment from the end that the book knows, the newest segment first. Add the objects, and note
///    the drop records. The drop record of an object stands behind it or in a later segment, and so it is noted before the
///    object is met.
/// 3. `loadBook`: add the entries of the book, except those that were dropped, those that are in the index already (the record
///    was copied forward), and those whose file does not reach that far.
/// 4. `recoverLargeFiles`: add large objects that the book does not know. `finishBook` comes last: only now may the book say
///    that it covers each segment to its end. A crash before that makes the next start do all of this again.
///
/// If the book was lost, step 3 has nothing to add and step 2 reads whole segments: an object can be found as soon as its
/// segment was read. A book that cannot be read to its end counts as lost: it is moved aside, an empty book takes its place, and
/// all segments are read, also those of this run. Until all is done, `find` says `.loading` when it has nothing.
///
/// Removals that happen meanwhile are kept in `DiskStoreLoading`, and `addToIndex` asks it under its lock.
final class Recovery: @unchecked Sendable {  // used by one thread
    private let parts: DiskStoreParts
    private let keeper: BookKeeper
    private let queue: WriterQueue
    private let isStopped: @Sendable () -> Bool
    /// The book is lost: the segments alone say what is stored.
    private var isRebuild: Bool
    private let segmentNumbers: [UInt32]
    private let largeNumbers: Set<UInt32>
    /// Segments that cannot be read. Nobody knows what is in them, so they stay as they are.
    private var unreadable: Set<UInt32> = []

    /// The length of each file when the store started.
    private var lengths: [UInt32: UInt64] = [:]
    private var known: [UInt32: BookSegment] = [:]
    /// The objects that drop records name, each with the last segment that its record stood in.
    private var dropped: [ObjectID: UInt32] = [:]
    private var changes: [BookChange] = []
    private var addedCount = 0
    private var lostCount = 0

    init(
        parts: DiskStoreParts, keeper: BookKeeper, queue: WriterQueue, isRebuild: Bool,
        numbers: (segments: [UInt32], large: [UInt32]), isStopped: @escaping @Sendable () -> Bool
    ) {
        self.parts = parts
        self.keeper = keeper
        self.queue = queue
        self.isRebuild = isRebuild
        self.isStopped = isStopped
        segmentNumbers = numbers.segments.sorted()
        // Both kinds take their numbers from one counter. Whoever put a second file of a number there, it is not ours.
        largeNumbers = Set(numbers.large).subtracting(numbers.segments)
    }

    /// Step 1.
    func measure() {
        precondition(lengths.isEmpty, "files are told to the ledger once")
        // If this cannot be read, neither can the entries: `loadBook` deals with it.
        do throws(BookError) { known = try parts.book.segments() } catch { parts.log(.error, "\(error)") }
        for number in (segmentNumbers + largeNumbers).sorted() {
            let isLarge = largeNumbers.contains(number)
            let path = isLarge ? parts.directory.largePath(number) : parts.directory.segmentPath(number)
            var status = stat()
            guard unsafe lstat(path, &status) == 0 else {
                parts.log(.warning, "cannot examine \(path): \(systemErrorText(errno))")
                continue
            }
            let length = UInt64(max(status.st_size, 0))
            // Only files of earlier processes get an entry, with their length at the start. `putIntoBook` knows the files of this
            // run by that.
            lengths[number] = length
            // The file of a large object is sparse only where the file system could not allocate: what it occupies counts.
            let allocatedBytes = isLarge ? max(length, UInt64(max(status.st_blocks, 0)) * 512) : length
            parts.ledger.withLock { ledger in
                ledger.load(number, isLarge ? .large : .shared, fileBytes: allocatedBytes)
                if known[number]?.isEmptied == true { ledger.noteEmptied(number) }
            }
        }
        parts.ledger.withLock { ledger in
            ledger.setBook(bytes: parts.book.fileBytes)
            ledger.endMeasuring()
        }
    }

    /// Steps 2 to 4. Returns false if the store was closed before the end.
    func run() -> Bool {
        parts.index.reserve(parts.book.objectCount)
        if isRebuild {
            parts.log(.error, "rebuilding the book from the segments; what is found can be served meanwhile")
        }
        recoverTails()
        if !loadBook() { rebuild() }
        recoverLargeFiles()
        // After a stop, `finishBook` would promise that the book covers segments that nobody has read.
        guard !isStopped() else { return false }
        finishBook()
        let rest = lostCount > 0 ? ", \(lostCount) were lost" : ""
        let what = isRebuild ? "the book is rebuilt" : "started"
        parts.log(
            .info, "\(what): \(parts.index.count) stored responses, \(addedCount) of them not in the book before\(rest)"
        )
        return true
    }

    // MARK: segments

    /// Reads what the book does not know: segments that the last process was writing, or all of them if the book is lost.
    ///
    /// The newest segment comes first. Of two records with one number the later place counts, and drop records stand behind the record
    /// they drop or in a later segment. Both hold only in this order.
    private func recoverTails() {
        let tails = segmentNumbers.reversed().filter { number in
            guard let length = lengths[number] else { return false }
            // The segment was begun after the last commit, or its entry is damaged.
            guard let known = known[number] else { return true }
            return !known.isClosed && known.coveredEnd < length
        }
        // Checksums of bodies are compared whenever something is read. Here they show what a power cut left, and are compared
        // only if there is not too much to read.
        let depth: RecordScan.Depth = isRebuild || tails.count > 8 ? .heads : .everything
        for number in tails {
            if isStopped() { return }
            recoverTailOrSetAside(number, depth)
        }
    }

    /// Reads a segment, twice if need be. A segment that cannot be read stays as it is: the reclaimer must not take it for
    /// empty, and the next start tries again.
    private func recoverTailOrSetAside(_ number: UInt32, _ depth: RecordScan.Depth) {
        do throws(DiskReadError) { return try recoverTail(number, depth) } catch { parts.counters.readErrors.count() }
        do throws(DiskReadError) { return try recoverTail(number, depth) } catch {
            parts.counters.readErrors.count()
            parts.log(.error, "cannot read \(parts.directory.segmentPath(number)); it stays as it is: \(error)")
            unreadable.insert(number)
            parts.ledger.withLock { $0.setAside(number) }
        }
    }

    /// Reads one segment from the end that the book knows. If it throws, what was noted so far stays; noting it again does no harm.
    private func recoverTail(_ number: UInt32, _ depth: RecordScan.Depth) throws(DiskReadError) {
        let file = try parts.files.file(number, waits: true)
        let from = max(known[number]?.coveredEnd ?? 0, UInt64(SegmentFile.headerBytes))
        var scan = RecordScan(file, from: from, depth: depth, mode: .search)
        var heads: [StoredHead] = []
        var damaged: UInt64 = 0
        while let found = try scan.next() {
            switch found {
            case .object(let head): heads.append(head)
            case .drops(let drops, _, _):
                for drop in drops {
                    parts.noteID(drop.id)
                    dropped[drop.id] = max(drop.segment, dropped[drop.id] ?? 0)
                }
            case .damagedObject(let head, _): damaged += head.place.recordLength
            case .damaged(let range, _): damaged += UInt64(range.count)
            }
        }
        if damaged > 0 {
            parts.log(.info, "\(damaged) bytes at the end of \(file.path) are damaged or were not written completely")
        }
        // The last record counts: of an object that was copied within the segment, and of the objects under one key.
        for head in heads.reversed() { recover(head) }
        // An older copy of an object that was removed later: its drop record must be kept for as long as this segment exists. Without
        // the old book nothing else says so.
        if isRebuild, heads.contains(where: { (dropped[$0.id] ?? 0) > number }) {
            parts.ledger.withLock { $0.noteEmptied(number) }
        }
        flushChanges(all: false)
    }

    /// Adds an object that was found in a segment. If it is in the index already, that is the later copy, which counts.
    private func recover(_ head: StoredHead) {
        parts.noteID(head.id)
        guard dropped[head.id] == nil else { return }
        let entry = BookEntry(id: head.id, key: head.key, place: head.place, attributes: head.attributes)
        // A rebuilt book is empty: it must also be told of objects that are in the index already.
        if addToIndex(entry) || isRebuild && isIndexed(entry) { changes.append(.put(entry)) }
    }

    /// Whether the index has exactly this record of the object.
    private func isIndexed(_ entry: BookEntry) -> Bool {
        parts.index.entry(parts.options.hash(entry.key), entry.id)?.isAt(entry.place) ?? false
    }

    /// Returns false if the object is in the index already, or was removed while the store was loading.
    private func addToIndex(_ entry: BookEntry) -> Bool {
        let hash = parts.options.hash(entry.key)
        guard
            let indexed = DiskIndexEntry(
                hash: hash, id: entry.id, place: entry.place, storageClass: entry.attributes.storageClass,
                isRenewed: entry.hasRenewedHead)
        else { return false }
        var isNew = false
        let isWanted = parts.loading.take(hash, entry.id) { isNew = parts.addToIndex(indexed, wasPromised: false) }
        if isNew { addedCount += 1 }
        guard !isWanted else { return isNew }
        let removal = Removal(
            id: entry.id, key: entry.key, segment: entry.place.segment, isLarge: entry.place.kind == .large,
            isInBook: true)
        _ = queue.put(.drop(removal))
        return false
    }

    // MARK: book

    /// Adds the entries of the book. Returns false if it cannot be read to its end.
    private func loadBook() -> Bool {
        guard !isRebuild else { return true }
        let before = addedCount
        // The message at the end counts what the book did not know.
        defer { addedCount = before }
        var seen = 0
        do throws(BookError) {
            var cursor: BookCursor?
            repeat {
                if let fault = parts.tuning.bookLoadFault(seen) { throw fault }
                cursor = try parts.book.load(after: cursor, limit: parts.tuning.bookEntriesAtATime) { entry in
                    load(entry)
                    seen += 1
                    return seen & 1023 != 0 || !isStopped()
                }
                // Between two transactions: a commit may have to wait for readers of the book.
                flushChanges(all: false)
            } while cursor != nil
        } catch {
            parts.log(.error, "cannot read the book to its end: \(error)")
            return false
        }
        return true
    }

    /// Replaces a book that turned out to be damaged. The entries that could be read stay in the index; the segments have the
    /// rest.
    private func rebuild() {
        guard !isStopped() else { return }
        isRebuild = true
        // What the lost book knew no longer counts: each segment is read from its beginning.
        known = [:]
        changes = []
        let aside = parts.directory.bookAside()
        parts.log(.error, "moving the book to \(aside) and rebuilding it from the segments")
        do throws(BookError) { try parts.book.startAnew(movedTo: aside) } catch {
            parts.health.turnOff("cannot rebuild the book: \(error)")
        }
        recoverTails()
        putIntoBook()
    }

    /// Tells the new book of the files that this process wrote since its start. The index has their objects, but the old book
    /// may have been the only one to know them.
    private func putIntoBook() {
        let numbers: (segments: [UInt32], large: [UInt32])
        do throws(DiskRefusal) { numbers = try parts.directory.fileNumbers() } catch {
            return parts.log(.error, "\(error)")
        }
        for number in numbers.segments where lengths[number] == nil {
            do throws(DiskReadError) {
                var scan = RecordScan(try parts.files.file(number, waits: true), depth: .heads, mode: .search)
                while let found = try scan.next() {
                    guard case .object(let head) = found else { continue }
                    let entry = BookEntry(id: head.id, key: head.key, place: head.place, attributes: head.attributes)
                    // An object that is not in the index yet will be recorded by the writer.
                    if isIndexed(entry) { changes.append(.put(entry)) }
                }
            } catch {
                // The book does not know this segment, so the next start reads it.
                parts.log(.error, "cannot read \(parts.directory.segmentPath(number)): \(error)")
            }
            flushChanges(all: false)
        }
        for number in numbers.large { putIntoBook(large: number) }
    }

    private func putIntoBook(large number: UInt32) {
        guard parts.large.known(number) != nil else { return }
        do throws(DiskFileError) {
            let file = try LargeFile.open(
                parts.directory.largePath(number), parts.identity(number), writes: false, calls: parts.calls)
            let entry = BookEntry(
                id: file.id, key: file.head.key, place: file.place, attributes: file.head.attributes,
                isComplete: file.isComplete)
            guard isIndexed(entry) else { return }
            changes.append(.put(entry))
            changes.append(.segment(number, BookSegment(coveredEnd: file.fileBytes, isClosed: true)))
        } catch {
            parts.log(.error, "cannot read \(parts.directory.largePath(number)): \(error)")
        }
        flushChanges(all: false)
    }

    /// Adds an entry of the book, or has it removed from the book if its record is gone.
    private func load(_ entry: BookEntry) {
        parts.noteID(entry.id)
        if dropped[entry.id] != nil {
            changes.append(.remove(entry.id, key: entry.key))
        } else if isThere(entry.place) {
            // False means that the record was copied forward and is in the index at its new place.
            _ = addToIndex(entry)
        } else if parts.index.entry(parts.options.hash(entry.key), entry.id) == nil {
            lostCount += 1
            changes.append(.remove(entry.id, key: entry.key))
        }
    }

    /// Whether the file exists and reaches far enough. The bytes are not read: every later read compares checksums.
    private func isThere(_ place: Place) -> Bool {
        guard let length = lengths[place.segment] else { return false }
        switch place.kind {
        case .packed: return !largeNumbers.contains(place.segment) && place.offset + place.recordLength <= length
        case .large: return largeNumbers.contains(place.segment)
        }
    }

    // MARK: large objects

    /// Adds large objects that the book does not know, and deletes files whose objects were removed. This comes after `loadBook`,
    /// which adds those that the book knows.
    private func recoverLargeFiles() {
        for number in largeNumbers.sorted().reversed() where lengths[number] != nil {
            if isStopped() { return }
            // `addToIndex` has registered the objects of the book, and those that this process has stored.
            guard parts.large.known(number) == nil else { continue }
            // The book knows the file but not its object: the object was removed, and the crash came before the deletion.
            if known[number] == nil || isRebuild, recover(large: number) { continue }
            keeper.deleteAfterCommit(number)
        }
        flushChanges(all: true)
    }

    /// Returns false if the file is of no use: its head is damaged, or its object was removed.
    private func recover(large number: UInt32) -> Bool {
        do throws(DiskFileError) {
            let file = try LargeFile.open(
                parts.directory.largePath(number), parts.identity(number), calls: parts.calls)
            parts.noteID(file.id)
            guard dropped[file.id] == nil else { return false }
            let entry = BookEntry(
                id: file.id, key: file.head.key, place: file.place, attributes: file.head.attributes,
                isComplete: file.isComplete)
            guard addToIndex(entry) else { return false }
            changes.append(.put(entry))
            changes.append(.segment(number, BookSegment(coveredEnd: file.fileBytes, isClosed: true)))
            return true
        } catch {
            return false  // a crash came before its head was written completely
        }
    }

    // MARK: the end

    /// Tells the book that it knows every segment to its end. All changes that this promise covers were recorded before.
    private func finishBook() {
        let emptied = parts.ledger.withLock { $0.emptied }
        for number in segmentNumbers where !unreadable.contains(number) {
            guard let length = lengths[number] else { continue }
            let state = BookSegment(coveredEnd: length, isClosed: true, isEmptied: emptied.contains(number))
            if known[number] != state { changes.append(.segment(number, state)) }
        }
        for number in known.keys where lengths[number] == nil { changes.append(.forgetSegment(number)) }
        flushChanges(all: true)
    }

    /// Hands the changes to the keeper. Waits while the keeper is behind: so many changes must not be in memory twice.
    private func flushChanges(all: Bool) {
        guard all || changes.count >= 1024 else { return }
        while keeper.waitingChanges > 4 * parts.tuning.commitChangesMax, !isStopped(), parts.health.isOn {
            if !keeper.commitNow() { break }
        }
        keeper.record(changes)
        keeper.record(changes.compactMap(removedMeanwhile))
        changes.removeAll(keepingCapacity: true)
    }

    /// The removal of the object, if it is no longer in the index: the removal may have been recorded before the entry that is
    /// recorded now. A removal that happens after this look is recorded after it.
    private func removedMeanwhile(_ change: BookChange) -> BookChange? {
        guard case .put(let entry) = change,
            parts.index.entry(parts.options.hash(entry.key), entry.id) == nil
        else { return nil }
        return .remove(entry.id, key: entry.key)
    }
}
