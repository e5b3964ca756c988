import Glibc
import Testing

@testable import Disk

@Suite("The check of the book's file")
struct BookCheckTests {
    @Test func `a directory without a book has nothing to check`() throws {
        let place = BookPlace()
        #expect(try BookCheck.run(place.path) == nil)
        place.replaceContents(by: [])
        #expect(try BookCheck.run(place.path) == nil, "LMDB makes a book of an empty file")
        try place.open().close()
        #expect(try BookCheck.run(place.path)?.objectCount == 0)
    }

    @Test func `an intact book passes, whatever happened to it before`() throws {
        let (place, entries) = try filled(seed: 1)
        let check = try #require(try BookCheck.run(place.path))
        #expect(check.objectCount == UInt64(entries.count))
        #expect(check.pageCount * 4096 >= place.contents().count)
        #expect(check.freePageCount > 0 && check.freePageCount < check.pageCount)
    }

    @Test func `another format version is reported, whatever else is in the book`() throws {
        let place = BookPlace()
        try place.open().close()
        let environment = try BookEnvironment(place.path, isReadOnly: false, mapBytes: 1 << 20) { _ in }
        try environment.write { transaction throws(BookError) in
            try transaction.put(.meta, BookMeta.formatKey, BookMeta.encode(UInt32(9), key: BookMeta.formatKey))
        }
        environment.close()
        #expect(throws: BookError.unknownVersion(9)) { try place.open() }
    }

    @Test func `a transaction of another book is detected`() throws {
        let place = BookPlace()
        try place.open().close()
        let environment = try BookEnvironment(place.path, isReadOnly: false, mapBytes: 1 << 20) { _ in }
        try environment.write { transaction throws(BookError) in try transaction.put(.segments, [1], [1]) }
        environment.close()
        #expect(throws: BookError.self) { try place.open() }
    }

    @Test func `a file that ends early is refused`() throws {
        let (place, _) = try filled(seed: 2)
        let whole = place.contents()
        var refused = 0
        for count in [1, 15, 16, 4095, 4096, 8191] + Array(stride(from: 8192, to: whole.count, by: 4096 * 7)) {
            place.replaceContents(by: Array(whole.prefix(count)))
            if try isRefused({ () throws(BookError) in _ = try BookCheck.run(place.path) }) { refused += 1 }
        }
        // Free pages at the end may be missed; there are some.
        #expect(refused > 6 + whole.count / 4096 / 8)
    }

    @Test func `a damaged transaction number is detected: the older root is never taken for the newer`() throws {
        let (place, _) = try filled(seed: 3)
        let whole = place.contents()
        for page in 0..<2 {
            for bit in 0..<64 {
                let offset = page * 4096 + 144 + bit / 8
                place.write([whole[offset] ^ 1 << UInt8(bit % 8)], at: offset)
                #expect(throws: BookError.self, "bit \(bit) of page \(page)") { _ = try BookCheck.run(place.path) }
                place.write([whole[offset]], at: offset)
            }
        }
        #expect(try BookCheck.run(place.path) != nil)
    }

    @Test func `a flipped bit anywhere in the meta pages is detected or harmless`() throws {
        let (place, entries) = try filled(seed: 4, count: 120)
        let whole = place.contents()
        let put = Dictionary(uniqueKeysWithValues: entries.map { ($0.id, $0) })
        for offset in Array(0..<160) + Array(4096..<4096 + 160) {
            for bit in stride(from: offset % 2, to: 8, by: 2) {
                var bytes = whole
                bytes[offset] ^= 1 << UInt8(bit)
                place.replaceContents(by: bytes)
                _ = try isRefused { () throws(BookError) in
                    let book = try place.open()
                    try expect(book, has: put, "bit \(bit) of byte \(offset)")
                }
            }
        }
    }

    @Test(arguments: 0..<4) func `with a flipped byte anywhere the book is refused, or every entry is as it was put`(
        _ seed: UInt64
    ) throws {
        let (place, entries) = try filled(seed: 10 + seed, count: 1200)
        let whole = place.contents()
        let put = Dictionary(uniqueKeysWithValues: entries.map { ($0.id, $0) })
        var random = BookRandom(seed)
        var refused = 0
        for round in 0..<120 {
            // Half of them where structure is: headers, node offsets.
            let page = Int.random(in: 0..<whole.count / 4096, using: &random) * 4096
            let offset = page + Int.random(in: 0..<(round % 2 == 0 ? 128 : 4096), using: &random)
            let byte = whole[offset] ^ UInt8.random(in: 1...255, using: &random)
            place.write([byte], at: offset)
            let isMet = try isRefused { () throws(BookError) in
                let book = try place.open()
                try expect(book, has: put, "byte \(offset) as \(byte)")
                // What was not refused can be written to.
                try book.commit((0..<20).map { .put(.sample(1_000_000 + $0, "http://new.example.org/\($0)")) })
                let check = try BookCheck.run(place.path)
                #expect(check != nil)
            }
            if isMet { refused += 1 }
            if isMet { place.write([whole[offset]], at: offset) } else { place.replaceContents(by: whole) }
        }
        #expect(refused > 0)
    }

    @Test(arguments: 0..<4) func `any bytes give a result or an error, without a trap`(_ seed: UInt64) throws {
        let (place, _) = try filled(seed: 20 + seed, count: 400)
        let whole = place.contents()
        var random = BookRandom(seed)
        var refused = 0
        for _ in 0..<200 {
            var bytes = whole
            for _ in 0..<Int.random(in: 1...40, using: &random) {
                let page = Int.random(in: 0..<whole.count / 4096, using: &random) * 4096
                switch Int.random(in: 0..<4, using: &random) {
                case 0:
                    let from = Int.random(in: 0..<whole.count / 4096, using: &random) * 4096
                    bytes.replaceSubrange(page..<page + 4096, with: whole[from..<from + 4096])
                case 1: bytes[page + Int.random(in: 0..<4096, using: &random)] = .random(in: 0...255, using: &random)
                default:
                    // Fields and node offsets, with values at their bounds.
                    let offset = page + 2 * Int.random(in: 4..<40, using: &random)
                    let value = [0, 1, 0x10, 0xFF, 0x0F, 0x80].randomElement(using: &random)! as UInt8
                    bytes[offset] = value
                    bytes[offset + 1] = [0, value, 0xFF, 0x0F].randomElement(using: &random)!
                }
            }
            place.replaceContents(by: bytes)
            do throws(BookError) { _ = try BookCheck.run(place.path) } catch { refused += 1 }
        }
        #expect(refused > 100)
    }

    @Test func `a free page that is in use is detected: LMDB would overwrite it`() throws {
        let (place, _) = try filled(seed: 5)
        let whole = place.contents()
        var met = 0
        let pages = try #require(try BookPages(place.path))
        let root = try newerRoot(pages)
        let main = try #require(root.main.root)
        let free = try #require(root.free.root)
        #expect(root.free.depth == 1)
        let start = Int(free) * 4096
        let offsets = unsafe whole.withUnsafeBytes { whole -> [Int] in
            let page = unsafe BookPageBytes(UnsafeRawBufferPointer(rebasing: whole[start..<start + 4096]))
            return (0..<(page.lower - BookPageBytes.headerBytes) / 2).flatMap { index -> [Int] in
                let list = BookNode(page, page.nodeOffset(index), isLeaf: true).value.lowerBound
                return (0..<Int(page.load(list, as: UInt64.self))).map { start + list + 8 + 8 * $0 }
            }
        }
        for offset in offsets {
            // A page that is in use, in place of one that is free.
            place.write((0..<8).map { UInt8(truncatingIfNeeded: main >> UInt64(8 * $0)) }, at: offset)
            #expect(throws: BookError.self) { _ = try BookCheck.run(place.path) }
            place.write(Array(whole[offset..<offset + 8]), at: offset)
            met += 1
        }
        #expect(met > 0)
    }

    @Test func `nodes out of order or not side by side are detected`() throws {
        let place = BookPlace()
        let book = try place.open()
        try book.commit((0..<5).map { .put(.sample($0, "http://example.org/\($0)")) })
        book.close()
        let pages = try #require(try BookPages(place.path))
        let root = try #require(try BookWalk(pages, newerRoot(pages)).databases()[.objects]?.root)
        let start = Int(root) * 4096
        let whole = place.contents()
        // Two node offsets change places; the room of the nodes begins two bytes lower.
        place.write(Array(whole[start + 18..<start + 20] + whole[start + 16..<start + 18]), at: start + 16)
        #expect(throws: BookError.damaged(BookDefect("its keys are not in order", page: root))) {
            try BookCheck.run(place.path)
        }
        place.replaceContents(by: whole)
        place.write([whole[start + 14] - 2], at: start + 14)
        #expect(throws: BookError.damaged(BookDefect("its nodes do not lie side by side", page: root))) {
            try BookCheck.run(place.path)
        }
        place.replaceContents(by: whole)
        #expect(try BookCheck.run(place.path)?.objectCount == 5)
    }

    @Test func `entries with a wrong checksum are skipped, counted and reported`() throws {
        let place = BookPlace()
        let entries = (0..<50).map { BookEntry.sample(UInt64($0), "http://example.org/\($0)") }
        let book = try place.open()
        try book.commit(entries.map { .put($0) })
        book.close()
        // In a media type, of which the structure knows nothing; some stand in pages that are free.
        let whole = place.contents()
        var lost: [BookEntry] = []
        for offset in 8192..<whole.count - 9 where whole[offset..<offset + 9].elementsEqual("text/html".utf8) {
            place.write([0x54], at: offset)
            let told = BookTold()
            let again = try place.open { told.add($0) }
            var loaded: [BookEntry] = []
            try again.load {
                loaded.append($0)
                return true
            }
            #expect(loaded.allSatisfy { entries.contains($0) })
            #expect(again.damagedCount == entries.count - loaded.count)
            #expect(told.defects == Array(repeating: BookDefect("an entry of objects"), count: again.damagedCount))
            #expect(try again.page(limit: 100).entries == loaded)
            if let entry = entries.first(where: { !loaded.contains($0) }) {
                lost.append(entry)
                #expect(try again.entry(entry.id, key: entry.key) == nil)
                try again.commit([.put(entry)])
                #expect(try again.entry(entry.id, key: entry.key) == entry)
                again.close()
                place.replaceContents(by: whole)
            } else {
                again.close()
                place.write([0x74], at: offset)
            }
        }
        #expect(lost.sorted { $0.id < $1.id } == entries, "each was damaged once")
    }

    // MARK: helpers

    /// A book with all kinds of pages: long values, free lists, several levels.
    private func filled(seed: UInt64, count: Int = 3000) throws -> (BookPlace, [BookEntry]) {
        let place = BookPlace()
        let book = try place.open()
        var random = BookRandom(seed)
        var entries: [UInt64: BookEntry] = [:]
        for round in 0..<6 {
            var batch: [BookChange] = [.segment(UInt32(round), BookSegment(coveredEnd: 4096, isClosed: true))]
            for _ in 0..<count / 6 {
                let id = UInt64(entries.count + 1 + round * count)
                var entry = BookEntry.random(id, using: &random)
                batch.append(.put(entry))
                if id % 40 == 0 {
                    entry.hasRenewedHead = true
                    batch.append(
                        .renew(
                            entry.id, key: entry.key, entry.attributes,
                            head: Array(repeating: 3, count: Int.random(in: 0..<10_000, using: &random))))
                }
                entries[id] = entry
            }
            for (id, entry) in entries.sorted(by: { $0.key < $1.key }) where id % 11 == UInt64(round) {
                batch.append(.remove(entry.id, key: entry.key))
                entries[id] = nil
            }
            try book.commit(batch)
        }
        book.close()
        return (place, Array(entries.values))
    }

    private func expect(_ book: Book, has put: [ObjectID: BookEntry], _ what: String) throws(BookError) {
        var count = 0
        try book.load {
            count += 1
            #expect(put[$0.id] == $0, "\(what)")
            return true
        }
        #expect(count + book.damagedCount == put.count, "\(what)")
    }

    /// True: as damaged.
    private func isRefused(_ body: () throws(BookError) -> Void) throws(BookError) -> Bool {
        do throws(BookError) {
            try body()
            return false
        } catch {
            guard case .damaged = error else { throw error }
            return true
        }
    }

    private func newerRoot(_ pages: BookPages) throws -> BookRoot {
        let roots = try (0..<2).map { index in
            let room = UnsafeMutableRawBufferPointer.allocate(byteCount: BookRoot.metaBytes, alignment: 8)
            defer { unsafe room.deallocate() }
            unsafe try pages.read(room, at: UInt64(index) * 4096, page: UInt64(index))
            return try BookRoot(unsafe BookPageBytes(UnsafeRawBufferPointer(room)), page: UInt64(index))
        }
        return roots.max { $0.transaction < $1.transaction }!
    }
}
