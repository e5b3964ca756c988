import EventLoop

/// Objects that wait to be written, by the hash of the key and the number. An object that is removed while it waits never
/// becomes visible.
///
/// An object is in exactly one of three states. Each step between them happens under the lock of its shard:
///
///     waiting ──publish──▶ in the index ──remove──▶ gone
///        └─────cancel──────────────────────────────▶
@safe final class Pending: @unchecked Sendable {  // each shard is only reached under its lock
    private let shards: [Locked<DiskIndexShard>]

    init() { shards = (0..<Self.shardCount).map { _ in Locked(DiskIndexShard(capacityMin: Self.shardCapacityMin)) } }

    private static let shardCount = 16
    /// The writer takes thousands of objects at once, and thousands more come before its next turn: smaller tables would grow and shrink with
    /// each turn.
    private static let shardCapacityMin = 256

    func add(_ hash: UInt64, _ id: ObjectID) {
        // Only hash and number matter here; the place is made up.
        let place = Place(kind: .packed, segment: 0, offset: 0, headLength: 16, bodyLength: 0)
        guard
            let entry = DiskIndexEntry(
                hash: hash, id: id, place: place, storageClass: .permanent, isRenewed: false)
        else { preconditionFailure("this place fits into an index entry") }
        shard(of: hash).withLock { $0.insert(entry) }
    }

    func contains(_ hash: UInt64, _ id: ObjectID) -> Bool {
        shard(of: hash).withLock { $0.first(hash) { $0.id == id } != nil }
    }

    /// Takes an object out. Returns false if it does not wait: it is in the index by now, or gone.
    @discardableResult
    func cancel(_ hash: UInt64, _ id: ObjectID) -> Bool {
        shard(of: hash).withLock { $0.remove(hash) { $0.id == id } != nil }
    }

    /// The numbers of all objects that wait under a key.
    func waiting(_ hash: UInt64) -> [ObjectID] {
        shard(of: hash).withLock { shard in
            var found: [ObjectID] = []
            shard.forEach(hash) { found.append($0.id) }
            return found
        }
    }

    /// Takes out all objects that wait under a key. Returns their numbers.
    func cancelAll(_ hash: UInt64) -> [ObjectID] {
        shard(of: hash).withLock { shard in
            var cancelled: [ObjectID] = []
            while let entry = shard.remove(hash, where: { _ in true }) { cancelled.append(entry.id) }
            return cancelled
        }
    }

    /// Takes the object out and calls `publish`, which puts it into the index. Returns false, without the call, if the object
    /// was cancelled. The lock of the shard is held during the call, so a removal finds the object here or in the index.
    func publish(_ hash: UInt64, _ id: ObjectID, _ publish: () -> Void) -> Bool {
        shard(of: hash).withLock { shard in
            guard shard.remove(hash, where: { $0.id == id }) != nil else { return false }
            publish()
            return true
        }
    }

    /// Calls `body` with whether the object waits. Until `body` returns, the object neither becomes visible nor is cancelled.
    func holding<Result>(_ hash: UInt64, _ id: ObjectID, _ body: (_ isWaiting: Bool) -> Result) -> Result {
        shard(of: hash).withLock { shard in body(shard.first(hash) { $0.id == id } != nil) }
    }

    var count: Int { shards.reduce(0) { $0 + $1.withLock { $0.count } } }

    private func shard(of hash: UInt64) -> Locked<DiskIndexShard> { shards[Int(hash >> 60) & (Self.shardCount - 1)] }
}
