internal import CLarder
package import Disk
internal import Synchronization

/// One stored response (one variant of one key): its key, its head in wire form, its body.
///
/// Immutable once published, but for the use mark and what the shard that holds it writes under its lock. The module
/// above subclasses it with what it knows of the response. The budget is charged on `insert` and given back when the
/// last reference goes, so a record that was evicted while somebody sends it still counts.
@safe open class StoredRecord: @unchecked Sendable {
    package let key: StorageKey
    package let keyBytes: [UInt8]
    package let head: [UInt8]
    package let body: Body
    /// When it was stored, in seconds of the wall clock, as its creator says; zero: not said.
    package let insertedAt: Int64
    /// Bytes a subclass holds beside this record (arrays, tables), charged with it.
    private let heldBesides: Int

    /// Its number in the disk tier; 0: it is not there.
    private let diskNumber = Atomic<UInt64>(0)
    /// It was taken out because it is not to be served any more, not for want of room.
    private let revoked = Atomic<Bool>(false)
    /// Uses since the record entered its queue, saturating at 3 (S3-FIFO).
    private let uses = Atomic<UInt8>(0)
    private let hitCount = Atomic<UInt32>(0)

    // Below: written under the lock of the record's shard only.
    final var place = Place.nowhere
    final var newer: Unmanaged<StoredRecord>?
    final var older: Unmanaged<StoredRecord>?
    /// Bytes this record counts for in its queue: itself and its body.
    final var weight = 0
    /// Bytes of the budget this record itself holds; zero until it is inserted.
    final var charge = 0

    enum Place: UInt8 { case nowhere, small, main }

    package init(
        key: StorageKey, keyBytes: [UInt8], head: [UInt8], body: Body, heldBesides: Int = 0, insertedAt: Int64 = 0
    ) {
        self.key = key
        self.keyBytes = keyBytes
        self.head = head
        self.body = body
        self.heldBesides = heldBesides
        self.insertedAt = insertedAt
    }

    deinit { body.shelves.release(charge) }

    /// Whether this record, being newer, takes the place of `other` under the same key: both are the same variant.
    /// Called under the lock of a shard: compare, and do nothing else.
    open func replaces(_ other: StoredRecord) -> Bool { true }
}

extension StoredRecord {
    static let usesMax: UInt8 = 3

    /// Its number in the disk tier; nil: it is not there.
    package final var diskID: ObjectID? {
        get {
            let number = diskNumber.load(ordering: .sequentiallyConsistent)
            return number == 0 ? nil : ObjectID(rawValue: number)
        }
        set { diskNumber.store(newValue?.rawValue ?? 0, ordering: .sequentiallyConsistent) }
    }

    /// Gives it a number where it has none; of several who want to, one is told true.
    final func takeDiskID(_ id: ObjectID) -> Bool {
        diskNumber.compareExchange(expected: 0, desired: id.rawValue, ordering: .sequentiallyConsistent).exchanged
    }

    final var isRevoked: Bool { revoked.load(ordering: .sequentiallyConsistent) }
    final func revoke() { revoked.store(true, ordering: .sequentiallyConsistent) }

    /// Slot in the table at its lowest load, the list of variants, and a share of the ghost queue.
    static let tableBytes = 208

    /// What this record takes of memory beside its body: at most, in bytes.
    final var footprint: Int {
        let object = unsafe clarder_malloc_usable_size(Unmanaged.passUnretained(self).toOpaque()) + 8
        return object + chunkBytes(keyBytes.capacity + 32) + chunkBytes(head.capacity + 32) + heldBesides
            + Self.tableBytes
    }

    /// Uses of this record, and of those it was freshened from; saturating. Uses on two threads at once may count as one.
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
