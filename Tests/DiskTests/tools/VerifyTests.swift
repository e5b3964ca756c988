import Foundation
import Testing

@testable import Disk
@testable import DiskTools

@Suite("Verify: what is wrong with a store")
struct VerifyTests {
    /// Two segments, and in the second a drop record for an object of the first; two large objects, one of them in parts.
    static func room() throws -> VerifyRoom {
        let room = try VerifyRoom()
        try room.addSegment(1, ids: [1, 2, 3, 4], lengths: [0, 100, 70_000, 200_000])
        try room.addSegment(
            2, ids: [5, 6], lengths: [5000, 131_072], drops: [DroppedObject(id: ObjectID(rawValue: 2), segment: 1)])
        try room.commit([.remove(ObjectID(rawValue: 2), key: key(2))])
        try room.addLarge(3, id: 7, length: 300_000, blocks: 0..<5)
        try room.addLarge(4, id: 8, length: 1_000_000, blocks: 3..<7)
        return room
    }

    static func key(_ id: UInt64) -> [UInt8] { Array("https://a.example/\(id)".utf8) }

    private static let live: Set<UInt64> = [1, 3, 4, 5, 6, 7, 8]

    @Test func `an intact store has no findings, and is counted`() throws {
        let room = try Self.room()
        let report = try room.verify()
        #expect(report.findings.isEmpty)
        #expect(report.isFine)
        #expect(!report.wasInUse)
        #expect(report.objectsGood == 7)
        #expect(report.largeGood == 2)
        #expect(report.objectsNew == 0)
        #expect(report.segmentsRead == 4)
        // 0, 1, 2 and 4 blocks in the first segment, 1 and 2 in the second; 5 and 4 of the large ones.
        #expect(report.blocksRead == 19)
        #expect(report.bookBytes > 0)
    }

    @Test func `progress increases to the total, and names the phases in their order`() throws {
        let room = try VerifyRoom()
        try room.addSegment(1, ids: Array(1...40), lengths: Array(repeating: 200_000, count: 40))
        try room.addLarge(2, id: 50, length: 4 << 20, blocks: 0..<64)
        var steps: [VerifyProgress] = []
        _ = try room.verify(repair: true) { steps.append($0) }
        #expect(zip(steps, steps.dropFirst()).allSatisfy { $0.bytesDone <= $1.bytesDone })
        #expect(steps.last?.bytesDone == steps.last?.bytesTotal)
        #expect(steps.count > 8, "about one for each MiB")
        let order = VerifyProgress.Phase.allCases
        let phases = steps.compactMap { order.firstIndex(of: $0.phase) }
        #expect(phases == phases.sorted())
        #expect(Set(phases).count == 4)
    }

    @Test func `verifying changes nothing, whatever is wrong`() throws {
        let room = try Self.room()
        room.flip(5000, of: room.segmentPath(1))
        room.flip(100_000, of: room.segmentPath(1))
        room.flip(9000, of: room.largePath(3))
        let before = try room.contents()
        let report = try room.verify()
        #expect(!report.isFine)
        #expect(report.repairedCount == 0)
        #expect(try room.contents() == before)
    }

    @Test func `a damaged body is reported with its key and dropped by repair, and nothing else is dropped`() throws {
        let room = try Self.room()
        let place = try #require(room.objects[4]).entry.place
        room.flip(Int(place.offset) + Int(place.headLength) + 150_000, of: room.segmentPath(1))
        let report = try room.verify()
        #expect(report.kinds == [.blockDamaged])
        #expect(report.findings.first?.key == Self.key(4))
        #expect(report.findings.first?.file == "segments/00000001.seg")
        #expect(report.findings.first?.offset == place.offset)
        #expect(report.findings.first?.text == "block 2 is damaged")
        #expect(report.objectsGood == 6)
        try Self.repairs(room, losing: [4])
    }

    @Test func `a damaged head is reported with its key and dropped, and the records behind it are found`() throws {
        let room = try Self.room()
        let place = try #require(room.objects[3]).entry.place
        room.flip(Int(place.offset) + 70, of: room.segmentPath(1))
        let report = try room.verify()
        #expect(Set(report.kinds) == [.recordDamaged, .segmentDamaged])
        #expect(report.keys == ["https://a.example/3"])
        #expect(report.objectsGood == 6)
        try Self.repairs(room, losing: [3])
    }

    @Test func `damage between live records is reported, and overwritten by repair`() throws {
        let room = try Self.room()
        let place = try #require(room.objects[2]).entry.place
        room.flip(Int(place.offset) + Int(place.headLength), of: room.segmentPath(1))
        #expect(try room.verify().kinds == [.segmentDamaged])
        try Self.repairs(room, losing: [])
        var scan = RecordScan(
            try SegmentFile.open(
                room.segmentPath(1), SegmentIdentity(store: room.id, number: 1), calls: SystemCalls()),
            depth: .everything, mode: .tail)
        #expect(try scan.rest().count >= 4)
        #expect(scan.stop == nil)
    }

    @Test func `the rest that a crash leaves at the end of a segment is no damage`() throws {
        let room = try Self.room()
        try room.append(Array(repeating: 0xAB, count: 1000), to: room.segmentPath(2))
        #expect(try room.verify().findings.isEmpty)
        // The next start tells the book that it knows all of the file.
        let length = try #require(try room.contents()["segments/00000002.seg"]).count
        try room.commit([.segment(2, BookSegment(coveredEnd: UInt64(length), isClosed: true))])
        #expect(try room.verify().findings.isEmpty)
    }

    @Test func `records written after the last commit are counted and are no damage`() throws {
        let room = try Self.room()
        try room.addSegment(9, ids: [20, 21], lengths: [10, 20], isInBook: false)
        try room.addLarge(10, id: 22, length: 100_000, blocks: 0..<2, isInBook: false)
        let report = try room.verify()
        #expect(report.findings.isEmpty)
        #expect(report.objectsNew == 3)
    }

    @Test func `a damaged header loses no record, and is written again`() throws {
        let room = try Self.room()
        room.flip(3, of: room.segmentPath(2))
        let report = try room.verify()
        #expect(report.kinds == [.segmentDamaged])
        #expect(report.objectsGood == 7)
        try Self.repairs(room, losing: [])
        _ = try SegmentFile.open(
            room.segmentPath(2), SegmentIdentity(store: room.id, number: 2), calls: SystemCalls())
    }

    @Test func `missing files are reported object by object`() throws {
        let room = try Self.room()
        try FileManager.default.removeItem(atPath: room.segmentPath(2))
        try FileManager.default.removeItem(atPath: room.largePath(4))
        let report = try room.verify()
        #expect(report.kinds == [.segmentMissing, .segmentMissing, .segmentMissing])
        #expect(report.keys == ["https://a.example/5", "https://a.example/6", "https://large.example/8"])
        try Self.repairs(room, losing: [5, 6, 8])
    }

    @Test func `a truncated file loses only the records behind the cut`() throws {
        let room = try Self.room()
        let place = try #require(room.objects[6]).entry.place
        #expect(unsafe truncate(room.segmentPath(2), Int(place.offset) + 999) == 0)
        let report = try room.verify()
        #expect(
            Set(report.kinds) == [.segmentDamaged, .recordDamaged]
                || Set(report.kinds) == [.segmentDamaged, .blockDamaged])
        #expect(report.keys == ["https://a.example/6"])
        try Self.repairs(room, losing: [6])
    }

    @Test func `of a large object only the damaged block is lost`() throws {
        let room = try Self.room()
        let entry = try #require(room.objects[7]).entry
        let file = try LargeFile.open(
            room.largePath(3), SegmentIdentity(store: room.id, number: 3), writes: false, calls: SystemCalls())
        let data = Int(file.fileBytes) - padded(300_000, to: 4096)
        room.flip(data + 2 * blockBytes + 17, of: room.largePath(3))
        let report = try room.verify()
        #expect(report.kinds == [.blockDamaged])
        #expect(report.findings.first?.key == entry.key)
        #expect(report.findings.first?.offset == UInt64(2 * blockBytes))
        try Self.repairs(room, losing: [])
        let after = try LargeFile.open(
            room.largePath(3), SegmentIdentity(store: room.id, number: 3), writes: false, calls: SystemCalls())
        #expect(after.extents == [0..<2 * blockBytes, 3 * blockBytes..<300_000])
        #expect(try room.entries()[7]?.isComplete == false)
    }

    @Test func `a large object with a damaged head is lost, and deleted if the book does not know it`() throws {
        let room = try Self.room()
        try room.addLarge(5, id: 30, length: 100_000, blocks: 0..<2, isInBook: false)
        room.flip(100, of: room.largePath(3))
        room.flip(100, of: room.largePath(5))
        let report = try room.verify()
        #expect(Set(report.kinds) == [.recordDamaged, .fileUnknown])
        let repaired = try room.verify(repair: true)
        #expect(repaired.isFine)
        #expect(!FileManager.default.fileExists(atPath: room.largePath(5)))
        #expect(Set(try room.entries().keys) == Self.live.subtracting([7]))
    }

    // MARK: the book

    @Test func `a damaged book is reported and rebuilt from the segments, without removed objects`() throws {
        let room = try Self.room()
        for offset in stride(from: 0, to: 16_384, by: 64) { room.flip(offset, of: room.path + "/book/data.mdb") }
        let report = try room.verify()
        #expect(report.kinds == [.bookDamaged])
        #expect(report.bookMovedTo == nil)
        let repaired = try room.verify(repair: true)
        #expect(repaired.isFine)
        let moved = try #require(repaired.bookMovedTo)
        #expect(FileManager.default.fileExists(atPath: "\(room.path)/\(moved)/data.mdb"))
        #expect(Set(try room.entries().keys) == Self.live)
        #expect(try room.wrongObjects().isEmpty)
        let again = try room.verify()
        #expect(again.findings.isEmpty)
        #expect(again.objectsGood == 7)
        let book = try room.openBook()
        #expect(book.reservedIDs.rawValue >= 8 + 1 << 20, "no number is given twice")
    }

    @Test func `a missing book is rebuilt, and so is one of another store`() throws {
        let room = try Self.room()
        try FileManager.default.removeItem(atPath: room.path + "/book")
        #expect(try room.verify().kinds == [.bookDamaged])
        #expect(try room.verify(repair: true).isFine)
        #expect(Set(try room.entries().keys) == Self.live)
        let other = try Self.room()
        try FileManager.default.removeItem(atPath: room.path + "/book")
        try FileManager.default.moveItem(atPath: other.path + "/book", toPath: room.path + "/book")
        #expect(try room.verify().kinds == [.bookDamaged])
        try Self.repairs(room, losing: [])
        // Once more, and at once: none of those that were moved aside is in the way.
        for _ in 0..<2 {
            for offset in stride(from: 0, to: 16_384, by: 64) { room.flip(offset, of: room.path + "/book/data.mdb") }
            try Self.repairs(room, losing: [])
        }
        let aside = try FileManager.default.contentsOfDirectory(atPath: room.path).filter { $0.contains("damaged") }
        #expect(aside.count == 3)
    }

    @Test func `of an object that was copied forward the later record counts`() throws {
        let room = try Self.room()
        // Object 3 was copied from the first segment into a later one, and removed there again is object 4.
        try room.addSegment(
            9, ids: [3], lengths: [70_000], drops: [DroppedObject(id: ObjectID(rawValue: 4), segment: 1)])
        try FileManager.default.removeItem(atPath: room.path + "/book")
        #expect(try room.verify(repair: true).isFine)
        let entries = try room.entries()
        #expect(Set(entries.keys) == Self.live.subtracting([4]))
        #expect(entries[3]?.place.segment == 9)
    }

    @Test func `a removed large object does not return with a rebuilt book`() throws {
        let room = try Self.room()
        try room.addSegment(9, ids: [], lengths: [], drops: [DroppedObject(id: ObjectID(rawValue: 8), segment: 4)])
        try FileManager.default.removeItem(atPath: room.path + "/book")
        #expect(try room.verify(repair: true).isFine)
        #expect(Set(try room.entries().keys) == Self.live.subtracting([8]))
        // The book knows that there is a file, and no object: the next start deletes it.
        let book = try room.openBook(.readOnly)
        #expect(try book.segments()[4] != nil)
    }

    @Test func `a whole record that is not the one in the book is reported`() throws {
        let room = try Self.room()
        var entry = try #require(room.objects[5]).entry
        entry.key = Array("https://a.example/other".utf8)
        try room.commit([.remove(entry.id, key: Self.key(5)), .put(entry)])
        let report = try room.verify()
        #expect(report.kinds == [.recordDamaged])
        #expect(report.keys == ["https://a.example/other"])
        try Self.repairs(room, losing: [5])
    }

    @Test func `damaged entries are reported, and the others go into a new book`() throws {
        let room = try Self.room()
        var unusual = ObjectAttributes.sample()
        unusual.mediaType = Array("x/damaged".utf8)
        var entry = try #require(room.objects[5]).entry
        entry.attributes = unusual
        try room.commit([
            .put(entry),
            .renew(ObjectID(rawValue: 1), key: Self.key(1), .sample(), head: Array("the renewed head".utf8)),
        ])
        #expect(try room.flipInBook(behind: Array("x/damaged".utf8)) > 0)
        let report = try room.verify()
        #expect(report.kinds.allSatisfy { $0 == .entryDamaged || $0 == .tagWrong })
        #expect(report.kinds.contains(.entryDamaged))
        let repaired = try room.verify(repair: true)
        #expect(repaired.isFine)
        #expect(repaired.bookMovedTo != nil)
        #expect(Set(try room.entries().keys) == Self.live.subtracting([5]))
        let book = try room.openBook(.readOnly)
        #expect(try book.renewal(of: ObjectID(rawValue: 1))?.head == Array("the renewed head".utf8))
        #expect(try book.segments()[1]?.isClosed == true)
        book.close()
        #expect(try room.verify().findings.isEmpty)
    }

    @Test func `an object whose renewed head is damaged is dropped`() throws {
        let room = try Self.room()
        try room.commit([
            .renew(ObjectID(rawValue: 1), key: Self.key(1), .sample(), head: Array("the renewed head".utf8))
        ])
        #expect(try room.verify().findings.isEmpty)
        #expect(try room.flipInBook(behind: Array("the renewed head".utf8)) > 0)
        let report = try room.verify()
        #expect(report.kinds.contains(.entryDamaged))
        #expect(report.keys == ["https://a.example/1"])
        try Self.repairs(room, losing: [1])
    }

    @Test func `an object that its tag does not lead to is reported, and found again after repair`() throws {
        let room = try Self.room()
        var entry = try #require(room.objects[5]).entry
        entry.attributes.tags = [Array("seldom".utf8)]
        try room.commit([.put(entry)])
        #expect(try room.verify().findings.isEmpty)
        // Behind the tag, its zero and the number in the key stands what it leads to.
        #expect(try room.flipInBook(behind: Array("seldom".utf8) + [0], by: 18) > 0)
        #expect(try room.verify().kinds.contains(.tagWrong))
        try Self.repairs(room, losing: [])
        let book = try room.openBook(.readOnly)
        #expect(try book.page(tag: Array("seldom".utf8), limit: 10).entries.map(\.id.rawValue) == [5])
    }

    // MARK: in use

    @Test func `next to a running proxy it verifies and does not repair`() throws {
        let room = try Self.room()
        var proxy: Directory? = try Directory.open(room.path, size: 64 << 20)
        #expect(throws: DiskRefusal.inUse(path: room.path)) { try room.verify(repair: true) }
        let report = try room.verify()
        #expect(report.wasInUse)
        #expect(report.findings.isEmpty)
        #expect(proxy != nil)
        proxy = nil
        // And it does not stay locked by the look.
        _ = try Directory.open(room.path, size: 64 << 20)
    }

    @Test func `an object that was moved or removed meanwhile is not reported`() throws {
        let room = try Self.room()
        var failure: (any Error)?
        let report = try room.verify { progress in
            guard progress.phase == .entries else { return }
            do {
                // Between the reading of the files and the look at the book all of the first segment goes.
                try room.addSegment(11, ids: [1, 3], lengths: [0, 70_000])
                try room.commit([.remove(ObjectID(rawValue: 4), key: Self.key(4))])
                try FileManager.default.removeItem(atPath: room.segmentPath(1))
            } catch { failure = error }
        }
        #expect(failure == nil)
        #expect(report.findings.isEmpty)
    }

    @Test func `an object that moves between book and file is followed`() throws {
        let room = try Self.room()
        let moved = try room.addSegment(11, ids: [1, 3], lengths: [0, 70_000], isInBook: false)
        let proxy = try Directory.open(room.path, size: 64 << 20)
        defer { withExtendedLifetime(proxy) {} }
        let calls = VerifyCalls()
        calls.whenOpened { path, count in
            guard path == room.segmentPath(1) else { return }
            switch count {
            // It is gone when all files are read, but the book that is read then has all in it.
            case 1: _ = unsafe unlink(path)
            // The book is committed when the first of its objects is looked for.
            case 2: try room.commit(moved.map { .put($0) } + [.remove(ObjectID(rawValue: 4), key: Self.key(4))])
            default: break
            }
        }
        let report = try room.verify(calls: calls)
        #expect(calls.openings(of: room.segmentPath(1)) >= 2)
        #expect(calls.failure == nil)
        #expect(report.findings.isEmpty)
        #expect(report.objectsGood == 6)
    }

    // MARK: refusals and errors

    @Test func `a directory that is no store is refused and not changed`() throws {
        let path = FileManager.default.temporaryDirectory.path + "/larder-verify-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: path) }
        #expect(throws: DiskRefusal.failed(path: path, errno: ENOENT)) {
            try verify(path: path, repair: true) { _ in }
        }
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        #expect(throws: DiskRefusal.foreign(path: path)) { try verify(path: path, repair: true) { _ in } }
        #expect(try FileManager.default.contentsOfDirectory(atPath: path).isEmpty)
        for (text, refusal) in [
            ("larder store 2\n0123456789abcdef0123456789abcdef\n", DiskRefusal.unknownVersion(path: path, version: 2)),
            ("larder store 1\n0123\n", .foreign(path: path)), ("something else\n", .foreign(path: path)),
        ] {
            try Data(text.utf8).write(to: URL(filePath: path + "/larder-store"))
            #expect(throws: refusal) { try verify(path: path, repair: false) { _ in } }
        }
    }

    @Test func `a new, empty store is intact`() throws {
        let room = try VerifyRoom()
        #expect(try room.verify().isFine)
        #expect(try room.verify(repair: true).bookMovedTo == nil)
    }

    @Test func `a file that cannot be read is reported, and its objects are dropped by repair`() throws {
        let room = try Self.room()
        let calls = FaultyCalls()
        calls.inject(.fail(EIO), into: [.read], path: "00000002.seg", after: 1)
        let report = try room.verify(calls: calls)
        #expect(Set(report.kinds) == [.readFailed])
        #expect(report.keys == ["https://a.example/5", "https://a.example/6"])
        calls.heal()
        #expect(try room.verify(calls: calls).isFine)
    }

    @Test func `a record that is intact at the second look is not changed by repair`() throws {
        var findings: UInt64 = 0
        // Once in the head of a record, and once in a body.
        for (read, bit) in [(0, 560), (1, 560), (2, 560), (0, 33_333), (1, 33_333), (2, 33_333)] {
            let room = try Self.room()
            let calls = FaultyCalls()
            calls.inject(.flip(bit: bit), into: [.read], path: "00000001.seg", after: read, times: 1)
            let report = try room.verify(repair: true, calls: calls)
            findings += report.findingCount
            #expect(report.isFine)
            #expect(Set(try room.entries().keys) == Self.live)
            #expect(try room.wrongObjects().isEmpty)
        }
        #expect(findings > 0)
    }

    @Test(arguments: 1...60) func `after any flipped byte, repair leaves an intact store`(
        _ seed: Int
    ) throws {
        var random = LedgerGenerator(seed: UInt64(seed))
        let room = try Self.room()
        let files = [
            room.segmentPath(1), room.segmentPath(2), room.largePath(3), room.largePath(4),
            room.path + "/book/data.mdb",
        ]
        for _ in 0..<Int.random(in: 1...3, using: &random) {
            let file = files[Int.random(in: 0..<files.count, using: &random)]
            let length = try #require(FileManager.default.contents(atPath: file)).count
            // Heads are small beside bodies: half of the flips go there.
            let end = Bool.random(using: &random) ? min(length, 6000) : length
            room.flip(
                Int.random(in: 0..<end, using: &random), of: file, mask: 1 << UInt8.random(in: 0..<8, using: &random))
        }
        _ = try room.verify()
        let repaired = try room.verify(repair: true)
        #expect(repaired.isFine)
        let again = try room.verify()
        #expect(again.findings.isEmpty)
        #expect(again.objectsGood >= 4)
        #expect(try room.wrongObjects().isEmpty)
        #expect(Set(try room.entries().keys).isSubset(of: Self.live))
    }

    /// Repair finds something, puts it right, and leaves nothing to be found; only these objects are gone.
    private static func repairs(_ room: VerifyRoom, losing lost: Set<UInt64>) throws {
        let repaired = try room.verify(repair: true)
        #expect(repaired.findingCount > 0)
        #expect(repaired.isFine)
        let again = try room.verify()
        #expect(again.findings.isEmpty)
        #expect(Set(try room.entries().keys) == live.subtracting(lost))
        #expect(try room.wrongObjects().isEmpty)
    }
}
