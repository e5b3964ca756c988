import EventLoop
import Foundation
import Testing

@testable import Disk

/// One random history of a store, and what it should be.
final class StoreModel {
    struct World {
        /// Of 100 steps, about.
        var kills = 1
        var powerCuts = 0
        var faults = 0
        /// The book's file is damaged at each start.
        var losesBook = false
        var bodyBytesMax = 20_000
        /// The store is so small that objects are evicted.
        var isCrowded = false
    }

    /// An object that was taken.
    private struct Object {
        var key: String
        var body: [UInt8]
        /// All it ever had, the latest last.
        var heads: [String]
        var isPinned: Bool
        var isLarge: Bool
        /// Blocks of a large one that could be written.
        let blocks = Locked<Set<Int>>([])
        /// As of the last flush: where it must be found, with which blocks, and with this head or a later one.
        var isFlushed = false
        var flushedBlocks: Set<Int> = []
        var headMin = 0
        /// The latest it was given in this run.
        var headOfRun = 0
        /// It was put in this run, or flushed before: not lost with a process that ended.
        var isCertain = true
        var isRemoved = false
        /// The process was ended since: what was not flushed may be as it was before.
        var isRemovalFlushed = false
    }

    private let world: World
    private var random: SplitMix
    private let seed: UInt64
    private let room = DiskStoreTestRoom(inMemory: true)
    private var calls = FaultyCalls()
    private var store: DiskStore
    private var objects: [ObjectID: Object] = [:]
    private var large: [ObjectID: LargeObject] = [:]
    /// In the order in which they were put: a dictionary has another one in each process.
    private var ids: [ObjectID] = []
    private var step = 0
    /// Of the runs before this one.
    private var evictedBefore: UInt64 = 0
    private var hadPowerCut = false
    /// In this run: named by their table, and not on the medium when the power was cut.
    private var lostBlocks: UInt64 = 0
    /// Things that happened, for a test that nothing is tested in vain.
    private(set) var reads = 0

    private static let keys = (0..<60).map { "http://host\($0 % 3).example/\($0)" }

    init(seed: UInt64, _ world: World) throws {
        self.seed = seed
        self.world = world
        random = SplitMix(state: seed)
        store = try Self.open(room, calls, world)
    }

    private static func open(_ room: DiskStoreTestRoom, _ calls: FaultyCalls, _ world: World) throws -> DiskStore {
        var tuning = DiskStoreTestRoom.tuning
        tuning.segmentBytes = world.isCrowded ? 1 << 20 : 256 << 10
        tuning.packedBytesMax = 200_000
        return try room.open(
            size: world.isCrowded ? Directory.sizeMin : 256 << 20, pinned: world.isCrowded ? 4 << 20 : 128 << 20,
            syncInterval: .milliseconds(30), tuning: tuning, calls: calls, waits: !world.losesBook)
    }

    func run(steps: Int) throws {
        while step < steps {
            step += 1
            try act()
        }
        calls.heal()
        try restart(.orderly)
        try checkAll()
        store.close()
        #expect(reads > 0)
    }

    private func act() throws {
        switch Int.random(in: 0..<1000, using: &random) {
        case 0..<430: put()
        case 430..<480: putLarge()
        case 480..<520: writeBlocks()
        case 520..<600: remove()
        case 600..<630: removeAll()
        case 630..<700: renew()
        case 700..<900: try read(Self.keys.randomElement(using: &random)!)
        case 900..<930: flush()
        case 930..<932: try checkAll()
        case 935..<937: try restart(.orderly)
        case 937..<(937 + world.kills): try restart(.kill)
        case 950..<(950 + world.powerCuts): try restart(.powerCut)
        case 960..<(960 + world.faults): inject()
        case 980..<990: calls.heal()
        default: break
        }
    }

    // MARK: changes

    private func put() {
        let key = Self.keys.randomElement(using: &random)!
        let body = segmentBytes(length(), random.next())
        let isPinned = Int.random(in: 0..<20, using: &random) == 0
        let head = "head \(step)"
        guard let id = store.put(key, body, head: head, storageClass: isPinned ? .pinned : .permanent) else { return }
        objects[id] = Object(key: key, body: body, heads: [head], isPinned: isPinned, isLarge: false)
        ids.append(id)
    }

    private func length() -> Int {
        let max = Bool.random(using: &random) ? 2000 : world.bodyBytesMax
        return Int.random(in: 0...max, using: &random)
    }

    private func putLarge() {
        let key = Self.keys.randomElement(using: &random)!
        let body = segmentBytes(Int.random(in: 0..<300_000, using: &random), random.next())
        let head = "large \(step)"
        let bytes = Array(key.utf8)
        let id = store.nextID()
        let grows = !body.isEmpty && Bool.random(using: &random)
        let made = store.makeLarge(
            id: id, hash: DiskStoreTestRoom.hash(bytes), key: bytes, attributes: .of(.permanent),
            head: Array(head.utf8), length: grows ? nil : body.count)
        guard case .success(let object) = made else { return }
        if grows, !grow(object, key, body, isWhole: Int.random(in: 0..<4, using: &random) > 0, head) { return }
        if !grows { objects[id] = Object(key: key, body: body, heads: [head], isPinned: false, isLarge: true) }
        ids.append(id)
        large[id] = object
        if large.count > 8, let oldest = large.keys.min() { large[oldest] = nil }
    }

    /// Writes an object of unknown length to its end, or gives it up after its first block: then it must never be found.
    private func grow(_ object: LargeObject, _ key: String, _ body: [UInt8], isWhole: Bool, _ head: String) -> Bool {
        let source = SegmentTestBody(body)
        let blocks = 0..<(body.count + blockBytes - 1) / blockBytes
        for block in isWhole ? blocks : blocks.prefix(1) {
            object.write(block: block, from: source, at: block * blockBytes) { _ in }
        }
        guard isWhole else {
            object.abandon()
            return false
        }
        let known = Object(key: key, body: body, heads: [head], isPinned: false, isLarge: true)
        objects[object.id] = known
        object.finish(length: body.count) { isDone in
            if isDone { known.blocks.withLock { $0.formUnion(blocks) } }
        }
        return true
    }

    private func writeBlocks() {
        guard let id = large.keys.sorted().randomElement(using: &random), let object = large[id],
            let known = objects[id]
        else { return }
        let source = SegmentTestBody(known.body)
        for block in 0..<object.blockCount where Bool.random(using: &random) {
            object.write(block: block, from: source, at: block * blockBytes) { isDone in
                if isDone { known.blocks.withLock { _ = $0.insert(block) } }
            }
        }
    }

    private func remove() {
        guard let id = ids.randomElement(using: &random), let object = objects[id] else { return }
        store.remove(object.key, id)
        removed(id)
    }

    private func removed(_ id: ObjectID) {
        objects[id]?.isRemoved = true
        objects[id]?.isRemovalFlushed = false
    }

    private func removeAll() {
        let key = Self.keys.randomElement(using: &random)!
        _ = store.removeAll(key)
        for (id, object) in objects where object.key == key && !object.isRemoved { removed(id) }
    }

    private func renew() {
        guard let id = ids.randomElement(using: &random), let object = objects[id], !object.isRemoved else { return }
        store.renew(object.key, id, head: "renewed \(step)", storageClass: object.isPinned ? .pinned : .permanent)
        objects[id]?.heads.append("renewed \(step)")
        objects[id]?.headOfRun = object.heads.count
    }

    @discardableResult
    private func flush() -> Bool {
        guard store.flush() else {
            // Something that was taken could not be written: nobody is told what.
            for (id, object) in objects where !object.isFlushed { objects[id]?.isCertain = false }
            return false
        }
        for id in objects.keys {
            guard let object = objects[id] else { continue }
            objects[id]?.isFlushed = object.isCertain && !object.isRemoved
            objects[id]?.isRemovalFlushed = object.isRemoved
            objects[id]?.headMin = object.headOfRun
            objects[id]?.flushedBlocks = object.blocks.withLock { $0 }
        }
        return true
    }

    private func inject() {
        let faults: [FaultyCalls.Fault] = [
            .fail(ENOSPC), .fail(EIO), .fail(EDQUOT), .fail(EINTR), .short(7), .short(1000), .delay(.milliseconds(2)),
        ]
        let kinds: [FaultyCalls.Kind] = [.open, .write, .synchronize, .truncate, .allocate, .unlink, .commit, .read]
        var fault = faults.randomElement(using: &random)!
        var kind = kinds.randomElement(using: &random)!
        // A read that fails is no proof that the bytes are there: the model asks for them.
        if kind == .read, case .fail(let code) = fault, code != EINTR { kind = .write }
        // And where a file cannot be opened for that reason its head is taken for lost.
        if kind == .open, case .fail(EIO) = fault { fault = .fail(EMFILE) }
        // What was written before a synchronization that failed may be lost with the power, although later ones
        // succeed.
        if kind == .synchronize, world.powerCuts > 0 { kind = .write }
        calls.inject(
            fault, into: [kind], after: Int.random(in: 0..<4, using: &random),
            times: Int.random(in: 1..<6, using: &random))
    }

    // MARK: ends and beginnings

    private enum Ending { case orderly, kill, powerCut }

    private func restart(_ ending: Ending) throws {
        large = [:]
        var isWhole = false
        lostBlocks = 0
        switch ending {
        case .orderly:
            calls.heal()
            isWhole = flush()
            store.close()
        case .kill: store.abandon()
        case .powerCut:
            calls.cutPower(keeping: .random(seed: random.next()))
            store.abandon()
            hadPowerCut = true
        }
        evictedBefore += store.statistics.evictedObjects
        if !isWhole { forgetWhatWasNotFlushed() }
        calls = FaultyCalls()
        if world.losesBook { damageBook() }
        store = try Self.open(room, calls, world)
    }

    private func forgetWhatWasNotFlushed() {
        for (id, object) in objects {
            objects[id]?.isCertain = object.isFlushed && !object.isRemoved
            objects[id]?.headOfRun = object.headMin
            objects[id]?.blocks.withLock { $0 = object.flushedBlocks }
            if object.isRemoved, !object.isRemovalFlushed {
                // It may be back, and may be gone.
                objects[id]?.isRemoved = false
                objects[id]?.isFlushed = false
            }
        }
    }

    private func damageBook() {
        let path = room.path + "/book/data.mdb"
        guard let file = FileHandle(forUpdatingAtPath: path) else { return }
        defer { try? file.close() }
        // Both meta pages.
        for page in 0..<2 {
            try? file.seek(toOffset: UInt64(page * 4096 + 16))
            try? file.write(contentsOf: Data(repeating: 0xAA, count: 64))
        }
    }

    // MARK: reading

    private func checkAll() throws {
        store.waitUntilLoaded()
        for key in Self.keys { try read(key) }
        var missing = objects.filter { $0.value.isFlushed && !$0.value.isRemoved }
        // What is moved between finding and reading, or cannot be read because of a fault, is there the next time.
        for _ in 0..<20 where !missing.isEmpty {
            for key in Set(missing.values.map(\.key)) {
                for place in store.find(key) { try self.head(place, key).map { missing[$0.id] = nil } }
            }
        }
        for (id, object) in missing where object.isPinned && !object.isLarge {
            Issue.record("seed \(seed), step \(step): pinned \(id) under \(object.key) is gone")
        }
        let evicted = evictedBefore + store.statistics.evictedObjects
        #expect(
            missing.count <= Int(evicted), "seed \(seed), step \(step): \(missing.keys.sorted().prefix(5)) are gone")
        let told = room.texts.filter { $0.contains("damaged") || $0.contains("off") }.suffix(6)
        #expect(store.statistics.damagedObjects == lostBlocks, "seed \(seed), step \(step): \(told)")
    }

    private func head(_ place: Place, _ key: String) throws -> StoredHead? {
        do throws(DiskReadError) {
            return try store.readHead(place, waits: true)
        } catch {
            if case .failed = error, world.faults > 0 { return nil }  // the file could not be opened
            guard error == .damaged else { throw error }
            // Moved or evicted between finding and reading: then it is not there any more.
            let isThere = store.find(key).contains(place)
            #expect(!isThere, "seed \(seed), step \(step): \(key) is damaged")
            return nil
        }
    }

    private func read(_ key: String) throws {
        for place in store.find(key) {
            guard let head = try head(place, key) else { continue }
            reads += 1
            let object = try #require(
                objects[head.id], "seed \(seed), step \(step): \(head.id) under \(key) was never put")
            #expect(object.key == key)
            let isRemoved = object.isRemoved
            #expect(
                !isRemoved,
                "seed \(seed), step \(step): \(head.id) under \(key) was removed: \(store.history(of: head.id))")
            check(head, object)
            if Bool.random(using: &random) { store.touch(head.id, hash: DiskStoreTestRoom.hash(Array(key.utf8))) }
            if object.isLarge {
                try readLarge(head, object)
            } else {
                do throws(DiskReadError) {
                    let body = try store.body(of: head)
                    #expect(body == object.body, "seed \(seed), step \(step): the body of \(head.id)")
                } catch {
                    #expect(!store.find(key).contains(place), "seed \(seed), step \(step): \(error)")
                }
            }
        }
    }

    private func check(_ head: StoredHead, _ object: Object) {
        let text = String(decoding: head.head, as: UTF8.self)
        let at = object.heads.lastIndex(of: text)
        // The latest; where the process ended since, any from that of the last flush on. With a book all renewals are
        // lost.
        let least = world.losesBook ? 0 : object.headOfRun
        #expect(
            at != nil && at! >= least,
            "seed \(seed), step \(step): \(head.id) has the head '\(text)' of \(object.heads), \(least) is the oldest")
    }

    private func readLarge(_ head: StoredHead, _ object: Object) throws {
        let large: LargeObject
        do throws(DiskReadError) {
            large = try store.openLarge(head, hash: DiskStoreTestRoom.hash(head.key))
        } catch {
            #expect(!store.find(object.key).contains(head.place), "seed \(seed), step \(step): \(error)")
            return
        }
        var there: Set<Int> = []
        let isThere: (Int) -> Bool = { block in large.extents.contains { $0.contains(block * blockBytes) } }
        for block in 0..<large.blockCount where isThere(block) {
            let range = block * blockBytes..<min((block + 1) * blockBytes, object.body.count)
            let bytes = BytesInMemory(length: range.count)
            guard unsafe large.read(from: range.lowerBound, into: bytes.room, waits: true) == .done else {
                // After a power cut a block may be named and not be there: then it is no longer named.
                #expect(hadPowerCut, "seed \(seed), step \(step): block \(block) of \(head.id)")
                lostBlocks += 1
                continue
            }
            #expect(unsafe [UInt8](bytes.room) == Array(object.body[range]), "seed \(seed), step \(step): \(head.id)")
            there.insert(block)
        }
        #expect(there.isSuperset(of: object.flushedBlocks), "seed \(seed), step \(step): blocks of \(head.id) are gone")
    }
}

/// A generator of random numbers that can be repeated.
struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }
}
