/// What a store is made of.
package struct DiskOptions: Sendable {
    /// The directory; made where it is not there.
    package var path: String
    /// Bytes that all its files together may take.
    package var size: UInt64
    /// Bytes that pinned objects may take of these.
    package var pinned: UInt64
    /// Between two times that what was written is put on the medium and into the book.
    package var syncInterval: Duration
    /// What identifies a key in memory: never written to the disk.
    package var hash: @Sendable (_ key: [UInt8]) -> UInt64
    /// Lines for the log. Called on any thread.
    package var log: @Sendable (DiskEvent) -> Void

    package init(
        path: String, size: UInt64, pinned: UInt64, syncInterval: Duration = .seconds(2),
        hash: @escaping @Sendable ([UInt8]) -> UInt64,
        log: @escaping @Sendable (DiskEvent) -> Void = { _ in }
    ) {
        self.path = path
        self.size = size
        self.pinned = pinned
        self.syncInterval = syncInterval
        self.hash = hash
        self.log = log
    }
}

/// What the operator should hear of.
package struct DiskEvent: Sendable, Equatable {
    package enum Level: Sendable { case info, warning, error }
    package var level: Level
    package var text: String

    package init(_ level: Level, _ text: String) {
        self.level = level
        self.text = text
    }
}

/// Why a directory can not be used as a store. Nothing in it was touched.
package enum DiskRefusal: Error, Equatable, Sendable, CustomStringConvertible {
    /// It has files, but not ours.
    case foreign(path: String)
    case unknownVersion(path: String, version: UInt32)
    /// Another process uses it.
    case inUse(path: String)
    case notAllowed(path: String, errno: CInt)
    /// Others may write into it.
    case openToOthers(path: String, mode: UInt32)
    case failed(path: String, errno: CInt)
    case tooSmall(path: String, sizeMin: UInt64)

    package var description: String {
        switch self {
        case .foreign(let path): "\(path) is not empty and no store of Larder's"
        case .unknownVersion(let path, let version): "\(path) has format \(version), which this version does not know"
        case .inUse(let path): "\(path) is in use by another process"
        case .notAllowed(let path, let code): "\(path) can not be used: errno \(code)"
        case .openToOthers(let path, let mode):
            "\(path) may be written by others (mode \(String(mode, radix: 8))): chmod go-w"
        case .failed(let path, let code): "\(path): errno \(code)"
        case .tooSmall(let path, let sizeMin): "\(path): the store needs at least \(sizeMin) bytes"
        }
    }
}

/// An object to be stored in one piece.
package struct PackedObject: Sendable {
    package var id: ObjectID
    package var hash: UInt64
    package var key: [UInt8]
    package var attributes: ObjectAttributes
    /// What the module above keeps of the response's head: bytes of its own.
    package var head: [UInt8]
    /// Held until it is written.
    package var body: any BodyBytes

    package init(
        id: ObjectID, hash: UInt64, key: [UInt8], attributes: ObjectAttributes, head: [UInt8], body: any BodyBytes
    ) {
        self.id = id
        self.hash = hash
        self.key = key
        self.attributes = attributes
        self.head = head
        self.body = body
    }
}

/// The head of a stored object, as it was read.
package struct StoredHead: Sendable {
    package var id: ObjectID
    package var place: Place
    package var key: [UInt8]
    package var attributes: ObjectAttributes
    /// The renewed one, where there is one.
    package var head: [UInt8]
    /// CRC-32C of each block of the body (`blockBytes`); empty where it is large: those are in `LargeObject`.
    package var checksums: [UInt32]
}

/// A disk store: one directory, one process. All calls are for any thread, and none of them blocks but where it says so.
///
/// It knows nothing of HTTP: keys and heads are bytes.
package final class DiskStore: @unchecked Sendable {
    // MARK: life

    /// Blocks, but not for the size of the store: what is in the book is read behind (`whenLoaded`).
    package static func open(_ options: DiskOptions, calls: any DiskCalls) throws(DiskRefusal) -> DiskStore {
        fatalError()
    }
    /// Writes what waits, commits, synchronizes, ends the threads. Blocks.
    package func close() { fatalError() }

    package enum State: Sendable, Equatable {
        case on
        /// Nothing is written until there is room, or the error is gone; what is there is read.
        case off(reason: String)
    }
    package var state: State { fatalError() }
    /// The book was read. Until then `find` says `.loading`.
    package var isLoaded: Bool { fatalError() }
    /// Calls once, on any thread, at once where it is loaded.
    package func whenLoaded(_ call: @escaping @Sendable () -> Void) { fatalError() }
    package func setLimits(size: UInt64, pinned: UInt64) { fatalError() }
    package var statistics: DiskStatistics { fatalError() }

    // MARK: reading

    package enum Found: Sendable {
        case nothing
        /// Places of objects whose key may be this one, newest first: compare the keys.
        case places([Place])
        case loading
    }
    package func find(_ hash: UInt64) -> Found { fatalError() }

    /// The object is still there, in the same place.
    package func contains(_ id: ObjectID, hash: UInt64, _ place: Place) -> Bool { fatalError() }

    /// The head at a place.
    /// - Parameter waits: it may block; otherwise `wouldBlock` is thrown where it would.
    package func readHead(_ place: Place, waits: Bool) throws(DiskReadError) -> StoredHead { fatalError() }

    /// Head and body of a packed object in one go; the body goes into `body`, of its length.
    package func readBody(
        of place: Place, checksums: [UInt32], offset: Int, into room: UnsafeMutableRawBufferPointer, waits: Bool
    ) -> DiskRead { fatalError() }

    /// Counts one use: what is used is kept longer.
    package func touch(_ hash: UInt64) { fatalError() }

    /// Runs `work`, which may block, on a thread for that. False: too many wait.
    package func perform(_ work: @escaping @Sendable () -> Void) -> Bool { fatalError() }

    // MARK: writing

    /// For an object to be stored.
    package func nextID() -> ObjectID { fatalError() }

    /// Takes an object to be written soon. False: too much waits to be written, the store is off, the object is too large, or its
    /// quota is full; nothing is stored.
    package func store(_ object: PackedObject) -> StoreOutcome { fatalError() }

    package enum StoreOutcome: Sendable, Equatable {
        case taken
        /// Too much waits to be written.
        case busy
        case off
        case tooLarge
        case pinnedQuotaFull
    }

    /// Takes objects out, also those that wait to be written.
    package func remove(_ id: ObjectID, hash: UInt64, key: [UInt8]) { fatalError() }
    /// The object was found damaged: out, counted, and logged.
    package func dropDamaged(_ id: ObjectID, hash: UInt64, key: [UInt8]) { fatalError() }
    /// All objects under the key. Returns how many there may have been: the keys are not compared where they are not at hand.
    package func removeAll(hash: UInt64, key: [UInt8]) -> Int { fatalError() }
    /// Gives an object a renewed head; it goes into the book.
    package func renew(_ id: ObjectID, hash: UInt64, key: [UInt8], attributes: ObjectAttributes, head: [UInt8]) {
        fatalError()
    }
    /// Waits until all that was asked for before is written, in the book, and on the medium. Blocks. False: it could not be.
    package func flush() -> Bool { fatalError() }

    // MARK: large objects

    /// An object that gets a segment of its own, of which nothing is there yet. Its room is taken at once.
    package func makeLarge(
        id: ObjectID, hash: UInt64, key: [UInt8], attributes: ObjectAttributes, head: [UInt8], length: Int
    ) -> Result<LargeObject, StoreRefusal> { fatalError() }

    package struct StoreRefusal: Error, Equatable, Sendable {
        package var outcome: StoreOutcome
        package init(_ outcome: StoreOutcome) { self.outcome = outcome }
    }

    /// The large object at a place, with what is known of its blocks. May block.
    package func openLarge(_ head: StoredHead, hash: UInt64) throws(DiskReadError) -> LargeObject { fatalError() }

    // MARK: listing

    /// Entries of the book in the order of host and path. Blocks. What was stored before the call is in it after `flush`.
    /// - Parameters:
    ///   - cursor: where the page before ended; nil: the beginning.
    ///   - prefix: of the key; nil: all.
    package func page(after cursor: BookCursor?, prefix: [UInt8]?, limit: Int) -> (
        entries: [BookEntry], next: BookCursor?
    ) { fatalError() }
}

package enum DiskReadError: Error, Equatable, Sendable {
    case wouldBlock
    /// What stands there is not what was written, or no longer.
    case damaged
    case failed(errno: CInt)
}

package struct DiskStatistics: Sendable, Equatable {
    package var sizeBytes: UInt64 = 0
    /// Of all files: segments, large objects, book.
    package var usedBytes: UInt64 = 0
    package var liveBytes: UInt64 = 0
    package var pinnedLimitBytes: UInt64 = 0
    package var pinnedBytes: UInt64 = 0
    package var objectCount = 0
    package var largeCount = 0
    package var segmentCount = 0
    package var bookBytes: UInt64 = 0
    /// Bytes that wait to be written.
    package var waitingBytes = 0
    // Since the start.
    package var storedObjects: UInt64 = 0
    package var storedBytes: UInt64 = 0
    package var refusedBusy: UInt64 = 0
    package var refusedPinned: UInt64 = 0
    package var evictedObjects: UInt64 = 0
    package var evictedBytes: UInt64 = 0
    /// Bytes copied forward to free a segment.
    package var movedBytes: UInt64 = 0
    package var damagedObjects: UInt64 = 0
    package var readErrors: UInt64 = 0
    package var writeErrors: UInt64 = 0
    package var commits: UInt64 = 0

    package init() {}
}

/// A place in the book's order.
package struct BookCursor: Hashable, Sendable {
    package let key: [UInt8]
    package init(key: [UInt8]) { self.key = key }
}
