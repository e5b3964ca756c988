import Foundation
import Glibc
import Testing

@testable import Disk

@Suite("The file of a large object")
struct LargeFileTests {
    /// Five blocks and a piece.
    static let length = 5 * blockBytes + 1234
    static let body = SegmentTestBody(length: length, seed: 11)

    static func bytes(_ range: Range<Int>) -> [UInt8] { Array(body.bytes[range]) }

    @Test func `a new file has no blocks, and its space is allocated`() throws {
        let room = try SegmentTestRoom()
        let file = try room.makeLarge(length: LargeFileTests.length)
        #expect(file.blockCount == 6 && file.length == LargeFileTests.length)
        #expect(file.extents == [] && !file.isComplete && !file.has(block: 5))
        let reads = room.calls.count(.read)
        #expect(file.bytes(0..<blockBytes).read == .damaged)
        #expect(room.calls.count(.read) == reads, "what is not there is not read")
        #expect(try room.blocks(of: file.path) >= LargeFileTests.length)
        // Head part, one page of table, blocks.
        #expect(file.fileBytes == UInt64(4096 + 4096 + 5 * blockBytes + 4096))
        let foretold = LargeFile.fileBytes(
            key: file.head.key, attributes: file.head.attributes, head: file.head.head, length: file.length)
        #expect(foretold == file.fileBytes)
        #expect(
            file.place
                == Place(
                    kind: .large, segment: 7, offset: 0, headLength: 4096, bodyLength: UInt64(LargeFileTests.length)))
    }

    @Test func `blocks can be read once they are in the table, also after the file is opened again`() throws {
        let room = try SegmentTestRoom()
        let file = try room.makeLarge(length: LargeFileTests.length)
        let written = try [5, 1, 3, 2].map { try file.write(block: $0, from: LargeFileTests.body, at: $0 * blockBytes) }
        #expect(file.extents == [])
        let writes = room.calls.count(.write)
        try file.publish(written)
        #expect(room.calls.count(.write) == writes + 2)  // blocks 1, 2, 3, and 5
        let there = [blockBytes..<4 * blockBytes, 5 * blockBytes..<LargeFileTests.length]
        for reader in [file, try room.openLarge()] {
            #expect(reader.extents == there && !reader.isComplete)
            #expect(reader.has(block: 3) && !reader.has(block: 4))
            for range in there { #expect(reader.bytes(range) == (.done, LargeFileTests.bytes(range))) }
            #expect(reader.bytes(2 * blockBytes..<3 * blockBytes, waits: false).read == .done)
            #expect(reader.bytes(0..<2 * blockBytes).read == .damaged)
            #expect(reader.bytes(4 * blockBytes..<LargeFileTests.length).read == .damaged)
            #expect(reader.head.key == file.head.key && reader.head.head == Array("head".utf8))
            #expect(reader.id.rawValue == 9 && reader.place == file.place)
            #expect(reader.head.attributes == .sample())
        }
        let other = try room.openLarge()
        try other.fill(0..<1, from: LargeFileTests.body)
        try other.fill(4..<5, from: LargeFileTests.body)
        other.readAhead(from: 0, length: LargeFileTests.length)
        #expect(other.isComplete && other.extents == [0..<LargeFileTests.length])
        let whole = try room.openLarge().bytes(0..<LargeFileTests.length)
        #expect(whole == (.done, LargeFileTests.body.bytes))
    }

    @Test(arguments: [0, 1, blockBytes - 1, blockBytes, blockBytes + 1]) func `sizes at the edges`(_ length: Int) throws
    {
        let room = try SegmentTestRoom()
        let file = try room.makeLarge(length: length)
        let body = SegmentTestBody(length: length, seed: 2)
        #expect(file.isComplete == (length == 0))
        try file.fill(0..<file.blockCount, from: body)
        let reader = try room.openLarge()
        #expect(reader.isComplete && reader.extents == (length == 0 ? [] : [0..<length]))
        #expect(reader.bytes(0..<length) == (.done, body.bytes))
    }

    @Test func `a head of many pages`() throws {
        let room = try SegmentTestRoom()
        let head = segmentBytes(50_000, 3)
        let file = try room.makeLarge(length: 100, head: head)
        #expect(file.place.headLength == 53_248)
        try file.fill(0..<1, from: SegmentTestBody(length: 100, seed: 1))
        let reader = try room.openLarge()
        #expect(reader.head.head == head && reader.bytes(0..<100).read == .done)
        #expect(throws: DiskFileError.header(.tooLarge)) {
            try LargeFile.create(
                room.path + "/other.seg", room.identity, id: ObjectID(rawValue: 1), key: [], attributes: .sample(),
                head: segmentBytes(1 << 20, 1), length: 1, calls: room.calls)
        }
        #expect(LargeFile.fileBytes(key: [], attributes: .sample(), head: segmentBytes(1 << 20, 1), length: 1) == nil)
        #expect(LargeFile.fileBytes(key: [], attributes: .sample(), head: [], length: 1 << 37) == nil)
        #expect(throws: DiskFileError.header(.tooLarge)) { try room.makeLarge(length: 1 << 37) }
    }

    @Test func `a damaged block is absent and can be written again`() throws {
        let room = try SegmentTestRoom()
        let file = try room.makeLarge(length: LargeFileTests.length)
        try file.fill(0..<6, from: LargeFileTests.body)
        room.flip(8192 + 2 * blockBytes + 777, of: file.path)
        #expect(file.bytes(0..<2 * blockBytes).read == .done)
        #expect(file.bytes(blockBytes..<4 * blockBytes).read == .damaged)
        #expect(file.extents == [0..<2 * blockBytes, 3 * blockBytes..<LargeFileTests.length])
        #expect(file.bytes(3 * blockBytes..<4 * blockBytes).read == .done)
        try file.fill(2..<3, from: LargeFileTests.body)
        #expect(file.bytes(0..<LargeFileTests.length) == (.done, LargeFileTests.body.bytes))
    }

    @Test func `a block with a wrong entry is absent`() throws {
        let room = try SegmentTestRoom()
        let file = try room.makeLarge(length: LargeFileTests.length)
        try file.fill(0..<6, from: LargeFileTests.body)
        for at in 0..<8 {
            room.flip(4096 + 5 * 8 + at, of: file.path)
            let reader = try room.openLarge()
            #expect(reader.has(block: 5) == (at < 4))  // a wrong checksum shows when it is read
            #expect(reader.bytes(5 * blockBytes..<LargeFileTests.length).read == .damaged)
            #expect(!reader.has(block: 5) && reader.has(block: 4))
            room.flip(4096 + 5 * 8 + at, of: file.path)
        }
        #expect(try room.openLarge().bytes(0..<LargeFileTests.length).read == .done)
    }

    @Test func `a changed byte anywhere in the head is detected`() throws {
        let room = try SegmentTestRoom()
        let file = try room.makeLarge(length: 100)
        for at in 0..<4096 {
            room.flip(at, of: file.path)
            #expect(throws: DiskFileError.self) { try room.openLarge() }
            room.flip(at, of: file.path)
        }
        #expect(throws: Never.self) { try room.openLarge() }
        let other = SegmentIdentity(store: room.identity.store, number: 8)
        #expect(throws: DiskFileError.header(.wrongPlace)) {
            try LargeFile.open(file.path, other, calls: SystemCalls())
        }
    }

    @Test func `a truncated file still has the blocks that are left`() throws {
        let room = try SegmentTestRoom()
        let file = try room.makeLarge(length: LargeFileTests.length)
        try file.fill(0..<6, from: LargeFileTests.body)
        #expect(unsafe truncate(file.path, 8192 + 3 * blockBytes + 5) == 0)
        let reader = try room.openLarge()
        #expect(reader.bytes(0..<LargeFileTests.length).read == .damaged)
        #expect(reader.extents == [0..<3 * blockBytes])
        #expect(unsafe truncate(file.path, 4096 + 9) == 0)
        #expect(try room.openLarge().extents == [0..<blockBytes])
        for length in [0, 1, 63, 64, 4095] {
            #expect(unsafe truncate(file.path, length) == 0)
            #expect(throws: DiskFileError.self) { try room.openLarge() }
        }
    }

    @Test func `an ordinary record is not taken for a large object`() throws {
        let room = try SegmentTestRoom()
        var bytes: [UInt8] = []
        try RecordCodec.append(
            packed: ObjectID(rawValue: 1), key: [], attributes: .sample(), head: [], checksums: [], bodyLength: 0,
            in: room.identity, at: 0, to: &bytes)
        try room.put(bytes, into: room.path + "/large.seg")
        #expect(throws: DiskFileError.header(.unknownKind(1))) { try room.openLarge() }
    }

    @Test func `a removed block is absent, now and later`() throws {
        let room = try SegmentTestRoom()
        let file = try room.makeLarge(length: LargeFileTests.length)
        try file.fill(0..<6, from: LargeFileTests.body)
        try file.remove(block: 0)
        #expect(file.extents == [blockBytes..<LargeFileTests.length])
        #expect(try room.openLarge().extents == file.extents)
    }

    @Test func `a failed creation leaves nothing behind`() throws {
        let room = try SegmentTestRoom()
        for (kind, code) in [(FaultyCalls.Kind.allocate, ENOSPC), (.truncate, EIO), (.write, EDQUOT)] {
            room.calls.inject(.fail(code), into: [kind], times: 1)
            #expect(throws: DiskFileError.failed(errno: code)) { try room.makeLarge(length: LargeFileTests.length) }
            #expect(unsafe access(room.path + "/large.seg", F_OK) != 0)
        }
        try room.put([1], into: room.path + "/large.seg")
        #expect(throws: DiskFileError.failed(errno: EEXIST)) { try room.makeLarge(length: 5) }
        #expect(try room.bytes(of: room.path + "/large.seg") == [1])
        #expect(room.calls.openCount == 0)
    }

    @Test func `errors have their number, and a failed write leaves nothing`() throws {
        let room = try SegmentTestRoom()
        let file = try room.makeLarge(length: LargeFileTests.length)
        room.calls.inject(.fail(ENOSPC), into: [.write], times: 1)
        #expect(throws: DiskFileError.failed(errno: ENOSPC)) {
            try file.write(block: 0, from: LargeFileTests.body, at: 0)
        }
        let written = try file.write(block: 0, from: LargeFileTests.body, at: 0)
        room.calls.inject(.fail(EIO), into: [.write], times: 1)
        #expect(throws: DiskFileError.failed(errno: EIO)) { try file.publish([written]) }
        #expect(file.extents == [])
        try file.publish([written])
        room.calls.inject(.fail(EIO), into: [.read], times: 1)
        #expect(file.bytes(0..<blockBytes).read == .failed(errno: EIO))
        room.calls.inject(.wouldBlock, into: [.read], times: 1)
        #expect(file.bytes(0..<blockBytes, waits: false).read == .wouldBlock)
        #expect(file.bytes(0..<blockBytes).read == .done)
        room.calls.inject(.fail(EIO), into: [.read], times: 1)
        #expect(throws: DiskFileError.failed(errno: EIO)) {
            try LargeFile.open(file.path, room.identity, calls: room.calls)
        }
        #expect(throws: DiskFileError.failed(errno: ENOENT)) {
            try LargeFile.open(room.path + "/none", room.identity, calls: room.calls)
        }
    }

    @Test func `interrupted and short calls are continued`() throws {
        let room = try SegmentTestRoom()
        let file = try room.makeLarge(length: LargeFileTests.length)
        room.calls.inject(.short(10_007), into: [.write, .read])
        room.calls.inject(.fail(EINTR), into: [.write, .read, .synchronize], after: 1, times: 2)
        try file.fill(0..<6, from: LargeFileTests.body)
        try file.synchronize()
        #expect(file.bytes(0..<LargeFileTests.length) == (.done, LargeFileTests.body.bytes))
        #expect(try LargeFile.open(file.path, room.identity, calls: room.calls).isComplete)
    }

    @Test func `threads read and write at once, and everything read is right`() throws {
        let room = try SegmentTestRoom()
        let length = 64 * blockBytes + 5
        let body = SegmentTestBody(length: length, seed: 4)
        let file = try room.makeLarge(length: length)
        DispatchQueue.concurrentPerform(iterations: 6) { worker in
            if worker < 2 {
                for block in 0..<file.blockCount where block % 2 == worker {
                    do { try file.fill(block..<block + 1, from: body) } catch { Issue.record(error) }
                }
            } else {
                for _ in 0..<40 {
                    for extent in file.extents {
                        let end = min(extent.upperBound, extent.lowerBound + 4 * blockBytes)
                        let (read, bytes) = file.bytes(extent.lowerBound..<end, waits: worker == 2)
                        if read == .wouldBlock && worker != 2 { continue }
                        #expect(read == .done && bytes == Array(body.bytes[extent.lowerBound..<end]))
                    }
                }
            }
        }
        #expect(file.isComplete && file.bytes(0..<length).read == .done)
    }

    @Test func `opening for reading writes nothing`() throws {
        let room = try SegmentTestRoom()
        try room.makeLarge(length: 100).fill(0..<1, from: SegmentTestBody(length: 100, seed: 1))
        let reader = try LargeFile.open(room.path + "/large.seg", room.identity, writes: false, calls: SystemCalls())
        #expect(reader.bytes(0..<100).read == .done)
        #expect(throws: DiskFileError.failed(errno: EBADF)) { try reader.remove(block: 0) }
    }

    @Test(arguments: 0..<60 as Range<UInt64>)
    func `a power cut leaves intact blocks only, and all that were synchronized`(_ seed: UInt64) throws {
        let room = try SegmentTestRoom()
        let file = try room.makeLarge(length: LargeFileTests.length)
        if seed % 3 != 0 { try file.synchronize() }
        var durable = Set<Int>()
        for step in 0..<6 {
            let block = (step * 5 + Int(seed)) % 6
            try file.fill(block..<block + 1, from: LargeFileTests.body)
            if (seed >> UInt64(step)) & 3 == 3 {
                try file.synchronize()
                durable = Set((0..<6).filter(file.has))
            }
        }
        room.calls.cutPower(keeping: seed == 0 ? .nothing : .random(seed: seed))
        #expect(throws: DiskFileError.failed(errno: EIO)) { try file.remove(block: 0) }
        let reader: LargeFile
        do { reader = try room.openLarge() } catch {
            #expect(durable.isEmpty && seed % 3 == 0)
            return
        }
        for block in 0..<6 {
            let range = block * blockBytes..<min((block + 1) * blockBytes, LargeFileTests.length)
            let (read, bytes) = reader.bytes(range)
            #expect(read == .done || !durable.contains(block))
            if read == .done {
                #expect(bytes == LargeFileTests.bytes(range))
            } else {
                #expect(!reader.has(block: block))
            }
        }
    }
}
