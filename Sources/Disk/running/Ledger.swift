/// What a store's files take, what of it is live, and what may still be written: the sums behind "never above the size".
///
/// A unit is one file with bodies: a shared segment, or the file of a large object. The ledger knows numbers alone; it is
/// told of everything that is written, published, removed and deleted, and asked before anything grows. It is used under
/// a lock, by workers too: nothing in it takes long (`nextVictim` says `.askAgain` where it would).
///
///     size ┬─────────────────────────  never above
///          │  floor: room for copying forward, and for the book
///          ├─────────────────────────  objects are stored up to here
///          │  reserve: lets the writer go on while a victim is emptied
///          ├─────────────────────────  above here reclaiming begins
struct Ledger: Sendable {
    struct Limits: Sendable, Equatable {
        /// Bytes that all files may take.
        var size: UInt64
        /// Bytes of records that pinned objects may take.
        var pinned: UInt64
        /// Length at which a shared segment is closed.
        var segment: UInt64
    }

    enum UnitKind: Sendable { case shared, large }

    /// What bytes are asked for.
    enum Purpose: Sendable {
        /// New objects, packed or large.
        case storing
        /// Records copied forward, drop records, the book: what reclaiming itself needs.
        case moving
    }

    enum Claim: Sendable, Equatable {
        case granted
        /// Not before something was reclaimed.
        case wait
        /// More than there can ever be, or all that is there is pinned.
        case never
    }

    enum Victim: Sendable, Equatable {
        /// Copy forward what is pinned, what was used up to `usedBytesMax` (all that is live where it is sparse); then delete it.
        case segment(UInt32, usedBytesMax: UInt64, isSparse: Bool)
        /// Delete it, unless it was used: `keep` it then.
        case large(UInt32)
        /// Looked at many without finding one: ask again, without holding the lock in between.
        case askAgain
        /// Nothing can be gained: all that is there is pinned.
        case allPinned
        /// There is room enough.
        case notNeeded
    }

    struct Unit: Sendable, Equatable {
        var kind: UnitKind
        /// Bytes the file takes.
        var fileBytes: UInt64 = 0
        /// Of them live, of objects that may be evicted.
        var permanentBytes: UInt64 = 0
        /// Of them live and pinned.
        var pinnedBytes: UInt64 = 0
        var objectCount = 0
        /// Nothing is written into it any more.
        var isClosed = false
        /// It is being emptied, and its file will be gone.
        var isVictim = false
        /// Which place in the age order is its own: older ones are passed over.
        fileprivate var ticket: UInt64 = 0

        var liveBytes: UInt64 { permanentBytes + pinnedBytes }
        /// So little of it is live that copying all of that is cheaper than forgetting it.
        var isSparse: Bool { kind == .shared && isClosed && !isVictim && liveBytes < fileBytes / 4 }
    }

    private(set) var limits: Limits
    private(set) var units: [UInt32: Unit] = [:]
    /// Bytes of all units' files.
    private(set) var fileBytes: UInt64 = 0
    private(set) var bookBytes: UInt64 = 0
    /// What the book may grow by at the commit that is under way.
    private(set) var bookClaimedBytes: UInt64 = 0
    /// The most that the book grew at one commit, older ones counting less and less.
    private var bookGrowth: UInt64 = 0
    /// Granted, and not yet in a file.
    private(set) var claimedBytes: UInt64 = 0
    private(set) var permanentBytes: UInt64 = 0
    /// Of pinned records that are live.
    private(set) var pinnedBytes: UInt64 = 0
    /// Of pinned records that wait to be written.
    private(set) var promisedPinnedBytes: UInt64 = 0
    private(set) var objectCount = 0
    private(set) var largeCount = 0
    /// Bytes of the units that are being emptied: gone soon.
    private(set) var leavingBytes: UInt64 = 0
    /// What copying forward may reach after the size was lowered; zero: the size.
    private var overhang: UInt64 = 0
    /// Closed shared segments of which little is live.
    private var sparse: Set<UInt32> = []
    /// Closed shared segments with nothing live in them.
    private var empty: Set<UInt32> = []
    private var clock = AgeOrder()
    /// Units looked at since the last one from which something was gained.
    private var lookedAtWithoutGain = 0
    /// A unit is a victim where at least this part of it (1 / 2^shift) is gained.
    private var gainShift = Self.gainShiftUsual
    /// All is pinned: nothing was found, and nothing changed since.
    private var hasNothingToReclaim = false
    /// The most that was asked for and could not be granted yet.
    private var requestedBytes: UInt64 = 0
    /// Length of the longest shared segment: what one victim may need to be copied.
    private var longestSegment: UInt64 = 0

    private static let gainShiftUsual: UInt64 = 3
    private static let gainShiftLast: UInt64 = 6
    /// Units looked at under one hold of the lock.
    private static let stepsMax = 64

    init(limits: Limits) { self.limits = limits }

    // MARK: sums

    /// Of all files, and of what was granted and will be in them.
    var usedBytes: UInt64 { fileBytes + bookBytes + claimedBytes + bookClaimedBytes }
    var liveBytes: UInt64 { permanentBytes + pinnedBytes }
    var segmentCount: Int { units.count - largeCount }

    /// Kept free by those who store: one victim can always be copied, and a transaction of the book always has room.
    var floorBytes: UInt64 {
        max(limits.segment, longestSegment) + bookRoom.saturatingMinus(bookClaimedBytes)
    }

    /// For the book: twice what it grew lately at a commit. It grows while the store fills, or its objects become smaller;
    /// then its pages are used again, and it stays as it is.
    private var bookRoom: UInt64 {
        min(max(1 << 20, min(bookBytes / 4, bookGrowth * 2)), bookMax.saturatingMinus(bookBytes))
    }

    /// What the book may take: its file never becomes shorter, and one that a burst of small objects made long would leave nothing
    /// for bodies.
    private var bookMax: UInt64 { limits.size / 2 }

    /// Below this much free room reclaiming begins, so that those who store hardly ever wait.
    var reserveBytes: UInt64 { floorBytes + limits.segment + limits.size / 200 }

    /// What pinned objects may take: the quota, or less where so much would leave nothing to reclaim with.
    var pinnedMax: UInt64 {
        let room = limits.size.saturatingMinus(reserveBytes + bookBytes)
        return min(limits.pinned, room - room >> Self.gainShiftLast)
    }

    /// Bytes that have to be reclaimed now, beyond those of the units that are on their way out.
    var shortfall: UInt64 {
        (usedBytes + reserveBytes + requestedBytes).saturatingMinus(limits.size + leavingBytes)
    }

    /// Those who store are about to wait.
    var isNearlyFull: Bool { usedBytes + floorBytes + limits.segment / 2 > limits.size }

    mutating func setLimits(_ new: Limits) {
        limits = new
        mayReclaimAgain()
        overhang = overhangNow
    }

    /// Before each commit: how much of `wanted` the book may grow by. What is granted ends in `setBook`.
    /// - Parameter isUrgent: all that is left, whoever else may wait for it; false: what is kept for it, and what nobody will miss.
    mutating func claimForBook(_ wanted: UInt64, isUrgent: Bool) -> UInt64 {
        bookClaimedBytes = 0
        let left = limits.size.saturatingMinus(usedBytes)
        let unmissed = limits.size.saturatingMinus(usedBytes + reserveBytes) + bookRoom
        let bookLeft = bookMax.saturatingMinus(bookBytes)
        bookClaimedBytes = min(wanted, bookLeft, isUrgent ? left : min(left, unmissed))
        return bookClaimedBytes
    }

    /// The book has no room for what has to go into it: one unit more has to go.
    mutating func requestSpaceForBook() { requestedBytes = max(requestedBytes, leavingBytes + limits.segment) }

    /// After each commit.
    mutating func setBook(bytes: UInt64) {
        bookClaimedBytes = 0
        // What was found at the start says nothing of how it grows.
        let growth = bookBytes == 0 ? bytes / 8 : bytes.saturatingMinus(bookBytes)
        bookGrowth = max(growth, bookGrowth - bookGrowth / 8)
        bookBytes = bytes
    }

    /// Where a size was lowered so far that the floor is gone, one victim may be copied all the same: else nothing could go.
    private var overhangNow: UInt64 { usedBytes + floorBytes > limits.size ? usedBytes + floorBytes : 0 }

    // MARK: growing

    /// An object will be written: takes its part of the quota. False: the quota is full.
    mutating func promise(_ bytes: UInt64, _ storageClass: StorageClass) -> Bool {
        guard storageClass == .pinned else { return true }
        guard pinnedBytes + promisedPinnedBytes + bytes <= pinnedMax else { return false }
        promisedPinnedBytes += bytes
        return true
    }

    /// What was promised is not written after all.
    mutating func withdraw(_ bytes: UInt64, _ storageClass: StorageClass) {
        if storageClass == .pinned { promisedPinnedBytes.subtract(bytes) }
    }

    /// Asks for room in a file, old or new. What is granted ends in `grew`, or in `unclaim`.
    mutating func claim(_ bytes: UInt64, for purpose: Purpose) -> Claim {
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

    mutating func unclaim(_ bytes: UInt64) { claimedBytes.subtract(bytes) }

    /// A new file, still empty, and still written into.
    mutating func begin(_ number: UInt32, _ kind: UnitKind) { insert(number, Unit(kind: kind)) }

    /// A file that was found at the start. Those of one kind are told in the order of their numbers: their age.
    mutating func load(_ number: UInt32, _ kind: UnitKind, fileBytes bytes: UInt64, isClosed: Bool = true) {
        insert(number, Unit(kind: kind, fileBytes: bytes, isClosed: isClosed))
        fileBytes += bytes
        if kind == .shared { longestSegment = max(longestSegment, bytes) }
        overhang = overhangNow
        refresh(number, wasSparse: false, wasEmpty: false)
    }

    /// The file of a unit grew by bytes that were claimed.
    mutating func grew(_ number: UInt32, by bytes: UInt64) {
        claimedBytes.subtract(bytes)
        fileBytes += bytes
        change(number) { $0.fileBytes += bytes }
        if units[number]?.kind == .shared {
            longestSegment = max(longestSegment, units[number]?.fileBytes ?? 0)
        }
    }

    // MARK: objects

    /// A record is live from now on. Of a large object all bytes of its file count, here and in `remove`.
    mutating func add(_ bytes: UInt64, _ storageClass: StorageClass, to number: UInt32, wasPromised: Bool) {
        objectCount += 1
        if wasPromised { withdraw(bytes, storageClass) }
        count(bytes, storageClass, in: number)
    }

    /// A record is live no more.
    mutating func remove(_ bytes: UInt64, _ storageClass: StorageClass, from number: UInt32) {
        objectCount -= 1
        discount(bytes, storageClass, in: number)
        mayReclaimAgain()
    }

    /// A record was copied forward; with a renewed head it may have another length.
    mutating func move(
        _ oldBytes: UInt64, from old: UInt32, to new: UInt32, _ newBytes: UInt64, _ storageClass: StorageClass
    ) {
        count(newBytes, storageClass, in: new)
        discount(oldBytes, storageClass, in: old)
    }

    /// A live record is kept under another class from now on. False: the quota is full; nothing changed.
    mutating func reclassify(_ bytes: UInt64, in number: UInt32, to storageClass: StorageClass) -> Bool {
        guard promise(bytes, storageClass) else { return false }
        withdraw(bytes, storageClass)
        discount(bytes, storageClass == .pinned ? .permanent : .pinned, in: number)
        count(bytes, storageClass, in: number)
        mayReclaimAgain()
        return true
    }

    // MARK: units

    /// Nothing more is written into it: it may be reclaimed.
    mutating func close(_ number: UInt32) {
        change(number) { $0.isClosed = true }
        gainShift = Self.gainShiftUsual
        mayReclaimAgain()
    }

    /// What stands in it is not known, and may be wanted: it is not reclaimed.
    mutating func setAside(_ number: UInt32) {
        guard units[number] != nil else { return }
        change(number) { $0.isClosed = false }
    }

    /// It becomes young: it was used. Also for a victim that could not be emptied.
    mutating func keep(_ number: UInt32) {
        guard let unit = units[number] else { return }
        if unit.isVictim { leavingBytes.subtract(unit.fileBytes) }
        let ticket = clock.append(number)
        change(number) {
            $0.isVictim = false
            $0.ticket = ticket
        }
    }

    /// Its file is gone. What was live in it is live no more.
    mutating func delete(_ number: UInt32) {
        guard let unit = units.removeValue(forKey: number) else { return }
        fileBytes.subtract(unit.fileBytes)
        permanentBytes.subtract(unit.permanentBytes)
        pinnedBytes.subtract(unit.pinnedBytes)
        objectCount -= unit.objectCount
        if unit.kind == .large { largeCount -= 1 }
        if unit.isVictim { leavingBytes.subtract(unit.fileBytes) }
        sparse.remove(number)
        empty.remove(number)
        if unit.kind == .shared, unit.fileBytes == longestSegment {
            longestSegment = units.values.reduce(0) { $1.kind == .shared ? max($0, $1.fileBytes) : $0 }
        }
        overhang = min(overhang, overhangNow)
        mayReclaimAgain()
    }

    // MARK: victims

    /// Which unit goes next: one with nothing live in it, needed or not; where room is needed one of which little is live, or
    /// else the oldest from which something is gained. It is a victim until `delete` or `keep`.
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

    private mutating func makeVictim(_ number: UInt32, usedBytesMax: UInt64, isSparse: Bool) -> Victim {
        lookedAtWithoutGain = 0
        change(number) { $0.isVictim = true }
        leavingBytes += units[number]?.fileBytes ?? 0
        return .segment(number, usedBytesMax: usedBytesMax, isSparse: isSparse)
    }

    /// All units were looked at: once more with less to gain from each, and then there is nothing, but what is on its way out.
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

    // MARK: the small print

    private mutating func insert(_ number: UInt32, _ unit: Unit) {
        precondition(units[number] == nil, "each file has a number of its own")
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
            unit.objectCount -= 1
            switch storageClass {
            case .permanent: unit.permanentBytes.subtract(bytes)
            case .pinned: unit.pinnedBytes.subtract(bytes)
            }
        }
    }

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
        precondition(self >= bytes, "the ledger gives back what it took")
        self -= bytes
    }
}

/// Units in the order of age, oldest first. A unit that becomes young, or goes, leaves its old place behind as a hole.
private struct AgeOrder: Sendable {
    struct Turn: Sendable {
        var unit: UInt32
        var ticket: UInt64
    }
    private var turns: [Turn] = []
    private var first = 0
    private var nextTicket: UInt64 = 0

    /// - Returns: the ticket that makes this place the unit's own.
    mutating func append(_ unit: UInt32) -> UInt64 {
        nextTicket += 1
        turns.append(Turn(unit: unit, ticket: nextTicket))
        return nextTicket
    }

    mutating func popFirst() -> Turn? {
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
