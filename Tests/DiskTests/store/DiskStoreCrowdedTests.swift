import EventLoop
import Foundation
import Glibc
import Testing

@testable import Disk

@Suite("A disk store that is full", .serialized)
struct DiskStoreCrowdedTests {
    let room = DiskStoreTestRoom(inMemory: true)

    @Test func `goes on storing, never above its size, and keeps what is pinned`() throws {
        var tuning = DiskStoreTestRoom.tuning
        tuning.segmentBytes = 1 << 20
        let size: UInt64 = 32 << 20
        let store = try room.open(
            size: size, pinned: 4 << 20, syncInterval: .milliseconds(100), tuning: tuning)
        defer { store.close() }
        var pinned: [Int] = []
        var stored = 0
        var refused = 0
        var usedMax: UInt64 = 0
        let begin = ContinuousClock.now
        for number in 0..<6000 {
            let isPinned = number % 100 == 0
            let body = segmentBytes(20_000, UInt64(number))
            let id = store.put("http://a.example/\(number)", body, storageClass: isPinned ? .pinned : .permanent)
            if id != nil { stored += 1 } else { refused += 1 }
            if isPinned, id != nil { pinned.append(number) }
            usedMax = max(usedMax, store.statistics.usedBytes)
        }
        #expect(store.flush())
        let took = begin.duration(to: .now)
        print("crowded: \(stored) stored, \(refused) refused, \(took), \(store.statistics)")
        #expect(usedMax <= size)
        for number in pinned {
            #expect(try store.get("http://a.example/\(number)")?.body == segmentBytes(20_000, UInt64(number)))
        }
        #expect(store.statistics.evictedObjects > 1000)
    }

    @Test func `and one that is not takes a book that grows by much at once`() throws {
        var tuning = DiskStoreTestRoom.tuning
        tuning.commitChangesMax = 1 << 20
        let store = try room.open(size: 1 << 30, tuning: tuning)
        defer { store.close() }
        let path = String(repeating: "x", count: 1900)
        for number in 0..<40_000 { store.put("http://a.example/\(number)/\(path)", [1]) }
        #expect(store.flush())
        #expect(store.statistics.bookBytes > 66 << 20)
        #expect(store.statistics.objectCount == 40_000)
        #expect(!room.hasLogged(.info, "no room"))
    }

    @Test func `objects that wait for space hold up neither claimed blocks nor removals, and are dropped in the end`()
        throws
    {
        var tuning = DiskStoreTestRoom.tuning
        tuning.segmentBytes = 1 << 20
        tuning.spaceWaitMax = .seconds(2)
        let calls = FaultyCalls()
        let store = try room.open(size: Directory.sizeMin, pinned: 0, tuning: tuning, calls: calls)
        defer { store.close() }
        let key = Array("http://a.example/large".utf8)
        let large = try store.makeLarge(
            id: store.nextID(), hash: DiskStoreTestRoom.hash(key), key: key, attributes: .of(.permanent), head: [],
            length: 3 * blockBytes
        ).get()
        let removed = try #require(store.put("http://a.example/removed", [1]))
        #expect(store.flush())
        // Nothing can be reclaimed: victims cannot be read.
        calls.inject(.fail(EIO), into: [.read], path: ".seg")
        for number in 0..<300 { store.put("http://a.example/\(number)", segmentBytes(60_000, UInt64(number))) }
        let answer = BlockingAnswer()
        large.write(block: 1, from: SegmentTestBody(segmentBytes(3 * blockBytes, 1)), at: blockBytes) {
            answer.give($0)
        }
        store.remove("http://a.example/removed", removed)
        #expect(answer.wait())
        #expect(store.statistics.droppedObjects == 0)
        #expect(store.statistics.waitingBytes > 0)
        let until = ContinuousClock.now + .seconds(20)
        while store.listed().contains(where: { $0.id == removed }), .now < until { usleep(1000) }
        #expect(store.statistics.droppedObjects == 0)
        #expect(!store.flush())
        #expect(store.statistics.droppedObjects > 0)
        while store.statistics.waitingBytes > 0, .now < until { usleep(1000) }
        #expect(store.statistics.waitingBytes == 0)
        calls.heal()
        while store.put("http://a.example/after", [2]) == nil || !store.flush(), .now < until { usleep(1000) }
        #expect(try store.get("http://a.example/after")?.body == [2])
    }

    /// Bytes of all files that are there.
    private var bytesOnDisk: UInt64 {
        let names = (try? FileManager.default.subpathsOfDirectory(atPath: room.path)) ?? []
        return names.reduce(0) { sum, name in
            var status = stat()
            guard unsafe lstat("\(room.path)/\(name)", &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
                return sum
            }
            return sum + UInt64(status.st_size)
        }
    }

    @Test func `with objects of which the book takes most never goes above its size, nor off`() throws {
        var tuning = DiskStoreTestRoom.tuning
        tuning.segmentBytes = 1 << 20
        let size = Directory.sizeMin
        let store = try room.open(size: size, pinned: 0, syncInterval: .milliseconds(20), tuning: tuning)
        defer { store.close() }
        let path = String(repeating: "x", count: 420)
        var usedMax: UInt64 = 0
        for number in 0..<60_000 {
            let key = "http://a.example/\(number &* 0x9E37_79B9 & 0xFFFF_FFFF)/\(path)"
            while store.put(key, [UInt8(truncatingIfNeeded: number)]) == nil {
                try #require(store.state == .on)
                usleep(500)
            }
            if number % 500 == 0 { usedMax = max(usedMax, bytesOnDisk) }
        }
        // Objects may have been dropped while nothing could be evicted quickly enough, which a flush says: how many they are
        // depends on the machine, and is no rule.
        _ = store.flush()
        print("crowded by the book: at most \(usedMax) of \(size) bytes, \(store.statistics)")
        #expect(max(usedMax, bytesOnDisk) <= size)
        #expect(!room.hasLogged(.error, ""), "\(room.texts)")
        #expect(store.statistics.evictedObjects > 0)
        #expect(store.statistics.objectCount > 0)
    }
}
