import Foundation
import Glibc
import Testing

@testable import Disk

@Suite("A segment")
struct SegmentTests {
    static let bodies = [
        0, 1, 15, 16, 17, 4096, 4097, blockBytes - 1, blockBytes, blockBytes + 1, 3 * blockBytes + 5, 1 << 20,
    ]

    @Test(arguments: [1, 509, 1 << 20]) func `records are read as stored: at once, by head, by blocks`(_ piece: Int)
        throws
    {
        let room = try SegmentTestRoom()
        let file = try room.makeSegment()
        let objects = SegmentTests.bodies.enumerated().map {
            PackedObject.sample(UInt64($0 + 1), body: $1, piece: max(piece, $1 / 5000))
        }
        let places = try file.append(objects)
        for reader in [file, try room.openSegment()] {
            for (object, place) in zip(objects, places) {
                let (head, body) = try reader.record(place)
                #expect(head.id == object.id && head.key == object.key && head.head == object.head)
                #expect(head.attributes == object.attributes && head.place == place)
                #expect(body == object.bodyBytes)
                let other = try reader.readHead(place, waits: true)
                #expect(other.checksums == head.checksums && other.place == place)
                for start in stride(from: 0, to: body.count, by: blockBytes) {
                    let range = start..<min(start + blockBytes, body.count)
                    #expect(reader.body(head, range) == (.done, Array(body[range])))
                    #expect(reader.body(head, start..<body.count) == (.done, Array(body[start...])))
                }
            }
        }
    }

    @Test func `a place with the padded length of the body is enough to read it`() throws {
        let room = try SegmentTestRoom()
        let file = try room.makeSegment()
        let object = PackedObject.sample(1, body: 4097)
        var place = try file.append([object])[0]
        let exact = place
        place.bodyLength = 4112
        #expect(try file.readHead(place, waits: true).place == exact)
        let (head, body) = try file.record(place)
        #expect(head.place == exact && Array(body[..<4097]) == object.bodyBytes)
    }

    @Test func `a place that is no longer valid reads as damaged`() throws {
        let room = try SegmentTestRoom()
        let file = try room.makeSegment()
        let place = try file.append([.sample(1, body: 100), .sample(2, body: 100)])[0]
        var wrong: [Place] = []
        wrong.append(
            Place(kind: .large, segment: 7, offset: place.offset, headLength: place.headLength, bodyLength: 100))
        wrong.append(
            Place(kind: .packed, segment: 8, offset: place.offset, headLength: place.headLength, bodyLength: 100))
        wrong.append(
            Place(kind: .packed, segment: 7, offset: place.offset + 16, headLength: place.headLength, bodyLength: 100))
        wrong.append(Place(kind: .packed, segment: 7, offset: 1 << 30, headLength: place.headLength, bodyLength: 100))
        wrong.append(
            Place(kind: .packed, segment: 7, offset: place.offset, headLength: place.headLength - 16, bodyLength: 100))
        wrong.append(
            Place(kind: .packed, segment: 7, offset: place.offset, headLength: place.headLength + 16, bodyLength: 100))
        wrong.append(
            Place(kind: .packed, segment: 7, offset: place.offset, headLength: place.headLength, bodyLength: 200))
        wrong.append(Place(kind: .packed, segment: 7, offset: place.offset, headLength: 0, bodyLength: 100))
        for place in wrong {
            #expect(throws: DiskReadError.damaged) { try file.readHead(place, waits: true) }
            #expect(throws: DiskReadError.damaged) { try file.record(place) }
        }
    }

    @Test func `a changed byte anywhere in a record is detected and never served`() throws {
        let room = try SegmentTestRoom()
        let file = try room.makeSegment()
        let object = PackedObject.sample(1, body: 150)
        let place = try file.append([object])[0]
        let head = try file.readHead(place, waits: true)
        for at in 0..<Int(place.recordLength) {
            room.flip(Int(place.offset) + at, of: file.path)
            let inHead = at < Int(place.headLength)
            let inPadding = at >= Int(place.headLength) + 150
            if inHead { #expect(throws: DiskReadError.damaged) { try file.readHead(place, waits: true) } }
            if inPadding {
                #expect(try file.record(place).body == object.bodyBytes)
            } else {
                #expect(throws: DiskReadError.damaged) { try file.record(place) }
            }
            #expect(file.body(head, 0..<150).read == (inHead || inPadding ? .done : .damaged))
            // A scan misses nothing, not even padding.
            var scan = RecordScan(file, depth: .everything)
            #expect(try scan.rest().isEmpty)
            #expect(scan.stop != nil && scan.end == place.offset)
            room.flip(Int(place.offset) + at, of: file.path)
        }
        #expect(try file.record(place).body == object.bodyBytes)
    }

    @Test func `a file that is too short by any length lacks only its last record`() throws {
        let room = try SegmentTestRoom()
        let file = try room.makeSegment()
        let places = try file.append([.sample(1, body: 30), .sample(2, body: 200)])
        for length in stride(from: Int(file.end) - 1, through: Int(places[1].offset), by: -1) {
            #expect(unsafe truncate(file.path, length) == 0)
            for depth in [RecordScan.Depth.heads, .everything] {
                var scan = RecordScan(file, depth: depth)
                #expect(try scan.rest().map(\.objectID) == [1])
                #expect(scan.end == places[1].offset)
                #expect((scan.stop == nil) == (length == Int(places[1].offset)))
            }
            #expect(try file.record(places[0]).head.id.rawValue == 1)
            if length < Int(places[1].offset) + Int(places[1].headLength) + 200 {
                #expect(throws: DiskReadError.damaged) { try file.record(places[1]) }
            }
        }
    }

    @Test func `the header says which store the file belongs to`() throws {
        let room = try SegmentTestRoom()
        let file = try room.makeSegment()
        let open = { (identity: SegmentIdentity) throws(DiskFileError) in
            _ = try SegmentFile.open(file.path, identity, calls: SystemCalls())
        }
        #expect(throws: Never.self) { try open(room.identity) }
        #expect(throws: DiskFileError.header(.wrongPlace)) { try open(.init(store: room.identity.store, number: 8)) }
        #expect(throws: DiskFileError.header(.wrongPlace)) { try open(.init(store: .none, number: 7)) }
        let good = try room.bytes(of: file.path)
        for at in 0..<SegmentFile.headerBytes {
            room.flip(at, of: file.path)
            #expect(throws: DiskFileError.self) { try open(room.identity) }
            room.flip(at, of: file.path)
        }
        for count in stride(from: 0, to: SegmentFile.headerBytes, by: 511) {
            try room.put(Array(good[..<count]), into: file.path)
            #expect(throws: DiskFileError.header(.incomplete(needs: 4096))) { try open(room.identity) }
        }
        #expect(throws: Never.self) {
            try SegmentFile.open(file.path, room.identity, checksHeader: false, calls: SystemCalls())
        }
        #expect(throws: DiskFileError.failed(errno: ENOENT)) {
            try SegmentFile.open(room.path + "/none", room.identity, calls: SystemCalls())
        }
    }

    @Test func `rules of the header, though the checksum be right`() throws {
        let header = SegmentHeader(identity: .init(store: .random(), number: 1), created: 5)
        let error = { (change: (inout [UInt8]) -> Void) -> RecordError? in
            var bytes = header.bytes
            change(&bytes)
            bytes.put(number: Checksum.crc32c(Array(bytes[..<4092])), at: 4092)
            do throws(RecordError) {
                #expect(try SegmentHeader(unsafe bytes.span.bytes) == header)
                return nil
            } catch { return error }
        }
        #expect(error { _ in } == nil)
        #expect(error { $0[0] = 0 } == .notARecord)
        #expect(error { $0[8] = 2 } == .unknownVersion(2))
        #expect(error { $0[9] = 1 } == .padding)
        #expect(error { $0[4091] = 1 } == .padding)
    }

    @Test func `an existing file is not overwritten`() throws {
        let room = try SegmentTestRoom()
        try room.put([1, 2, 3], into: room.segmentPath)
        #expect(throws: DiskFileError.failed(errno: EEXIST)) { try room.makeSegment() }
        #expect(try room.bytes(of: room.segmentPath) == [1, 2, 3])
    }

    @Test func `a failed creation leaves nothing behind`() throws {
        let room = try SegmentTestRoom()
        room.calls.inject(.fail(ENOSPC), into: [.allocate], times: 1)
        #expect(throws: DiskFileError.failed(errno: ENOSPC)) { try room.makeSegment(room: 1 << 20) }
        room.calls.inject(.fail(EIO), into: [.write], times: 1)
        #expect(throws: DiskFileError.failed(errno: EIO)) { try room.makeSegment() }
        #expect(try FileManager.default.contentsOfDirectory(atPath: room.path).filter { $0.hasSuffix(".seg") } == [])
        room.calls.inject(.fail(EOPNOTSUPP), into: [.allocate], times: 1)
        #expect(try room.makeSegment(room: 1 << 20).length() == 4096)
        #expect(room.calls.openCount == 0)
    }

    @Test func `space is allocated at once and released at the end`() throws {
        let room = try SegmentTestRoom()
        let file = try room.makeSegment(room: 1 << 20)
        #expect(try room.blocks(of: file.path) >= 1 << 20)
        #expect(try file.length() == 4096)
        try file.append([.sample(1, body: 10)])
        try file.finish()
        #expect(try room.blocks(of: file.path) < 1 << 16)
        #expect(try file.length() == file.end)
    }

    @Test func `a deleted file can be read by whoever has it open`() throws {
        let room = try SegmentTestRoom()
        let file = try room.makeSegment()
        let place = try file.append([.sample(1, body: 100)])[0]
        #expect(unsafe unlink(file.path) == 0)
        #expect(try file.record(place).head.id.rawValue == 1)
    }

    @Test func `a failed batch is cut off, and its place is used again`() throws {
        let room = try SegmentTestRoom()
        let file = try room.makeSegment()
        try file.append([.sample(1, body: 10)])
        let end = file.end
        // Half of it is on the disk when the disk is full: the first record is whole.
        room.calls.inject(.short(7000), into: [.write], times: 1)
        room.calls.inject(.fail(ENOSPC), into: [.write], after: 1, times: 1)
        #expect(throws: DiskFileError.failed(errno: ENOSPC)) {
            try file.append([.sample(2, body: 5000), .sample(3, body: 5000)])
        }
        #expect(try file.end == end && file.length() == end)
        try file.append([.sample(4, body: 20)])
        var scan = RecordScan(file, depth: .everything)
        #expect(try scan.rest().map(\.objectID) == [1, 4])
    }

    @Test func `if a failed batch cannot be cut off, nothing more is written`() throws {
        let room = try SegmentTestRoom()
        let file = try room.makeSegment()
        room.calls.inject(.fail(ENOSPC), into: [.write], times: 1)
        room.calls.inject(.fail(EIO), into: [.truncate], times: 1)
        #expect(throws: DiskFileError.failed(errno: ENOSPC)) { try file.append([.sample(2, body: 5000)]) }
        #expect(throws: DiskFileError.failed(errno: EIO)) { try file.append([.sample(2, body: 5000)]) }
    }

    @Test func `the name of a file is synchronized once`() throws {
        let room = try SegmentTestRoom()
        let file = try room.makeSegment()
        room.calls.inject(.fail(EIO), into: [.synchronize], after: 1, times: 1)
        #expect(throws: DiskFileError.failed(errno: EIO)) { try file.synchronize() }
        try file.synchronize()
        #expect(room.calls.count(.synchronize) == 4)
        try file.synchronize()
        #expect(room.calls.count(.synchronize) == 5)
        #expect(room.calls.count(.open) == 3)
    }

    @Test func `interrupted and short calls are continued`() throws {
        let room = try SegmentTestRoom()
        let file = try room.makeSegment()
        let objects = [PackedObject.sample(1, body: 9000), .sample(2, body: 70_000), .sample(3, body: 0)]
        for bytes in [1009, 16_384] {
            room.calls.inject(.short(bytes), into: [.write, .read])
            room.calls.inject(.fail(EINTR), into: [.write, .read], after: 1, times: 1)
            room.calls.inject(.fail(EINTR), into: [.synchronize, .length, .truncate], times: 1)
            let places = try file.append(objects)
            try file.synchronize()
            for (object, place) in zip(objects, places) {
                room.calls.inject(.fail(EINTR), into: [.read], after: 2, times: 2)
                #expect(try file.record(place).body == object.bodyBytes)
                #expect(try file.record(place, waits: false).body == object.bodyBytes)
                #expect(try file.readHead(place, waits: true).id == object.id)
            }
            room.calls.heal()
        }
        try file.finish()
        // Byte by byte, with one record.
        room.calls.inject(.short(1), into: [.write, .read])
        let place = try file.append([.sample(4, body: 100)])[0]
        #expect(try file.record(place).body.count == 100)
        var scan = RecordScan(file, from: place.offset, depth: .everything)
        #expect(try scan.rest().map(\.objectID) == [4])
    }

    @Test func `a read that may not wait does not leave the page cache`() throws {
        let room = try SegmentTestRoom()
        let file = try room.makeSegment()
        let place = try file.append([.sample(1, body: 70_000)])[0]
        let head = try file.readHead(place, waits: false)
        room.calls.inject(.wouldBlock, into: [.read], times: 3)
        #expect(throws: DiskReadError.wouldBlock) { try file.readHead(place, waits: false) }
        #expect(throws: DiskReadError.wouldBlock) { try file.record(place, waits: false) }
        #expect(file.body(head, 0..<blockBytes, waits: false).read == .wouldBlock)
        // The first part is there, the rest is not.
        room.calls.inject(.short(5000), into: [.read], times: 1)
        room.calls.inject(.wouldBlock, into: [.read], after: 1, times: 1)
        #expect(throws: DiskReadError.wouldBlock) { try file.record(place, waits: false) }
        #expect(try file.record(place, waits: true).head.id.rawValue == 1)
    }

    @Test func `read errors have their number`() throws {
        let room = try SegmentTestRoom()
        let file = try room.makeSegment()
        let place = try file.append([.sample(1, body: 100)])[0]
        let head = try file.readHead(place, waits: true)
        room.calls.inject(.fail(EIO), into: [.read])
        #expect(throws: DiskReadError.failed(errno: EIO)) { try file.readHead(place, waits: true) }
        #expect(throws: DiskReadError.failed(errno: EIO)) { try file.record(place) }
        #expect(file.body(head, 0..<100).read == .failed(errno: EIO))
        var scan = RecordScan(file, depth: .heads)
        #expect(throws: DiskReadError.failed(errno: EIO)) { _ = try scan.next() }
        room.calls.inject(.fail(EIO), into: [.length])
        var other = RecordScan(file, depth: .heads)
        #expect(throws: DiskReadError.failed(errno: EIO)) { _ = try other.next() }
    }

    @Test func `head and body are read with one call, and a batch is written with one`() throws {
        let room = try SegmentTestRoom()
        let file = try room.makeSegment()
        let writes = room.calls.count(.write)
        let place = try file.append([.sample(1, body: 100), .sample(2, body: 100_000), .sample(3, body: 10)])[1]
        #expect(room.calls.count(.write) == writes + 1)
        let reads = room.calls.count(.read)
        _ = try file.record(place, waits: false)
        #expect(room.calls.count(.read) == reads + 1)
    }

    @Test func `a batch can be used again for another place or file`() throws {
        let room = try SegmentTestRoom()
        let file = try room.makeSegment()
        var batch = RecordBatch(SegmentIdentity(store: .random(), number: 1), at: 0)
        for (id, body) in [100, 50_000, 0].enumerated() {
            batch.restart(file.identity, at: file.end)
            #expect(batch.isEmpty && batch.end == file.end)
            let object = PackedObject.sample(UInt64(id), body: body)
            let place = try batch.add(object)
            try file.append(batch)
            #expect(file.end == batch.end)
            #expect(try file.record(place).body == object.bodyBytes)
        }
    }

    @Test func `a batch may have more vectors than one call takes`() throws {
        let room = try SegmentTestRoom()
        let file = try room.makeSegment()
        let object = PackedObject.sample(1, body: 50_000, piece: 7)
        let place = try file.append([object])[0]
        #expect(try file.record(place).body == object.bodyBytes)
    }

    @Test func `a copy keeps the checksums of its original`() throws {
        let room = try SegmentTestRoom()
        let file = try room.makeSegment()
        let object = PackedObject.sample(1, body: 100_001)
        let place = try file.append([object])[0]
        var (head, body) = try file.record(place)
        head.head = [9, 9]
        var batch = RecordBatch(file.identity, at: file.end)
        let copy = try batch.add(copyOf: head, body: body)
        body[70_000] ^= 1
        let spoiled = try batch.add(copyOf: head, body: body)
        try file.append(batch)
        #expect(try file.record(copy).body == object.bodyBytes)
        #expect(try file.record(copy).head.head == [9, 9])
        #expect(throws: DiskReadError.damaged) { try file.record(spoiled) }
    }
}

extension SegmentTestRoom {
    func blocks(of path: String) throws -> Int {
        var facts = stat()
        guard unsafe stat(path, &facts) == 0 else { throw DiskFileError.failed(errno: errno) }
        return Int(facts.st_blocks) * 512
    }
}
