import EventLoop
import Foundation
import Testing

@testable import Disk

@Suite("A disk store that runs")
struct DiskStoreTests {
    let room = DiskStoreTestRoom()

    @Test func `an object can be found and read to the byte once it is written`() throws {
        let store = try room.open()
        defer { store.close() }
        for (number, length) in [0, 1, 15, 16, 17, 4096, 65_535, 65_536, 65_537, 1 << 20].enumerated() {
            let body = segmentBytes(length, UInt64(number))
            let id = try #require(store.put("http://a.example/\(length)", body, head: "head \(length)"))
            #expect(store.flush())
            let (head, read) = try #require(try store.get("http://a.example/\(length)"))
            #expect(read == body)
            #expect(head.id == id)
            #expect(head.head == Array("head \(length)".utf8))
            #expect(head.key == Array("http://a.example/\(length)".utf8))
            #expect(store.contains(id, hash: DiskStoreTestRoom.hash(head.key), head.place))
        }
        #expect(store.find("http://a.example/other").isEmpty)
        #expect(store.statistics.objectCount == 10)
        #expect(store.statistics.storedObjects == 10)
    }

    @Test func `a note outlives a restart, and a store that was closed keeps none`() throws {
        let store = try room.open()
        #expect(store.note("a") == nil)
        #expect(store.keep([1, 2, 3], as: "a") && store.note("a") == [1, 2, 3])
        #expect(store.put("http://a.example/1", [1]) != nil && store.flush())
        store.close()
        let again = try room.open()
        defer { again.close() }
        #expect(again.note("a") == [1, 2, 3] && again.note("b") == nil)
        #expect(try again.get("http://a.example/1")?.1 == [1])
    }

    @Test func `a store that was closed keeps no file open`() throws {
        let calls = FaultyCalls()
        let store = try room.open(calls: calls)
        let key = Array("http://a.example/large".utf8)
        var large: LargeObject? = try store.makeLarge(
            id: store.nextID(), hash: DiskStoreTestRoom.hash(key), key: key, attributes: .of(.permanent), head: [],
            length: 100_000
        ).get()
        #expect(store.flush())
        #expect(calls.openCount > 0)
        _ = large
        large = nil
        store.close()
        #expect(calls.count(.open) > 0)
        #expect(!calls.paths.contains { $0.contains("/large/") })
    }

    @Test func `the sync interval can be changed at run time and takes effect at once`() throws {
        let store = try room.open(syncInterval: .seconds(3600))
        defer { store.close() }
        #expect(store.put("http://a.example/1", [1]) != nil)
        store.waitUntilFound("http://a.example/1")
        usleep(1000)
        #expect(store.listed().isEmpty)
        store.setLimits(size: 64 << 20, pinned: 0, syncInterval: .milliseconds(5))
        #expect(store.put("http://a.example/2", [2]) != nil)
        let until = ContinuousClock.now + .seconds(20)
        while store.listed().count < 2, .now < until { usleep(1000) }
        #expect(store.listed().count == 2)
        #expect(store.statistics.pinnedLimitBytes == 0)
    }

    @Test func `flushed objects survive a kill and an orderly end`() throws {
        for isOrderly in [true, false] {
            let room = DiskStoreTestRoom()
            let store = try room.open()
            for number in 0..<500 { store.put("http://a.example/\(number)", segmentBytes(number * 7, UInt64(number))) }
            #expect(store.flush())
            if isOrderly { store.close() } else { store.abandon() }
            let again = try room.open()
            defer { again.close() }
            for number in 0..<500 {
                let found = try #require(try again.get("http://a.example/\(number)"))
                #expect(found.body == segmentBytes(number * 7, UInt64(number)))
            }
            #expect(again.listed().count == 500)
        }
    }

    @Test func `a large object that is begun before the files are measured does not exceed the size`() throws {
        let size: UInt64 = 64 << 20
        let store = try room.open(size: size)
        for number in 0..<50 { store.put("http://a.example/\(number)", segmentBytes(1_000_000, UInt64(number))) }
        store.close()
        let mayMeasure = CountingSemaphore()
        var tuning = DiskStoreTestRoom.tuning
        tuning.beforeMeasuring = { mayMeasure.wait() }
        tuning.spaceWaitMax = .seconds(600)
        let again = try room.open(size: size, tuning: tuning, waits: false)
        defer { again.close() }
        let key = Array("http://a.example/large".utf8)
        _ = try again.makeLarge(
            id: again.nextID(), hash: DiskStoreTestRoom.hash(key), key: key, attributes: .of(.permanent), head: [1],
            length: 40 << 20
        ).get()
        mayMeasure.signal()
        again.waitUntilLoaded()
        #expect(again.statistics.usedBytes <= size)
        // It is stored if others have been evicted for it in time, and refused if the writer came to it before.
        _ = again.flush()
        #expect(again.statistics.usedBytes <= size)
    }

    @Test func `whoever waits for the index is called if the store ends before the index is filled`() {
        let loading = DiskStoreLoading()
        let calls = Locked(0)
        #expect(!loading.isOver)
        loading.whenOver { calls.withLock { $0 += 1 } }
        loading.stop()
        #expect(calls.withLock { $0 } == 1)
        #expect(loading.isOver && !loading.isLoaded, "what the index lacks now stays missing: look-ups must not wait")
        loading.whenOver { calls.withLock { $0 += 1 } }
        #expect(calls.withLock { $0 } == 2)
    }

    @Test func `a renewal is kept if the object becomes visible at the same moment`() throws {
        let store = try room.open()
        defer { store.close() }
        for number in 0..<200 {
            let key = "http://a.example/\(number)"
            let id = try #require(store.put(key, [1], head: "first"))
            let writing = try startThread(name: "flush") { _ = store.flush() }
            var renewals = 0
            // The last renewal meets the writer, which makes the object visible.
            repeat {
                renewals += 1
                store.renew(key, id, head: "renewal \(renewals)")
            } while store.find(key).isEmpty
            OwnedThread(writing).join()
            let head = try #require(try store.head(key)?.head)
            #expect(head == Array("renewal \(renewals)".utf8), "object \(number)")
        }
    }

    @Test func `an orderly end writes everything that waits`() throws {
        let store = try room.open()
        store.put("http://a.example/", [1, 2, 3])
        store.close()
        let again = try room.open()
        defer { again.close() }
        #expect(try again.get("http://a.example/")?.body == [1, 2, 3])
    }

    @Test func `records that were written and not committed are recovered from the segment`() throws {
        let store = try room.open()
        store.put("http://a.example/1", [1])
        #expect(store.flush())
        store.put("http://a.example/2", [2])
        store.waitUntilFound("http://a.example/2")
        store.abandon()
        let again = try room.open()
        defer { again.close() }
        #expect(try again.get("http://a.example/1")?.body == [1])
        #expect(try again.get("http://a.example/2")?.body == [2])
        #expect(again.flush())
        #expect(again.listed().count == 2)
    }

    @Test func `a removed object is gone at once, and stays gone`() throws {
        let store = try room.open()
        let id = try #require(store.put("http://a.example/", [1]))
        #expect(store.flush())
        store.remove("http://a.example/", id)
        #expect(store.find("http://a.example/").isEmpty)
        #expect(store.flush())
        store.abandon()
        let again = try room.open()
        defer { again.close() }
        #expect(again.find("http://a.example/").isEmpty)
        #expect(again.listed().isEmpty)
        #expect(again.statistics.objectCount == 0)
    }

    @Test func `a removal that was written and not committed is recovered`() throws {
        let store = try room.open()
        let id = try #require(store.put("http://a.example/", [1]))
        #expect(store.flush())
        store.remove("http://a.example/", id)
        store.put("http://a.example/later", [2])
        store.waitUntilFound("http://a.example/later")
        store.abandon()
        let again = try room.open()
        defer { again.close() }
        #expect(again.find("http://a.example/").isEmpty)
        #expect(again.flush())
        #expect(again.listed().map(\.key) == [Array("http://a.example/later".utf8)])
    }

    @Test func `an object that is removed while it waits never becomes visible`() throws {
        let calls = FaultyCalls()
        var tuning = DiskStoreTestRoom.tuning
        tuning.nap = .milliseconds(50)
        let store = try room.open(tuning: tuning, calls: calls)
        for round in 0..<20 {
            let key = "http://a.example/\(round)"
            let id = try #require(store.put(key, [1]))
            if round % 2 == 0 { store.remove(key, id) } else { #expect(store.removeAll(key) == 1) }
        }
        #expect(store.flush())
        for round in 0..<20 { #expect(store.find("http://a.example/\(round)").isEmpty) }
        store.abandon()
        let again = try room.open()
        defer { again.close() }
        for round in 0..<20 { #expect(again.find("http://a.example/\(round)").isEmpty) }
        #expect(again.statistics.objectCount == 0)
    }

    @Test func `all objects under a key are found newest first, and removed together`() throws {
        let store = try room.open()
        defer { store.close() }
        let ids = (0..<5).compactMap { store.put("http://a.example/", [UInt8($0)]) }
        store.put("http://a.example/other", [9])
        #expect(store.flush())
        let found = try store.find("http://a.example/").map { try store.readHead($0, waits: true).id }
        #expect(found == ids.reversed())
        #expect(store.removeAll("http://a.example/") == 5)
        #expect(store.find("http://a.example/").isEmpty)
        #expect(store.flush())
        #expect(store.listed().map(\.key) == [Array("http://a.example/other".utf8)])
    }

    @Test func `a renewed head replaces the old one, at once and after a kill`() throws {
        let store = try room.open()
        let id = try #require(store.put("http://a.example/", [1], head: "old"))
        #expect(store.flush())
        store.renew("http://a.example/", id, head: "new", expiresAt: 77)
        #expect(try store.head("http://a.example/")?.head == Array("new".utf8))
        #expect(store.flush())
        let head = try #require(try store.head("http://a.example/"))
        #expect(head.head == Array("new".utf8))
        #expect(head.attributes.expiresAt == 77)
        store.abandon()
        let again = try room.open()
        defer { again.close() }
        let (renewed, body) = try #require(try again.get("http://a.example/"))
        #expect(renewed.head == Array("new".utf8))
        #expect(renewed.attributes.expiresAt == 77)
        #expect(body == [1])
    }

    @Test func `an object that waits to be written can be renewed`() throws {
        let store = try room.open()
        defer { store.close() }
        let id = try #require(store.put("http://a.example/", [1], head: "old"))
        store.renew("http://a.example/", id, head: "new")
        #expect(store.flush())
        #expect(try store.head("http://a.example/")?.head == Array("new".utf8))
        #expect(store.listed().first?.hasRenewedHead == true)
    }

    @Test func `a renewal may change the class, and the quotas follow`() throws {
        let store = try room.open()
        defer { store.close() }
        let id = try #require(store.put("http://a.example/", [UInt8](repeating: 1, count: 1000)))
        #expect(store.flush())
        #expect(store.statistics.pinnedBytes == 0)
        store.renew("http://a.example/", id, head: "new", storageClass: .pinned)
        #expect(store.flush())
        #expect(store.statistics.pinnedBytes > 1000)
        #expect(try store.head("http://a.example/")?.attributes.storageClass == .pinned)
        store.remove("http://a.example/", id)
        #expect(store.statistics.pinnedBytes == 0)
    }

    @Test func `pinned objects are refused when their quota is full`() throws {
        let store = try room.open(pinned: 10_000)
        defer { store.close() }
        var taken = 0
        let body = SegmentTestBody([UInt8](repeating: 1, count: 900))
        while taken < 100 {
            let key = Array("http://a.example/\(taken)".utf8)
            let object = PackedObject(
                id: store.nextID(), hash: DiskStoreTestRoom.hash(key), key: key, attributes: .of(.pinned), head: [],
                body: body)
            let outcome = store.store(object)
            if outcome == .pinnedQuotaFull { break }
            #expect(outcome == .taken)
            taken += 1
        }
        #expect(taken > 5 && taken < 12)
        #expect(store.flush())
        #expect(store.statistics.pinnedBytes <= 10_000)
        #expect(store.statistics.refusedPinned == 1)
        #expect(store.put("http://a.example/permanent", [1]) != nil)
        #expect(store.removeAll("http://a.example/0") == 1)
        #expect(store.put("http://a.example/again", segmentBytes(900, 1), storageClass: .pinned) != nil)
    }

    @Test func `an object that is too large for a record is refused`() throws {
        let store = try room.open()
        defer { store.close() }
        #expect(store.put("http://a.example/", [UInt8](repeating: 0, count: 1 << 20)) != nil)
        #expect(store.put("http://a.example/", [UInt8](repeating: 0, count: 1 << 20 + 1)) == nil)
        #expect(store.put("http://a.example/", [], head: String(repeating: "x", count: 2 << 20)) == nil)
        let id = try #require(store.put("http://a.example/b", [1]))
        #expect(store.flush())
        store.renew("http://a.example/b", id, head: String(repeating: "x", count: 2 << 20))
        #expect(try store.head("http://a.example/b")?.head == Array("head".utf8))
    }

    @Test func `what was promised is taken by a store that is behind, and written`() throws {
        let calls = FaultyCalls()
        let store = try room.open(calls: calls)
        store.setQueue(bytesMax: 100_000)
        calls.inject(.delay(.milliseconds(300)), into: [.write], path: ".seg")
        while store.put("http://a.example/x", segmentBytes(10_000, 1)) != nil {}
        #expect(
            store.prospect(bytes: 10_000, .permanent, isNow: false) == .taken, "it may have room when the body has come"
        )
        for number in 0..<20 {
            let url = "http://a.example/\(number)"
            #expect(store.put(url, segmentBytes(10_000, UInt64(number)), isPromised: true) != nil)
        }
        #expect(store.prospect(bytes: 10_000, .permanent, isNow: true) == .busy)
        let woken = BlockingAnswer()
        store.whenCaughtUp { woken.give(true) }
        calls.heal()
        #expect(woken.wait())
        #expect(store.flush() && !store.isBehind)
        #expect(store.prospect(bytes: 10_000, .permanent, isNow: true) == .taken)
        for number in 0..<20 {
            #expect(try store.get("http://a.example/\(number)")?.body == segmentBytes(10_000, UInt64(number)))
        }
        store.close()
    }

    @Test func `the prospect of a pinned object depends on the quota`() throws {
        let store = try room.open()
        defer { store.close() }
        store.setLimits(size: 64 << 20, pinned: 1 << 20, syncInterval: .seconds(1))
        #expect(store.prospect(bytes: 1 << 19, .pinned, isNow: true) == .taken)
        #expect(store.prospect(bytes: 1 << 21, .pinned, isNow: true) == .pinnedQuotaFull)
        #expect(store.prospect(bytes: 1 << 21, .permanent, isNow: true) == .taken)
    }

    @Test func `objects beyond the limit of the queue are refused as busy`() throws {
        let calls = FaultyCalls()
        var tuning = DiskStoreTestRoom.tuning
        tuning.queueBytesMax = 1 << 20
        let store = try room.open(tuning: tuning, calls: calls)
        store.setQueue(bytesMax: 100_000)
        calls.inject(.delay(.milliseconds(300)), into: [.write], path: ".seg")
        var outcomes: [Bool] = []
        for number in 0..<40 {
            outcomes.append(store.put("http://a.example/\(number)", segmentBytes(10_000, UInt64(number))) != nil)
        }
        #expect(outcomes.contains(false))
        #expect(store.statistics.refusedBusy > 0)
        #expect(store.statistics.waitingBytes <= 100_000)
        #expect(store.isBehind)
        store.setQueue(bytesMax: 1 << 20)
        #expect(!store.isBehind, "less than half of that waits")
        calls.heal()
        #expect(store.flush())
        #expect(store.statistics.waitingBytes == 0 && !store.isBehind)
        for number in 0..<40 where outcomes[number] {
            #expect(try store.get("http://a.example/\(number)")?.body == segmentBytes(10_000, UInt64(number)))
        }
        #expect(store.put("http://a.example/now", [1]) != nil)
        store.close()
    }

    @Test func `a read that may not wait says that it would block, and opens no file`() throws {
        let store = try room.open()
        store.put("http://a.example/", [1, 2, 3])
        #expect(store.flush())
        let place = try #require(store.find("http://a.example/").first)
        // Written just now: in the page cache, and the file is open.
        #expect(try store.readHead(place, waits: false).head == Array("head".utf8))
        store.close()
        let again = try room.open()
        defer { again.close() }
        let found = try #require(again.find("http://a.example/").first)
        #expect(throws: DiskReadError.wouldBlock) { try again.readHead(found, waits: false) }
        #expect(try again.readHead(found, waits: true).head == Array("head".utf8))
        #expect(try again.readHead(found, waits: false).head == Array("head".utf8))
    }

    @Test func `blocking work runs on other threads, up to a limit`() throws {
        var tuning = DiskStoreTestRoom.tuning
        tuning.readThreads = 1
        tuning.readQueueMax = 2
        let store = try room.open(tuning: tuning)
        let (begun, gate, done) = (CountingSemaphore(), CountingSemaphore(), CountingSemaphore())
        let isTaken = store.perform {
            begun.signal()
            gate.wait()
        }
        #expect(isTaken)
        begun.wait()
        #expect(store.perform { done.signal() })
        #expect(store.perform { done.signal() })
        #expect(!store.perform {})
        gate.signal()
        done.wait()
        done.wait()
        store.close()
        #expect(!store.perform {})
    }

    @Test func `object numbers continue after a restart`() throws {
        let store = try room.open()
        let id = try #require(store.put("http://a.example/", [1]))
        store.abandon()
        let again = try room.open()
        defer { again.close() }
        #expect(again.nextID() > id)
    }

    @Test func `the book is committed at its interval`() throws {
        let store = try room.open(syncInterval: .milliseconds(20))
        defer { store.close() }
        store.put("http://a.example/", [1])
        let until = ContinuousClock.now + .seconds(10)
        while store.listed().isEmpty, .now < until { usleep(1000) }
        #expect(store.listed().count == 1)
    }
}

extension DiskStore {
    /// Waits until an object was written; ten seconds at most.
    func waitUntilFound(_ key: String) {
        let until = ContinuousClock.now + .seconds(10)
        while find(key).isEmpty, .now < until { usleep(500) }
    }
}
