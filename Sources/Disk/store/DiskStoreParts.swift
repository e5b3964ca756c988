import EventLoop
import Glibc
import Synchronization

/// What the threads of a store share.
///
/// Locks, in the order in which they may be taken one inside the other: a shard of `pending`, the ledger, a shard of the index. The
/// lock of the ledger is held around each change of what is live, so that index and ledger never differ. No lock is held over a
/// system call.
final class DiskStoreParts: Sendable {
    let options: DiskOptions
    let tuning: DiskStoreTuning
    let calls: any DiskCalls
    let directory: Directory
    let book: Book
    let index = DiskIndex()
    let pending = Pending()
    let renewals = DiskStoreRenewals()
    let ledger: Locked<Ledger>
    let counters = DiskStoreCounters()
    let health: DiskStoreHealth
    let files: DiskStoreFiles
    let loading = DiskStoreLoading()
    let large = LargeObjects()
    private let linesOfLoss = RareLine()
    private let lastID: Atomic<UInt64>
    private let lastNumber: Atomic<UInt32>

    init(
        _ options: DiskOptions, _ tuning: DiskStoreTuning, calls: any DiskCalls, directory: Directory, book: Book,
        lastID: UInt64, lastNumber: UInt32
    ) {
        self.options = options
        self.tuning = tuning
        self.calls = calls
        self.directory = directory
        self.book = book
        self.lastID = Atomic(lastID)
        self.lastNumber = Atomic(lastNumber)
        let limits = Self.limits(options.size, options.pinned, tuning)
        precondition(limits.segment > UInt64(SegmentFile.headerBytes), "a segment has room for records")
        var ledger = Ledger(limits: limits)
        ledger.beginMeasuring()
        self.ledger = Locked(ledger)
        health = DiskStoreHealth(path: options.path, log: options.log)
        files = DiskStoreFiles(directory: directory, calls: calls, openMax: tuning.openFilesMax)
    }

    static func limits(_ size: UInt64, _ pinned: UInt64, _ tuning: DiskStoreTuning) -> Ledger.Limits {
        Ledger.Limits(size: size, pinned: pinned, segment: tuning.segmentBytes(size: size))
    }

    // MARK: numbers

    func nextID() -> ObjectID {
        ObjectID(rawValue: lastID.add(1, ordering: .relaxed).newValue)
    }

    /// All numbers up to this one may have been given out.
    var lastIDGiven: UInt64 { lastID.load(ordering: .relaxed) }

    /// Notes a number that was found on the disk: numbers given out from now on are higher. Passes over one above `ObjectID.countedMax`.
    func noteID(_ id: ObjectID) {
        guard id <= .countedMax else { return }
        var known = lastID.load(ordering: .relaxed)
        while known < id.rawValue {
            let (exchanged, original) = lastID.weakCompareExchange(
                expected: known, desired: id.rawValue, ordering: .relaxed)
            if exchanged { return }
            known = original
        }
    }

    /// The number of a new file, shared or large.
    func nextNumber() -> UInt32 { lastNumber.add(1, ordering: .relaxed).newValue }

    func identity(_ number: UInt32) -> SegmentIdentity {
        SegmentIdentity(store: directory.storeID, number: number)
    }

    static var wallClock: Int64 { Int64(time(nil)) }

    // MARK: what is live

    /// Removes an object from index and ledger. From here on nobody finds it. Its bytes stay in their file until the file is reclaimed,
    /// and readers that have found the place before can still read them.
    func removeFromIndex(_ hash: UInt64, _ id: ObjectID) -> DiskIndexEntry? {
        ledger.withLock { ledger in index.remove(hash, id).map { taken($0, &ledger) } }
    }

    /// The same, provided that the object is still at the place.
    func removeFromIndex(_ hash: UInt64, at place: Place) -> DiskIndexEntry? {
        ledger.withLock { ledger in index.remove(hash, at: place).map { taken($0, &ledger) } }
    }

    func removeAllFromIndex(_ hash: UInt64) -> [DiskIndexEntry] {
        ledger.withLock { ledger in index.removeAll(hash).map { taken($0, &ledger) } }
    }

    private func taken(_ entry: DiskIndexEntry, _ ledger: inout Ledger) -> DiskIndexEntry {
        // A record whose head is damaged may stay in the index after its file is deleted, until somebody reads it.
        if ledger.units[entry.place.segment] != nil {
            ledger.remove(entry.place.recordLength, entry.storageClass, from: entry.place.segment)
        }
        if entry.isRenewed { renewals.forget(entry.id) }
        if entry.place.kind == .large { large.forget(entry.place.segment) }
        return entry
    }

    /// Adds an object to index and ledger. Returns false if its number is there already. The bytes must have been written: a reader may
    /// find the object before this returns.
    func addToIndex(_ entry: DiskIndexEntry, wasPromised: Bool) -> Bool {
        ledger.withLock { ledger in
            guard index.insert(entry) else { return false }
            let place = entry.place
            ledger.add(place.recordLength, entry.storageClass, to: place.segment, wasPromised: wasPromised)
            if place.kind == .large { large.add(place.segment, entry.hash, entry.id) }
            return true
        }
    }

    /// An object that was taken is not written after all. Logged once a minute; a store that is off has said so already.
    func lost(_ key: [UInt8]) {
        counters.lostObjects.count()
        counters.droppedObjects.count()
        guard health.isOn, linesOfLoss.isDue() else { return }
        log(.error, "\(Self.text(key)) and perhaps others are not stored: no space became free in time")
    }

    func log(_ level: DiskEvent.Level, _ text: String) {
        options.log(DiskEvent(level, "disk \(options.path): \(text)"))
    }

    /// A key for the log: at most 512 bytes, with `?` for control characters.
    static func text(_ key: [UInt8]) -> String {
        String(decoding: key.prefix(512).map { $0 < 0x20 || $0 == 0x7F ? UInt8(ascii: "?") : $0 }, as: UTF8.self)
    }
}
