import Glibc
import Storage
import Testing

extension FileRange {
    /// The bytes, read as the kernel does when it sends them.
    var bytes: [UInt8] {
        unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, got in
            unsafe got = max(0, pread(descriptor, buffer.baseAddress, count, off_t(offset)))
        }
    }
}

@Suite("Body.fileRange: bodies on the disk") struct FileRangeTests {
    private static let length = 200_000

    private func withRoom(_ test: (TiersRoom) throws -> Void) throws {
        let room = try TiersRoom()
        defer { room.remove() }
        try test(room)
    }

    private func whole(_ room: TiersRoom) throws -> Body {
        try room.store("a", "v|1", bytes: Self.length)
        room.leaveToBackStore()
        return try #require(room.records("a").first).body
    }

    private func large(_ room: TiersRoom, _ length: Int) throws -> Body {
        do {
            let record = try #require(room.tiers.makeLargeRecord(length: length) { Versioned("a", "v|1", $0) })
            #expect(record.body.fill(0..<length) && room.tiers.insert(record))
        }
        room.leaveToBackStore()
        return try #require(room.records("a").first).body
    }

    @Test func `a body in one piece is sent from its file once it was verified`() throws {
        try withRoom { room in
            let body = try whole(room)
            #expect(body.fileRange(from: 0, limit: Self.length) == nil)
            #expect(body.pieces() == pattern(0..<Self.length))
            for (offset, limit) in [(0, Self.length), (65_536, 100_000), (70_001, 100_000)] {
                let range = try #require(body.fileRange(from: offset, limit: limit))
                #expect(range.bytes == pattern(offset..<offset + limit))
            }
        }
    }

    @Test func `the blocks that were verified, and no others`() throws {
        try withRoom { room in
            let body = try whole(room)
            var blocks = [UInt8](repeating: 0, count: 131_072)
            #expect(unsafe blocks.withUnsafeMutableBytes { unsafe body.read(from: 65_536, into: $0) } == .done)
            #expect(try #require(body.fileRange(from: 65_536, limit: 131_072)).bytes == pattern(65_536..<196_608))
            #expect(try #require(body.fileRange(from: 90_000, limit: 100_000)).bytes == pattern(90_000..<190_000))
            #expect(body.fileRange(from: 65_536, limit: 131_073) == nil)
            #expect(body.fileRange(from: 65_535, limit: 100_000) == nil)
        }
    }

    @Test(arguments: [false, true]) func `what has left the page cache is verified again`(_ isLarge: Bool) throws {
        try withRoom { room in
            let body = isLarge ? try large(room, 3_000_000) : try whole(room)
            let length = body.length
            #expect(body.pieces() == pattern(0..<length))
            #expect(body.fileRange(from: 0, limit: length) != nil)
            room.calls.loseCache(true)
            #expect(body.fileRange(from: 0, limit: length) == nil)
            room.calls.loseCache(false)
            #expect(body.fileRange(from: 0, limit: length) == nil)
            #expect(body.pieces() == pattern(0..<length))
            #expect(body.fileRange(from: 0, limit: length) != nil)
        }
    }

    @Test func `of a large body as many blocks as are verified, at most 1 MiB at once`() throws {
        try withRoom { room in
            let body = try large(room, 3_000_000)
            #expect(body.fileRange(from: 0, limit: 3_000_000) == nil)
            var buffer = [UInt8](repeating: 0, count: 131_072)
            _ = unsafe buffer.withUnsafeMutableBytes {
                unsafe body.piece(from: 65_536, limit: 131_072, room: $0, waits: true)
            }
            #expect(body.fileRange(from: 0, limit: 3_000_000) == nil)
            let some = try #require(body.fileRange(from: 70_000, limit: 3_000_000 - 70_000))
            #expect(some.bytes == pattern(70_000..<196_608))
            #expect(body.pieces() == pattern(0..<3_000_000))
            var at = 0
            while at < 3_000_000 {
                guard let range = body.fileRange(from: at, limit: 3_000_000 - at) else { break }
                #expect(range.count <= 1 << 20 && range.bytes == pattern(at..<at + range.count))
                at += range.count
            }
            // The rest is too short.
            #expect(at > 3_000_000 - 98_304)
        }
    }

    @Test func `a file that was deleted can be sent to its end`() throws {
        try withRoom { room in
            let body = try large(room, 2_000_000)
            #expect(body.pieces() == pattern(0..<2_000_000))
            let range = try #require(body.fileRange(from: 0, limit: 1_000_000))
            let file = try #require(room.largeFiles().first)
            _ = room.tiers.invalidate(storageKey("a"), Array("a".utf8))
            #expect(room.backStore.flush())
            unsafe unlink(file.path)
            #expect(range.bytes == pattern(0..<1_000_000))
        }
    }

    @Test func `bytes that changed before they were verified are never sent`() throws {
        try withRoom { room in
            let body = try large(room, 2_000_000)
            let path = try #require(room.largeFiles().first).path
            let file = unsafe open(path, O_RDWR)
            defer { close(file) }
            let end = lseek(file, 0, SEEK_END)
            var wrong: [UInt8] = Array("wrong".utf8)
            // Within the second half of the blocks, wherever the table is.
            #expect(unsafe pwrite(file, &wrong, wrong.count, end / 2) == 5)
            _ = body.pieces()
            var at = 0
            while at < 2_000_000 {
                guard let range = body.fileRange(from: at, limit: 2_000_000 - at) else {
                    at += 65_536
                    continue
                }
                #expect(range.bytes == pattern(at..<at + range.count))
                at += range.count
            }
        }
    }
}
