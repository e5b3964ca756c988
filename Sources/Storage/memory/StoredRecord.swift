internal import CLarder
internal import Synchronization

/// One stored response, which is one variant of one key: its key, its head in wire form, and its body.
///
/// It is immutable once it is published, except for atomics (uses, hits, its number on the back store) and for what its shard writes
/// under the lock of the shard. The module above adds what it knows about the response in a subclass. The response is charged to
/// the budget from `insert` on until its last reference is gone: one that was evicted while it is being sent still counts.
@safe open class StoredRecord: @unchecked Sendable {
    package let key: StorageKey
    package let keyBytes: [UInt8]
    package let head: [UInt8]
    package let body: Body
    /// When the response was stored, in seconds of the wall clock. Zero if that is not known.
    package let insertedAt: Int64
    /// Another node of a fleet has the response as its own. Copies have a queue of their own (`Shard`), and a small share of a full memory, however
    /// much they are used.
    package let isCopy: Bool
    /// The number of the thread that allocated the response (`ThreadMemory.number`, EventLoop): it frees it at less cost than others (decision 29). Zero
    /// if any thread may free it.
    package let allocator: UInt8 = clarder_get_thread_number()
    /// Bytes of memory that a subclass has in addition (arrays, tables). They are charged with the response.
    private let heldBesides: Int

    /// The number of the response on the back store. Zero if it is not there.
    private let storedNumber = Atomic<UInt64>(0)
    /// The response was removed because it must not be served any more, and not for lack of space.
    private let revoked = Atomic<Bool>(false)
    /// The back store can never take the response: it must not outlive this process, or it is too large.
    private let unstorable = Atomic<Bool>(false)
    /// `Tenure.rawValue`.
    private let tenureCode = Atomic<UInt8>(Tenure.asMeant.rawValue)
    /// Uses since the response entered its queue. Saturates at 3 (S3-FIFO).
    private let uses = Atomic<UInt8>(0)
    private let hitCount = Atomic<UInt32>(0)

    // The following properties are written only under the lock of the shard that has the response.
    final var place = Place.nowhere
    final var newer: Unmanaged<StoredRecord>?
    final var older: Unmanaged<StoredRecord>?
    /// How many bytes it counts for in its queue: those of the response and of its body.
    final var weight = 0
    /// How many bytes of the budget it takes, without the body. Zero until it is inserted.
    final var charge = 0

    enum Place: UInt8 { case nowhere, small, main, copies }

    package init(
        key: StorageKey, keyBytes: [UInt8], head: [UInt8], body: Body, heldBesides: Int = 0, insertedAt: Int64 = 0,
        isCopy: Bool = false
    ) {
        self.isCopy = isCopy
        self.key = key
        self.keyBytes = keyBytes
        self.head = head
        self.body = body
        precondition(heldBesides >= 0, "bytes are counted")
        self.heldBesides = heldBesides
        self.insertedAt = insertedAt
    }

    deinit {
        clarder_note_freed(allocator)
        body.shelves.release(charge)
    }

    /// Whether this response, which is newer, replaces `other` under the same key, because both are the same variant. It is called under
    /// the lock of a shard, so an override only compares.
    open func replaces(_ other: StoredRecord) -> Bool { true }
}

extension StoredRecord {
    static let usesMax: UInt8 = 3

    /// The number of the response on the back store. Nil if it is not there.
    package final var storedID: StoredID? {
        get {
            let number = storedNumber.load(ordering: .sequentiallyConsistent)
            return number == 0 ? nil : StoredID(rawValue: number)
        }
        set { storedNumber.store(newValue?.rawValue ?? 0, ordering: .sequentiallyConsistent) }
    }

    /// Sets the number if there is none. If several threads try at once, one of them gets true.
    final func takeStoredID(_ id: StoredID) -> Bool {
        storedNumber.compareExchange(expected: 0, desired: id.rawValue, ordering: .sequentiallyConsistent).exchanged
    }

    /// Takes the number away, if it is this one. Returns whether it was.
    @discardableResult
    final func giveUpStoredID(_ id: StoredID) -> Bool {
        storedNumber.compareExchange(expected: id.rawValue, desired: 0, ordering: .sequentiallyConsistent).exchanged
    }

    /// How long the response stays, compared with how long its rules want it to.
    package final var tenure: Tenure {
        get { Tenure(rawValue: tenureCode.load(ordering: .relaxed)) ?? .asMeant }
        set { tenureCode.store(newValue.rawValue, ordering: .relaxed) }
    }

    /// Whether `tenure` is `asMeant`.
    package final var isAsMeant: Bool { tenureCode.load(ordering: .relaxed) == Tenure.asMeant.rawValue }

    /// Whether `tenure` is `memoryOnly`. On the way of every hit.
    @inline(__always)
    package final var isMemoryOnly: Bool { tenureCode.load(ordering: .relaxed) == Tenure.memoryOnly.rawValue }

    package final var isRevoked: Bool { revoked.load(ordering: .sequentiallyConsistent) }
    final var isUnstorable: Bool { unstorable.load(ordering: .relaxed) }
    final func markUnstorable() { unstorable.store(true, ordering: .relaxed) }
    final func revoke() { revoked.store(true, ordering: .sequentiallyConsistent) }

    /// The share of one response in the tables: a slot at the lowest load, the list of variants, and a part of the ghost queue.
    static let tableBytes = 208

    /// The most bytes of memory that an array of so many bytes takes.
    package static func arrayBytes(_ count: Int) -> Int { count == 0 ? 0 : chunkBytes(count + 32) }

    /// The most bytes of memory that the response takes, without its body.
    final var footprint: Int {
        let object = unsafe clarder_malloc_size(Unmanaged.passUnretained(self).toOpaque())
        return object + chunkBytes(keyBytes.capacity + 32) + chunkBytes(head.capacity + 32) + heldBesides
            + Self.tableBytes
    }

    /// How often this response was used, including the responses that it was freshened from. Saturates. Two uses at the same moment may
    /// count as one.
    package final var hits: UInt32 { hitCount.load(ordering: .relaxed) }

    final func setHits(_ value: UInt32) { hitCount.store(value, ordering: .relaxed) }

    var frequency: UInt8 { uses.load(ordering: .relaxed) }

    /// Counts one use. Two uses at the same moment may count as one, which does no harm to a saturating count.
    final func markUsed() {
        let hits = hitCount.load(ordering: .relaxed)
        if hits < .max { hitCount.store(hits + 1, ordering: .relaxed) }
        let seen = uses.load(ordering: .relaxed)
        if seen < Self.usesMax { uses.store(seen + 1, ordering: .relaxed) }
    }

    final func setFrequency(_ value: UInt8) { uses.store(value, ordering: .relaxed) }

    @inline(__always)
    final func hasKey(_ bytes: UnsafeRawBufferPointer) -> Bool {
        unsafe keyBytes.count == bytes.count && keyBytes.withUnsafeBytes { unsafe equalBytes($0, bytes) }
    }
}
