import EventLoop
import Foundation
import Glibc
import Synchronization
import Testing

@testable import Disk
@testable import DiskTools

/// The reclaimer in a running store: real files, the writer and the book beside it.
@Suite("Reclaiming in a running store")
struct ReclaimerStoreTests {
    private static let size: UInt64 = 32 << 20
    private static let pinned: UInt64 = 6 << 20

    private static var tuning: DiskStoreTuning {
        var tuning = DiskStoreTestRoom.tuning
        tuning.segmentBytes = 1 << 20
        return tuning
    }

    private static func open(_ room: DiskStoreTestRoom, calls: any DiskCalls = SystemCalls()) throws -> DiskStore {
        try room.open(size: size, pinned: pinned, syncInterval: .milliseconds(50), tuning: tuning, calls: calls)
    }

    @Test
    func
        `a store that gets far more than fits never exceeds its size, keeps pinned objects, and keeps used ones longer`()
        throws
    {
        let room = DiskStoreTestRoom()
        var store = try Self.open(room)
        let watch = try SizeWatch(room.path)
        var traffic = StoreTraffic(seed: 1)
        for _ in 0..<2000 { try traffic.step(store) }
        let largest = watch.stop()
        #expect(largest <= Self.size)
        #expect(store.flush())
        let statistics = store.statistics
        #expect(statistics.usedBytes <= Self.size)
        #expect(statistics.pinnedBytes <= Self.pinned)
        #expect(statistics.movedBytes > 0)
        #expect(statistics.evictedObjects > 0)
        print(
            "reclaiming in a store of 32 MiB: \(statistics.storedBytes >> 20) MiB stored, \(statistics.movedBytes >> 20) MiB copied, "
                + "at most \(largest >> 10) KiB, at the end \(statistics.usedBytes >> 10) KiB used")
        try traffic.check(store)
        #expect(traffic.hitsOfUsed > 2 * traffic.hitsOfUnused, "a use is worth something")
        // A look beside the running store, and one after it.
        let beside = try verify(path: room.path, repair: false) { _ in }
        #expect(beside.findings.isEmpty)
        #expect(beside.wasInUse)
        store.close()
        let after = try verify(path: room.path, repair: false) { _ in }
        #expect(after.findings.isEmpty)
        // Until it was closed more may have been evicted, a unit or two.
        let count = UInt64(statistics.objectCount)
        #expect(after.objectsGood <= count && after.objectsGood > count / 2)
        store = try Self.open(room)
        try traffic.check(store)
        store.close()
    }

    @Test(arguments: 1...3)
    func `a store killed during all this is intact and has what was pinned and flushed`(
        _ seed: Int
    ) throws {
        let room = DiskStoreTestRoom()
        var traffic = StoreTraffic(seed: UInt64(seed))
        for _ in 0..<3 {
            let store = try Self.open(room)
            for _ in 0..<400 { try traffic.step(store) }
            #expect(store.flush())
            traffic.settle(store)
            for _ in 0..<Int.random(in: 50...200, using: &traffic.random) { try traffic.step(store) }
            store.abandon()
            traffic.forgetWhatWasNotFlushed()
            let report = try verify(path: room.path, repair: false) { _ in }
            #expect(report.findings.isEmpty)
            let again = try Self.open(room)
            try traffic.check(again)
            again.close()
        }
    }

    @Test func `the files alone bring back everything pinned and nothing removed`() throws {
        let room = DiskStoreTestRoom()
        let store = try Self.open(room)
        var traffic = StoreTraffic(seed: 77)
        for _ in 0..<1500 { try traffic.step(store) }
        #expect(store.flush())
        store.close()
        try FileManager.default.removeItem(atPath: room.path + "/book")
        let report = try verify(path: room.path, repair: true) { _ in }
        #expect(report.isFine)
        let again = try Self.open(room)
        try traffic.check(again)
        again.close()
    }

    @Test func `write errors lose no pinned object`() throws {
        let room = DiskStoreTestRoom()
        let calls = FaultyCalls()
        let store = try Self.open(room, calls: calls)
        var traffic = StoreTraffic(seed: 5)
        for round in 0..<6 {
            for _ in 0..<150 { try traffic.step(store) }
            calls.inject(
                .fail(round.isMultiple(of: 2) ? ENOSPC : EIO), into: [.write], path: "/segments/", after: round,
                times: 3)
            for _ in 0..<100 { try traffic.step(store, mayFail: true) }
            calls.heal()
            let end = ContinuousClock.now + .seconds(20)
            while !store.flush(), ContinuousClock.now < end { sched_yield() }
            #expect(store.state == .on)
            traffic.settle(store)
        }
        try traffic.check(store)
        store.close()
        let report = try verify(path: room.path, repair: false) { _ in }
        #expect(report.findings.isEmpty)
    }
}

/// Stores, uses and removes, and remembers what may be found.
private struct StoreTraffic {
    private struct Known {
        var id: ObjectID
        var storageClass: StorageClass
        var isUsed: Bool
        var isSettled = false
    }
    var random: LedgerGenerator
    private var known: [String: Known] = [:]
    private var removed: Set<ObjectID> = []
    /// Removed since the last flush: a kill may undo that.
    private var removedLately: Set<ObjectID> = []
    private var next = 0
    private(set) var hitsOfUsed = 0
    private(set) var hitsOfUnused = 0

    init(seed: UInt64) { random = LedgerGenerator(seed: seed) }

    mutating func step(_ store: DiskStore, mayFail: Bool = false) throws {
        next += 1
        let key = "http://origin.test/\(next)"
        let storageClass: StorageClass = next.isMultiple(of: 10) ? .pinned : .permanent
        let length = Int.random(in: 0..<80_000, using: &random)
        if let id = store.put(key, Self.body(key, length), storageClass: storageClass) {
            known[key] = Known(id: id, storageClass: storageClass, isUsed: next.isMultiple(of: 7))
        }
        // As in a cache: the workers are not slower than the disk for long.
        if next.isMultiple(of: 40) {
            let isDone = store.flush()
            #expect(isDone || mayFail)
            if isDone { settle(store) }
            for (key, object) in known where object.isUsed {
                store.touch(object.id, hash: DiskStoreTestRoom.hash(Array(key.utf8)))
            }
        }
        if next.isMultiple(of: 9), let (key, object) = known.randomElement(using: &random) {
            store.remove(key, object.id)
            removed.insert(object.id)
            removedLately.insert(object.id)
            known[key] = nil
        }
    }

    /// It was flushed: what is pinned and there stays there, and what was removed stays removed. What was taken may still have been
    /// refused by the writer, where there was no room.
    mutating func settle(_ store: DiskStore) {
        for key in known.keys where known[key]?.isSettled == false {
            known[key]?.isSettled = !store.find(key).isEmpty
        }
        removedLately = []
    }

    /// It was killed.
    mutating func forgetWhatWasNotFlushed() {
        removed.subtract(removedLately)
        removedLately = []
    }

    /// Whatever is found is what was stored, and was not removed; all that is pinned is found.
    mutating func check(_ store: DiskStore) throws {
        (hitsOfUsed, hitsOfUnused) = (0, 0)
        #expect(known.values.contains { $0.storageClass == .pinned && $0.isSettled })
        for (key, object) in known {
            guard let (head, body) = try store.get(key) else {
                #expect(object.storageClass == .permanent || !object.isSettled)
                continue
            }
            #expect(head.id == object.id)
            #expect(body == Self.body(key, body.count))
            // Of seven objects one is used.
            if object.isUsed { hitsOfUsed += 6 } else { hitsOfUnused += 1 }
        }
        for number in 1...max(1, next) where known["http://origin.test/\(number)"] == nil {
            #expect(try store.get("http://origin.test/\(number)").map { removed.contains($0.head.id) } != true)
        }
    }

    /// Follows from the key, so that no other object's bytes pass for it.
    private static func body(_ key: String, _ length: Int) -> [UInt8] {
        let piece = segmentBytes(251, DiskStoreTestRoom.hash(Array(key.utf8)))
        var body: [UInt8] = []
        body.reserveCapacity(length + piece.count)
        while body.count < length { body += piece }
        return Array(body.prefix(length))
    }
}

/// Adds up the files of a store, again and again, and knows the largest sum.
private final class SizeWatch: Sendable {
    private let isStopped = Atomic(false)
    private let largest = Locked<UInt64>(0)
    private let path: String
    private let thread = Locked<OwnedThread?>(nil)

    init(_ path: String) throws {
        self.path = path
        let started = OwnedThread(
            try startThread(name: "size-watch") { [self] in
                while !isStopped.load(ordering: .relaxed) {
                    let sum = Self.sum(path)
                    largest.withLock { $0 = max($0, sum) }
                    sched_yield()
                }
            })
        thread.withLock { $0 = started }
    }

    func stop() -> UInt64 {
        isStopped.store(true, ordering: .relaxed)
        thread.withLock { $0 }?.join()
        return largest.withLock { $0 }
    }

    private static func sum(_ path: String) -> UInt64 {
        var sum: UInt64 = 0
        for room in ["segments", "book"] {
            for name in (try? FileManager.default.contentsOfDirectory(atPath: "\(path)/\(room)")) ?? [] {
                var facts = stat()
                if unsafe lstat("\(path)/\(room)/\(name)", &facts) == 0 { sum += UInt64(facts.st_size) }
            }
        }
        return sum
    }
}
