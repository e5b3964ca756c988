import EventLoop
import Glibc

/// Fills the index when a store starts: from the book, and from what the segments have beyond it. Runs on a thread of
/// its own, and while it does, the store is used.
///
/// 1. All files are told to the ledger.
/// 2. What stands in each segment behind the end that the book knows, newest segment first: objects are addedCount in,
///    drop records heard. An object's drop record stands behind it, or in a later segment, so that it was heard
///    before the object is addedCount in.
/// 3. The book's entries, but for those that were dropped, are in the index already (copied forward), or point to
///    what is not there.
/// 4. Large objects that the book does not know; and only then the book is told how far it knows each segment.
///
/// Where the book was lostCount, its part is empty and that of the segments is all: objects can be read as soon as their
/// segment was gone through. A book that can not be read to its end is lostCount too: it is put aside, an empty one takes its
/// place, and all segments are gone through, those of this run as well. `find` gives what it has; where it has nothing it says `.loading` until all is done.
final class Recovery: @unchecked Sendable {  // used by one thread
    private let parts: DiskStoreParts
    private let keeper: BookKeeper
    private let queue: WriterQueue
    private let isStopped: @Sendable () -> Bool
    /// The book was lostCount.
    private var isRebuild: Bool
    private let segmentNumbers: [UInt32]
    private let largeNumbers: Set<UInt32>
    /// Segments that could not be read: what stands in them is not known.
    private var unreadable: Set<UInt32> = []

    /// Bytes of each file.
    private var lengths: [UInt32: UInt64] = [:]
    private var known: [UInt32: BookSegment] = [:]
    private var dropped: Set<ObjectID> = []
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
        largeNumbers = Set(numbers.large)
    }

    /// Step 1.
    func measure() {
        // Where it can not be read, neither can the rest (`loadBook`).
        do throws(BookError) { known = try parts.book.segments() } catch { parts.log(.error, "\(error)") }
        for number in (segmentNumbers + largeNumbers).sorted() {
            let isLarge = largeNumbers.contains(number)
            let path = isLarge ? parts.directory.largePath(number) : parts.directory.segmentPath(number)
            var status = stat()
            guard unsafe lstat(path, &status) == 0 else {
                parts.log(.warning, "\(path) can not be looked at: errno \(errno)")
                continue
            }
            let length = UInt64(max(status.st_size, 0))
            lengths[number] = length
            // Of a large object all its room was addedCount, and room is what counts.
            let allocatedBytes = isLarge ? max(length, UInt64(max(status.st_blocks, 0)) * 512) : length
            parts.ledger.withLock { $0.load(number, isLarge ? .large : .shared, fileBytes: allocatedBytes) }
        }
        parts.ledger.withLock { $0.setBook(bytes: parts.book.fileBytes) }
    }

    /// Steps 2 to 4. False: it was stopped before the end.
    func run() -> Bool {
        parts.index.reserve(parts.book.objectCount)
        if isRebuild {
            parts.log(.error, "the book is made anew from the segments; what is found can be read meanwhile")
        }
        recoverTails()
        if !loadBook() { rebuild() }
        recoverLargeFiles()
        guard !isStopped() else { return false }
        finishBook()
        let rest = lostCount > 0 ? ", \(lostCount) were lost" : ""
        let what = isRebuild ? "the book is made anew" : "started"
        parts.log(.info, "\(what): \(parts.index.count) objects, \(addedCount) of them not in the book before\(rest)")
        return true
    }

    // MARK: segments

    private func recoverTails() {
        let tails = segmentNumbers.reversed().filter { number in
            guard let length = lengths[number] else { return false }
            guard let known = known[number] else { return true }
            return !known.isClosed && known.coveredEnd < length
        }
        // Checksums are looked at whenever something is read; here they tell what a power cut left, where that is not
        // too much.
        let depth: RecordScan.Depth = isRebuild || tails.count > 8 ? .heads : .everything
        for number in tails {
            if isStopped() { return }
            recoverTailOrSetAside(number, depth)
        }
    }

    /// What can not be read, not even at the second attempt, stays as it is: reclaiming must not take it for empty, and the next
    /// start looks again.
    private func recoverTailOrSetAside(_ number: UInt32, _ depth: RecordScan.Depth) {
        do throws(DiskReadError) { return try recoverTail(number, depth) } catch { parts.counters.readErrors.count() }
        do throws(DiskReadError) { return try recoverTail(number, depth) } catch {
            parts.counters.readErrors.count()
            parts.log(.error, "\(parts.directory.segmentPath(number)) can not be read, and stays as it is: \(error)")
            unreadable.insert(number)
            parts.ledger.withLock { $0.setAside(number) }
        }
    }

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
                    dropped.insert(drop.id)
                }
            case .damagedObject(let head, _): damaged += head.place.recordLength
            case .damaged(let range, _): damaged += UInt64(range.count)
            }
        }
        if damaged > 0 {
            parts.log(.info, "\(damaged) bytes at the end of \(file.path) were not wholly written, or are damaged")
        }
        // The latest first: of an object that stands there twice, and of those under one key.
        for head in heads.reversed() { recover(head) }
        flushChanges(all: false)
    }

    private func recover(_ head: StoredHead) {
        parts.noteID(head.id)
        guard !dropped.contains(head.id) else { return }
        let entry = BookEntry(id: head.id, key: head.key, place: head.place, attributes: head.attributes)
        // Of what is in already an empty book has to be told too.
        if addToIndex(entry) || isRebuild && isIndexed(entry) { changes.append(.put(entry)) }
    }

    private func isIndexed(_ entry: BookEntry) -> Bool {
        parts.index.entry(parts.options.hash(entry.key), entry.id)?.isAt(entry.place) ?? false
    }

    /// False: it is in already, or was removed meanwhile.
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

    /// False: it could not be read to its end.
    private func loadBook() -> Bool {
        guard !isRebuild else { return true }
        let before = addedCount
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
                // Not while the book is read: a commit may have to wait for those who do.
                flushChanges(all: false)
            } while cursor != nil
        } catch {
            parts.log(.error, "the book can not be read to its end: \(error)")
            return false
        }
        return true
    }

    /// The book is damaged, whatever it says of itself: what it said so far holds, and the rest is looked for in the segments.
    private func rebuild() {
        guard !isStopped() else { return }
        isRebuild = true
        known = [:]
        changes = []
        let aside = parts.directory.bookAside()
        parts.log(.error, "the book is moved to \(aside), and made anew from the segments")
        do throws(BookError) { try parts.book.startAnew(movedTo: aside) } catch {
            parts.health.turnOff("the book could not be made anew: \(error)")
        }
        recoverTails()
        putIntoBook()
    }

    /// Files that this run made: the index knows what is in them, and the book that was put aside may have known as well.
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
                    // What is not there yet is about to be told to the new book.
                    if isIndexed(entry) { changes.append(.put(entry)) }
                }
            } catch {
                // It is not known to the book: the next start goes through it.
                parts.log(.error, "\(parts.directory.segmentPath(number)) can not be read: \(error)")
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
            parts.log(.error, "\(parts.directory.largePath(number)) can not be read: \(error)")
        }
        flushChanges(all: false)
    }

    private func load(_ entry: BookEntry) {
        parts.noteID(entry.id)
        if dropped.contains(entry.id) {
            changes.append(.remove(entry.id, key: entry.key))
        } else if isThere(entry.place) {
            // False where it is in already: it was copied forward.
            _ = addToIndex(entry)
        } else if parts.index.entry(parts.options.hash(entry.key), entry.id) == nil {
            lostCount += 1
            changes.append(.remove(entry.id, key: entry.key))
        }
    }

    private func isThere(_ place: Place) -> Bool {
        guard let length = lengths[place.segment] else { return false }
        switch place.kind {
        case .packed: return !largeNumbers.contains(place.segment) && place.offset + place.recordLength <= length
        case .large: return largeNumbers.contains(place.segment)
        }
    }

    // MARK: large objects

    private func recoverLargeFiles() {
        for number in largeNumbers.sorted().reversed() where lengths[number] != nil {
            if isStopped() { return }
            guard parts.large.known(number) == nil else { continue }
            // A file of which the book knows nothing but that it is there: its object was removed.
            if known[number] == nil || isRebuild, recover(large: number) { continue }
            keeper.deleteAfterCommit(number)
        }
        flushChanges(all: true)
    }

    private func recover(large number: UInt32) -> Bool {
        do throws(DiskFileError) {
            let file = try LargeFile.open(
                parts.directory.largePath(number), parts.identity(number), calls: parts.calls)
            parts.noteID(file.id)
            guard !dropped.contains(file.id) else { return false }
            let entry = BookEntry(
                id: file.id, key: file.head.key, place: file.place, attributes: file.head.attributes,
                isComplete: file.isComplete)
            guard addToIndex(entry) else { return false }
            changes.append(.put(entry))
            changes.append(.segment(number, BookSegment(coveredEnd: file.fileBytes, isClosed: true)))
            return true
        } catch {
            return false  // its head was not wholly written
        }
    }

    // MARK: the end

    /// Only when the book has all that stands before these ends may it know of them.
    private func finishBook() {
        for number in segmentNumbers where !unreadable.contains(number) {
            guard let length = lengths[number], known[number] != BookSegment(coveredEnd: length, isClosed: true)
            else { continue }
            changes.append(.segment(number, BookSegment(coveredEnd: length, isClosed: true)))
        }
        for number in known.keys where lengths[number] == nil { changes.append(.forgetSegment(number)) }
        flushChanges(all: true)
    }

    /// Hands changes to the keeper. Where it is behind, waits for it: so many must not be in memory twice.
    private func flushChanges(all: Bool) {
        guard all || changes.count >= 1024 else { return }
        while keeper.waitingChanges > 4 * parts.tuning.commitChangesMax, !isStopped(), parts.health.isOn {
            if !keeper.commitNow() { break }
        }
        keeper.record(changes)
        keeper.record(changes.compactMap(removedMeanwhile))
        changes.removeAll(keepingCapacity: true)
    }

    /// Its removal may have come to the book before it was put there. One that comes after this look comes behind it.
    private func removedMeanwhile(_ change: BookChange) -> BookChange? {
        guard case .put(let entry) = change,
            parts.index.entry(parts.options.hash(entry.key), entry.id) == nil
        else { return nil }
        return .remove(entry.id, key: entry.key)
    }
}
