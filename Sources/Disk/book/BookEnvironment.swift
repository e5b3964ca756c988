import CLMDB
import Glibc

/// The databases of the book, in one LMDB environment.
enum BookDatabase: Int, CaseIterable, Sendable {
    case meta, objects, renewals, tags, segments

    var name: String {
        switch self {
        case .meta: "meta"
        case .objects: "objects"
        case .renewals: "renewals"
        case .tags: "tags"
        case .segments: "segments"
        }
    }
}

/// Sole owner of an LMDB environment and of its map.
///
/// LMDB lets the map be changed only while this process has no transaction: a lock keeps readers away meanwhile. Write
/// transactions need no lock here: LMDB has one, and only who writes changes the map.
@safe final class BookEnvironment: @unchecked Sendable {
    private let directory: String
    private let isReadOnly: Bool
    typealias Preparation = @Sendable (borrowing BookTransaction) throws(BookError) -> Void
    private let prepare: Preparation
    /// Held for reading by transactions, for writing where the environment is changed.
    private let lock: UnsafeMutablePointer<pthread_rwlock_t>
    private var environment: OpaquePointer?
    private var handles: [MDB_dbi] = []
    /// Bytes; of no meaning where it is read only.
    private(set) var mapBytes: Int
    /// A commit went wrong: to be opened anew before the next. For the thread that writes.
    private(set) var hasFailed = false
    private var isClosed = false

    /// Readers at once, over all processes.
    private static let readerCountMax: UInt32 = 1022
    static let pageBytes = Int(sysconf(Int32(_SC_PAGESIZE)))

    /// - Parameters:
    ///   - mapBytes: a multiple of `pageBytes`.
    ///   - prepare: called, unless it is read only, in the transaction in which databases are made that are not there.
    init(_ directory: String, isReadOnly: Bool, mapBytes: Int, prepare: @escaping Preparation) throws(BookError) {
        self.directory = directory
        self.prepare = prepare
        self.isReadOnly = isReadOnly
        self.mapBytes = mapBytes
        unsafe lock = .allocate(capacity: 1)
        unsafe lock.initialize(to: pthread_rwlock_t())
        let status = unsafe pthread_rwlock_init(lock, nil)
        precondition(status == 0, "a lock can be made")
        try openEnvironment()
    }

    deinit {
        close()
        unsafe pthread_rwlock_destroy(lock)
        unsafe lock.deinitialize(count: 1)
        unsafe lock.deallocate()
    }

    /// Transactions fail from then on. Waits for those under way.
    func close() {
        exclusively {
            isClosed = true
            closeEnvironment()
        }
    }

    // MARK: transactions

    /// Runs `body` in a transaction that sees what was committed last.
    func read<Result>(
        _ body: (borrowing BookTransaction) throws(BookError) -> Result
    ) throws(BookError) -> Result {
        for _ in 0..<8 {
            if let result = try readOnce(body) { return result }
            // Another process writes, and its map is larger by now.
            exclusively {
                if unsafe environment != nil { _ = remap(0) }
            }
        }
        throw .failed(errno: EAGAIN)
    }

    /// Nil: the map is to be made larger first.
    private func readOnce<Result>(
        _ body: (borrowing BookTransaction) throws(BookError) -> Result
    ) throws(BookError) -> Result? {
        unsafe pthread_rwlock_rdlock(lock)
        defer { unsafe pthread_rwlock_unlock(lock) }
        guard let environment = unsafe environment else { throw .failed(errno: EBADF) }
        var raw: OpaquePointer?
        let status = unsafe mdb_txn_begin(environment, nil, UInt32(MDB_RDONLY), &raw)
        if status == MDB_MAP_RESIZED { return nil }
        try BookError.check(status)
        let transaction = unsafe BookTransaction(raw!, handles)
        return try body(transaction)
    }

    /// Runs `body` in the transaction that writes, and commits it; where anything throws, nothing was changed.
    func write<Result>(
        _ body: (borrowing BookTransaction) throws(BookError) -> Result
    ) throws(BookError) -> Result {
        guard let environment = unsafe environment else { throw .failed(errno: EBADF) }
        // Pages that a reader may see are not used again, even if its process was killed.
        var dead: CInt = 0
        try BookError.check(unsafe mdb_reader_check(environment, &dead))
        var raw: OpaquePointer?
        let status = unsafe mdb_txn_begin(environment, nil, 0, &raw)
        if status == MDB_PANIC { hasFailed = true }
        try BookError.check(status)
        var transaction = unsafe BookTransaction(raw!, handles)
        let result = try body(transaction)
        do throws(BookError) {
            try transaction.commit()
        } catch {
            // LMDB may have to be opened anew after an error of the medium; where it need not, that does no harm.
            hasFailed = error != .full
            throw error
        }
        return result
    }

    // MARK: the map

    /// Makes the map so large, but never smaller than what is in use. Waits for readers.
    func setMap(_ bytes: Int) throws(BookError) {
        let status = exclusively { () -> CInt in
            guard unsafe environment != nil else { return EBADF }
            return remap(bytes)
        }
        try BookError.check(status)
    }

    /// LMDB takes the map away before it makes another: where that fails there is none, and nothing may be called any more.
    private func remap(_ bytes: Int) -> CInt {
        let status = unsafe mdb_env_set_mapsize(environment, bytes)
        guard status == 0 else {
            closeEnvironment()
            hasFailed = true
            return status
        }
        measureMap()
        return 0
    }

    private func measureMap() {
        var info = unsafe MDB_envinfo()
        unsafe mdb_env_info(environment, &info)
        unsafe mapBytes = info.me_mapsize
    }

    /// After an error that LMDB does not go on from (MDB_PANIC).
    func reopen() throws(BookError) {
        let result = exclusively { () -> Result<Void, BookError> in
            if isClosed { return .failure(.failed(errno: EBADF)) }
            closeEnvironment()
            do throws(BookError) { return .success(try openEnvironment()) } catch { return .failure(error) }
        }
        try result.get()
        hasFailed = false
    }

    /// Closes what there is, has `makeWay` put it aside, and opens what is in the directory then. Waits for readers.
    /// Where it fails nothing is opened again: what was put aside for its damage must not be written.
    /// - Parameter makeWay: 0, or an errno.
    func replace(_ makeWay: () -> CInt) throws(BookError) {
        let result = exclusively { () -> Result<Void, BookError> in
            if isClosed { return .failure(.failed(errno: EBADF)) }
            closeEnvironment()
            isClosed = true
            let status = makeWay()
            guard status == 0 else { return .failure(.failed(errno: status)) }
            do throws(BookError) { try openEnvironment() } catch { return .failure(error) }
            isClosed = false
            return .success(())
        }
        try result.get()
        hasFailed = false
    }

    private func exclusively<Result>(_ body: () -> Result) -> Result {
        unsafe pthread_rwlock_wrlock(lock)
        defer { unsafe pthread_rwlock_unlock(lock) }
        return body()
    }

    // MARK: opening

    private func openEnvironment() throws(BookError) {
        var made: OpaquePointer?
        try BookError.check(unsafe mdb_env_create(&made))
        unsafe environment = made
        do throws(BookError) {
            try BookError.check(unsafe mdb_env_set_maxdbs(made, UInt32(BookDatabase.allCases.count)))
            try BookError.check(unsafe mdb_env_set_maxreaders(made, Self.readerCountMax))
            if !isReadOnly { try BookError.check(unsafe mdb_env_set_mapsize(made, mapBytes)) }
            // Readers are not bound to threads. The check before has read the file from end to end; from then on entries are
            // looked up here and there, for which reading ahead is of no use.
            let flags = MDB_NOTLS | MDB_NORDAHEAD | (isReadOnly ? MDB_RDONLY : 0)
            try BookError.check(unsafe mdb_env_open(made, directory, UInt32(flags), 0o600))
            precondition(
                unsafe mdb_env_get_maxkeysize(made) >= BookOrder.bookKeyBytesMax, "LMDB as it is built by default")
            try openDatabases()
            measureMap()
        } catch {
            closeEnvironment()
            throw error
        }
    }

    private func openDatabases() throws(BookError) {
        var raw: OpaquePointer?
        try BookError.check(unsafe mdb_txn_begin(environment, nil, UInt32(isReadOnly ? MDB_RDONLY : 0), &raw))
        var transaction = unsafe BookTransaction(raw!, [])
        for database in BookDatabase.allCases {
            try transaction.open(database, flags: isReadOnly ? 0 : MDB_CREATE)
        }
        if !isReadOnly { try prepare(transaction) }
        handles = transaction.handles
        // Where all were there nothing is written by this.
        try transaction.commit()
    }

    private func closeEnvironment() {
        if let environment = unsafe environment { unsafe mdb_env_close(environment) }
        unsafe environment = nil
        handles = []
    }
}

/// One transaction: ends with its owner, changed nothing unless it is committed. Memory that it hands out is LMDB's: valid until the
/// transaction ends or its next change.
@safe struct BookTransaction: ~Copyable {
    /// Nil: it was committed.
    private var raw: OpaquePointer?
    fileprivate var handles: [MDB_dbi]

    fileprivate init(_ raw: OpaquePointer, _ handles: [MDB_dbi]) {
        unsafe self.raw = raw
        self.handles = handles
    }

    deinit {
        if let raw = unsafe raw { unsafe mdb_txn_abort(raw) }
    }

    /// Ends it, whether it throws or not.
    fileprivate mutating func commit() throws(BookError) {
        let raw = unsafe self.raw.take()
        try BookError.check(unsafe mdb_txn_commit(raw))
    }

    fileprivate mutating func open(_ database: BookDatabase, flags: CInt) throws(BookError) {
        var handle: MDB_dbi = 0
        try BookError.check(unsafe mdb_dbi_open(raw, database.name, UInt32(flags), &handle))
        handles.append(handle)
    }

    var number: UInt64 { unsafe UInt64(mdb_txn_id(raw)) }

    func handle(_ database: BookDatabase) -> MDB_dbi { handles[database.rawValue] }

    func entryCount(_ database: BookDatabase) throws(BookError) -> Int {
        var statistics = MDB_stat()
        try BookError.check(unsafe mdb_stat(raw, handle(database), &statistics))
        return statistics.ms_entries
    }

    func cursor(_ database: BookDatabase) throws(BookError) -> BookPosition {
        var cursor: OpaquePointer?
        try BookError.check(unsafe mdb_cursor_open(raw, handle(database), &cursor))
        return unsafe BookPosition(cursor!)
    }

    func get(_ database: BookDatabase, _ key: [UInt8]) throws(BookError) -> UnsafeRawBufferPointer? {
        var value = unsafe MDB_val()
        let status = unsafe withValue(key) { key in
            unsafe mdb_get(raw, handle(database), key, &value)
        }
        guard try BookError.isFound(status) else { return nil }
        return unsafe UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size)
    }

    func put(_ database: BookDatabase, _ key: [UInt8], _ value: [UInt8]) throws(BookError) {
        let status = unsafe withValue(key) { key in
            unsafe withValue(value) { value in unsafe mdb_put(raw, handle(database), key, value, 0) }
        }
        try BookError.check(status)
    }

    /// Nothing where it is not there.
    func remove(_ database: BookDatabase, _ key: [UInt8]) throws(BookError) {
        let status = unsafe withValue(key) { key in unsafe mdb_del(raw, handle(database), key, nil) }
        _ = try BookError.isFound(status)
    }
}

/// A place in one database, to move along it.
@safe struct BookPosition: ~Copyable {
    private let raw: OpaquePointer

    fileprivate init(_ raw: OpaquePointer) { unsafe self.raw = raw }

    deinit { unsafe mdb_cursor_close(raw) }

    /// A key and its value; memory of LMDB.
    @unsafe struct Row {
        var key: UnsafeRawBufferPointer
        var value: UnsafeRawBufferPointer
    }

    func next() throws(BookError) -> Row? {
        var (key, value) = unsafe (MDB_val(), MDB_val())
        return try unsafe row(mdb_cursor_get(raw, &key, &value, MDB_NEXT), key, value)
    }

    /// The first at or behind `key`.
    func first(from key: [UInt8]) throws(BookError) -> Row? {
        // LMDB knows no empty key.
        guard !key.isEmpty else {
            var (key, value) = unsafe (MDB_val(), MDB_val())
            return try unsafe row(mdb_cursor_get(raw, &key, &value, MDB_FIRST), key, value)
        }
        var value = unsafe MDB_val()
        var found = unsafe MDB_val()
        let status = unsafe withValue(key) { key in
            defer { unsafe found = key.pointee }
            return unsafe mdb_cursor_get(raw, key, &value, MDB_SET_RANGE)
        }
        return try unsafe row(status, found, value)
    }

    /// The value at exactly `key`.
    func move(to key: [UInt8]) throws(BookError) -> UnsafeRawBufferPointer? {
        var value = unsafe MDB_val()
        let status = unsafe withValue(key) { key in unsafe mdb_cursor_get(raw, key, &value, MDB_SET) }
        guard try BookError.isFound(status) else { return nil }
        return unsafe UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size)
    }

    /// Puts a value where there is none; otherwise changes nothing and returns the one that is there.
    func insert(_ key: [UInt8], _ value: [UInt8]) throws(BookError) -> UnsafeRawBufferPointer? {
        var there = unsafe MDB_val()
        let status = unsafe withValue(key) { key in
            unsafe withValue(value) { value in
                defer { unsafe there = value.pointee }
                return unsafe mdb_cursor_put(raw, key, value, UInt32(MDB_NOOVERWRITE))
            }
        }
        if status == MDB_KEYEXIST { return unsafe UnsafeRawBufferPointer(start: there.mv_data, count: there.mv_size) }
        try BookError.check(status)
        return nil
    }

    func put(_ key: [UInt8], _ value: [UInt8]) throws(BookError) {
        let status = unsafe withValue(key) { key in
            unsafe withValue(value) { value in unsafe mdb_cursor_put(raw, key, value, 0) }
        }
        try BookError.check(status)
    }

    /// Takes out what it stands at.
    func removeCurrent() throws(BookError) { try BookError.check(unsafe mdb_cursor_del(raw, 0)) }

    private func row(_ status: CInt, _ key: MDB_val, _ value: MDB_val) throws(BookError) -> Row? {
        guard try BookError.isFound(status) else { return nil }
        return unsafe Row(
            key: UnsafeRawBufferPointer(start: key.mv_data, count: key.mv_size),
            value: UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size))
    }
}

/// LMDB's parameters lack a const; it writes into the value's two words only.
private func withValue<Result>(
    _ bytes: [UInt8], _ body: (UnsafeMutablePointer<MDB_val>) -> Result
) -> Result {
    unsafe bytes.withUnsafeBytes { bytes in
        var value = unsafe MDB_val(mv_size: bytes.count, mv_data: UnsafeMutableRawPointer(mutating: bytes.baseAddress))
        return unsafe body(&value)
    }
}

extension BookError {
    /// Nil: it went well.
    init?(lmdb status: CInt) {
        switch status {
        case 0: return nil
        case MDB_MAP_FULL: self = .full
        case MDB_CORRUPTED, MDB_PAGE_NOTFOUND, MDB_INVALID, MDB_VERSION_MISMATCH, MDB_INCOMPATIBLE, MDB_CURSOR_FULL,
            MDB_PAGE_FULL, MDB_NOTFOUND:
            self = .damaged(BookDefect("LMDB says: \(unsafe String(cString: mdb_strerror(status)))"))
        case MDB_PANIC: self = .failed(errno: EIO)
        case MDB_READERS_FULL: self = .failed(errno: EAGAIN)
        case MDB_TXN_FULL: self = .failed(errno: EFBIG)
        case 1...: self = .failed(errno: status)
        default: self = .failed(errno: EINVAL)
        }
    }

    static func check(_ status: CInt) throws(BookError) {
        if let error = BookError(lmdb: status) { throw error }
    }

    static func isFound(_ status: CInt) throws(BookError) -> Bool {
        if status == MDB_NOTFOUND { return false }
        try check(status)
        return true
    }
}
