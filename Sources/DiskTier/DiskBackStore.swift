package import Disk
import Glibc
package import Storage

/// Makes the disk store a back store: it translates between the nouns of Storage and those of Disk, and decides nothing.
package final class DiskBackStore: BackStore {
    private let store: DiskStore

    private init(_ store: DiskStore) {
        precondition(Body.blockBytes == Disk.blockBytes, "bodies and disk have blocks of one length")
        self.store = store
    }

    /// Opens the store in a directory, or creates both. Blocks, but not for longer if the store is larger: the index is filled later.
    package static func open(_ settings: BackStoreSettings) throws(BackStoreRefusal) -> DiskBackStore {
        try open(settings, calls: SystemCalls())
    }

    /// - Parameter calls: the system calls of the store. Tests make them fail.
    package static func open(
        _ settings: BackStoreSettings, calls: any DiskCalls
    ) throws(BackStoreRefusal) -> DiskBackStore {
        let options = DiskOptions(
            path: settings.path, size: settings.size, pinned: settings.pinned, syncInterval: settings.syncInterval,
            hash: { settings.key($0).folded }, log: { settings.log(BackStoreEvent($0)) })
        do throws(DiskRefusal) {
            return DiskBackStore(try DiskStore.open(options, calls: calls))
        } catch { throw BackStoreRefusal(error) }
    }

    /// Throws what `open` would throw, without changing or locking anything. That another process uses the store is not found.
    ///
    /// - Parameters:
    ///   - path: the directory.
    ///   - size: in bytes.
    /// - Returns: whether there is a store.
    package static func examine(_ path: String, size: UInt64) throws(BackStoreRefusal) -> Bool {
        do throws(DiskRefusal) { return try Directory.examine(path, size: size) == .store } catch {
            throw BackStoreRefusal(error)
        }
    }

    // MARK: life

    package var health: BackStoreHealth {
        switch store.state {
        case .on: .on
        case .off(let reason): .off(reason: reason)
        }
    }
    package var isOn: Bool { store.isOn }
    package var statistics: BackStoreStatistics { BackStoreStatistics(store.statistics) }
    package var isLoaded: Bool { store.isLoaded }
    package func whenLoaded(_ call: @escaping @Sendable () -> Void) { store.whenLoaded(call) }
    package func waitUntilLoaded() -> Bool { store.waitUntilLoaded() }
    package func setLimits(size: UInt64, pinned: UInt64, syncInterval: Duration) {
        store.setLimits(size: size, pinned: pinned, syncInterval: syncInterval)
    }
    package func setQueue(bytesMax: Int) { store.setQueue(bytesMax: bytesMax) }
    package var isBehind: Bool { store.isBehind }
    package var isStuck: Bool { store.isStuck }
    package func whenCaughtUp(_ call: @escaping @Sendable () -> Void) { store.whenCaughtUp(call) }
    package func perform(_ work: @escaping @Sendable () -> Void) -> Bool { store.perform(work) }
    package func flush() -> Bool { store.flush() }
    package func close() { store.close() }

    // MARK: looking

    package func find(_ key: StorageKey) -> StoredPlaces {
        switch store.find(key.folded) {
        case .nothing: .nothing
        case .places(let places): .found(places.map { StoredPlace($0) })
        case .loading: .loading
        }
    }

    package func readHead(_ place: StoredPlace, waits: Bool) throws(BackStoreReadError) -> StoredCopy {
        do throws(DiskReadError) {
            return StoredCopy(try store.readHead(Place(place), waits: waits))
        } catch { throw BackStoreReadError(error) }
    }

    package func contains(_ id: StoredID, _ key: StorageKey) -> Bool {
        store.contains(ObjectID(id), hash: key.folded)
    }
    package func contains(_ id: StoredID, _ key: StorageKey, at place: StoredPlace) -> Bool {
        store.contains(ObjectID(id), hash: key.folded, Place(place))
    }
    package func waiting(_ key: StorageKey) -> [ResponseToStore] {
        store.waiting(key.folded).map { waiting in
            ResponseToStore(
                id: StoredID(waiting.id), key: key, keyBytes: waiting.key,
                form: ResponseForm(attributes: StoredAttributes(waiting.attributes), head: waiting.head))
        }
    }
    package func countUse(of id: StoredID, _ key: StorageKey) { store.touch(ObjectID(id), hash: key.folded) }

    // MARK: bodies

    package func readBody(
        at place: StoredPlace, checksums: [UInt32], from offset: Int, into room: UnsafeMutableRawBufferPointer,
        waits: Bool
    ) -> BackStoreRead {
        unsafe BackStoreRead(
            store.readBody(of: Place(place), checksums: checksums, offset: offset, into: room, waits: waits))
    }

    package func fileRange(of place: StoredPlace, from offset: Int, count: Int) -> FileRange? {
        store.cachedBody(of: Place(place), from: offset, count: count).map { FileRange($0) }
    }

    package func openBlocks(at place: StoredPlace, _ key: StorageKey) throws(BackStoreReadError) -> any BodyBlocks {
        do throws(DiskReadError) {
            return DiskBlocks(try store.openLarge(at: Place(place), hash: key.folded))
        } catch { throw BackStoreReadError(error) }
    }

    // MARK: storing

    package func nextID() -> StoredID { StoredID(store.nextID()) }
    package var newestID: StoredID { StoredID(store.newestID) }

    package func prospect(bytes: Int, _ retention: Retention, isNow: Bool) -> StoringOutcome {
        StoringOutcome(store.prospect(bytes: bytes, StorageClass(retention), isNow: isNow))
    }

    package func store(_ response: ResponseToStore, body: Body, isPromised: Bool) -> StoringOutcome {
        StoringOutcome(
            store.store(
                PackedObject(
                    id: ObjectID(response.id), hash: response.key.folded, key: response.keyBytes,
                    attributes: ObjectAttributes(response.form.attributes), head: response.form.head,
                    body: body), isPromised: isPromised))
    }

    package func makeBlocks(
        for response: ResponseToStore, length: Int?
    ) -> Result<any BodyBlocks, StoringRefusal> {
        store.makeLarge(
            id: ObjectID(response.id), hash: response.key.folded, key: response.keyBytes,
            attributes: ObjectAttributes(response.form.attributes), head: response.form.head, length: length
        ).map { DiskBlocks($0) }.mapError { StoringRefusal(StoringOutcome($0.outcome)) }
    }

    package func renew(_ response: ResponseToStore) {
        store.renew(
            ObjectID(response.id), hash: response.key.folded, key: response.keyBytes,
            attributes: ObjectAttributes(response.form.attributes), head: response.form.head)
    }

    package func remove(_ id: StoredID, _ key: StorageKey, _ keyBytes: [UInt8]) {
        store.remove(ObjectID(id), hash: key.folded, key: keyBytes)
    }
    package func removeDamaged(_ id: StoredID, _ key: StorageKey, _ keyBytes: [UInt8]) {
        store.dropDamaged(ObjectID(id), hash: key.folded, key: keyBytes)
    }
    package func removeAll(_ key: StorageKey, _ keyBytes: [UInt8]) -> Int {
        store.removeAll(hash: key.folded, key: keyBytes)
    }

    // MARK: notes

    package func keep(_ note: [UInt8], as name: String) -> Bool { store.keep(note, as: name) }
    package func note(_ name: String) -> [UInt8]? { store.note(name) }

    // MARK: listing

    package func page(
        after cursor: ListingCursor?, in range: ListingRange, tag: [UInt8]?, limit: Int
    ) -> ListingPage? {
        let cursor = cursor.map { BookCursor(key: $0.bytes) }
        let page =
            if let tag {
                store.page(after: cursor, tag: tag, limit: limit)
            } else {
                store.page(after: cursor, in: BookRange(range), limit: limit)
            }
        return page.map { entries, next in
            ListingPage(entries.map { ListedResponse($0) }, next: next.map { ListingCursor($0.key) })
        }
    }
}

/// Makes a large object of the disk store the blocks of a body.
private final class DiskBlocks: BodyBlocks {
    private let object: LargeObject

    init(_ object: LargeObject) { self.object = object }

    var length: Int? { object.length }
    var extents: [Range<Int>] { object.extents }
    var waitingBytes: Int { object.waitingBytes }

    func write(block: Int, of body: Body, then: @escaping @Sendable (Bool) -> Void) {
        object.write(block: block, from: body, at: block * Body.blockBytes, then: then)
    }

    func read(from offset: Int, into room: UnsafeMutableRawBufferPointer, waits: Bool) -> BackStoreRead {
        unsafe BackStoreRead(object.read(from: offset, into: room, waits: waits))
    }

    func fileRange(from offset: Int, limit: Int) -> FileRange? {
        object.cached(from: offset, limit: limit).map { FileRange($0) }
    }

    func readAhead(from offset: Int, length: Int) { object.readAhead(from: offset, length: length) }

    func finish(length: Int, then: @escaping @Sendable (Bool) -> Void) { object.finish(length: length, then: then) }
    func abandon() { object.abandon() }
}

extension FileRange {
    fileprivate init(_ range: OpenFileRange) {
        self.init(descriptor: range.descriptor, offset: range.offset, count: range.count, owner: range.file)
    }
}

/// The writer of the disk store takes the bytes of a body from where they are.
extension Body: BodyBytes {
    package var byteCount: Int { expectedLength ?? length }
}
