internal import CLarder
internal import Synchronization

/// One stored response (one variant of one key): its key, its head in wire form, its body.
///
/// Immutable once published, except for its use mark and what the shard that holds it writes under its lock. The module
/// above subclasses it with what it knows of the response. It is charged to the budget on `insert`, and until the last
/// reference goes: one that was evicted while it is being sent still counts.
@safe open class StoredRecord: @unchecked Sendable {
    package let key: StorageKey
    package let keyBytes: [UInt8]
    package let head: [UInt8]
    package let body: Body
    /// When it was stored, in seconds of the wall clock, as its maker says; zero: not said.
    package let insertedAt: Int64
    /// Bytes that a subclass holds besides (arrays, tables), charged with it.
    private let heldBesides: Int

    /// Its number on the back store; 0: it is not there.
    private let storedNumber = Atomic<UInt64>(0)
    /// It was removed because it must not be served any more, not for want of room.
    private let revoked = Atomic<Bool>(false)
    /// Uses since it entered its queue, saturating at 3 (S3-FIFO).
    private let uses = Atomic<UInt8>(0)
    private let hitCount = Atomic<UInt32>(0)

    // Below: written only under the lock of the shard that holds it.
    final var place = Place.nowhere
    final var newer: Unmanaged<StoredRecord>?
    final var older: Unmanaged<StoredRecord>?
    /// Bytes it counts for in its queue: itself and its body.
    final var weight = 0
    /// Bytes of the budget that it holds without its body; zero until it is inserted.
    final var charge = 0

    enum Place: UInt8 { case nowhere, small, main }

    package init(
        key: StorageKey, keyBytes: [UInt8], head: [UInt8], body: Body, heldBesides: Int = 0, insertedAt: Int64 = 0
    ) {
        self.key = key
        self.keyBytes = keyBytes
        self.head = head
        self.body = body
        precondition(heldBesides >= 0, "bytes are counted")
        self.heldBesides = heldBesides
        self.insertedAt = insertedAt
    }

    deinit { body.shelves.release(charge) }

    /// Whether this response, being newer, replaces `other` under the same key, because both are the same variant. Called
    /// under the lock of a shard: compare, and do nothing else.
    open func replaces(_ other: StoredRecord) -> Bool { true }
}

extension StoredRecord {
    static let usesMax: UInt8 = 3

    /// Its number on the back store; nil: it is not there.
    package final var storedID: StoredID? {
        get {
            let number = storedNumber.load(ordering: .sequentiallyConsistent)
            return number == 0 ? nil : StoredID(rawValue: number)
        }
        set { storedNumber.store(newValue?.rawValue ?? 0, ordering: .sequentiallyConsistent) }
    }

    /// Gives it a number where it has none. Of several threads that try at once, one is told true.
    final func takeStoredID(_ id: StoredID) -> Bool {
        storedNumber.compareExchange(expected: 0, desired: id.rawValue, ordering: .sequentiallyConsistent).exchanged
    }

    final var isRevoked: Bool { revoked.load(ordering: .sequentiallyConsistent) }
    final func revoke() { revoked.store(true, ordering: .sequentiallyConsistent) }

    /// Slot in the table at its lowest load, the list of variants, and a share of the ghost queue.
    static let tableBytes = 208

    /// Bytes of memory that it takes at most, without its body.
    final var footprint: Int {
        let object = unsafe clarder_malloc_usable_size(Unmanaged.passUnretained(self).toOpaque()) + 8
        return object + chunkBytes(keyBytes.capacity + 32) + chunkBytes(head.capacity + 32) + heldBesides
            + Self.tableBytes
    }

    /// Uses of this response, and of those that it was freshened from; saturating. Uses on two threads at once may count as
    /// one.
    package final var hits: UInt32 { hitCount.load(ordering: .relaxed) }

    final func setHits(_ value: UInt32) { hitCount.store(value, ordering: .relaxed) }

    var frequency: UInt8 { uses.load(ordering: .relaxed) }

    /// Counts one use. Two threads at once may count as one: good enough for a saturating mark.
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
