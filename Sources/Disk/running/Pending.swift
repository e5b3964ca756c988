import EventLoop

/// An object that was accepted and that `find` does not return yet.
protocol WaitingObject: AnyObject, Sendable {
    var id: ObjectID { get }
    var hash: UInt64 { get }
    var key: [UInt8] { get }
    var attributes: ObjectAttributes { get }
    /// As it was when the object was accepted: a renewed head is in `DiskStoreRenewals`. Empty once the head is in the file of a large object.
    var head: [UInt8] { get }
}

/// Objects that wait to be written, by the hash of the key and the number. An object that is removed while it waits never
/// becomes visible.
///
/// An object is in exactly one of three states. Each step between them happens under the lock of its shard:
///
///     waiting ──publish──▶ in the index ──remove──▶ gone
///        └─────cancel──────────────────────────────▶
final class Pending: Sendable {
    /// The objects under one hash. Nearly always there is only one, for which no list is made.
    private struct Group {
        var first: any WaitingObject
        var others: [any WaitingObject] = []

        var all: [any WaitingObject] { [first] + others }
        func contains(_ id: ObjectID) -> Bool { first.id == id || others.contains { $0.id == id } }
    }
    private typealias Shard = [UInt64: Group]
    private let shards: [Locked<Shard>]

    init() { shards = (0..<Self.shardCount).map { _ in Locked(Shard(minimumCapacity: Self.shardCapacityMin)) } }

    private static let shardCount = 16
    private static let shardCapacityMin = 256

    func add(_ object: some WaitingObject) {
        shard(of: object.hash).withLock { shard in
            // One look-up for an object that has its hash to itself. A subscript that changes in place would allocate.
            guard var group = shard.updateValue(Group(first: object), forKey: object.hash) else { return }
            group.others.append(object)
            shard.updateValue(group, forKey: object.hash)
        }
    }

    func contains(_ hash: UInt64, _ id: ObjectID) -> Bool {
        shard(of: hash).withLock { $0[hash]?.contains(id) ?? false }
    }

    /// Takes an object out. Returns false if it does not wait: it is in the index by now, or gone.
    @discardableResult
    func cancel(_ hash: UInt64, _ id: ObjectID) -> Bool {
        shard(of: hash).withLock { Self.remove(hash, id, from: &$0) }
    }

    private static func remove(_ hash: UInt64, _ id: ObjectID, from shard: inout Shard) -> Bool {
        guard let group = shard.removeValue(forKey: hash) else { return false }
        if group.others.isEmpty, group.first.id == id { return true }
        let rest = group.all.filter { $0.id != id }
        if let first = rest.first {
            shard.updateValue(Group(first: first, others: Array(rest.dropFirst())), forKey: hash)
        }
        return rest.count < group.all.count
    }

    /// All objects that wait under a key.
    func waiting(_ hash: UInt64) -> [any WaitingObject] { shard(of: hash).withLock { $0[hash]?.all ?? [] } }

    /// Takes out all objects that wait under a key. Returns their numbers.
    func cancelAll(_ hash: UInt64) -> [ObjectID] {
        shard(of: hash).withLock { $0.removeValue(forKey: hash)?.all.map(\.id) ?? [] }
    }

    /// Takes the object out and calls `publish`, which puts it into the index. Returns false, without the call, if the object
    /// was cancelled. The lock of the shard is held during the call, so a removal finds the object here or in the index.
    func publish(_ hash: UInt64, _ id: ObjectID, _ publish: () -> Void) -> Bool {
        shard(of: hash).withLock { shard in
            guard Self.remove(hash, id, from: &shard) else { return false }
            publish()
            return true
        }
    }

    /// Calls `body` with whether the object waits. Until `body` returns, the object neither becomes visible nor is cancelled.
    func holding<Result>(_ hash: UInt64, _ id: ObjectID, _ body: (_ isWaiting: Bool) -> Result) -> Result {
        shard(of: hash).withLock { body($0[hash]?.contains(id) ?? false) }
    }

    private func shard(of hash: UInt64) -> Locked<Shard> { shards[Int(hash >> 60) & (Self.shardCount - 1)] }
}
