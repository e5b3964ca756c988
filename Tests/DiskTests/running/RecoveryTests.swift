import EventLoop
import Foundation
import Glibc
import Testing

@testable import Disk

@Suite("The start of a disk store, and damage")
struct RecoveryTests {
    private let room = DiskStoreTestRoom()
    private var segments: String { room.path + "/segments" }

    private func files(_ directory: String) -> [String] {
        ((try? FileManager.default.subpathsOfDirectory(atPath: directory)) ?? []).filter { $0.hasSuffix(".seg") }
            .sorted()
    }

    private func flip(_ path: String, at offset: Int) {
        let fd = unsafe open(path, O_RDWR)
        defer { close(fd) }
        var byte: UInt8 = 0
        #expect(unsafe pread(fd, &byte, 1, offset) == 1)
        byte ^= 0x40
        #expect(unsafe pwrite(fd, &byte, 1, offset) == 1)
    }

    private func damageBook() throws {
        for page in 0..<2 { flip(room.path + "/book/data.mdb", at: page * 4096 + 20) }
    }

    @Test func `a directory cannot be opened twice in one process`() throws {
        let store = try room.open()
        #expect(throws: DiskRefusal.inUse(path: room.path)) { try room.open() }
        store.close()
        try room.open().close()
    }

    @Test func `each run writes new files`() throws {
        for round in 0..<3 {
            let store = try room.open()
            store.put("http://a.example/\(round)", [UInt8(round)])
            #expect(store.flush())
            store.abandon()
        }
        #expect(files(segments).count == 3)
        let store = try room.open()
        defer { store.close() }
        for round in 0..<3 { #expect(try store.get("http://a.example/\(round)")?.body == [UInt8(round)]) }
    }

    @Test func `a damaged book is moved aside and rebuilt from the segments`() throws {
        var store = try room.open()
        var ids: [ObjectID] = []
        for number in 0..<50 {
            ids.append(try #require(store.put("http://a.example/\(number)", segmentBytes(3000, UInt64(number)))))
        }
        for number in 0..<10 { store.remove("http://a.example/\(number)", ids[number]) }
        #expect(store.flush())
        store.close()
        try damageBook()
        store = try room.open()
        #expect(room.hasLogged(.error, "the book is damaged"))
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: room.path).contains { $0.hasPrefix("book.damaged-") })
        for number in 0..<50 {
            let found = try store.get("http://a.example/\(number)")
            #expect(found?.body == (number < 10 ? nil : segmentBytes(3000, UInt64(number))))
        }
        #expect(store.nextID() > ids[49])
        #expect(store.flush())
        #expect(store.listed().count == 40)
        store.close()
        store = try room.open()
        defer { store.close() }
        #expect(store.statistics.objectCount == 40)
    }

    @Test func `a number that no store gives out does not keep later ones from being given out`() throws {
        var store = try room.open()
        store.put("http://a.example/1", [1])
        for number in [1 << 62 + 1, 1 << 63 - 1, 1 << 63, .max] as [UInt64] {
            store.parts.noteID(ObjectID(rawValue: number))
        }
        #expect(store.nextID().rawValue < 1 << 62)
        #expect(store.flush())
        try store.parts.book.commit([.reserveIDs(below: ObjectID(rawValue: .max))])
        store.abandon()
        store = try room.open()
        #expect(room.hasLogged(.error, "the book is damaged"))
        #expect(store.nextID().rawValue < 1 << 62)
        #expect(try store.get("http://a.example/1")?.body == [1])
        store.put("http://a.example/2", [2])
        #expect(store.flush())
        store.close()
        store = try room.open()
        defer { store.close() }
        #expect(try store.get("http://a.example/2")?.body == [2])
    }

    @Test func `while the book is rebuilt, objects found so far can be read and others are reported as loading`()
        throws
    {
        var tuning = DiskStoreTestRoom.tuning
        tuning.segmentBytes = 64 << 10
        var store = try room.open(tuning: tuning)
        for number in 0..<20 { store.put("http://a.example/\(number)", segmentBytes(30_000, UInt64(number))) }
        #expect(store.flush())
        store.close()
        try damageBook()
        let calls = FaultyCalls()
        let first = try #require(files(segments).first)
        calls.inject(.delay(.milliseconds(1500)), into: [.read], path: first, times: 1)
        store = try room.open(tuning: tuning, calls: calls, waits: false)
        defer { store.close() }
        store.waitUntilFound("http://a.example/19")
        #expect(try store.get("http://a.example/19")?.body == segmentBytes(30_000, 19))
        #expect(!store.isLoaded)
        #expect(store.find(DiskStoreTestRoom.hash(Array("http://a.example/0".utf8))) == .loading)
        store.waitUntilLoaded()
        #expect(try store.get("http://a.example/0")?.body == segmentBytes(30_000, 0))
        #expect(store.find(1) == .nothing)
    }

    @Test func `an object removed while the index is filled does not return`() throws {
        var store = try room.open()
        var ids: [ObjectID] = []
        for number in 0..<10 {
            ids.append(try #require(store.put("http://a.example/\(number)", segmentBytes(3000, UInt64(number)))))
        }
        #expect(store.flush())
        store.close()
        try damageBook()
        let calls = FaultyCalls()
        calls.inject(.delay(.milliseconds(500)), into: [.read], path: try #require(files(segments).first), times: 1)
        store = try room.open(calls: calls, waits: false)
        store.remove("http://a.example/0", ids[0])
        _ = store.removeAll("http://a.example/1")
        store.waitUntilLoaded()
        #expect(store.find("http://a.example/0").isEmpty)
        #expect(store.find("http://a.example/1").isEmpty)
        #expect(!store.find("http://a.example/2").isEmpty)
        #expect(store.flush())
        store.abandon()
        store = try room.open()
        defer { store.close() }
        #expect(store.find("http://a.example/0").isEmpty)
        #expect(store.find("http://a.example/1").isEmpty)
        #expect(store.statistics.objectCount == 8)
    }

    @Test func `a book that cannot be read to its end is rebuilt, and no segment counts as empty`() throws {
        var tuning = DiskStoreTestRoom.tuning
        tuning.segmentBytes = 64 << 10
        var store = try room.open(tuning: tuning)
        var ids: [ObjectID] = []
        for number in 0..<50 {
            ids.append(try #require(store.put("http://a.example/\(number)", segmentBytes(3000, UInt64(number)))))
        }
        _ = try makeLarge(store, "http://a.example/large", segmentBytes(blockBytes, 3), blocks: [0])
        _ = try makeLarge(store, "http://z.example/large", segmentBytes(blockBytes, 4), blocks: [0])
        #expect(store.flush())
        for number in 0..<10 { store.remove("http://a.example/\(number)", ids[number]) }
        #expect(store.flush())
        store.close()
        tuning.bookEntriesAtATime = 10
        tuning.bookLoadFault = { count in count == 20 ? .damaged(BookDefect("a page")) : nil }
        store = try room.open(tuning: tuning)
        #expect(room.hasLogged(.error, "from the segments"))
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: room.path).contains { $0.hasPrefix("book.damaged-") })
        #expect(store.flush())
        #expect(store.listed().count == 42)
        #expect(store.nextID() > ids[49])
        store.close()
        tuning.bookLoadFault = { _ in nil }
        store = try room.open(tuning: tuning)
        defer { store.close() }
        #expect(store.statistics.objectCount == 42)
        #expect(store.statistics.largeCount == 2)
        for number in 0..<50 {
            let found = try store.get("http://a.example/\(number)")
            #expect(found?.body == (number < 10 ? nil : segmentBytes(3000, UInt64(number))))
        }
    }

    @Test func `objects stored while the old book was read are in the new one`() throws {
        var store = try room.open()
        for number in 0..<20 { store.put("http://a.example/\(number)", [UInt8(number)]) }
        #expect(store.flush())
        store.close()
        let (mayFail, isReached) = (CountingSemaphore(), CountingSemaphore())
        var tuning = DiskStoreTestRoom.tuning
        tuning.bookEntriesAtATime = 5
        tuning.bookLoadFault = { count in
            guard count == 10 else { return nil }
            isReached.signal()
            mayFail.wait()
            return .damaged(BookDefect("a page"))
        }
        store = try room.open(tuning: tuning, waits: false)
        isReached.wait()
        store.put("http://b.example/", [7])
        let large = try makeLarge(store, "http://b.example/large", segmentBytes(blockBytes, 3), blocks: [0])
        #expect(store.flush())
        mayFail.signal()
        store.waitUntilLoaded()
        #expect(store.flush())
        #expect(store.listed().count == 22)
        #expect(store.listed().contains { $0.id == large.id && $0.isComplete })
        store.abandon()
        store = try room.open()
        defer { store.close() }
        #expect(try store.get("http://b.example/")?.body == [7])
        #expect(store.statistics.objectCount == 22)
    }

    @Test(arguments: [false, true])
    func `a flush waits until removals made while the book is read are known`(isByKey: Bool) throws {
        var store = try room.open()
        let id = try #require(store.put("http://a.example/", [1]))
        #expect(store.flush())
        store.close()
        let (mayGoOn, isReached) = (CountingSemaphore(), CountingSemaphore())
        var tuning = DiskStoreTestRoom.tuning
        tuning.loadWaitMax = .milliseconds(1)
        tuning.bookLoadFault = { _ in
            isReached.signal()
            mayGoOn.wait()
            return nil
        }
        store = try room.open(tuning: tuning, waits: false)
        isReached.wait()
        #expect(store.flush(), "nothing was removed")
        if isByKey { _ = store.removeAll("http://a.example/") } else { store.remove("http://a.example/", id) }
        #expect(!store.flush())
        #expect(!store.waitUntilLoaded())
        mayGoOn.signal()
        let isLoaded = BlockingAnswer()
        store.whenLoaded { isLoaded.give(true) }
        #expect(isLoaded.wait() && store.flush())
        store.abandon()
        store = try room.open()
        defer { store.close() }
        #expect(try store.get("http://a.example/") == nil)
    }

    @Test func `a segment that cannot be read during a rebuild stays, and is read at the next start`()
        throws
    {
        var tuning = DiskStoreTestRoom.tuning
        tuning.segmentBytes = 64 << 10
        var store = try room.open(tuning: tuning)
        for number in 0..<20 { store.put("http://a.example/\(number)", segmentBytes(30_000, UInt64(number))) }
        #expect(store.flush())
        store.close()
        try damageBook()
        let calls = FaultyCalls()
        calls.inject(.fail(EIO), into: [.read], path: try #require(files(segments).first))
        store = try room.open(tuning: tuning, calls: calls)
        #expect(room.hasLogged(.error, "stays as it is"))
        #expect(store.find("http://a.example/0").isEmpty)
        #expect(store.flush())
        #expect(store.flush())
        store.close()
        store = try room.open(tuning: tuning)
        defer { store.close() }
        for number in 0..<20 {
            #expect(try store.get("http://a.example/\(number)")?.body == segmentBytes(30_000, UInt64(number)))
        }
    }

    @Test func `an object that is removed during a rebuild, after it was found, does not return`() throws {
        var tuning = DiskStoreTestRoom.tuning
        tuning.segmentBytes = 64 << 10
        var store = try room.open(tuning: tuning)
        var last: ObjectID?
        for number in 0..<20 { last = store.put("http://a.example/\(number)", segmentBytes(30_000, UInt64(number))) }
        #expect(store.flush())
        store.close()
        try damageBook()
        let calls = FaultyCalls()
        calls.inject(
            .delay(.milliseconds(1000)), into: [.read], path: try #require(files(segments).first), times: 1)
        store = try room.open(tuning: tuning, calls: calls, waits: false)
        store.waitUntilFound("http://a.example/19")
        store.remove("http://a.example/19", try #require(last))
        #expect(!store.isLoaded)
        #expect(store.flush())
        #expect(store.listed().count == 19)
        store.close()
    }

    @Test func `an object with a damaged body is reported, dropped, counted and logged`() throws {
        let store = try room.open()
        let id = try #require(store.put("http://a.example/x", segmentBytes(100_000, 1)))
        #expect(store.flush())
        let head = try #require(try store.head("http://a.example/x"))
        flip("\(segments)/\(files(segments)[0])", at: Int(head.place.offset) + Int(head.place.headLength) + 70_000)
        #expect(throws: DiskReadError.damaged) { try store.body(of: head) }
        store.dropDamaged(id, hash: DiskStoreTestRoom.hash(head.key), key: head.key)
        #expect(store.find("http://a.example/x").isEmpty)
        #expect(store.statistics.damagedObjects == 1)
        #expect(room.hasLogged(.warning, "http://a.example/x is damaged"))
        #expect(store.flush())
        store.close()
        let again = try room.open()
        defer { again.close() }
        #expect(again.find("http://a.example/x").isEmpty)
        #expect(again.listed().isEmpty)
    }

    @Test func `an object with a damaged head is found by its place, dropped, and logged with its key`() throws {
        let store = try room.open()
        store.put("http://a.example/x", [1])
        store.put("http://a.example/y", [2])
        #expect(store.flush())
        let place = try #require(store.find("http://a.example/x").first)
        flip("\(segments)/\(files(segments)[0])", at: Int(place.offset) + 70)
        #expect(throws: DiskReadError.damaged) { try store.readHead(place, waits: true) }
        #expect(store.flush())
        #expect(store.flush())  // the drop itself is written after the first
        #expect(store.find("http://a.example/x").isEmpty)
        #expect(store.statistics.damagedObjects == 1)
        #expect(room.hasLogged(.warning, "http://a.example/x is damaged"))
        #expect(store.listed().map(\.key) == [Array("http://a.example/y".utf8)])
        store.close()
    }

    @Test func `only the objects of a missing file are lost`() throws {
        let store = try room.open()
        store.put("http://a.example/x", [1])
        #expect(store.flush())
        store.close()
        let again = try room.open()
        again.put("http://a.example/y", [2])
        #expect(again.flush())
        again.close()
        try FileManager.default.removeItem(atPath: "\(segments)/\(files(segments)[0])")
        let third = try room.open()
        defer { third.close() }
        #expect(third.find("http://a.example/x").isEmpty)
        #expect(try third.get("http://a.example/y")?.body == [2])
        #expect(room.hasLogged(.info, "1 were lost"))
    }

    // MARK: large objects

    private func makeLarge(_ store: DiskStore, _ key: String, _ body: [UInt8], blocks: [Int]) throws -> LargeObject {
        let bytes = Array(key.utf8)
        let made = try store.makeLarge(
            id: store.nextID(), hash: DiskStoreTestRoom.hash(bytes), key: bytes, attributes: .of(.permanent),
            head: Array("large".utf8), length: body.count
        ).get()
        let source = SegmentTestBody(body)
        let written = CountingSemaphore()
        for block in blocks {
            made.write(block: block, from: source, at: block * blockBytes) { isDone in
                #expect(isDone)
                written.signal()
            }
        }
        for _ in blocks { written.wait() }
        return made
    }

    @Test func `blocks of a large object survive a kill`() throws {
        let body = segmentBytes(5 * blockBytes + 100, 3)
        let store = try room.open()
        let made = try makeLarge(store, "http://a.example/large", body, blocks: [0, 1, 3, 5])
        #expect(made.extents == [0..<2 * blockBytes, 3 * blockBytes..<4 * blockBytes, 5 * blockBytes..<body.count])
        #expect(made.waitingBytes == 0)
        store.abandon()
        let again = try room.open()
        defer { again.close() }
        let head = try #require(try again.head("http://a.example/large"))
        #expect(head.place.kind == .large)
        let large = try again.openLarge(head, hash: DiskStoreTestRoom.hash(head.key))
        #expect(large.extents == made.extents)
        for extent in large.extents {
            let bytes = BytesInMemory(length: extent.count)
            #expect(unsafe large.read(from: extent.lowerBound, into: bytes.room, waits: true) == .done)
            #expect(unsafe [UInt8](bytes.room) == Array(body[extent]))
        }
        #expect(try again.openLarge(head, hash: DiskStoreTestRoom.hash(head.key)) === large)
        #expect(again.flush())
        #expect(again.listed().first?.isComplete == false)
    }

    @Test func `the book says when a large object is complete`() throws {
        let store = try room.open()
        defer { store.close() }
        _ = try makeLarge(store, "http://a.example/large", segmentBytes(blockBytes + 5, 3), blocks: [0, 1])
        #expect(store.flush())
        #expect(store.listed().first?.isComplete == true)
        #expect(store.statistics.largeCount == 1)
    }

    @Test func `the file of a removed large object is deleted, even if the process ends before`() throws {
        var store = try room.open()
        let made = try makeLarge(store, "http://a.example/large", segmentBytes(blockBytes, 3), blocks: [0])
        #expect(store.flush())
        #expect(files(room.path + "/large").count == 1)
        store.remove("http://a.example/large", made.id)
        store.put("http://a.example/later", [1])
        store.waitUntilFound("http://a.example/later")
        store.abandon()
        store = try room.open()
        #expect(store.find("http://a.example/large").isEmpty)
        #expect(store.flush())
        #expect(files(room.path + "/large").isEmpty)
        #expect(store.statistics.largeCount == 0)
        store.close()
    }

    @Test func `a large object that is removed while it is created leaves nothing`() throws {
        let store = try room.open()
        defer { store.close() }
        let key = Array("http://a.example/large".utf8)
        for _ in 0..<10 {
            let made = try store.makeLarge(
                id: store.nextID(), hash: DiskStoreTestRoom.hash(key), key: key, attributes: .of(.permanent), head: [],
                length: 100_000
            ).get()
            store.remove("http://a.example/large", made.id)
        }
        #expect(store.flush())
        #expect(store.flush())
        #expect(store.find("http://a.example/large").isEmpty)
        #expect(files(room.path + "/large").isEmpty)
        #expect(store.statistics.liveBytes == 0)
    }

    @Test func `a damaged block is absent and can be written again`() throws {
        let body = segmentBytes(3 * blockBytes, 3)
        let store = try room.open()
        defer { store.close() }
        let made = try makeLarge(store, "http://a.example/large", body, blocks: [0, 1, 2])
        #expect(store.flush())
        let file = room.path + "/large/" + files(room.path + "/large")[0]
        let length = try #require(try FileManager.default.attributesOfItem(atPath: file)[.size] as? Int)
        flip(file, at: length - 2 * blockBytes + 77)
        let bytes = BytesInMemory(length: 3 * blockBytes)
        #expect(unsafe made.read(from: 0, into: bytes.room, waits: true) == .damaged)
        #expect(made.extents == [0..<blockBytes, 2 * blockBytes..<3 * blockBytes])
        #expect(store.flush())
        #expect(store.listed().first?.isComplete == false)
        let written = BlockingAnswer()
        made.write(block: 1, from: SegmentTestBody(body), at: blockBytes) { written.give($0) }
        #expect(written.wait())
        #expect(unsafe made.read(from: 0, into: bytes.room, waits: true) == .done)
        #expect(unsafe [UInt8](bytes.room) == body)
    }

    // MARK: errors

    @Test(arguments: [ENOSPC, EDQUOT, EIO, EFBIG])
    func `a write error turns the store off; reads continue, and it turns on again by itself`(_ code: CInt) throws {
        let calls = FaultyCalls()
        let store = try room.open(calls: calls)
        store.put("http://a.example/before", [1])
        #expect(store.flush())
        calls.inject(.fail(code), into: [.write, .allocate])
        store.put("http://a.example/lost", [2])
        #expect(!store.flush())
        guard case .off(let reason) = store.state else {
            Issue.record("it is on")
            return
        }
        #expect(reason.contains(systemErrorText(code)))
        #expect(room.hasLogged(.error, "is off"))
        #expect(store.put("http://a.example/refused", [3]) == nil)
        #expect(try store.get("http://a.example/before")?.body == [1])
        #expect(store.find("http://a.example/lost").isEmpty)
        #expect(store.statistics.writeErrors > 0)
        calls.heal()
        let until = ContinuousClock.now + .seconds(20)
        while store.state != .on, .now < until { usleep(1000) }
        #expect(store.state == .on)
        #expect(room.hasLogged(.info, "is on again"))
        store.put("http://a.example/after", [4])
        #expect(store.flush())
        store.abandon()
        let again = try room.open()
        defer { again.close() }
        #expect(try again.get("http://a.example/before")?.body == [1])
        #expect(try again.get("http://a.example/after")?.body == [4])
        #expect(again.find("http://a.example/lost").isEmpty)
    }

    @Test func `a failed commit is done later`() throws {
        let calls = FaultyCalls()
        let store = try room.open(calls: calls)
        let id = try #require(store.put("http://a.example/x", [1]))
        #expect(store.flush())
        calls.inject(.fail(ENOSPC), into: [.commit])
        store.remove("http://a.example/x", id)
        store.put("http://a.example/y", [2])
        #expect(!store.flush())
        #expect(store.find("http://a.example/x").isEmpty)
        #expect(try store.get("http://a.example/y")?.body == [2])
        calls.heal()
        let until = ContinuousClock.now + .seconds(20)
        while store.state != .on, .now < until { usleep(1000) }
        #expect(store.flush())
        #expect(store.listed().map(\.key) == [Array("http://a.example/y".utf8)])
        store.close()
    }

    @Test func `a removal survives a segment that cannot be written`() throws {
        let calls = FaultyCalls()
        let store = try room.open(calls: calls)
        let id = try #require(store.put("http://a.example/x", [1]))
        #expect(store.flush())
        calls.inject(.fail(ENOSPC), into: [.write, .open], path: ".seg")
        store.remove("http://a.example/x", id)
        _ = store.flush()
        store.abandon()
        let again = try room.open()
        defer { again.close() }
        #expect(again.find("http://a.example/x").isEmpty)
    }
}
