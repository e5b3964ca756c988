/// The sums behind "never above the size": what the files of a store take, what of it is live, and what may still be written.
///
/// A unit is one file with bodies: a shared segment, or the file of a large object. The ledger only knows numbers. It is told
/// of everything that is written, published, removed and deleted, and it is asked before anything grows.
///
/// It is used under one lock, by the threads of the store and by workers. Index and ledger change under one hold of that lock,
/// so they never differ. Nothing here may take long: `nextVictim` returns `.askAgain` instead.
///
///     size ┬─────────────────────────  never above
///          │  floor: for copying a victim forward, and for the book
///          ├─────────────────────────  objects are stored up to here
///          │  reserve: the writer goes on while a victim is emptied
///          ├─────────────────────────  reclaiming begins here
struct Ledger: Sendable {
    struct Limits: Sendable, Equatable {
        /// The most bytes that all files together may take.
        var size: UInt64
        /// The most bytes that the records of pinned objects may take.
        var pinned: UInt64
        /// The length at which a shared segment is closed.
        var segment: UInt64
    }

    enum UnitKind: Sendable { case shared, large }

    /// What space is claimed for.
    enum Purpose: Sendable {
        /// New objects, packed or large.
        case storing
        /// Records copied forward, drop records, and the book: what reclaiming itself needs.
        case moving
    }

    enum Claim: Sendable, Equatable {
        case granted
        /// There is no space until something is reclaimed, or nobody knows yet how much there is.
        case wait
        /// Waiting cannot help: it is more than there can ever be, or everything is pinned.
        case never
    }

    enum Victim: Sendable, Equatable {
        /// Copy forward what is pinned and what was used, up to `usedBytesMax` (if `isSparse`, everything live); then delete it.
        case segment(UInt32, usedBytesMax: UInt64, isSparse: Bool)
        /// Delete it, unless it was used: then `keep` it.
        case large(UInt32)
        /// Many units were examined without result. Ask again, and let go of the lock in between.
        case askAgain
        /// Nothing can be gained: everything is pinned.
        case allPinned
        /// There is enough space.
        case notNeeded
    }

    struct Unit: Sendable, Equatable {
        var kind: UnitKind
        /// The length of the file.
        var fileBytes: UInt64 = 0
        /// Live bytes of objects that may be evicted.
        var permanentBytes: UInt64 = 0
        /// Live bytes of pinned objects.
        var pinnedBytes: UInt64 = 0
        var objectCount = 0
        /// Nothing more is written to the file.
        var isClosed = false
        /// The file is being emptied and will be deleted.
        var isVictim = false
        /// The place in the age order that counts. Older places of the unit are skipped.
        fileprivate var ticket: UInt64 = 0

        var liveBytes: UInt64 { permanentBytes + pinnedBytes }
        /// So little is live that copying all of it is cheaper than losing it.
        var isSparse: Bool { kind == .shared && isClosed && !isVictim && liveBytes < fileBytes / 4 }
    }

    private(set) var limits: Limits
    private(set) var units: [UInt32: Unit] = [:]
    /// The sum over all units.
    private(set) var fileBytes: UInt64 = 0
    private(set) var bookBytes: UInt64 = 0
    /// By how much the book may grow in the commit that is under way.
    private(set) var bookClaimedBytes: UInt64 = 0
    /// The most that the book grew in one commit; older commits count less and less.
    private var bookGrowth: UInt64 = 0
    /// Granted, and not written to a file yet.
    private(set) var claimedBytes: UInt64 = 0
    private(set) var permanentBytes: UInt64 = 0
    /// Live bytes of pinned records.
    private(set) var pinnedBytes: UInt64 = 0
    /// Bytes of pinned records that wait to be written.
    private(set) var promisedPinnedBytes: UInt64 = 0
    private(set) var objectCount = 0
    private(set) var largeCount = 0
    /// Bytes of the victims: files that will be deleted soon.
    private(set) var leavingBytes: UInt64 = 0
    /// After the size was lowered: how far copying forward may go beyond it. Zero otherwise.
    private var overhang: UInt64 = 0
    /// Closed shared segments with little that is live.
    private var sparse: Set<UInt32> = []
    /// Closed shared segments with nothing that is live.
    private var empty: Set<UInt32> = []
    /// Segments from which records were copied forward, and which still exist. They contain older copies of those records.
    private(set) var emptied: Set<UInt32> = []
    private var clock = AgeOrder()
    /// Units examined since the last victim.
    private var lookedAtWithoutGain = 0
    /// A unit becomes a victim if at least this part of it is gained: 1 / 2^shift.
    private var gainShift = Self.gainShiftUsual
    /// The last search found no victim, and nothing changed since: waiting for space cannot help.
    private var hasNothingToReclaim = false
    /// The largest claim that could not be granted yet.
    private var requestedBytes: UInt64 = 0
    /// The length of the longest shared segment: what copying one victim may need.
    private var longestSegment: UInt64 = 0

    private static let gainShiftUsual: UInt64 = 3
    private static let gainShiftLast: UInt64 = 6
    /// How many units are examined under one hold of the lock.
    private static let stepsMax = 64

    /// The ledger knows the files that exist. False between `beginMeasuring` and `endMeasuring`.
    private var isMeasured = true

    init(limits: Limits) {
        precondition(limits.segment > 0, "segments have a length")
        self.limits = limits
    }

    // MARK: the start

    /// Nothing is granted from here on: the ledger would count too little, and files that are found later would exceed the size.
    mutating func beginMeasuring() {
        precondition(usedBytes == 0, "a ledger is new when the files are told to it")
        isMeasured = false
    }

    /// All files that existed were told by `load`.
    mutating func endMeasuring() {
        precondition(!isMeasured, "files are told to the ledger once")
        isMeasured = true
    }

    // MARK: sums

    /// All files, and what was granted and will be in them.
    var usedBytes: UInt64 { fileBytes + bookBytes + claimedBytes + bookClaimedBytes }
    var liveBytes: UInt64 { permanentBytes + pinnedBytes }
    var segmentCount: Int { units.count - largeCount }

    /// What new objects must leave free, so that one victim can always be copied and the book always has room for a commit.
    var floorBytes: UInt64 {
        max(limits.segment, longestSegment) + bookRoom.saturatingMinus(bookClaimedBytes)
    }

    /// For the book: twice what it lately grew in one commit. The book grows while the store fills or its objects become smaller;
    /// later it reuses its pages.
    private var bookRoom: UInt64 {
        min(max(1 << 20, min(bookBytes / 4, bookGrowth * 2)), bookMax.saturatingMinus(bookBytes))
    }

    /// The most that the book may take. Its file never shrinks: a burst of small objects must not leave nothing for bodies.
    private var bookMax: UInt64 { limits.size / 2 }

    /// Reclaiming begins when less than this is free, early enough that jobs hardly ever wait for space.
    var reserveBytes: UInt64 { floorBytes + limits.segment + limits.size / 200 }

    /// What pinned objects may take: the quota, or less if so much would leave nothing to reclaim with.
    var pinnedMax: UInt64 {
        let room = limits.size.saturatingMinus(reserveBytes + bookBytes)
        return min(limits.pinned, room - room >> Self.gainShiftLast)
    }

    /// Bytes to reclaim now, beyond those of the victims.
    var shortfall: UInt64 {
        (usedBytes + reserveBytes + requestedBytes).saturatingMinus(limits.size + leavingBytes)
    }

    /// New objects will soon have to wait for space.
    var isNearlyFull: Bool { usedBytes + floorBytes + limits.segment / 2 > limits.size }

    /// Sets new limits. If they are below what is used, nothing is granted until enough is reclaimed, apart from the overhang.
    mutating func setLimits(_ new: Limits) {
        limits = new
        mayReclaimAgain()
        overhang = overhangNow
    }

    /// Asks, before a commit, how much of `wanted` the book may grow by. `setBook` ends the claim.
    /// - Parameter isUrgent: true: everything that is left, whoever waits for it. False: what is kept for the book, and what
    ///   nobody will miss.
    mutating func claimForBook(_ wanted: UInt64, isUrgent: Bool) -> UInt64 {
        bookClaimedBytes = 0
        let left = limits.size.saturatingMinus(usedBytes)
        let unmissed = limits.size.saturatingMinus(usedBytes + reserveBytes) + bookRoom
        let bookLeft = bookMax.saturatingMinus(bookBytes)
        bookClaimedBytes = min(wanted, bookLeft, isUrgent ? left : min(left, unmissed))
        precondition(bookClaimedBytes <= left, "the book grows within the size")
        return bookClaimedBytes
    }

    /// The book has no space for its changes: at least one more unit has to be reclaimed.
    mutating func requestSpaceForBook() { requestedBytes = max(requestedBytes, leavingBytes + limits.segment) }

    /// The length of the book after a commit.
    mutating func setBook(bytes: UInt64) {
        bookClaimedBytes = 0
        // The length at the start says nothing about how fast the book grows.
        let growth = bookBytes == 0 ? bytes / 8 : bytes.saturatingMinus(bookBytes)
        bookGrowth = max(growth, bookGrowth - bookGrowth / 8)
        bookBytes = bytes
    }

    /// After the size was lowered below what is used, one victim may still be copied. Otherwise nothing could ever be deleted.
    private var overhangNow: UInt64 { usedBytes + floorBytes > limits.size ? usedBytes + floorBytes : 0 }

    // MARK: growing

    /// Reserves a share of the quota for an object that will be written. Returns false if the quota is full.
    mutating func promise(_ bytes: UInt64, _ storageClass: StorageClass) -> Bool {
        precondition(bytes > 0, "a record takes space")
        guard mayPromise(bytes, storageClass) else { return false }
        if storageClass == .pinned { promisedPinnedBytes += bytes }
        return true
    }

    /// Whether `promise` would return true.
    func mayPromise(_ bytes: UInt64, _ storageClass: StorageClass) -> Bool {
        storageClass != .pinned || pinnedBytes + promisedPinnedBytes + bytes <= pinnedMax
    }

    /// Gives the share back: the object is not written after all, or it is live now and counted as such.
    mutating func withdraw(_ bytes: UInt64, _ storageClass: StorageClass) {
        if storageClass == .pinned { promisedPinnedBytes.subtract(bytes) }
    }

    /// Claims space in a file. A granted claim ends in `grew` or `unclaim`, exactly once.
    mutating func claim(_ bytes: UInt64, for purpose: Purpose) -> Claim {
        precondition(bytes > 0, "a claim is for something")
        guard isMeasured else { return .wait }
        let ceiling =
            switch purpose {
            case .storing: limits.size.saturatingMinus(floorBytes)
            case .moving: max(limits.size, overhang)
            }
        if usedBytes + bytes <= ceiling {
            claimedBytes += bytes
            if bytes >= requestedBytes { requestedBytes = 0 }
            return .granted
        }
        if hasNothingToReclaim || bytes + bookBytes > ceiling { return .never }
        if purpose == .storing { requestedBytes = max(requestedBytes, bytes) }
        return .wait
    }

    /// Gives back a claim, or a part of it, that was not used.
    mutating func unclaim(_ bytes: UInt64) { claimedBytes.subtract(bytes) }

    /// Adds a new, empty file that is being written.
    mutating func begin(_ number: UInt32, _ kind: UnitKind) { insert(number, Unit(kind: kind)) }

    /// Adds a file that was there at the start. Files of one kind are added in the order of their numbers, which is their age.
    mutating func load(_ number: UInt32, _ kind: UnitKind, fileBytes bytes: UInt64, isClosed: Bool = true) {
        insert(number, Unit(kind: kind, fileBytes: bytes, isClosed: isClosed))
        fileBytes += bytes
        if kind == .shared { longestSegment = max(longestSegment, bytes) }
        overhang = overhangNow
        refresh(number, wasSparse: false, wasEmpty: false)
    }

    /// The file grew by bytes that were claimed.
    mutating func grew(_ number: UInt32, by bytes: UInt64) {
        precondition(units[number].map { !$0.isClosed } ?? false, "only a file that is being written grows")
        precondition(bytes <= claimedBytes, "a file grows only by bytes that were claimed")
        claimedBytes.subtract(bytes)
        fileBytes += bytes
        change(number) { $0.fileBytes += bytes }
        if units[number]?.kind == .shared {
            longestSegment = max(longestSegment, units[number]?.fileBytes ?? 0)
        }
    }

    // MARK: objects

    /// A record is live from now on. `bytes` is the whole length of the record, here and in `remove`.
    mutating func add(_ bytes: UInt64, _ storageClass: StorageClass, to number: UInt32, wasPromised: Bool) {
        precondition(bytes > 0, "a record takes space")
        objectCount += 1
        if wasPromised { withdraw(bytes, storageClass) }
        count(bytes, storageClass, in: number)
    }

    /// A record is no longer live.
    mutating func remove(_ bytes: UInt64, _ storageClass: StorageClass, from number: UInt32) {
        precondition(objectCount > 0, "what is removed was added")
        objectCount -= 1
        discount(bytes, storageClass, in: number)
        mayReclaimAgain()
    }

    /// A record was copied forward. A renewed head may change its length.
    mutating func move(
        _ oldBytes: UInt64, from old: UInt32, to new: UInt32, _ newBytes: UInt64, _ storageClass: StorageClass
    ) {
        count(newBytes, storageClass, in: new)
        discount(oldBytes, storageClass, in: old)
    }

    /// Moves a live record to the other class. Returns false, and changes nothing, if the quota is full.
    mutating func reclassify(_ bytes: UInt64, in number: UInt32, to storageClass: StorageClass) -> Bool {
        guard promise(bytes, storageClass) else { return false }
        withdraw(bytes, storageClass)
        discount(bytes, storageClass == .pinned ? .permanent : .pinned, in: number)
        count(bytes, storageClass, in: number)
        mayReclaimAgain()
        return true
    }

    // MARK: units

    /// Nothing more is written to the file: it may become a victim.
    mutating func close(_ number: UInt32) {
        change(number) { $0.isClosed = true }
        gainShift = Self.gainShiftUsual
        mayReclaimAgain()
    }

    /// Nobody knows what is in the file, and it may be wanted: it never becomes a victim.
    mutating func setAside(_ number: UInt32) {
        guard units[number] != nil else { return }
        change(number) { $0.isClosed = false }
    }

    /// Makes a unit young: it was used, or it was a victim that could not be emptied.
    mutating func keep(_ number: UInt32) {
        guard let unit = units[number] else { return }
        if unit.isVictim { leavingBytes.subtract(unit.fileBytes) }
        let ticket = clock.append(number)
        change(number) {
            $0.isVictim = false
            $0.ticket = ticket
        }
    }

    /// The file is deleted. What was live in it is gone.
    mutating func delete(_ number: UInt32) {
        guard let unit = units.removeValue(forKey: number) else { return }
        fileBytes.subtract(unit.fileBytes)
        permanentBytes.subtract(unit.permanentBytes)
        pinnedBytes.subtract(unit.pinnedBytes)
        precondition(objectCount >= unit.objectCount, "the sum has the objects of each file")
        objectCount -= unit.objectCount
        if unit.kind == .large {
            precondition(largeCount > 0, "the sum has each large file")
            largeCount -= 1
        }
        precondition(largeCount <= units.count, "large files are among the files")
        if unit.isVictim { leavingBytes.subtract(unit.fileBytes) }
        // `units` has no entry any more, so `refresh` cannot do this.
        sparse.remove(number)
        empty.remove(number)
        emptied.remove(number)
        if unit.kind == .shared, unit.fileBytes == longestSegment {
            longestSegment = units.values.reduce(0) { $1.kind == .shared ? max($0, $1.fileBytes) : $0 }
        }
        overhang = min(overhang, overhangNow)
        mayReclaimAgain()
    }

    /// Records of the segment are about to be copied forward, or were copied by an earlier process.
    mutating func noteEmptied(_ number: UInt32) {
        guard units[number]?.kind == .shared else { return }
        emptied.insert(number)
    }

    /// Whether a drop record still matters once the segment `number` is deleted: as long as a file may contain the object. That is
    /// the file of its record, or an older segment from which records were copied: copies only go to segments with higher numbers.
    func needs(_ drop: DroppedObject, without number: UInt32) -> Bool {
        if drop.segment != number, units[drop.segment] != nil { return true }
        return emptied.contains { $0 != number && $0 < drop.segment }
    }

    // MARK: victims

    /// Chooses the unit to reclaim next: an empty one, whether space is needed or not. If space is needed: one with little that
    /// is live, or else the oldest from which enough is gained. It stays a victim until `delete` or `keep`.
    mutating func nextVictim() -> Victim {
        if let number = empty.min() { return makeVictim(number, usedBytesMax: 0, isSparse: true) }
        guard shortfall > 0 else {
            requestedBytes = 0
            return .notNeeded
        }
        if let number = sparse.min(by: { liveBytes(of: $0) < liveBytes(of: $1) }) {
            return makeVictim(number, usedBytesMax: .max, isSparse: true)
        }
        for _ in 0..<Self.stepsMax {
            if lookedAtWithoutGain >= units.count { return roundEnded() }
            guard let turn = clock.popFirst() else { return roundEnded() }
            guard let unit = units[turn.unit], unit.ticket == turn.ticket, !unit.isVictim else { continue }
            if let victim = victim(turn.unit, unit) { return victim }
            lookedAtWithoutGain += 1
            let ticket = clock.append(turn.unit)
            units[turn.unit]?.ticket = ticket
        }
        return .askAgain
    }

    /// Whether this unit is worth reclaiming. A shared segment must gain enough; a large object must not be pinned.
    private mutating func victim(_ number: UInt32, _ unit: Unit) -> Victim? {
        guard unit.isClosed else { return nil }
        switch unit.kind {
        case .large:
            guard unit.pinnedBytes == 0 else { return nil }
            _ = makeVictim(number, usedBytesMax: 0, isSparse: false)
            return .large(number)
        case .shared:
            let gain = unit.fileBytes.saturatingMinus(unit.pinnedBytes)
            guard gain > 0, gain >= unit.fileBytes >> gainShift else { return nil }
            let usedBytesMax = (unit.fileBytes / 2).saturatingMinus(unit.pinnedBytes)
            return makeVictim(number, usedBytesMax: usedBytesMax, isSparse: false)
        }
    }

    /// Marks the victim. From here on it counts as leaving, and `shortfall` does not ask for the same bytes twice.
    private mutating func makeVictim(_ number: UInt32, usedBytesMax: UInt64, isSparse: Bool) -> Victim {
        lookedAtWithoutGain = 0
        precondition(
            units[number].map { $0.isClosed && !$0.isVictim } ?? false, "a victim is closed, and chosen once")
        change(number) { $0.isVictim = true }
        leavingBytes += units[number]?.fileBytes ?? 0
        return .segment(number, usedBytesMax: usedBytesMax, isSparse: isSparse)
    }

    /// All units were examined. Search once more for a smaller gain; after that, only the victims are left to wait for.
    private mutating func roundEnded() -> Victim {
        lookedAtWithoutGain = 0
        if gainShift < Self.gainShiftLast {
            gainShift = Self.gainShiftLast
            return .askAgain
        }
        if leavingBytes > 0 { return .notNeeded }
        hasNothingToReclaim = true
        return .allPinned
    }

    // MARK: bookkeeping

    /// Adds a unit as the youngest.
    private mutating func insert(_ number: UInt32, _ unit: Unit) {
        precondition(units[number] == nil, "each file has its own number")
        var unit = unit
        unit.ticket = clock.append(number)
        units[number] = unit
        if unit.kind == .large { largeCount += 1 }
    }

    private mutating func count(_ bytes: UInt64, _ storageClass: StorageClass, in number: UInt32) {
        switch storageClass {
        case .permanent: permanentBytes += bytes
        case .pinned: pinnedBytes += bytes
        }
        change(number) { unit in
            unit.objectCount += 1
            switch storageClass {
            case .permanent: unit.permanentBytes += bytes
            case .pinned: unit.pinnedBytes += bytes
            }
        }
    }

    private mutating func discount(_ bytes: UInt64, _ storageClass: StorageClass, in number: UInt32) {
        switch storageClass {
        case .permanent: permanentBytes.subtract(bytes)
        case .pinned: pinnedBytes.subtract(bytes)
        }
        change(number) { unit in
            precondition(unit.objectCount > 0, "a file loses only objects that it has")
            unit.objectCount -= 1
            switch storageClass {
            case .permanent: unit.permanentBytes.subtract(bytes)
            case .pinned: unit.pinnedBytes.subtract(bytes)
            }
        }
    }

    /// Every change of a unit goes through here, so that `sparse` and `empty` follow its state.
    private mutating func change(_ number: UInt32, _ change: (inout Unit) -> Void) {
        guard let old = units[number] else { preconditionFailure("file \(number) is not in the ledger") }
        var new = old
        change(&new)
        units[number] = new
        refresh(number, wasSparse: old.isSparse, wasEmpty: old.isEmpty)
    }

    private mutating func refresh(_ number: UInt32, wasSparse: Bool, wasEmpty: Bool) {
        guard let unit = units[number] else { return }
        if unit.isSparse != wasSparse {
            if unit.isSparse { sparse.insert(number) } else { sparse.remove(number) }
        }
        if unit.isEmpty != wasEmpty {
            if unit.isEmpty { empty.insert(number) } else { empty.remove(number) }
        }
    }

    /// Something changed: the next search may find a victim, and jobs may wait for it.
    private mutating func mayReclaimAgain() { hasNothingToReclaim = false }

    private func liveBytes(of number: UInt32) -> UInt64 { units[number]?.liveBytes ?? 0 }
}

extension Ledger.Unit {
    /// Nothing in it is wanted any more.
    var isEmpty: Bool { kind == .shared && isClosed && !isVictim && objectCount == 0 }
}

extension UInt64 {
    fileprivate func saturatingMinus(_ other: UInt64) -> UInt64 { self > other ? self - other : 0 }

    /// Takes away what was added before.
    fileprivate mutating func subtract(_ bytes: UInt64) {
        precondition(self >= bytes, "the ledger only gives back what it was given")
        self -= bytes
    }
}

/// Units from the oldest to the youngest. A unit that becomes young, or is deleted, leaves its old place behind as a hole.
private struct AgeOrder: Sendable {
    struct Turn: Sendable {
        var unit: UInt32
        var ticket: UInt64
    }
    private var turns: [Turn] = []
    private var first = 0
    private var nextTicket: UInt64 = 0

    /// - Returns: the ticket of this place. The unit keeps it to recognise its own place.
    mutating func append(_ unit: UInt32) -> UInt64 {
        nextTicket += 1
        turns.append(Turn(unit: unit, ticket: nextTicket))
        return nextTicket
    }

    mutating func popFirst() -> Turn? {
        precondition(first <= turns.count, "turns are taken in order")
        guard first < turns.count else { return nil }
        defer {
            first += 1
            if first > 1024, first * 2 > turns.count {
                turns.removeFirst(first)
                first = 0
            }
        }
        return turns[first]
    }
}
