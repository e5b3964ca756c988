import EventLoop
import Glibc

/// The thread that keeps the book. Each turn runs in an order that a crash may stop at any line:
///
/// 1. synchronize the segments and large files that were written, and the directories that changed;
/// 2. commit the changes that refer to those bytes, in one transaction of the book;
/// 3. delete the files that the book no longer refers to;
/// 4. let a later turn synchronize the directories of the deleted files, and only then forget their numbers in the book.
///
/// So the book never names bytes that are not on the medium, and no file is deleted while the book still leads to it. After a
/// crash between 2 and 3 the file is found at the next start with nothing live in it. A batch that cannot be committed is kept
/// (`retained`) and tried again.
///
/// The thread also turns a store that is off on again (`probe`), and finds out which objects stood where a head turned out to
/// be damaged.
final class BookKeeper: @unchecked Sendable {  // `state` and the closures have locks; the rest belongs to the thread
    enum TouchedFile: Sendable {
        case segment(SegmentFile)
        case large(LargeFile)

        var number: UInt32 {
            switch self {
            case .segment(let file): file.identity.number
            case .large(let file): file.place.segment
            }
        }

        func synchronize() throws(DiskFileError) {
            switch self {
            case .segment(let file): try file.synchronize()
            case .large(let file): try file.synchronize()
            }
        }
    }

    /// The changes of one transaction, and what has to be on the medium before it is committed.
    private struct Batch {
        var changes: [BookChange] = []
        /// What the book will say of each segment, as of the last change.
        var ends: [UInt32: BookSegment] = [:]
        var touched: [UInt32: TouchedFile] = [:]
        var directories: Set<String> = []
        var renewed: [(ObjectID, UInt64)] = []
        var deletions: [UInt32] = []

        var isEmpty: Bool {
            changes.isEmpty && ends.isEmpty && touched.isEmpty && directories.isEmpty && deletions.isEmpty
        }

        /// Appends what was recorded later: it must be applied later.
        mutating func append(_ later: Batch) {
            if isEmpty, renewed.isEmpty { return self = later }
            changes += later.changes
            ends.merge(later.ends) { $1 }
            touched.merge(later.touched) { $1 }
            directories.formUnion(later.directories)
            renewed += later.renewed
            deletions += later.deletions
        }
    }
    private struct State {
        var batch = Batch()
        var waiters: [@Sendable (Bool) -> Void] = []
        var damaged: [Place] = []
        var syncInterval: Duration
        var isWanted = false
        var isAsleep = false
        var life = Life.open
    }
    private enum Life { case open, closing, abandoned }

    private let parts: DiskStoreParts
    private let state: Locked<State>
    private let wake = CountingSemaphore()
    /// Taken from `state` and not committed yet. Only this thread touches it.
    private var retained = Batch()
    private var lastProbe = ContinuousClock.now
    /// Object numbers below this one are reserved in the book, or will be with the next commit.
    private var reservedIDs: UInt64
    /// How many object numbers are reserved at a time.
    static let idsReserved: UInt64 = 1 << 20

    private let afterDeletion = Locked<(@Sendable () -> Void)?>(nil)
    private let wakeReclaimer = Locked<(@Sendable () -> Void)?>(nil)
    /// The last commit found no space.
    private var isBookFull = false
    /// How often a commit of a full book is tried before those who wait for it are told that it failed.
    private static let triesMax = 20
    private var triesLeft = triesMax
    private let dropLater = Locked<(@Sendable (Removal) -> Void)?>(nil)

    /// - Parameter reservedIDs: what the book says.
    init(parts: DiskStoreParts, reservedIDs: UInt64) {
        self.parts = parts
        self.reservedIDs = reservedIDs
        precondition(parts.options.syncInterval > .zero, "commits have an interval")
        state = Locked(State(syncInterval: parts.options.syncInterval))
    }

    /// - Parameters:
    ///   - afterDeletion: called when files were deleted, so that there may be space.
    ///   - drop: has a drop record written for an object that was taken out of the index, and tells the book.
    func connect(
        afterDeletion: @escaping @Sendable () -> Void, wakeReclaimer: @escaping @Sendable () -> Void,
        drop: @escaping @Sendable (Removal) -> Void
    ) {
        self.wakeReclaimer.withLock { $0 = wakeReclaimer }
        self.afterDeletion.withLock { $0 = afterDeletion }
        dropLater.withLock { $0 = drop }
        parts.health.connect(wakeKeeper: { self.wakeIfAsleep() })
    }

    /// Releases the closures. They hold objects that hold this one. Call it after the thread has ended.
    func disconnect() {
        parts.health.disconnect()
        afterDeletion.withLock { $0 = nil }
        wakeReclaimer.withLock { $0 = nil }
        dropLater.withLock { $0 = nil }
    }

    // MARK: called by other threads

    /// Adds changes to the next commit. The bytes they refer to must have been written. All changes of one call go into the
    /// same transaction.
    /// - Parameters:
    ///   - renewed: the renewals that are in `changes`, with their serial numbers.
    ///   - touched: the file that must be synchronized before the commit.
    ///   - end: how far the book knows the segment after the commit.
    func record(
        _ changes: [BookChange], renewed: [(ObjectID, UInt64)] = [], touched: TouchedFile? = nil,
        end: BookSegment? = nil
    ) {
        precondition(end == nil || touched != nil, "the end of a segment comes with the segment to synchronize")
        guard !changes.isEmpty || touched != nil else { return }
        let isFull = state.withLock { state in
            // Appending copies each change and counts its references, so the first list is taken as it is.
            if state.batch.changes.isEmpty { state.batch.changes = changes } else { state.batch.changes += changes }
            state.batch.renewed += renewed
            if let touched {
                state.batch.touched[touched.number] = touched
                if let end {
                    let before = state.batch.ends[touched.number]
                    precondition(
                        before.map { !$0.isClosed && $0.coveredEnd <= end.coveredEnd } ?? true,
                        "a segment only grows, and never after it is closed")
                    state.batch.ends[touched.number] = end
                }
            }
            return state.batch.changes.count >= parts.tuning.commitChangesMax
        }
        if isFull { commitSoon() }
    }

    /// Notes in the book that records of a closed segment are being copied to later ones. Call this before the changes with their new
    /// places are recorded: the note is then committed with them, or earlier.
    /// - Parameter length: the length of the segment, which the book knows completely.
    func noteEmptied(_ number: UInt32, length: UInt64) {
        state.withLock { state in
            precondition(
                (state.batch.ends[number]?.coveredEnd ?? length) == length, "a segment does not grow after it is closed"
            )
            state.batch.ends[number] = BookSegment(coveredEnd: length, isClosed: true, isEmptied: true)
        }
    }

    /// Has the directory synchronized before the next commit.
    func touch(directory: String) {
        precondition(directory.hasPrefix(parts.directory.path), "only directories of the store are synchronized")
        state.withLock { _ = $0.batch.directories.insert(directory) }
    }

    /// Deletes the file once everything recorded so far is committed, and takes it out of the ledger.
    func deleteAfterCommit(_ number: UInt32) { state.withLock { $0.batch.deletions.append(number) } }

    /// Takes the object at this place out of index and book: its head cannot be read.
    func reportDamaged(_ place: Place) {
        let isNew = state.withLock { state in
            // Many readers may meet the same damage at once.
            guard state.damaged.count < 1024, !state.damaged.contains(place) else { return false }
            state.damaged.append(place)
            return true
        }
        if isNew { commitSoon() }
    }

    /// Asks for a commit without waiting for it. Wakes the thread if it sleeps.
    func commitSoon() { wakeIfAsleep { $0.isWanted = true } }

    /// Ends the sleep of the thread. A thread that is awake looks at everything once more before it sleeps.
    private func wakeIfAsleep(_ change: (inout State) -> Void = { _ in }) {
        let mustWake = state.withLock { state in
            change(&state)
            defer { state.isAsleep = false }
            return state.isAsleep
        }
        if mustWake { wake.signal() }
    }

    /// Whether the thread sleeps and nobody has woken it. For tests.
    var isAsleep: Bool { state.withLock { $0.isAsleep } }

    /// Sets the time between two commits. Changes that waited under another interval are committed at once.
    func setSyncInterval(_ interval: Duration) {
        precondition(interval > .zero, "commits have an interval")
        let isOther = state.withLock { state in
            defer { state.syncInterval = interval }
            return state.syncInterval != interval
        }
        if isOther { commitSoon() }
    }

    /// Commits everything recorded so far.
    /// - Parameter then: called with the outcome on the keeper's thread, or at once with false if the thread has ended.
    func commit(then: @escaping @Sendable (Bool) -> Void) {
        let isOpen = state.withLock { state in
            guard state.life == .open else { return false }
            state.waiters.append(then)
            return true
        }
        if isOpen { commitSoon() } else { then(false) }
    }

    /// Like `commit`, and waits for the outcome.
    func commitNow() -> Bool {
        let answer = BlockingAnswer()
        commit { answer.give($0) }
        return answer.wait()
    }

    /// Changes that wait for a commit. A thread that makes many at once holds back while there are too many.
    var waitingChanges: Int { state.withLock { $0.batch.changes.count } }

    /// Commits once more, then ends.
    func close() { end(.closing) }
    /// Ends without another commit.
    func abandon() { end(.abandoned) }

    /// Changes the state that the thread sees after its next sleep. Changes that were recorded before are still in `state`.
    private func end(_ life: Life) {
        state.withLock { $0.life = life }
        wake.signal()
    }

    /// Reserves object numbers in the book before the thread begins. If it fails, the store is off.
    func commitBeforeStart() { _ = commitBatch() }

    // MARK: the thread

    /// The body of the thread. Returns when the keeper is closed or abandoned.
    func run() {
        while true {
            sleep()
            // The waiters are taken before the batch: what they have recorded is in the batch that `commitBatch` takes after this.
            let (life, waiters, damaged) = state.withLock { state in
                defer {
                    state.waiters = []
                    state.damaged = []
                    state.isWanted = false
                }
                return (state.life, state.waiters, state.damaged)
            }
            guard life != .abandoned else {
                for waiter in waiters { waiter(false) }
                return
            }
            if !damaged.isEmpty { dropUnreadable(at: damaged) }
            let isDone = commitBatch()
            if !isDone, isBookFull, life == .open, parts.health.isOn, triesLeft > 0 {
                // The reclaimer is evicting: those who wait get the outcome of a later attempt.
                triesLeft -= 1
                state.withLock { $0.waiters = waiters + $0.waiters }
            } else {
                triesLeft = Self.triesMax
                for waiter in waiters { waiter(isDone) }
            }
            if life == .closing { return }
            probeWhereDue()
        }
    }

    /// Waits for the interval to pass or for somebody to wake the thread.
    private func sleep() {
        guard let duration = nextSleep() else { return }
        _ = wake.wait(timeout: duration)
        state.withLock { $0.isAsleep = false }
    }

    /// How long to sleep if nobody wakes the thread, which counts as asleep from here on; nil: a turn is wanted at once. A full book
    /// is tried again much sooner than the interval says, and a store that is off as often as it is probed.
    func nextSleep() -> Duration? {
        let interval: Duration? = state.withLock { state in
            state.isAsleep = !state.isWanted && state.life == .open
            return state.isAsleep ? state.syncInterval : nil
        }
        guard let interval else { return nil }
        // Look at the health after `isAsleep` is set: whoever turns the store off later finds the thread asleep and wakes it.
        let duration = min(interval, parts.health.isOn ? .seconds(60) : parts.tuning.probeInterval)
        return isBookFull ? min(duration, .milliseconds(10)) : duration
    }

    /// Synchronizes, commits, then deletes. Returns false if something could not be done; `retained` keeps it.
    private func commitBatch() -> Bool {
        let (batch, isAbandoned) = state.withLock { state in
            defer { state.batch = Batch() }
            return (state.batch, state.life == .abandoned)
        }
        // Behind what an earlier attempt left: of two changes of one object, the later one counts.
        retained.append(batch)
        if isAbandoned { return false }
        reserveIDs()
        guard !retained.isEmpty else { return true }
        guard synchronize() else { return false }
        precondition(
            retained.touched.isEmpty && retained.directories.isEmpty, "everything is on the medium before the commit")
        guard write() else { return false }
        parts.counters.commits.count()
        let done = retained
        retained = Batch()
        // From here on the book has the changes. A crash before the deletions leaves files that the next start finds empty.
        for (id, serial) in done.renewed { parts.renewals.forget(id, through: serial) }
        delete(done.deletions)
        return true
    }

    /// Keeps the reserved numbers well ahead of those given out. A number that a crashed process gave out is then never given
    /// out again, though nothing on the disk may mention it.
    private func reserveIDs() {
        let given = parts.lastIDGiven
        guard given + Self.idsReserved / 2 > reservedIDs else { return }
        retained.changes.append(.reserveIDs(below: ObjectID(rawValue: given + Self.idsReserved)))
        reservedIDs = given + Self.idsReserved
    }

    /// Synchronizes files and directories. Each is taken off the list when it is done, so that a retry skips it.
    private func synchronize() -> Bool {
        do throws(DiskFileError) {
            for (number, file) in retained.touched {
                // The kernel reports an error once. If this fails, the next attempt may succeed although bytes are lost. Then the
                // book names records that are damaged. Their checksums show it, and the objects are fetched again.
                try file.synchronize()
                retained.touched[number] = nil
            }
            for directory in retained.directories {
                try DiskFile.synchronizeDirectory(of: directory + "/.", calls: parts.calls)
                retained.directories.remove(directory)
            }
            return true
        } catch {
            parts.counters.writeErrors.count()
            parts.health.turnOff("cannot put written data on the medium: \(error)")
            return false
        }
    }

    /// Commits the changes and the ends of segments. Either all of them are in the book afterwards, or none, except that a full book may
    /// take the removals alone (`commitRemovalsFirst`).
    private func write() -> Bool {
        do throws(BookError) {
            try commitChangesAndEnds()
            isBookFull = false
            return true
        } catch .full {
            return commitRemovalsFirst()
        } catch {
            parts.counters.writeErrors.count()
            parts.health.turnOff("cannot write the book: \(error)")
            return false
        }
    }

    private func commitChangesAndEnds() throws(BookError) {
        let count = retained.changes.count
        // They are appended in place and removed again: a copy of the list would count all references of each change.
        for (number, end) in retained.ends { retained.changes.append(.segment(number, end)) }
        defer { retained.changes.removeLast(retained.changes.count - count) }
        guard !retained.changes.isEmpty else { return }
        try commitWithinSize(retained.changes)
    }

    /// Commits while the file of the book grows by no more than the ledger grants: all files together stay within the size.
    private func commitWithinSize(_ changes: [BookChange]) throws(BookError) {
        let book = parts.book
        // Also after a failure: this ends the claim, and the file may have grown all the same.
        defer { parts.ledger.withLock { $0.setBook(bytes: book.fileBytes) } }
        // Start with what the map of the book has room for: changing the map makes all readers wait.
        let wanted = max(book.growthWithoutRemap, Self.growthMin)
        var growth = parts.ledger.withLock { $0.claimForBook(wanted, isUrgent: false) }
        while true {
            book.setGrowthMax(growth)
            do throws(BookError) { return try book.commit(changes) } catch { guard error == .full else { throw error } }
            // Nobody knows how much a transaction needs before it is written. Double the claim and try again.
            let more = growth + max(growth, book.fileBytes / 4, Self.growthMin)
            let most = parts.ledger.withLock { $0.claimForBook(more, isUrgent: true) }
            guard most > growth else { throw .full }
            growth = most
        }
    }

    private static let growthMin: UInt64 = 1 << 20

    /// The book has no space for what the batch adds. Commit its removals first: they free pages of the book, and the files of
    /// evicted objects cannot be deleted before. Then have more evicted and try the rest again. The store is turned off only if
    /// that does not help for long.
    private func commitRemovalsFirst() -> Bool {
        if !isBookFull { parts.log(.info, "the book has no space to grow: evicting stored responses") }
        isBookFull = true
        parts.ledger.withLock { $0.requestSpaceForBook() }
        wakeReclaimer.withLock { $0 }?()
        var removals = extractRemovals()[...]
        var count = removals.count
        while !removals.isEmpty {
            precondition(count > 0, "each attempt removes something")
            let part = Array(removals.prefix(count))
            do throws(BookError) {
                try commitWithinSize(part)
                removals = removals.dropFirst(part.count)
            } catch {
                // A smaller batch touches fewer pages. The pages it frees can be used from the second commit after it.
                guard error == .full, count > 1 else { break }
                count = (count + 1) / 2
            }
        }
        retained.changes = Array(removals) + retained.changes
        if removals.isEmpty, retryAfterRemovals() { return true }
        if retained.changes.count > Self.changesMax * parts.tuning.commitChangesMax {
            parts.health.turnOff("the book is full, and nothing more can be evicted")
        }
        return false
    }

    /// Commits what is left. LMDB reuses freed pages from the second commit on, so a small commit comes first.
    private func retryAfterRemovals() -> Bool {
        do throws(BookError) {
            try parts.book.commit([.reserveIDs(below: ObjectID(rawValue: reservedIDs))])
            try commitChangesAndEnds()
            isBookFull = false
            return true
        } catch {
            return false  // it is tried again soon, and reported then if the error persists
        }
    }

    /// A full book with more than this many times `commitChangesMax` waiting changes turns the store off.
    private static let changesMax = 8

    /// Takes the removals out of `retained`, and every change that they make needless. That is right in any order, because an
    /// object number is never used again.
    private func extractRemovals() -> [BookChange] {
        var removed: Set<ObjectID> = []
        var removals: [BookChange] = []
        for change in retained.changes {
            guard case .remove(let id, _) = change, removed.insert(id).inserted else { continue }
            removals.append(change)
        }
        retained.changes.removeAll { change in
            switch change {
            case .remove(let id, _), .renew(let id, _, _, _): removed.contains(id)
            case .put(let entry): removed.contains(entry.id)
            case .segment, .forgetSegment, .reserveIDs, .note: false
            }
        }
        return removals
    }

    /// Deletes files after the commit that made them unnecessary. A crash before a deletion leaves a file that the book knows and in which
    /// nothing is live: the next start makes it a victim at once, or deletes it if it is large.
    private func delete(_ numbers: [UInt32]) {
        guard !numbers.isEmpty else { return }
        var gone: [BookChange] = []
        for number in numbers {
            guard let unit = parts.ledger.withLock({ $0.units[number] }) else { continue }
            precondition(unit.isClosed, "a file that is still written to is not deleted")
            let kind = unit.kind
            let path =
                kind == .large ? parts.directory.largePath(number) : parts.directory.segmentPath(number)
            let status = parts.calls.unlink(path)
            guard status == 0 || status == Int(-ENOENT) else {
                parts.counters.writeErrors.count()
                parts.log(.error, "cannot delete \(path): \(systemErrorText(CInt(-status)))")
                parts.ledger.withLock { $0.keep(number) }
                continue
            }
            // A reader that opens the file from here on does not find it and asks the index again. One that has it open reads on.
            parts.files.forget(number)
            parts.ledger.withLock { $0.delete(number) }
            gone.append(.forgetSegment(number))
            let directory =
                kind == .large ? parts.directory.largeDirectory(number) : parts.directory.segmentsPath
            // The directory is synchronized before the commit that forgets the number. If the book forgot it first, a crash
            // could bring back the file without its number, and the next start would take everything in it for stored.
            touch(directory: directory)
        }
        record(gone)
        afterDeletion.withLock { $0 }?()
    }

    // MARK: damage

    /// Drops the objects at places whose heads cannot be read. Their keys are unknown, so this walks the index and the book. That is
    /// slow, and commits wait for it, but damage is rare.
    private func dropUnreadable(at places: [Place]) {
        var found: [ObjectID: DiskIndexEntry] = [:]
        parts.index.forEach { entry in
            if places.contains(where: { entry.isAt($0) }) { found[entry.id] = entry }
        }
        // An object that is no longer in the index was moved or removed before the read: that is no damage.
        for (id, entry) in found where parts.removeFromIndex(entry.hash, at: entry.place) == nil { found[id] = nil }
        guard !found.isEmpty else { return }
        var keys: [ObjectID: [UInt8]] = [:]
        do throws(BookError) {
            try parts.book.load { entry in
                if found[entry.id] != nil { keys[entry.id] = entry.key }
                return keys.count < found.count
            }
        } catch { parts.log(.error, "\(error)") }
        for (id, entry) in found {
            parts.counters.damagedObjects.count()
            let name = keys[id].map(DiskStoreParts.text) ?? "a response whose URL is not known any more"
            parts.log(.warning, "\(name) is damaged and was dropped")
            let removal = Removal(
                id: id, key: keys[id] ?? [], segment: entry.place.segment, isLarge: entry.place.kind == .large,
                isInBook: keys[id] != nil)
            dropLater.withLock { $0 }?(removal)
        }
    }

    // MARK: turning the store on again

    /// Turns the store on again if the medium takes data and everything that waited could be committed. Both are needed: otherwise new
    /// objects would be written although nothing of what is waiting can reach the book.
    private func probeWhereDue() {
        guard !parts.health.isOn else { return }
        guard lastProbe.duration(to: .now) >= parts.tuning.probeInterval else { return }
        lastProbe = .now
        // The probe comes first: it writes to a file of its own, and so it can fail without harm.
        guard probe(), commitBatch() else { return }
        // Writers ask `isOn` before each job. Only now may they write again, and jobs that wait for space are worth a look.
        parts.health.turnOn()
        afterDeletion.withLock { $0 }?()
    }

    /// Whether the medium takes a few megabytes: it makes sense to go on then.
    private func probe() -> Bool {
        let path = parts.directory.path + "/probe"
        defer { _ = parts.calls.unlink(path) }
        do throws(DiskFileError) {
            let file = try DiskFile.open(path, flags: O_RDWR | O_CREAT | O_TRUNC, calls: parts.calls)
            try file.allocate(Self.probeBytes)
            try file.write([UInt8](repeating: 0x5A, count: blockBytes), at: 0)
            try file.synchronize()
            return true
        } catch {
            return false  // the store stays off
        }
    }

    private static let probeBytes = 4 << 20
}
