import Glibc
import Testing

@testable import Disk

@Suite("A walk through the records of a segment")
struct RecordScanTests {
    static let drops = [
        DroppedObject(id: ObjectID(rawValue: 1), segment: 7), .init(id: ObjectID(rawValue: 8), segment: 2),
    ]

    /// Objects 1 and 2, drops, object 3.
    static func fill(_ file: SegmentFile) throws -> [Place] {
        var places = try file.append([.sample(1, body: 100), .sample(2, body: 200_000)])
        var batch = RecordBatch(file.identity, at: file.end)
        batch.add(drops: drops, storedAt: 5)
        try file.append(batch)
        places += try file.append([.sample(3, body: 17)])
        return places
    }

    @Test(arguments: [RecordScan.Depth.heads, .everything], [RecordScan.Mode.tail, .search])
    func `records are found in their order`(_ depth: RecordScan.Depth, _ mode: RecordScan.Mode) throws {
        let room = try SegmentTestRoom()
        let file = try room.makeSegment()
        let places = try RecordScanTests.fill(file)
        var scan = RecordScan(file, depth: depth, mode: mode)
        let found = try scan.rest()
        #expect(found.map(\.objectID) == [1, 2, nil, 3])
        if case .object(let head) = found[1] { #expect(head.place == places[1]) }
        let end = places[1].offset + places[1].recordLength
        if case .drops(let drops, let at, let length) = found[2] {
            #expect(drops == RecordScanTests.drops && at == end && length == 96)
        } else {
            Issue.record("no drops")
        }
        #expect(scan.end == file.end && scan.stop == nil)
        #expect(try scan.next() == nil)

        var later = RecordScan(file, from: places[1].offset, depth: depth, mode: mode)
        #expect(try later.rest().map(\.objectID) == [2, nil, 3])
    }

    @Test func `a scan of an empty segment finds nothing`() throws {
        let room = try SegmentTestRoom()
        var scan = RecordScan(try room.makeSegment(), depth: .everything)
        #expect(try scan.next() == nil && scan.end == 4096 && scan.stop == nil)
    }

    @Test func `more drops than a record can hold are several records`() throws {
        let room = try SegmentTestRoom()
        let file = try room.makeSegment()
        let drops = (0..<RecordCodec.dropsMax + 3).map { DroppedObject(id: ObjectID(rawValue: UInt64($0)), segment: 1) }
        var batch = RecordBatch(file.identity, at: file.end)
        batch.add(drops: drops, storedAt: 0)
        try file.append(batch)
        var scan = RecordScan(file, depth: .heads)
        let found: [[DroppedObject]] = try scan.rest().map {
            if case .drops(let drops, _, _) = $0 { drops } else { [] }
        }
        #expect(found.map(\.count) == [RecordCodec.dropsMax, 3] && Array(found.joined()) == drops)
    }

    @Test func `a search continues behind a damaged head`() throws {
        let room = try SegmentTestRoom()
        let file = try room.makeSegment()
        let places = try RecordScanTests.fill(file)
        for at in [0, 4, 5, 6, 7, 8, 24, 33, 40, 41, 44, 48, 52, 60, 70, Int(places[1].headLength) - 1] {
            room.flip(Int(places[1].offset) + at, of: file.path)
            for depth in [RecordScan.Depth.heads, .everything] {
                var tail = RecordScan(file, depth: depth)
                #expect(try tail.rest().map(\.objectID) == [1])
                #expect(tail.end == places[1].offset && tail.stop != nil)

                var search = RecordScan(file, depth: depth, mode: .search)
                let found = try search.rest()
                #expect(found.map(\.objectID) == [1, nil, nil, 3])
                if case .damaged(let range, _) = found[1] {
                    #expect(range == places[1].offset..<places[1].offset + places[1].recordLength)
                } else {
                    Issue.record("no gap at \(at)")
                }
            }
            room.flip(Int(places[1].offset) + at, of: file.path)
        }
    }

    /// Of the file so much is in memory at once: the next record begins just before, at or behind the end of that.
    @Test(arguments: [(RecordScan.Depth.heads, 64 << 10), (.everything, 1 << 20)])
    func `a search misses nothing at the border of two reads`(_ depth: RecordScan.Depth, _ piece: Int) throws {
        let head = try RecordScanTests.headLength(of: .sample(1, body: piece - 1000))
        for step in -3...3 {
            let room = try SegmentTestRoom()
            let file = try room.makeSegment()
            let length = piece + step * 16
            let places = try file.append([.sample(1, body: length - head), .sample(2, body: 5)])
            try #require(places[1].offset == places[0].offset + UInt64(length))
            room.flip(Int(places[0].offset), of: file.path)
            var search = RecordScan(file, depth: depth, mode: .search)
            #expect(try search.rest().map(\.objectID) == [nil, 2])
        }
    }

    @Test func `a scan of heads does not read long bodies`() throws {
        let room = try SegmentTestRoom()
        let file = try room.makeSegment()
        try file.append((1...64).map { .sample($0, body: 64 << 10) })
        let before = room.calls.readBytes
        var scan = RecordScan(file, depth: .heads)
        #expect(try scan.rest().count == 64)
        // 64, 32, 16, 8 KiB, and 4 KiB for each of the others.
        #expect(room.calls.readBytes - before == (120 + 60 * 4) << 10)
    }

    @Test func `a scan of heads reads many short records at once`() throws {
        let room = try SegmentTestRoom()
        let file = try room.makeSegment()
        try file.append((1...8).map { .sample($0, body: 64 << 10) } + (9...600).map { .sample($0, body: 1024) })
        let before = room.calls.count(.read)
        var scan = RecordScan(file, depth: .heads)
        #expect(try scan.rest().map(\.objectID) == (1...600).map { $0 })
        // One for each long body, then 8, 16, 32 KiB, and then 64 KiB at once.
        let shortBytes = Int(file.end) - Int(SegmentFile.headerBytes) - 8 * (64 << 10)
        #expect(room.calls.count(.read) - before <= 8 + 4 + shortBytes / (62 << 10) + 1)
    }

    static func headLength(of object: PackedObject) throws -> Int {
        var batch = RecordBatch(.none, at: 0)
        return Int(try batch.add(object).headLength)
    }

    @Test func `a search names the object whose body is damaged`() throws {
        let room = try SegmentTestRoom()
        let file = try room.makeSegment()
        let places = try RecordScanTests.fill(file)
        room.flip(Int(places[1].offset) + Int(places[1].headLength) + 150_000, of: file.path)
        var search = RecordScan(file, depth: .everything, mode: .search)
        let found = try search.rest()
        #expect(found.map(\.objectID) == [1, nil, nil, 3])
        if case .damagedObject(let head, let why) = found[1] {
            #expect(head.id.rawValue == 2 && why == .body(block: 2))
        } else {
            Issue.record("no object")
        }
        var heads = RecordScan(file, depth: .heads, mode: .search)
        #expect(try heads.rest().map(\.objectID) == [1, 2, nil, 3])
    }

    @Test func `a search reports what is behind the last record`() throws {
        let room = try SegmentTestRoom()
        let file = try room.makeSegment()
        _ = try RecordScanTests.fill(file)
        for count in [1, 15, 16, 17, 70, 3_000_001] {
            #expect(unsafe truncate(file.path, Int(file.end) + count) == 0)
            var tail = RecordScan(file, depth: .heads)
            #expect(try tail.rest().count == 4)
            #expect(tail.end == file.end && tail.stop == (count < 64 ? .incomplete(needs: 64) : .notARecord))
            var search = RecordScan(file, depth: .heads, mode: .search)
            let found = try search.rest()
            #expect(found.count == 5)
            if case .damaged(let range, _) = found[4] {
                #expect(range == file.end..<file.end + UInt64(count))
            } else {
                Issue.record("no gap of \(count)")
            }
        }
    }

    @Test func `a record inside a body is not found`() throws {
        let room = try SegmentTestRoom()
        let file = try room.makeSegment()
        // Whoever sends bodies may know all of the format, but not the store's name.
        let forged = SegmentIdentity(store: StoreID(high: 1, low: 2), number: 7)
        var bytes: [UInt8] = []
        for index in 0..<50 {
            try RecordCodec.append(
                packed: ObjectID(rawValue: 666), key: [1], attributes: .sample(), head: [], checksums: [],
                bodyLength: 0,
                in: forged, at: 4096 + UInt64(index) * 16, to: &bytes)
        }
        let object = PackedObject.sample(1, SegmentTestBody(bytes))
        try file.append([object, .sample(2, body: 5)])
        room.flip(4096, of: file.path)
        var search = RecordScan(file, depth: .everything, mode: .search)
        #expect(try search.rest().map(\.objectID) == [nil, 2])
    }

    @Test func `a file that shrinks during a scan ends the scan`() throws {
        let room = try SegmentTestRoom()
        let file = try room.makeSegment()
        let places = try file.append((1...20).map { PackedObject.sample($0, body: 100_000) })
        var scan = RecordScan(file, depth: .everything)
        _ = try scan.next()
        #expect(unsafe truncate(file.path, Int(places[15].offset) + 3) == 0)
        let found = try scan.rest()
        #expect(found.count <= 19)
        if scan.end < places[15].offset { Issue.record("what was there was not found") }
    }

    @Test(arguments: 0..<60 as Range<UInt64>)
    func `a power cut leaves everything synchronized, and whole records only`(_ seed: UInt64) throws {
        let room = try SegmentTestRoom()
        let file = try room.makeSegment(room: seed % 2 == 0 ? 1 << 20 : 0)
        var objects: [PackedObject] = []
        var durable = 0
        var random = seed
        for id in 1...40 as ClosedRange<UInt64> {
            random = random &* 6_364_136_223_846_793_005 &+ 1
            let body = Int(random >> 33) % (id % 7 == 0 ? 100_000 : 5000)
            objects.append(.sample(id, body: body))
            try file.append([objects[Int(id) - 1]])
            if random >> 60 == 3 {
                try file.synchronize()
                durable = objects.count
            }
        }
        room.calls.cutPower(keeping: seed == 0 ? .nothing : seed == 1 ? .everything : .random(seed: seed))
        #expect(throws: DiskFileError.failed(errno: EIO)) { try file.append([.sample(99, body: 1)]) }
        guard unsafe access(file.path, F_OK) == 0 else {
            #expect(durable == 0)
            return
        }
        let reader: SegmentFile
        do throws(DiskFileError) {
            reader = try room.openSegmentTyped()
        } catch {
            #expect(durable == 0)
            return
        }
        for mode in [RecordScan.Mode.tail, .search] {
            var scan = RecordScan(reader, depth: .everything, mode: mode)
            var found = 0
            while let next = try scan.next() {
                guard case .object(let head) = next else { continue }
                let object = objects[Int(head.id.rawValue) - 1]
                #expect(try reader.record(head.place).body == object.bodyBytes)
                #expect(head.key == object.key && head.head == object.head)
                if mode == .tail { #expect(head.id.rawValue == UInt64(found + 1)) }
                found += 1
            }
            #expect(found >= durable)
        }
    }
}

extension SegmentTestRoom {
    func openSegmentTyped() throws(DiskFileError) -> SegmentFile {
        try SegmentFile.open(segmentPath, identity, calls: SystemCalls())
    }
}
