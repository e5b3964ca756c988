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

/// The sole owner of an LMDB environment and its map.
///
/// LMDB allows a change of the map only while this process has no transaction, so a lock keeps readers away meanwhile. Write
/// transactions do not take that lock: LMDB allows one at a time, and only the writing thread changes the map.
///
/// A thread that holds the lock for reading must not wait for the thread that writes: that one may be waiting for the lock. Memory that
/// a transaction hands out points into the map and is invalid once the transaction ends; callers copy what they keep.
@safe final class BookEnvironment: @unchecked Sendable {
    private let directory: String
    private let isReadOnly: Bool
    typealias Preparation = @Sendable (borrowing BookTransaction) throws(BookError) -> Void
    private let prepare: Preparation
    /// Transactions hold it for reading; a change of the environment holds it for writing.
    private let lock: UnsafeMutablePointer<pthread_rwlock_t>
    private var environment: OpaquePointer?
    private var handles: [MDB_dbi] = []
    /// The length of the map. Meaningless in a read-only environment.
    private(set) var mapBytes: Int
    /// A commit failed: open the environment again before the next one. Belongs to the thread that writes.
    private(set) var hasFailed = false
    private var isClosed = false

    /// The most readers at once, in all processes together.
    private static let readerCountMax: UInt32 = 1022
    static let pageBytes = Int(sysconf(Int32(_SC_PAGESIZE)))

    /// - Parameters:
    ///   - mapBytes: a multiple of `pageBytes`.
    ///   - prepare: called in the transaction that creates missing databases. Not called if the environment is read-only.
    init(_ directory: String, isReadOnly: Bool, mapBytes: Int, prepare: @escaping Preparation) throws(BookError) {
        precondition(mapBytes > 0 && mapBytes % Self.pageBytes == 0, "a map has whole pages")
        self.directory = directory
        self.prepare = prepare
        self.isReadOnly = isReadOnly
        self.mapBytes = mapBytes
        unsafe lock = .allocate(capacity: 1)
        unsafe lock.initialize(to: pthread_rwlock_t())
        let status = unsafe pthread_rwlock_init(lock, nil)
        precondition(status == 0, "a lock can be created")
        try openEnvironment()
    }

    deinit {
        close()
        unsafe pthread_rwlock_destroy(lock)
        unsafe lock.deinitialize(count: 1)
        unsafe lock.deallocate()
    }

    /// Closes the environment. Waits for transactions under way; later ones fail.
    func close() {
        exclusively {
            isClosed = true
            closeEnvironment()
        }
    }

    // MARK: transactions

    /// Runs `body` in a transaction that sees the last commit.
    func read<Result>(
        _ body: (borrowing BookTransaction) throws(BookError) -> Result
    ) throws(BookError) -> Result {
        // Another process may enlarge its map between the attempts, though hardly so often.
        for _ in 0..<8 {
            if let result = try readOnce(body) { return result }
            // Another process writes and has enlarged its map.
            exclusively {
                if unsafe environment != nil { _ = remap(0) }
            }
        }
        throw .failed(errno: EAGAIN)
    }

    /// Returns nil if the map has to be enlarged first.
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

    /// Runs `body` in the writing transaction and commits it. If anything throws, nothing was changed.
    func write<Result>(
        _ body: (borrowing BookTransaction) throws(BookError) -> Result
    ) throws(BookError) -> Result {
        guard let environment = unsafe environment else { throw .failed(errno: EBADF) }
        // A reader keeps the pages it may see from being reused. Release those of readers whose process was killed.
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
            // After an error of the medium LMDB may need to be opened again. Doing so without need does no harm.
            hasFailed = error != .full
            throw error
        }
        return result
    }

    // MARK: the map

    /// Sets the length of the map, though never below what is in use. Waits for readers.
    func setMap(_ bytes: Int) throws(BookError) {
        precondition(bytes > 0 && bytes % Self.pageBytes == 0, "a map has whole pages")
        let status = exclusively { () -> CInt in
            guard unsafe environment != nil else { return EBADF }
            return remap(bytes)
        }
        try BookError.check(status)
    }

    /// LMDB removes the map before it makes another. If that fails there is no map, and no other call is allowed. `hasFailed` makes the
    /// next commit open the environment again; until then reads fail with `EBADF`.
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

    /// Opens the environment again after an error that LMDB does not recover from (MDB_PANIC).
    func reopen() throws(BookError) {
        let result = exclusively { () -> Result<Void, BookError> in
            if isClosed { return .failure(.failed(errno: EBADF)) }
            closeEnvironment()
            do throws(BookError) { return .success(try openEnvironment()) } catch { return .failure(error) }
        }
        try result.get()
        hasFailed = false
    }

    /// Closes the environment, has `makeWay` move its files aside, and opens whatever is in the directory then. Waits for readers. If
    /// this fails, nothing is opened again: damaged files that were moved aside must not be written.
    /// - Parameter makeWay: returns 0 or an errno.
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
            // NOTLS: readers are not bound to threads. NORDAHEAD: the check before has read the whole file; from now on entries are
            // read here and there.
            let flags = MDB_NOTLS | MDB_NORDAHEAD | (isReadOnly ? MDB_RDONLY : 0)
            try BookError.check(unsafe mdb_env_open(made, directory, UInt32(flags), 0o600))
            precondition(
                unsafe mdb_env_get_maxkeysize(made) >= BookOrder.bookKeyBytesMax, "LMDB has its default key size")
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
        precondition(handles.count == BookDatabase.allCases.count, "all databases are opened with the environment")
        // This writes nothing if all databases existed.
        try transaction.commit()
    }

    private func closeEnvironment() {
        if let environment = unsafe environment { unsafe mdb_env_close(environment) }
        unsafe environment = nil
        handles = []
    }
}

/// One transaction. It ends with its owner, and changes nothing unless it is committed. Memory that it hands out belongs to LMDB: it
/// is valid until the next change or the end of the transaction.
@safe struct BookTransaction: ~Copyable {
    /// Nil after the commit.
    private var raw: OpaquePointer?
    fileprivate var handles: [MDB_dbi]

    fileprivate init(_ raw: OpaquePointer, _ handles: [MDB_dbi]) {
        unsafe self.raw = raw
        self.handles = handles
    }

    deinit {
        if let raw = unsafe raw { unsafe mdb_txn_abort(raw) }
    }

    /// Ends the transaction, whether it throws or not.
    fileprivate mutating func commit() throws(BookError) {
        let raw = unsafe self.raw.take()
        precondition(unsafe raw != nil, "a transaction is committed once")
        try BookError.check(unsafe mdb_txn_commit(raw))
    }

    fileprivate mutating func open(_ database: BookDatabase, flags: CInt) throws(BookError) {
        var handle: MDB_dbi = 0
        try BookError.check(unsafe mdb_dbi_open(raw, database.name, UInt32(flags), &handle))
        handles.append(handle)
    }

    var number: UInt64 { unsafe UInt64(mdb_txn_id(raw)) }

    func handle(_ database: BookDatabase) -> MDB_dbi {
        precondition(database.rawValue < handles.count, "all databases are opened with the environment")
        return handles[database.rawValue]
    }

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
        precondition(key.count <= BookOrder.bookKeyBytesMax, "LMDB takes keys of this length")
        let status = unsafe withValue(key) { key in
            // LMDB copies both before it returns.
            unsafe withValue(value) { value in unsafe mdb_put(raw, handle(database), key, value, 0) }
        }
        try BookError.check(status)
    }

    /// Does nothing if the key does not exist.
    func remove(_ database: BookDatabase, _ key: [UInt8]) throws(BookError) {
        let status = unsafe withValue(key) { key in unsafe mdb_del(raw, handle(database), key, nil) }
        _ = try BookError.isFound(status)
    }
}

/// A cursor in one database.
/// It must not outlive its transaction: LMDB frees the cursors of a writing transaction itself when that ends, and `deinit` would
/// free them again.
@safe struct BookPosition: ~Copyable {
    private let raw: OpaquePointer

    fileprivate init(_ raw: OpaquePointer) { unsafe self.raw = raw }

    deinit { unsafe mdb_cursor_close(raw) }

    /// A key and its value, in memory of LMDB.
    @unsafe struct Row {
        var key: UnsafeRawBufferPointer
        var value: UnsafeRawBufferPointer
    }

    func next() throws(BookError) -> Row? {
        var (key, value) = unsafe (MDB_val(), MDB_val())
        return try unsafe row(mdb_cursor_get(raw, &key, &value, MDB_NEXT), key, value)
    }

    /// The first row at or after `key`.
    func first(from key: [UInt8]) throws(BookError) -> Row? {
        // LMDB has no empty keys.
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

    /// The value of exactly this key.
    func move(to key: [UInt8]) throws(BookError) -> UnsafeRawBufferPointer? {
        var value = unsafe MDB_val()
        let status = unsafe withValue(key) { key in unsafe mdb_cursor_get(raw, key, &value, MDB_SET) }
        guard try BookError.isFound(status) else { return nil }
        return unsafe UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size)
    }

    /// Adds a value if the key has none. Otherwise changes nothing and returns the existing value.
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

    /// Removes the row at the cursor.
    func removeCurrent() throws(BookError) { try BookError.check(unsafe mdb_cursor_del(raw, 0)) }

    private func row(_ status: CInt, _ key: MDB_val, _ value: MDB_val) throws(BookError) -> Row? {
        guard try BookError.isFound(status) else { return nil }
        return unsafe Row(
            key: UnsafeRawBufferPointer(start: key.mv_data, count: key.mv_size),
            value: UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size))
    }
}

/// The parameters of LMDB are not const, but it only writes the two words of `MDB_val`.
private func withValue<Result>(
    _ bytes: [UInt8], _ body: (UnsafeMutablePointer<MDB_val>) -> Result
) -> Result {
    precondition(!bytes.isEmpty, "no key is empty, and every value has a seal")
    return unsafe bytes.withUnsafeBytes { bytes in
        var value = unsafe MDB_val(mv_size: bytes.count, mv_data: UnsafeMutableRawPointer(mutating: bytes.baseAddress))
        return unsafe body(&value)
    }
}

extension BookError {
    /// Returns nil if the call succeeded.
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
