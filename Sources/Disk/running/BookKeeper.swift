import EventLoop
import Glibc

/// The thread that keeps the book: at each turn it puts on the medium what was written, then commits the changes that
/// belong to it, then deletes the files that the book no longer needs. What could not be committed stays, and is
/// tried again.
///
/// It also turns a store that is off on again (`probe`), and finds out which objects had stood where a head was found
/// damaged.
final class BookKeeper: @unchecked Sendable {  // what is not under the lock belongs to the thread
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

    /// What goes into one transaction, and what belongs to it.
    private struct Batch {
        var changes: [BookChange] = []
        /// As of the last change: what the book will know of each segment.
        var ends: [UInt32: BookSegment] = [:]
        var touched: [UInt32: TouchedFile] = [:]
        var directories: Set<String> = []
        var renewed: [(ObjectID, UInt64)] = []
        var deletions: [UInt32] = []

        var isEmpty: Bool {
            changes.isEmpty && ends.isEmpty && touched.isEmpty && directories.isEmpty && deletions.isEmpty
        }

        /// What came later goes behind.
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
    /// Taken, and not committed yet.
    private var retained = Batch()
    private var lastProbe = ContinuousClock.now
    /// Ids below this one are reserved in the book.
    private var reservedIDs: UInt64
    /// How many ids are reserved at a time.
    static let idsReserved: UInt64 = 1 << 20

    private let afterDeletion = Locked<(@Sendable () -> Void)?>(nil)
    private let wakeReclaimer = Locked<(@Sendable () -> Void)?>(nil)
    /// The commit before found no room.
    private var isBookFull = false
    /// Attempts of a full book before those who wait for a commit are told that there is none.
    private static let triesMax = 20
    private var triesLeft = triesMax
    private let dropLater = Locked<(@Sendable (Removal) -> Void)?>(nil)

    /// - Parameter reservedIDs: as of the book.
    init(parts: DiskStoreParts, reservedIDs: UInt64) {
        self.parts = parts
        self.reservedIDs = reservedIDs
        state = Locked(State(syncInterval: parts.options.syncInterval))
    }

    /// - Parameters:
    ///   - afterDeletion: there is more room.
    ///   - drop: has a drop record written for an object that was taken out, and tells the book.
    func connect(
        afterDeletion: @escaping @Sendable () -> Void, wakeReclaimer: @escaping @Sendable () -> Void,
        drop: @escaping @Sendable (Removal) -> Void
    ) {
        self.wakeReclaimer.withLock { $0 = wakeReclaimer }
        self.afterDeletion.withLock { $0 = afterDeletion }
        dropLater.withLock { $0 = drop }
    }

    /// After its end: those whom it calls hold it.
    func disconnect() {
        afterDeletion.withLock { $0 = nil }
        wakeReclaimer.withLock { $0 = nil }
        dropLater.withLock { $0 = nil }
    }

    // MARK: for other threads

    /// Changes whose bytes are written, all at once, so that a commit has all of them or none.
    /// - Parameters:
    ///   - renewed: renewals that are in `changes`, with their serials.
    ///   - end: what the book knows of the segment then.
    func record(
        _ changes: [BookChange], renewed: [(ObjectID, UInt64)] = [], touched: TouchedFile? = nil,
        end: BookSegment? = nil
    ) {
        guard !changes.isEmpty || touched != nil else { return }
        let isFull = state.withLock { state in
            state.batch.changes += changes
            state.batch.renewed += renewed
            if let touched {
                state.batch.touched[touched.number] = touched
                if let end { state.batch.ends[touched.number] = end }
            }
            return state.batch.changes.count >= parts.tuning.commitChangesMax
        }
        if isFull { commitSoon() }
    }

    func touch(directory: String) { state.withLock { _ = $0.batch.directories.insert(directory) } }

    /// When all that was recorded so far is in the book: the file is deleted, and out of the ledger.
    func deleteAfterCommit(_ number: UInt32) { state.withLock { $0.batch.deletions.append(number) } }

    /// A head could not be read there: what stands there in the index is taken out.
    func reportDamaged(_ place: Place) {
        let isNew = state.withLock { state in
            // Many may have met it at once.
            guard state.damaged.count < 1024, !state.damaged.contains(place) else { return false }
            state.damaged.append(place)
            return true
        }
        if isNew { commitSoon() }
    }

    func commitSoon() {
        let mustWake = state.withLock { state in
            state.isWanted = true
            defer { state.isAsleep = false }
            return state.isAsleep
        }
        if mustWake { wake.signal() }
    }

    /// Between two commits from now on: what waited under the old one is committed at once.
    func setSyncInterval(_ interval: Duration) {
        let isOther = state.withLock { state in
            defer { state.syncInterval = interval }
            return state.syncInterval != interval
        }
        if isOther { commitSoon() }
    }

    /// - Parameter then: called on the keeper's thread, or at once where it has ended; false: it could not be
    ///   committed.
    func commit(then: @escaping @Sendable (Bool) -> Void) {
        let isOpen = state.withLock { state in
            guard state.life == .open else { return false }
            state.waiters.append(then)
            return true
        }
        if isOpen { commitSoon() } else { then(false) }
    }

    /// Commits, as `commit`; blocks.
    func commitNow() -> Bool {
        let answer = BlockingAnswer()
        commit { answer.give($0) }
        return answer.wait()
    }

    /// Changes that wait: those who make many at once hold back.
    var waitingChanges: Int { state.withLock { $0.batch.changes.count } }

    /// One commit more, then it ends.
    func close() { end(.closing) }
    /// Ends without another commit.
    func abandon() { end(.abandoned) }

    private func end(_ life: Life) {
        state.withLock { $0.life = life }
        wake.signal()
    }

    /// Reserves numbers in the book. Before the thread begins; where it fails the store is off.
    func commitBeforeStart() { _ = commitBatch() }

    // MARK: the thread

    /// Until it is closed. The body of a thread.
    func run() {
        while true {
            sleep()
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
                // Something is being evicted: who waits gets the answer of a later attempt.
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

    private func sleep() {
        let interval: Duration? = state.withLock { state in
            state.isAsleep = !state.isWanted && state.life == .open
            return state.isAsleep ? state.syncInterval : nil
        }
        guard var interval else { return }
        if isBookFull { interval = min(interval, .milliseconds(10)) }
        _ = wake.wait(timeout: min(interval, parts.health.isOn ? .seconds(60) : parts.tuning.probeInterval))
        state.withLock { $0.isAsleep = false }
    }

    /// Bytes first, book second, then what the book no longer needs.
    private func commitBatch() -> Bool {
        let (batch, isAbandoned) = state.withLock { state in
            defer { state.batch = Batch() }
            return (state.batch, state.life == .abandoned)
        }
        retained.append(batch)
        if isAbandoned { return false }
        reserveIDs()
        guard !retained.isEmpty else { return true }
        guard synchronize(), write() else { return false }
        parts.counters.commits.count()
        let done = retained
        retained = Batch()
        for (id, serial) in done.renewed { parts.renewals.forget(id, through: serial) }
        delete(done.deletions)
        return true
    }

    private func reserveIDs() {
        let given = parts.lastIDGiven
        guard given + Self.idsReserved / 2 > reservedIDs else { return }
        retained.changes.append(.reserveIDs(below: ObjectID(rawValue: given + Self.idsReserved)))
        reservedIDs = given + Self.idsReserved
    }

    private func synchronize() -> Bool {
        do throws(DiskFileError) {
            for (number, file) in retained.touched {
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
            parts.health.turnOff("what was written could not be put on the medium: \(error)")
            return false
        }
    }

    private func write() -> Bool {
        var changes = retained.changes
        for (number, end) in retained.ends { changes.append(.segment(number, end)) }
        guard !changes.isEmpty else { return true }
        do throws(BookError) {
            try commitWithinSize(changes)
            isBookFull = false
            return true
        } catch .full {
            return commitRemovalsFirst()
        } catch {
            parts.counters.writeErrors.count()
            parts.health.turnOff("the book could not be written: \(error)")
            return false
        }
    }

    /// The file grows by what the ledger granted and no more, so that all files together stay within the size.
    private func commitWithinSize(_ changes: [BookChange]) throws(BookError) {
        let book = parts.book
        defer { parts.ledger.withLock { $0.setBook(bytes: book.fileBytes) } }
        // As long as nobody misses it, what the map has room for: changing that has readers wait.
        let wanted = max(book.growthWithoutRemap, Self.growthMin)
        var growth = parts.ledger.withLock { $0.claimForBook(wanted, isUrgent: false) }
        while true {
            book.setGrowthMax(growth)
            do throws(BookError) { return try book.commit(changes) } catch { guard error == .full else { throw error } }
            // How much it needs nobody knows before it is written.
            let more = growth + max(growth, book.fileBytes / 4, Self.growthMin)
            let most = parts.ledger.withLock { $0.claimForBook(more, isUrgent: true) }
            guard most > growth else { throw .full }
            growth = most
        }
    }

    private static let growthMin: UInt64 = 1 << 20

    /// There is no room for what the batch adds. What it takes out goes first: that frees pages, and what was evicted has to go
    /// before files can. Something more has to be evicted, and then it is tried again; only where that does not help for long
    /// is the store off.
    private func commitRemovalsFirst() -> Bool {
        if !isBookFull { parts.log(.info, "there is no room for the book to grow: objects are evicted") }
        isBookFull = true
        parts.ledger.withLock { $0.requestSpaceForBook() }
        wakeReclaimer.withLock { $0 }?()
        var removals = extractRemovals()[...]
        var count = removals.count
        while !removals.isEmpty {
            let part = Array(removals.prefix(count))
            do throws(BookError) {
                try commitWithinSize(part)
                removals = removals.dropFirst(part.count)
            } catch {
                // A batch of a few touches few pages; those that one frees are there for the one after the next.
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

    /// Pages that a commit frees are used again by the one after the next: a small one comes between.
    private func retryAfterRemovals() -> Bool {
        do throws(BookError) {
            try parts.book.commit([.reserveIDs(below: ObjectID(rawValue: reservedIDs))])
            try commitWithinSize(retained.changes + retained.ends.map { .segment($0.key, $0.value) })
            isBookFull = false
            return true
        } catch {
            return false  // it is tried again soon, and told then if it is anything else
        }
    }

    /// Beyond so many times `commitChangesMax` a store whose book is full takes nothing more.
    private static let changesMax = 8

    /// Takes the removals out of what is retained, and what they make needless: an id is never used again.
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
            case .segment, .forgetSegment, .reserveIDs: false
            }
        }
        return removals
    }

    private func delete(_ numbers: [UInt32]) {
        guard !numbers.isEmpty else { return }
        var gone: [BookChange] = []
        for number in numbers {
            guard let kind = parts.ledger.withLock({ $0.units[number]?.kind }) else { continue }
            let path =
                kind == .large ? parts.directory.largePath(number) : parts.directory.segmentPath(number)
            let status = parts.calls.unlink(path)
            guard status == 0 || status == Int(-ENOENT) else {
                parts.counters.writeErrors.count()
                parts.log(.error, "\(path) can not be deleted: errno \(-status)")
                parts.ledger.withLock { $0.keep(number) }
                continue
            }
            parts.files.forget(number)
            parts.ledger.withLock { $0.delete(number) }
            gone.append(.forgetSegment(number))
            let directory =
                kind == .large ? parts.directory.largeDirectory(number) : parts.directory.segmentsPath
            // That it is gone is on the medium before the book forgets that there was such a file: or it would be
            // taken for a new one.
            touch(directory: directory)
        }
        record(gone)
        afterDeletion.withLock { $0 }?()
    }

    // MARK: damage

    /// The heads can not be read, so that the objects are found by their places alone: a walk over index and book.
    private func dropUnreadable(at places: [Place]) {
        var found: [ObjectID: DiskIndexEntry] = [:]
        parts.index.forEach { entry in
            if places.contains(where: { entry.isAt($0) }) { found[entry.id] = entry }
        }
        // What is not in the index any more was moved or removed before it was read: no damage.
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
            let name = keys[id].map(DiskStoreParts.text) ?? "an object whose key is not known any more"
            parts.log(.warning, "\(name) is damaged, and dropped")
            let removal = Removal(
                id: id, key: keys[id] ?? [], segment: entry.place.segment, isLarge: entry.place.kind == .large,
                isInBook: keys[id] != nil)
            dropLater.withLock { $0 }?(removal)
        }
    }

    // MARK: on again

    private func probeWhereDue() {
        guard !parts.health.isOn else { return }
        guard lastProbe.duration(to: .now) >= parts.tuning.probeInterval else { return }
        lastProbe = .now
        guard probe(), commitBatch() else { return }
        parts.health.turnOn()
        afterDeletion.withLock { $0 }?()
    }

    /// Whether so much can be written that going on makes sense.
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
            return false  // it is off, and stays so
        }
    }

    private static let probeBytes = 4 << 20
}
