import EventLoop
import Glibc
import Synchronization

/// The durable form of the index: an LMDB environment in a directory of its own.
///
/// One thread writes (`commit`); any thread reads. At most one `Book` of a directory in a process; other processes may have it
/// open with `access: .readOnly` at the same time.
package final class Book: Sendable {
    package enum Access: Sendable {
        case readWrite
        /// Changes nothing; sees at each call what was committed last.
        case readOnly
    }

    let directory: String
    let environment: BookEnvironment
    let calls: any DiskCalls
    /// Held while a batch is committed.
    let writing = Locked(())
    private let damage: @Sendable (BookDefect) -> Void
    private let damaged = Atomic<Int>(0)
    private let sizeMax: Atomic<UInt64>
    /// `sizeMax` holds for removals too.
    private let hasHardBound = Atomic(false)
    private let reserved = Atomic<UInt64>(0)
    private let bytes = Atomic<UInt64>(0)
    private let dataBytesNow = Atomic<UInt64>(0)
    private let objects = Atomic<Int>(0)

    /// Opens the book, or makes it where the directory has none; checks its structure before LMDB gets to see it (`BookCheck`).
    /// Reads all of its file for that.
    ///
    /// - Parameters:
    ///   - directory: made where it is not there (its parent must be).
    ///   - storeID: what the marker of the store says; a book that says otherwise is `damaged`.
    ///   - sizeMax: bytes that the book's file may take; a little more is used for removals.
    ///   - damage: called for each entry that is skipped because its bytes are not what was written; on the thread that reads.
    package static func open(
        _ directory: String, storeID: [UInt8], access: Access = .readWrite, sizeMax: UInt64, calls: any DiskCalls,
        damage: @escaping @Sendable (BookDefect) -> Void = { _ in }
    ) throws(BookError) -> Book {
        if access == .readWrite, unsafe mkdir(directory, 0o700) != 0, errno != EEXIST { throw .failed(errno: errno) }
        let check = try BookCheck.run(directory)
        if check == nil, access == .readOnly { throw .failed(errno: ENOENT) }
        return try Book(directory, storeID, access, sizeMax, calls, damage, inUse: check?.bytes ?? 0)
    }

    private init(
        _ directory: String, _ storeID: [UInt8], _ access: Access, _ sizeMax: UInt64, _ calls: any DiskCalls,
        _ damage: @escaping @Sendable (BookDefect) -> Void, inUse: UInt64
    ) throws(BookError) {
        self.directory = directory
        self.calls = calls
        self.damage = damage
        self.sizeMax = Atomic(sizeMax)
        let mapBytes = Self.wholePages(min(max(Self.firstMapBytes, 2 * inUse), sizeMax))
        environment = try BookEnvironment(directory, isReadOnly: access == .readOnly, mapBytes: mapBytes) {
            transaction throws(BookError) in try Self.prepare(transaction, storeID)
        }
        let found = try environment.read { transaction throws(BookError) in
            (
                ids: try Self.meta(BookMeta.idsKey, transaction), store: try Self.meta(BookMeta.storeKey, transaction),
                objects: try transaction.entryCount(.objects)
            )
        }
        guard found.store == storeID else { throw .damaged(BookDefect("it belongs to another store")) }
        guard let ids = found.ids, ids.count == 8 else { throw .damaged(BookDefect("it has no mark of the ids")) }
        reserved.store(
            ids.reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }, ordering: .relaxed)
        noteCommitted(objects: found.objects)
    }

    deinit { close() }

    /// Ends it. Waits for readers; calls that follow fail.
    package func close() { writing.withLock { _ in environment.close() } }

    /// Puts the book aside, under another name, and goes on with an empty one: for a book that turned out to be damaged while it
    /// was read. Ids stay reserved. Where it throws, nothing can be read or written any more.
    func startAnew(movedTo aside: String) throws(BookError) {
        try writing.withLock { _ throws(BookError) in
            try environment.replace {
                let status = calls.rename(directory, to: aside)
                guard status == 0 else { return CInt(-status) }
                return unsafe mkdir(directory, 0o700) == 0 ? 0 : errno
            }
            noteCommitted(objects: 0)
        }
        try commit([.reserveIDs(below: reservedIDs)])
    }

    /// What a new book begins with.
    private static func prepare(_ transaction: borrowing BookTransaction, _ storeID: [UInt8]) throws(BookError) {
        guard try unsafe transaction.get(.meta, BookMeta.formatKey) == nil else { return }
        try transaction.put(
            .meta, BookMeta.formatKey, BookMeta.encode(BookMeta.version, key: BookMeta.formatKey))
        try transaction.put(.meta, BookMeta.storeKey, BookMeta.encode(storeID, key: BookMeta.storeKey))
        try transaction.put(.meta, BookMeta.idsKey, BookMeta.encode(UInt64(0), key: BookMeta.idsKey))
        try transaction.put(
            .meta, BookMeta.commitKey, BookMeta.encode(transaction.number, key: BookMeta.commitKey))
    }

    private static func meta(_ key: [UInt8], _ transaction: borrowing BookTransaction) throws(BookError) -> [UInt8]? {
        guard let value = unsafe try transaction.get(.meta, key) else { return nil }
        return BookMeta.bytes(key: key, value: unsafe [UInt8](value))
    }

    // MARK: bounds

    private static let firstMapBytes: UInt64 = 64 << 20

    /// Takes effect with the next commit.
    package func setSizeMax(_ bytes: UInt64) { sizeMax.store(bytes, ordering: .relaxed) }

    /// As `setSizeMax`, of all batches alike: from now on no commit makes the file longer than it is now by more than so much.
    func setGrowthMax(_ bytes: UInt64) {
        hasHardBound.store(true, ordering: .relaxed)
        setSizeMax(dataBytesNow.load(ordering: .relaxed) + bytes)
    }

    /// What it can grow by before the map has to be changed.
    var growthWithoutRemap: UInt64 {
        let (map, data) = (UInt64(environment.mapBytes), dataBytesNow.load(ordering: .relaxed))
        return map > data ? map - data : 0
    }

    /// Bytes that the file may have after a batch that adds something, or after one that only takes out: LMDB writes new pages
    /// before it frees old ones, so a full book needs some room to become smaller.
    func mapBytesMax(adds: Bool) -> Int {
        let bytes = sizeMax.load(ordering: .relaxed)
        let adds = adds || hasHardBound.load(ordering: .relaxed)
        return Self.wholePages(adds ? bytes : bytes + max(bytes / 8, 16 << 20))
    }

    private static func wholePages(_ bytes: UInt64) -> Int {
        let page = BookEnvironment.pageBytes
        return max(Int(min(bytes, 1 << 46)) / page, 64) * page
    }

    // MARK: figures

    /// Ids below this one may have been given out already.
    package var reservedIDs: ObjectID { ObjectID(rawValue: reserved.load(ordering: .relaxed)) }

    func noteReserved(_ id: UInt64) { reserved.store(id, ordering: .relaxed) }

    /// Bytes of its files.
    package var fileBytes: UInt64 { bytes.load(ordering: .relaxed) }

    func noteCommitted(objects count: Int) {
        objects.store(count, ordering: .relaxed)
        var sum: UInt64 = 0
        for name in ["lock.mdb", "data.mdb"] {
            var status = stat()
            guard unsafe stat("\(directory)/\(name)", &status) == 0 else { continue }
            sum += UInt64(status.st_size)
            if name == "data.mdb" { dataBytesNow.store(UInt64(status.st_size), ordering: .relaxed) }
        }
        bytes.store(sum, ordering: .relaxed)
    }

    /// As of the last commit; where it is read only, as of its opening.
    package var objectCount: Int { objects.load(ordering: .relaxed) }

    /// Entries skipped since it was opened.
    package var damagedCount: Int { damaged.load(ordering: .relaxed) }

    func noteDamaged(_ what: String) {
        damaged.wrappingAdd(1, ordering: .relaxed)
        damage(BookDefect(what))
    }
}
