import CLarder
import Glibc
import Testing

@testable import Storage

@Suite("PageArena: memory that can be sent without a copy") struct PageArenaTests {
    private static let slot = PageArena.slotBytes

    private func arena() throws -> PageArena { try #require(PageArena(byteCount: 64 * Self.slot)) }

    /// The bytes of the file, read as the kernel does when it sends them.
    private func content(_ range: FileRange) -> [UInt8] {
        unsafe [UInt8](unsafeUninitializedCapacity: range.count) { buffer, count in
            unsafe count = max(0, pread(range.descriptor, buffer.baseAddress, range.count, off_t(range.offset)))
        }
    }

    @Test(arguments: [
        (1, false), (96 * 1024 - 1, false), (96 * 1024, true), (256 * 1024, true), (256 * 1024 + 1, false),
    ])
    func `it serves pages of 96 KiB and more, up to a whole one`(_ bytes: Int, _ isServed: Bool) {
        #expect(PageArena.serves(bytes) == isServed)
    }

    @Test func `the lowest free slot comes first, so pages of one body are neighbours`() throws {
        let arena = try arena()
        var pages: [UnsafeMutableRawPointer] = unsafe []
        for number in 0..<64 {
            let page = try unsafe #require(arena.take(Self.slot))
            #expect(unsafe page == (pages.first ?? page) + number * Self.slot)
            unsafe pages.append(page)
        }
        #expect(unsafe arena.take(Self.slot) == nil)
        unsafe arena.free(pages[40])
        unsafe arena.free(pages[3])
        #expect(unsafe arena.take(Self.slot) == pages[3])
        #expect(unsafe arena.take(Self.slot) == pages[40])
        #expect(unsafe arena.take(Self.slot) == nil)
    }

    @Test func `a page takes the memory of its bytes, rounded to 4 KiB`() throws {
        let arena = try arena()
        for (bytes, size) in [(98_304, 98_304), (98_305, 102_400), (200_000, 200_704), (262_144, 262_144)] {
            let page = try unsafe #require(arena.take(bytes))
            #expect(unsafe arena.size(of: page) == size)
            #expect(PageArena.footprint(bytes) == size)
        }
    }

    @Test func `the file has the bytes of the page`() throws {
        let arena = try arena()
        let page = try unsafe #require(arena.take(100_000))
        unsafe memset(page, 7, 100_000)
        #expect(unsafe arena.contains(page) && arena.contains(page + 99_999))
        #expect(unsafe !arena.wasSent(page))
        let range = unsafe arena.share(page + 1000, 50_000)
        #expect(range.count == 50_000)
        #expect(content(range) == Array(repeating: 7, count: 50_000))
        #expect(unsafe arena.wasSent(page))
    }

    @Test func `a slot that was freed has other pages: those on their way to a client stay as they were`() throws {
        let arena = try arena()
        let page = try unsafe #require(arena.take(Self.slot))
        unsafe memset(page, 7, Self.slot)
        let range = unsafe arena.share(page, Self.slot)
        // As a socket does, a pipe keeps the pages themselves.
        var ends: [CInt] = [0, 0]
        try unsafe #require(pipe(&ends) == 0)
        defer { for end in ends { close(end) } }
        let moved = clarder_sendfile(ends[1], range.descriptor, off_t(range.offset), 16_384)
        #expect(moved == 16_384)
        unsafe arena.free(page)
        let again = try unsafe #require(arena.take(Self.slot))
        #expect(unsafe again == page && !arena.wasSent(again))
        unsafe memset(again, 9, Self.slot)
        let received = unsafe [UInt8](unsafeUninitializedCapacity: 16_384) { buffer, count in
            unsafe count = max(0, read(ends[0], buffer.baseAddress, 16_384))
        }
        #expect(received == Array(repeating: 7, count: 16_384))
    }

    @Test func `memory is given back when a page is freed`() throws {
        let arena = try arena()
        var status = stat()
        let page = try unsafe #require(arena.take(Self.slot))
        try unsafe #require(fstat(arena.descriptor, &status) == 0)
        #expect(status.st_blocks * 512 == Self.slot)
        unsafe arena.free(page)
        try unsafe #require(fstat(arena.descriptor, &status) == 0)
        #expect(status.st_blocks == 0)
    }
}

@Suite("Body.fileRange") struct BodyFileRangeTests {
    private func tier() -> MemoryTier { MemoryTier(budget: 64 << 20, objectMax: 32 << 20, variantsPerKeyMax: 4) }

    private func body(_ count: Int, known: Bool = true, of tier: MemoryTier) throws -> Body {
        let body = try #require(tier.makeBody(expectedLength: known ? count : nil))
        var at = 0
        while at < count {
            let next = min(count, at + 100_000)
            try #require(body.append(pattern(at..<next)) == .appended)
            at = next
        }
        return body
    }

    private func content(_ range: FileRange) -> [UInt8] {
        unsafe [UInt8](unsafeUninitializedCapacity: range.count) { buffer, count in
            unsafe count = max(0, pread(range.descriptor, buffer.baseAddress, range.count, off_t(range.offset)))
        }
    }

    @Test func `of a long body all bytes together, from any offset`() throws {
        let tier = tier()
        let long = try body(3_000_000, of: tier)
        #expect(long.finish())
        for (offset, limit) in [(0, 3_000_000), (1, 100_000), (262_143, 600_000), (2_900_000, 100_000)] {
            let range = try #require(long.fileRange(from: offset, limit: limit))
            #expect(range.count == limit)
            #expect(content(range) == pattern(offset..<offset + limit))
        }
    }

    @Test func `of pages that are not neighbours the first ones`() throws {
        let tier = tier()
        let (one, two) = (try body(262_144, known: false, of: tier), try body(262_144, known: false, of: tier))
        for at in [262_144, 524_288, 786_432] {
            for body in [one, two] { #expect(body.append(pattern(at..<at + 262_144)) == .appended) }
        }
        #expect(one.finish() && two.finish())
        var at = 400_000
        while at < one.length, let range = one.fileRange(from: at, limit: one.length - at) {
            #expect(content(range) == pattern(at..<at + range.count))
            at += range.count
        }
        #expect(at > 1_048_576 - 98_304)
    }

    /// A page of a body that grows may go to another before it is punched, and few bytes are sooner copied.
    @Test func `not of a body that grows, nor of a short one, nor of few bytes`() throws {
        let tier = tier()
        let growing = try body(1_000_000, of: tier)
        #expect(growing.fileRange(from: 0, limit: 1_000_000) == nil)
        #expect(growing.finish())
        #expect(growing.fileRange(from: 0, limit: 98_303) == nil)
        #expect(growing.fileRange(from: 990_000, limit: 100_000) == nil)
        let short = try body(65_536, of: tier)
        #expect(short.finish())
        #expect(short.fileRange(from: 0, limit: 1_000_000) == nil)
        let sparse = try #require(tier.makeSparseBody(length: 100_000))
        guard case .missing(let fill) = sparse.claim(at: 0, limit: 100_000) else {
            Issue.record("nothing is there")
            return
        }
        #expect(fill.append(pattern(0..<100_000)) == .appended)
        #expect(sparse.isComplete && sparse.fileRange(from: 0, limit: 100_000) == nil)
    }

    @Test func `what was sent is counted, and its memory is not kept for the next body`() throws {
        let tier = tier()
        do {
            let kept = try body(262_144, of: tier)
            #expect(kept.finish())
        }
        #expect(tier.statistics.spareBytes == 262_144)
        let before = tier.statistics.usedBytes
        do {
            let sent = try body(262_144, of: tier)
            #expect(sent.finish() && sent.fileRange(from: 0, limit: 262_144) != nil)
            #expect(tier.statistics.spareBytes == 0)
        }
        #expect(tier.statistics.spareBytes == 0 && tier.statistics.usedBytes == before)
    }

    /// It was given to the system, only to get another one from it.
    @Test func `a page that an evicted response leaves is that of the response it was evicted for`() throws {
        let tier = MemoryTier(budget: 4 << 20, shards: 1, objectMax: 1 << 20, variantsPerKeyMax: 1)
        var evictions = 0
        for number in 0..<40 {
            let body = try #require(tier.makeBody(expectedLength: BodyLayout.pageBytes))
            guard let page = unsafe body.writable(BodyLayout.pageBytes) else {
                Issue.record("the tier evicts")
                return
            }
            if tier.statistics.evictions > evictions {
                evictions = tier.statistics.evictions
                let old = unsafe page[1000]
                #expect(old == 7)  // a page of the system is zero
            }
            unsafe page.initializeMemory(as: UInt8.self, repeating: 7)
            body.commit(BodyLayout.pageBytes)
            let isWhole = body.finish()
            #expect(isWhole)
            #expect(tier.insert(TestRecord("http://a/\(number)", body: body)))
        }
        #expect(evictions > 20)
    }
}
