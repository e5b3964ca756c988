import EventLoop
import Foundation
import Glibc
import Storage
import Synchronization

/// What a `MemoryBackStore` has stored: it outlives the store, as a medium does.
final class Medium: @unchecked Sendable {
    struct Item {
        let id: StoredID
        var isHeadDamaged = false
        let key: StorageKey
        let keyBytes: [UInt8]
        var form: ResponseForm
        let length: Int
        /// By number; of a body in one piece there is one.
        var blocks: [Int: [UInt8]]
        let isWhole: Bool
    }
    private let lock = NSLock()
    private var items: [StoredID: Item] = [:]
    private var lastID: UInt64 = 0

    func nextID() -> StoredID {
        lock.withLock {
            lastID += 1
            return StoredID(rawValue: lastID)
        }
    }
    var newestID: StoredID { lock.withLock { StoredID(rawValue: lastID) } }

    func item(_ id: StoredID) -> Item? { lock.withLock { items[id] } }
    func items(_ key: StorageKey) -> [Item] {
        lock.withLock { items.values.filter { $0.key == key }.sorted { $0.id > $1.id } }
    }
    var all: [Item] { lock.withLock { Array(items.values) } }
    func add(_ item: Item) { lock.withLock { items[item.id] = item } }
    func change(_ id: StoredID, _ change: (inout Item) -> Void) {
        lock.withLock { if items[id] != nil { change(&items[id]!) } }
    }
    /// False: it was not there.
    @discardableResult func remove(_ id: StoredID) -> Bool { lock.withLock { items.removeValue(forKey: id) != nil } }
}

/// A back store that keeps all of it in memory: the other engine, to show that nothing of `Tiers` is the disk's own.
/// It writes on a queue, so what it accepted waits for a while.
final class MemoryBackStore: BackStore {
    private let medium: Medium
    private let isShut: @Sendable () -> Bool
    private let writer = DispatchQueue(label: "back store")
    private let performing = DispatchGroup()
    /// What waits to be written, and what it has become meanwhile.
    private let pending = Locked<[StoredID: ResponseToStore]>([:])
    private let damaged = Atomic(0)
    let queueBytesMax = Locked(0)

    init(_ medium: Medium, isShut: @escaping @Sendable () -> Bool) {
        self.medium = medium
        self.isShut = isShut
    }

    // MARK: life

    var health: BackStoreHealth { .on }
    var isOn: Bool { true }
    var isLoaded: Bool { true }
    func whenLoaded(_ call: @escaping @Sendable () -> Void) { call() }
    func waitUntilLoaded() -> Bool { true }
    func setLimits(size: UInt64, pinned: UInt64, syncInterval: Duration) {}
    var isBehind: Bool { false }
    func setQueue(bytesMax: Int) { queueBytesMax.withLock { $0 = bytesMax } }

    var statistics: BackStoreStatistics {
        var statistics = BackStoreStatistics()
        statistics.objectCount = medium.all.count
        statistics.damagedObjects = UInt64(damaged.load(ordering: .relaxed))
        return statistics
    }

    func perform(_ work: @escaping @Sendable () -> Void) -> Bool {
        DispatchQueue.global().async(group: performing, execute: work)
        return true
    }

    func flush() -> Bool {
        performing.wait()
        writer.sync {}
        return true
    }

    func close() {
        performing.wait()
        writer.sync {}
    }

    fileprivate func write(_ work: @escaping @Sendable () -> Void) {
        writer.async {
            while self.isShut() { usleep(200) }
            work()
        }
    }

    // MARK: looking

    private func place(_ item: Medium.Item) -> StoredPlace {
        StoredPlace(
            form: item.isWhole ? .whole : .blocks, bodyBytes: item.length, bytes: item.length,
            location: StoredPlace.Location(item.id.rawValue, 0))
    }

    private func item(at place: StoredPlace) -> Medium.Item? {
        medium.item(StoredID(rawValue: place.location.first))
    }

    func find(_ key: StorageKey) -> StoredPlaces {
        let found = medium.items(key)
        return found.isEmpty ? .nothing : .found(found.map(place))
    }

    func readHead(_ place: StoredPlace, waits: Bool) throws(BackStoreReadError) -> StoredCopy {
        // Heads are at hand. Bodies are not.
        guard let item = item(at: place), !item.isHeadDamaged else { throw .damaged }
        return StoredCopy(
            id: item.id, place: place, keyBytes: item.keyBytes, attributes: item.form.attributes, head: item.form.head,
            checksums: [])
    }

    func contains(_ id: StoredID, _ key: StorageKey) -> Bool { medium.item(id)?.key == key }
    func contains(_ id: StoredID, _ key: StorageKey, at place: StoredPlace) -> Bool {
        contains(id, key) && place.location.first == id.rawValue
    }
    func waiting(_ key: StorageKey) -> [ResponseToStore] {
        pending.withLock { $0.values.filter { $0.key == key } }
    }
    func countUse(of id: StoredID, _ key: StorageKey) {}

    // MARK: bodies

    func readBody(
        at place: StoredPlace, checksums: [UInt32], from offset: Int, into room: UnsafeMutableRawBufferPointer,
        waits: Bool
    ) -> BackStoreRead {
        guard waits else { return .wouldBlock }
        guard let bytes = item(at: place)?.blocks[0] else { return .damaged }
        unsafe room.copyBytes(from: bytes[offset..<offset + room.count])
        return .done
    }

    func openBlocks(at place: StoredPlace, _ key: StorageKey) throws(BackStoreReadError) -> any BodyBlocks {
        guard let item = item(at: place) else { throw .damaged }
        return Blocks(item.id, length: item.length, medium, self)
    }

    // MARK: storing

    func nextID() -> StoredID { medium.nextID() }
    var newestID: StoredID { medium.newestID }

    func store(_ response: ResponseToStore, body: Body, isPromised: Bool) -> StoringOutcome {
        pending.withLock { $0[response.id] = response }
        write { [self] in
            let bytes = body.bytes()
            _ = publish(response.id, length: bytes.count, blocks: [0: bytes], isWhole: true)
        }
        return .accepted
    }

    func makeBlocks(for response: ResponseToStore, length: Int?) -> Result<any BodyBlocks, StoringRefusal> {
        if let length {
            medium.add(Medium.Item(response, length: length, blocks: [:], isWhole: false))
        } else {
            pending.withLock { $0[response.id] = response }
        }
        return .success(Blocks(response.id, length: length, medium, self))
    }

    /// Moves what waits to the medium, in one step: a renewal or a removal in between would find it in neither. False: it was removed
    /// meanwhile.
    fileprivate func publish(_ id: StoredID, length: Int, blocks: [Int: [UInt8]], isWhole: Bool) -> Bool {
        pending.withLock { pending in
            guard let response = pending.removeValue(forKey: id) else { return false }
            medium.add(Medium.Item(response, length: length, blocks: blocks, isWhole: isWhole))
            return true
        }
    }

    fileprivate func forget(_ id: StoredID) { pending.withLock { $0[id] = nil } }

    func renew(_ response: ResponseToStore) {
        pending.withLock { if $0[response.id] != nil { $0[response.id] = response } }
        medium.change(response.id) { $0.form = response.form }
    }

    func remove(_ id: StoredID, _ key: StorageKey, _ keyBytes: [UInt8]) {
        pending.withLock { $0[id] = nil }
        medium.remove(id)
    }

    func removeDamaged(_ id: StoredID, _ key: StorageKey, _ keyBytes: [UInt8]) {
        if medium.remove(id) { damaged.add(1, ordering: .relaxed) }
    }

    func removeAll(_ key: StorageKey, _ keyBytes: [UInt8]) -> Int {
        let waiting = waiting(key).map(\.id)
        let stored = medium.items(key).map(\.id)
        for id in waiting + stored { remove(id, key, keyBytes) }
        return Set(waiting + stored).count
    }

    // MARK: listing

    func page(after cursor: ListingCursor?, in range: ListingRange, tag: [UInt8]?, limit: Int) -> ListingPage? {
        let all = medium.all.sorted { $0.keyBytes.lexicographicallyPrecedes($1.keyBytes) }
        return ListingPage(
            all.map {
                ListedResponse(
                    id: $0.id, keyBytes: $0.keyBytes, attributes: $0.form.attributes, bodyBytes: $0.length,
                    bytes: $0.length, isComplete: true)
            }, next: nil)
    }
}

extension Medium.Item {
    fileprivate init(_ response: ResponseToStore, length: Int, blocks: [Int: [UInt8]], isWhole: Bool) {
        self.init(
            id: response.id, key: response.key, keyBytes: response.keyBytes, form: response.form, length: length,
            blocks: blocks, isWhole: isWhole)
    }
}

private final class Blocks: BodyBlocks {
    private enum Stage {
        /// The blocks of a body whose length is not known: nothing of them is on the medium.
        case growing([Int: [UInt8]])
        case stored(length: Int)
    }
    private let id: StoredID
    private let medium: Medium
    private let store: MemoryBackStore
    private let waiting = Atomic(0)
    private let stage: Locked<Stage>

    init(_ id: StoredID, length: Int?, _ medium: Medium, _ store: MemoryBackStore) {
        self.id = id
        self.medium = medium
        self.store = store
        stage = Locked(length.map { .stored(length: $0) } ?? .growing([:]))
    }

    var length: Int? {
        stage.withLock { stage in
            if case .stored(let length) = stage { return length }
            return nil
        }
    }

    private var blocks: [Int: [UInt8]] {
        stage.withLock { stage in
            if case .growing(let blocks) = stage { return blocks }
            return medium.item(id)?.blocks ?? [:]
        }
    }

    var extents: [Range<Int>] {
        blocks.sorted { $0.key < $1.key }.reduce(into: []) { extents, item in
            let range = item.key * Body.blockBytes..<item.key * Body.blockBytes + item.value.count
            if let last = extents.last, last.upperBound == range.lowerBound {
                extents[extents.count - 1] = last.lowerBound..<range.upperBound
            } else {
                extents.append(range)
            }
        }
    }

    var waitingBytes: Int { waiting.load(ordering: .sequentiallyConsistent) }

    func write(block: Int, of body: Body, then: @escaping @Sendable (Bool) -> Void) {
        let start = block * Body.blockBytes
        let range = start..<min(body.expectedLength ?? body.length, start + Body.blockBytes)
        waiting.add(range.count, ordering: .sequentiallyConsistent)
        store.write { [self] in
            var bytes: [UInt8] = []
            while bytes.count < range.count {
                var vector = unsafe iovec()
                let used = unsafe withUnsafeMutablePointer(to: &vector) {
                    unsafe body.vectors(
                        from: range.lowerBound + bytes.count, limit: range.count - bytes.count,
                        into: UnsafeMutableBufferPointer(start: $0, count: 1))
                }
                precondition(used == 1, "a block that is whole has its bytes")
                unsafe bytes += UnsafeRawBufferPointer(start: vector.iov_base, count: vector.iov_len)
            }
            stage.withLock { stage in
                switch stage {
                case .growing(var blocks):
                    blocks[block] = bytes
                    stage = .growing(blocks)
                case .stored: medium.change(id) { $0.blocks[block] = bytes }
                }
            }
            waiting.subtract(range.count, ordering: .sequentiallyConsistent)
            then(true)
        }
    }

    func read(from offset: Int, into room: UnsafeMutableRawBufferPointer, waits: Bool) -> BackStoreRead {
        guard waits else { return .wouldBlock }
        let blocks = blocks
        var done = 0
        while done < room.count {
            guard let bytes = blocks[(offset + done) / Body.blockBytes] else { return .damaged }
            unsafe UnsafeMutableRawBufferPointer(rebasing: room[done...]).copyBytes(
                from: bytes.prefix(room.count - done))
            done += bytes.count
        }
        return .done
    }

    func readAhead(from offset: Int, length: Int) {}

    func finish(length: Int, then: @escaping @Sendable (Bool) -> Void) {
        store.write { [self] in
            let isStored = stage.withLock { stage in
                guard case .growing(let blocks) = stage,
                    store.publish(id, length: length, blocks: blocks, isWhole: false)
                else {
                    return false
                }
                precondition(blocks.values.reduce(0) { $0 + $1.count } == length, "all blocks were written before")
                stage = .stored(length: length)
                return true
            }
            then(isStored)
        }
    }

    func abandon() { store.forget(id) }
}
