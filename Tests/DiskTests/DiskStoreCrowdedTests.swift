import EventLoop
import Foundation
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
}
