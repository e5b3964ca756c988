import EventLoop
import Glibc
import Synchronization

/// The durable form of the index: an LMDB environment in a directory of its own.
///
/// Threads: one thread at a time writes (`commit` holds `writing`); any thread reads. A process may have a directory open as a
/// `Book` only once. Other processes may have it open at the same time with `access: .readOnly`.
///
/// A commit is on the medium when it returns. A crash during a commit leaves the state before it.
package final class Book: Sendable {
    package enum Access: Sendable {
        case readWrite
        /// Changes nothing. Each call sees the last commit.
        case readOnly
    }

    let directory: String
    let environment: BookEnvironment
    let calls: any DiskCalls
    /// Held during a commit.
    let writing = Locked(())
    private let damage: @Sendable (BookDefect) -> Void
    private let damaged = Atomic<Int>(0)
    private let sizeMax: Atomic<UInt64>
    /// Whether `sizeMax` also limits commits that only remove.
    private let hasHardBound = Atomic(false)
    private let reserved = Atomic<UInt64>(0)
    private let bytes = Atomic<UInt64>(0)
    private let dataBytesNow = Atomic<UInt64>(0)
    private let objects = Atomic<Int>(0)

    /// Opens the book, or creates it if the directory has none. Checks its structure first, for which it reads the whole file: LMDB
    /// itself follows damaged pages blindly (`BookCheck`).
    ///
    /// - Parameters:
    ///   - directory: created if it does not exist. Its parent must exist.
    ///   - storeID: what the marker of the store says. A book that says something else is `damaged`.
    ///   - sizeMax: the limit of the file. Removals may use a little more.
    ///   - damage: called for each entry that is skipped because its bytes are not what was written, on the thread that reads.
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
        let mark = ids.reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        // A store reserves more than it has given out.
        guard mark <= 2 * ObjectID.countedMax.rawValue else {
            throw .damaged(BookDefect("its mark of the ids is too high"))
        }
        reserved.store(mark, ordering: .relaxed)
        noteCommitted(objects: found.objects)
    }

    deinit { close() }

    /// Closes the book. Waits for readers. Later calls fail.
    package func close() { writing.withLock { _ in environment.close() } }

    /// Moves the book aside and goes on with an empty one, for a book that turned out to be damaged while it was read. Object numbers
    /// stay reserved. If this throws, nothing can be read or written any more.
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

    /// Writes the first entries of a new book.
    private static func prepare(_ transaction: borrowing BookTransaction, _ storeID: [UInt8]) throws(BookError) {
        guard try unsafe transaction.get(.meta, BookMeta.formatKey) == nil else { return }
        try transaction.put(
            .meta, BookMeta.formatKey, BookMeta.encode(BookMeta.version, key: BookMeta.formatKey))
        try transaction.put(.meta, BookMeta.storeKey, BookMeta.encode(storeID, key: BookMeta.storeKey))
        try transaction.put(.meta, BookMeta.idsKey, BookMeta.encode(UInt64(0), key: BookMeta.idsKey))
        try transaction.put(
            .meta, BookMeta.commitKey, BookMeta.encode(transaction.number, key: BookMeta.commitKey))
    }

    /// The note with the name (`BookChange.note`). Nil if there is none, or if it is damaged.
    package func note(_ name: String) throws(BookError) -> [UInt8]? {
        try environment.read { transaction throws(BookError) in try Self.meta(BookMeta.noteKey(name), transaction) }
    }

    private static func meta(_ key: [UInt8], _ transaction: borrowing BookTransaction) throws(BookError) -> [UInt8]? {
        guard let value = unsafe try transaction.get(.meta, key) else { return nil }
        return BookMeta.bytes(key: key, value: unsafe [UInt8](value))
    }

    // MARK: bounds

    private static let firstMapBytes: UInt64 = 64 << 20

    /// Takes effect with the next commit.
    package func setSizeMax(_ bytes: UInt64) { sizeMax.store(bytes, ordering: .relaxed) }

    /// Limits every batch, also removals: the file may grow by this much beyond its present length.
    func setGrowthMax(_ bytes: UInt64) {
        hasHardBound.store(true, ordering: .relaxed)
        setSizeMax(dataBytesNow.load(ordering: .relaxed) + bytes)
    }

    /// How much the file can grow before the map has to change.
    var growthWithoutRemap: UInt64 {
        let (map, data) = (UInt64(environment.mapBytes), dataBytesNow.load(ordering: .relaxed))
        return map > data ? map - data : 0
    }

    /// The limit of the file for a batch that adds, or for one that only removes. LMDB writes new pages before it frees old ones, so a
    /// full book needs some space even to become smaller.
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

    /// Object numbers below this one may have been given out.
    package var reservedIDs: ObjectID { ObjectID(rawValue: reserved.load(ordering: .relaxed)) }

    func noteReserved(_ id: UInt64) {
        precondition(id >= reserved.load(ordering: .relaxed), "reserved numbers stay reserved")
        reserved.store(id, ordering: .relaxed)
    }

    /// The length of its files.
    package var fileBytes: UInt64 { bytes.load(ordering: .relaxed) }

    func noteCommitted(objects count: Int) {
        precondition(count >= 0, "a database has no negative number of entries")
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

    /// As of the last commit. In a read-only book, as of its opening.
    package var objectCount: Int { objects.load(ordering: .relaxed) }

    /// How many damaged entries were skipped since the book was opened.
    package var damagedCount: Int { damaged.load(ordering: .relaxed) }

    func noteDamaged(_ what: String) {
        damaged.wrappingAdd(1, ordering: .relaxed)
        damage(BookDefect(what))
    }
}
