import EventLoop
import Foundation
import Glibc
import Testing

@testable import Disk
@testable import DiskTools

@Suite("Large objects whose length is known at their end")
struct GrowingObjectTests {
    private let room = DiskStoreTestRoom()
    static let url = "http://a.example/growing"

    private func make(
        in store: DiskStore, storageClass: StorageClass = .permanent
    ) throws -> LargeObject {
        let key = Array(Self.url.utf8)
        return try store.makeLarge(
            id: store.nextID(), hash: DiskStoreTestRoom.hash(key), key: key, attributes: .of(storageClass),
            head: Array("grown".utf8), length: nil
        ).get()
    }

    /// Has blocks written, in order, and waits for them.
    private func write(_ blocks: Range<Int>, of body: [UInt8], to object: LargeObject) -> [Bool] {
        let source = SegmentTestBody(body)
        let outcomes = Locked<[Bool]>([])
        let written = CountingSemaphore()
        for block in blocks {
            object.write(block: block, from: source, at: block * blockBytes) { isDone in
                outcomes.withLock { $0.append(isDone) }
                written.signal()
            }
        }
        for _ in blocks { written.wait() }
        return outcomes.withLock { $0 }
    }

    private func finish(_ object: LargeObject, length: Int) -> Bool {
        let answer = BlockingAnswer()
        object.finish(length: length) { answer.give($0) }
        return answer.wait()
    }

    private func blocks(of body: [UInt8]) -> Range<Int> { 0..<(body.count + blockBytes - 1) / blockBytes }

    private func read(_ object: LargeObject, _ range: Range<Int>) -> [UInt8]? {
        let bytes = BytesInMemory(length: range.count)
        guard unsafe object.read(from: range.lowerBound, into: bytes.room, waits: true) == .done else { return nil }
        return unsafe [UInt8](bytes.room)
    }

    /// The files of large objects, as paths.
    private var largeFiles: [String] {
        let names = (try? FileManager.default.subpathsOfDirectory(atPath: room.path + "/large")) ?? []
        return names.filter { $0.hasSuffix(".seg") }.map { "\(room.path)/large/\($0)" }
    }

    private func flip(_ path: String, at offset: Int) {
        let fd = unsafe open(path, O_RDWR)
        defer { close(fd) }
        var byte: UInt8 = 0
        _ = unsafe pread(fd, &byte, 1, offset)
        byte ^= 1
        _ = unsafe pwrite(fd, &byte, 1, offset)
    }

    /// The longest outgrows what is claimed at a time, twice.
    @Test(arguments: [1, blockBytes - 1, blockBytes, blockBytes + 1, 9 << 20])
    func `it can be found from its end on, with its length, also by the next process`(_ length: Int) throws {
        let body = segmentBytes(length, 3)
        let store = try room.open()
        let object = try make(in: store)
        #expect(object.length == nil)
        #expect(write(blocks(of: body), of: body, to: object).allSatisfy { $0 })
        #expect(object.extents == [0..<length] && object.waitingBytes == 0)
        #expect(read(object, 0..<length) == body, "blocks can be read before the end")
        #expect(store.find(Self.url).isEmpty)
        #expect(store.flush() && store.listed().isEmpty)
        #expect(finish(object, length: length))
        #expect(object.length == length && read(object, 0..<length) == body)
        let used = store.statistics.usedBytes
        #expect(store.flush() && store.listed().map(\.isComplete) == [true])
        #expect(try store.head(Self.url)?.place == object.place)
        store.abandon()
        let report = try DiskTools.verify(path: room.path, repair: false) { _ in }
        #expect(report.findings.isEmpty && report.largeGood == 1)
        let again = try room.open()
        defer { again.close() }
        let head = try #require(try again.head(Self.url))
        #expect(head.head == Array("grown".utf8) && head.place.bodyLength == UInt64(length))
        let large = try again.openLarge(head, hash: DiskStoreTestRoom.hash(head.key))
        #expect(read(large, 0..<length) == body)
        // What was claimed in advance was given back.
        #expect(again.statistics.usedBytes <= used + 1 << 20 && again.statistics.usedBytes >= UInt64(length))
    }

    @Test func `it can be exported and imported`() throws {
        let body = segmentBytes(3 << 20 + 5, 3)
        let store = try room.open()
        let object = try make(in: store)
        _ = write(blocks(of: body), of: body, to: object)
        #expect(finish(object, length: body.count))
        store.close()
        let archive = room.path + "/archive.tar"
        let exported = try DiskTools.export(
            ExportOptions(
                path: room.path, zone: "default", archive: archive, range: .all, selection: "all", sha256: sha256),
            calls: SystemCalls(), progress: { _ in }, damaged: { _ in })
        #expect(exported.objects == 1)
        let other = DiskStoreTestRoom()
        _ = try DiskTools.import(
            ImportOptions(archive: archive, store: other.options(), selects: { _ in true }, sha256: sha256),
            calls: SystemCalls(), progress: { _ in }, damaged: { _ in })
        let again = try other.open()
        defer { again.close() }
        let head = try #require(try again.head(Self.url))
        let large = try again.openLarge(head, hash: DiskStoreTestRoom.hash(head.key))
        #expect(read(large, 0..<body.count) == body)
    }

    @Test func `a block that is damaged afterwards can be written again`() throws {
        let body = segmentBytes(3 * blockBytes + 5, 3)
        let store = try room.open()
        defer { store.close() }
        let object = try make(in: store)
        _ = write(blocks(of: body), of: body, to: object)
        #expect(finish(object, length: body.count) && store.flush())
        // The head part has 4096 bytes, and the blocks follow.
        flip(try #require(largeFiles.first), at: 4096 + blockBytes + 77)
        #expect(read(object, 0..<3 * blockBytes) == nil)
        #expect(object.extents == [0..<blockBytes, 2 * blockBytes..<body.count])
        #expect(store.flush() && store.listed().map(\.isComplete) == [false])
        #expect(write(1..<2, of: body, to: object) == [true])
        #expect(read(object, 0..<body.count) == body)
        #expect(store.flush() && store.listed().map(\.isComplete) == [true])
    }

    @Test(arguments: [false, true]) func `a crash before its end leaves nothing of it`(_ isBeforeFirstBlock: Bool)
        throws
    {
        let body = segmentBytes(3 * blockBytes, 3)
        let store = try room.open()
        let object = try make(in: store)
        if !isBeforeFirstBlock { #expect(write(0..<2, of: body, to: object) == [true, true]) }
        store.put("http://a.example/other", [1])
        #expect(store.flush())
        store.abandon()
        #expect(largeFiles.count == 1)
        #expect(try DiskTools.verify(path: room.path, repair: false) { _ in }.findings.isEmpty, "that is no damage")
        let again = try room.open()
        defer { again.close() }
        #expect(again.find(Self.url).isEmpty && again.flush() && again.flush())
        #expect(largeFiles.isEmpty && again.statistics.largeCount == 0)
        #expect(try again.get("http://a.example/other")?.body == [1])
    }

    @Test func `one that is given up leaves nothing, but to who reads it`() throws {
        let body = segmentBytes(3 * blockBytes, 3)
        let store = try room.open()
        defer { store.close() }
        let used = store.statistics.usedBytes
        let object = try make(in: store)
        #expect(write(0..<2, of: body, to: object) == [true, true])
        #expect(store.statistics.usedBytes > used)
        object.abandon()
        #expect(store.flush(), "nothing was lost that was to be kept")
        #expect(largeFiles.isEmpty && store.statistics.usedBytes == used)
        #expect(read(object, 0..<2 * blockBytes) == Array(body.prefix(2 * blockBytes)))
        #expect(write(2..<3, of: body, to: object) == [false])
        object.abandon()
        #expect(store.flush() && store.statistics.usedBytes == used)
    }

    @Test func `one that is removed on its way is not stored at its end`() throws {
        let body = segmentBytes(3 * blockBytes, 3)
        let store = try room.open()
        defer { store.close() }
        for removesAll in [false, true] {
            let object = try make(in: store)
            #expect(write(0..<2, of: body, to: object) == [true, true])
            if removesAll { #expect(store.removeAll(Self.url) == 1) } else { store.remove(Self.url, object.id) }
            #expect(write(2..<3, of: body, to: object) == [true], "who reads it goes on")
            #expect(!finish(object, length: body.count))
            #expect(read(object, 0..<body.count) == body)
            #expect(store.find(Self.url).isEmpty && store.flush() && largeFiles.isEmpty)
        }
        #expect(store.statistics.liveBytes == 0 && store.statistics.largeCount == 0)
    }

    @Test func `a renewed head counts from its end on`() throws {
        let store = try room.open()
        let object = try make(in: store)
        #expect(write(0..<1, of: [1, 2, 3], to: object) == [true])
        store.renew(Self.url, object.id, head: "renewed")
        #expect(finish(object, length: 3) && store.flush())
        #expect(try store.head(Self.url)?.head == Array("renewed".utf8))
        store.close()
        let again = try room.open()
        defer { again.close() }
        #expect(try again.head(Self.url)?.head == Array("renewed".utf8))
    }

    @Test func `one that outgrows the store is given up, and its space is free again`() throws {
        let store = try room.open(size: Directory.sizeMin, pinned: 0)
        defer { store.close() }
        let used = store.statistics.usedBytes
        let body = segmentBytes(Int(Directory.sizeMin) + blockBytes, 3)
        let object = try make(in: store)
        let outcomes = write(blocks(of: body), of: body, to: object)
        #expect(outcomes.first == true && outcomes.last == false)
        let count = outcomes.prefix { $0 }.count
        #expect(!outcomes[count...].contains(true), "no block follows one that is missing")
        #expect(!finish(object, length: body.count))
        #expect(!store.flush(), "it was to be stored")
        #expect(largeFiles.isEmpty && store.statistics.usedBytes <= used + 1 << 20)
        #expect(store.statistics.droppedObjects == 1 && store.isOn)
    }

    @Test func `others are evicted for it`() throws {
        let store = try room.open(size: 64 << 20, pinned: 0)
        defer { store.close() }
        for number in 0..<100 { store.put("http://a.example/\(number)", segmentBytes(500_000, UInt64(number))) }
        #expect(store.flush())
        let body = segmentBytes(40 << 20, 3)
        let object = try make(in: store)
        #expect(write(blocks(of: body), of: body, to: object).allSatisfy { $0 })
        #expect(finish(object, length: body.count))
        #expect(store.statistics.usedBytes <= 64 << 20 && store.statistics.evictedObjects > 0)
        #expect(read(object, 0..<body.count) == body)
    }

    @Test(arguments: [FaultyCalls.Kind.write, .truncate, .allocate])
    func `a disk that fails on its way or at its end leaves nothing`(_ kind: FaultyCalls.Kind) throws {
        let calls = FaultyCalls()
        let store = try room.open(calls: calls)
        defer { store.close() }
        let body = segmentBytes(6 << 20, 3)
        // How many calls succeed before one fails: on the way, and at the end.
        let counts = kind == .write ? [0, 1, 96, 97] : [0]
        for count in counts {
            let object = try make(in: store)
            #expect(store.flush())
            calls.inject(.fail(EIO), into: [kind], path: "/large/", after: count, times: 1)
            let outcomes = write(blocks(of: body), of: body, to: object)
            #expect(outcomes.contains(false) == (kind == .allocate || kind == .write && count < 96))
            #expect(!finish(object, length: body.count))
            calls.heal()
            #expect(largeFiles.isEmpty && store.find(Self.url).isEmpty)
            room.waitForLog(until: { store.isOn })
            _ = store.flush()
            #expect(store.isOn && store.statistics.largeCount == 0)
        }
    }

    @Test func `without room in its quota a pinned one becomes permanent`() throws {
        let store = try room.open(size: 64 << 20, pinned: 6 << 20)
        defer { store.close() }
        let body = segmentBytes(8 << 20, 3)
        let object = try make(in: store, storageClass: .pinned)
        #expect(write(blocks(of: body), of: body, to: object).allSatisfy { $0 })
        #expect(finish(object, length: body.count) && store.flush())
        #expect(store.listed().map(\.attributes.storageClass) == [.permanent])
        #expect(store.statistics.pinnedBytes == 0 && store.statistics.refusedPinned == 1)
        // One that fits is pinned, and counted with its own length.
        let other = try make(in: store, storageClass: .pinned)
        #expect(write(0..<1, of: [1], to: other) == [true] && finish(other, length: 1) && store.flush())
        #expect(store.statistics.pinnedBytes == 4096 + 16)
    }
}
