import EventLoop
import Glibc
import Synchronization
import Testing

@testable import Disk

@Suite("The book")
struct BookTests {
    @Test func `commits are there after the book is opened again, in order of host and path`() throws {
        let place = BookPlace()
        let entries = [
            BookEntry.sample(1, "http://b.example.org/2"), .sample(2, "http://a.example.org/"),
            .sample(3, "http://b.example.org/1"), .sample(4, "raw key"), .sample(5, "http://b.example.org/1"),
        ]
        let book = try place.open()
        try book.commit(entries.map { .put($0) })
        book.close()
        let again = try place.open()
        #expect(try loaded(again).map(\.id.rawValue) == [2, 3, 5, 1, 4])
        #expect(try loaded(again).sorted { $0.id < $1.id } == entries)
        #expect(again.objectCount == 5)
        #expect(try again.entries(under: Array("http://b.example.org/1".utf8)).map(\.id.rawValue) == [3, 5])
        #expect(try again.entry(ObjectID(rawValue: 4), key: Array("raw key".utf8)) == entries[3])
        #expect(try again.entry(ObjectID(rawValue: 9), key: Array("raw key".utf8)) == nil)
        #expect(again.fileBytes == UInt64(place.contents().count) + lockBytes(place))
    }

    @Test func `a note replaces the one with its name, and is there after the book is opened again`() throws {
        let place = BookPlace()
        let book = try place.open()
        #expect(try book.note("a") == nil)
        try book.commit([.note(name: "a", [1, 2]), .note(name: "b", []), .put(.sample(1, "http://example.org/"))])
        try book.commit([.note(name: "a", [3]), .note(name: "a", [4, 5, 6])])
        #expect(try book.note("a") == [4, 5, 6] && book.note("b") == [])
        book.close()
        let again = try place.open()
        #expect(try again.note("a") == [4, 5, 6] && again.note("b") == [] && again.note("c") == nil)
        #expect(try loaded(again).count == 1 && again.objectCount == 1)
    }

    @Test func `removing takes the entry, its tags and its renewed head`() throws {
        let place = BookPlace()
        let book = try place.open()
        let entry = BookEntry.sample(1, "http://example.org/", tags: ["a", "b"])
        try book.commit([.put(entry), .renew(entry.id, key: entry.key, entry.attributes, head: [1, 2])])
        #expect(try book.renewal(of: entry.id)?.head == [1, 2])
        try book.commit([.remove(entry.id, key: entry.key)])
        #expect(try loaded(book).isEmpty)
        #expect(try book.renewal(of: entry.id) == nil)
        #expect(try book.page(tag: Array("a".utf8), limit: 10).entries.isEmpty)
        #expect(book.objectCount == 0)
        try book.commit([.remove(entry.id, key: entry.key)])
    }

    @Test func `a renewed head brings its attributes, and is removed when the record is copied`() throws {
        let place = BookPlace()
        let book = try place.open()
        var entry = BookEntry.sample(1, "http://example.org/", tags: ["old", "both"])
        try book.commit([.put(entry)])
        var attributes = entry.attributes
        attributes.expiresAt = 1_900_000_000
        attributes.tags = [Array("both".utf8), Array("new".utf8)]
        try book.commit([.renew(entry.id, key: entry.key, attributes, head: [7])])
        entry.attributes = attributes
        entry.hasRenewedHead = true
        #expect(try loaded(book) == [entry])
        #expect(try book.renewal(of: entry.id) == BookRenewal(attributes: attributes, head: [7]))
        #expect(try book.page(tag: Array("old".utf8), limit: 10).entries.isEmpty)
        #expect(try book.page(tag: Array("new".utf8), limit: 10).entries == [entry])
        #expect(try book.page(tag: Array("both".utf8), limit: 10).entries == [entry])

        entry.place.segment = 9
        entry.hasRenewedHead = false
        try book.commit([.put(entry)])
        #expect(try loaded(book) == [entry])
        #expect(try book.renewal(of: entry.id) == nil)
        try book.commit([.renew(ObjectID(rawValue: 77), key: entry.key, attributes, head: [8])])
        #expect(try book.renewal(of: ObjectID(rawValue: 77)) == nil, "the book does not have that object")
    }

    @Test func `changes of one object in one batch take effect in their order`() throws {
        let place = BookPlace()
        let book = try place.open()
        let (first, second) = (BookEntry.sample(1, "http://example.org/a"), BookEntry.sample(2, "http://example.org/b"))
        var moved = second
        moved.place.segment = 12
        try book.commit([
            .put(second), .put(first), .renew(second.id, key: second.key, second.attributes, head: [1]),
            .remove(first.id, key: first.key), .put(moved),
        ])
        #expect(try loaded(book) == [moved])
        #expect(try book.renewal(of: second.id) == nil)
    }

    @Test func `segments and reserved numbers are kept`() throws {
        let place = BookPlace()
        let book = try place.open()
        #expect(book.reservedIDs.rawValue == 0)
        let open = BookSegment(coveredEnd: 4096, isClosed: false)
        let closed = BookSegment(coveredEnd: .max, isClosed: true)
        try book.commit([
            .segment(1, open), .segment(.max, closed), .segment(2, open), .forgetSegment(2), .forgetSegment(3),
            .reserveIDs(below: ObjectID(rawValue: 5000)),
        ])
        try book.commit([.reserveIDs(below: ObjectID(rawValue: 400)), .segment(1, closed)])
        book.close()
        let again = try place.open()
        #expect(try again.segments() == [1: closed, .max: closed])
        #expect(again.reservedIDs.rawValue == 5000)
    }

    @Test func `a commit that is refused changes nothing, and succeeds later`() throws {
        let place = BookPlace()
        let book = try place.open()
        let (first, second) = (BookEntry.sample(1, "http://example.org/a"), BookEntry.sample(2, "http://example.org/b"))
        try book.commit([.put(first)])
        let batch: [BookChange] = [
            .put(second), .remove(first.id, key: first.key), .reserveIDs(below: ObjectID(rawValue: 10)),
        ]
        place.calls.answer(Int(-ENOSPC))
        #expect(throws: BookError.failed(errno: ENOSPC)) { try book.commit(batch) }
        #expect(try loaded(book) == [first])
        #expect(book.objectCount == 1 && book.reservedIDs.rawValue == 0)
        place.calls.answer(0)
        try book.commit(batch)
        #expect(try loaded(book) == [second])
        #expect(place.calls.commitCount == 3)
    }

    @Test func `the file as it was in the middle of a commit is the book before that commit`() throws {
        let place = BookPlace()
        let copy = BookPlace()
        let book = try place.open()
        var entries: [BookEntry] = []
        var random = BookRandom(1)
        for round in 0..<6 {
            let more = (0..<500).map { BookEntry.random(UInt64(round * 500 + $0), using: &random) }
            let before = place.contents()
            try book.commit(more.map { .put($0) })
            // All pages of the commit are written, but not its root: as after a power cut.
            let torn = Array(before.prefix(8192)) + place.contents().dropFirst(8192)
            copy.replaceContents(by: torn)
            let old = try copy.open()
            #expect(try Set(loaded(old).map(\.id)) == Set(entries.map(\.id)))
            #expect(old.damagedCount == 0)
            old.close()
            entries += more
        }
    }

    @Test func `the map grows up to its limit, and removals succeed even there`() throws {
        let place = BookPlace()
        let book = try place.open(sizeMax: 1 << 20)
        var random = BookRandom(5)
        var put: [BookEntry] = []
        var id: UInt64 = 0
        #expect(throws: BookError.full) {
            while id < 100_000 {
                let batch = (0..<500).map { BookEntry.random(id + $0, using: &random) }
                try book.commit(batch.map { .put($0) })
                put += batch
                id += 500
            }
        }
        #expect(put.count >= 1000)
        #expect(book.fileBytes <= 1 << 20 + lockBytes(place))
        #expect(try loaded(book).count == put.count, "nothing of the batch that was refused")
        // Twice, so that the room given for removals is seen to be taken back.
        for _ in 0..<2 {
            #expect(throws: BookError.full) {
                for extra in 0..<100 as Range<UInt64> {
                    try book.commit((0..<500).map { .put(.random(1_000_000 + extra * 500 + $0, using: &random)) })
                }
            }
            try book.commit(put.suffix(put.count / 2).map { .remove($0.id, key: $0.key) })
            put.removeLast(put.count / 2)
        }
        book.setSizeMax(64 << 20)
        try book.commit((0..<20_000).map { .put(.random(2_000_000 + $0, using: &random)) })
        #expect(book.fileBytes > 1 << 20)
        book.close()
        _ = try place.open()
    }

    @Test func `the map grows past its first size while others read`() throws {
        let place = BookPlace()
        let book = try place.open()
        var random = BookRandom(6)
        // Heads of 60 KB: pages of their own, and soon more than the first map.
        let head = [UInt8](repeating: 1, count: 60_000)
        for round in 0..<3 as Range<UInt64> {
            let entries = (0..<500).map { BookEntry.random(round * 500 + $0, using: &random) }
            try book.commit(
                entries.map { .put($0) } + entries.map { .renew($0.id, key: $0.key, $0.attributes, head: head) })
            #expect(try book.renewal(of: entries[7].id)?.head == head)
        }
        #expect(book.fileBytes > 64 << 20)
        book.close()
        let again = try place.open()
        #expect(try again.renewal(of: ObjectID(rawValue: 1400))?.head == head)
        #expect(try loaded(again).count == 1500)
    }

    @Test func `the pages of a listing have no gap`() throws {
        let place = BookPlace()
        let book = try place.open()
        var random = BookRandom(2)
        let entries = (0..<997).map { BookEntry.random(UInt64($0), using: &random) }
        try book.commit(entries.map { .put($0) })
        let all = try loaded(book)
        for limit in [1, 10, 996, 997, 998] {
            #expect(try listed { cursor in try book.page(after: cursor, limit: limit) } == all)
        }
        let ranges: [(BookRange, (String) -> Bool)] = [
            (.keyPrefix(Array("http://example.org/1".utf8)), { $0.hasPrefix("http://example.org/1") }),
            (.keyPrefix(Array("http".utf8)), { _ in true }),
            (.keyPrefix(Array("http://www".utf8)), { $0.hasPrefix("http://www") }),
            (.keyPrefix(Array("http://example.org".utf8)), { $0.hasPrefix("http://example.org") }),
            (.keyPrefix(Array("http://example.org:8080/".utf8)), { $0.hasPrefix("http://example.org:8080/") }),
            (.keyPrefix(Array("none".utf8)), { _ in false }),
            (.host(Array("example.org".utf8)), { $0.contains("//example.org") }),
            (.host(Array("192.0.2.7".utf8)), { $0.contains("//192.0.2.7") }),
            (.host(Array("[2001:db8::1]".utf8)), { $0.contains("//[2001:db8::1]") }),
            (.below(Array("example.org".utf8)), { $0.contains("//www.example.org") }),
            (.below(Array("org".utf8)), { $0.contains("example.org") }),
        ]
        for (range, belongs) in ranges {
            let expected = all.filter { belongs(String(decoding: $0.key, as: UTF8.self)) }
            #expect(try listed { cursor in try book.page(after: cursor, in: range, limit: 7) } == expected, "\(range)")
        }
        let long = all.first { $0.key.count > 600 }!
        #expect(try book.page(in: .keyPrefix(long.key), limit: 9).entries == [long])
        for tag in ["tag3-0", "tag3-1", "tag3", "none"] {
            let tag = Array(tag.utf8)
            let expected = entries.filter { $0.attributes.tags.contains(tag) }
            #expect(try listed { cursor in try book.page(after: cursor, tag: tag, limit: 3) } == expected)
        }
    }

    @Test func `another process sees each commit and cannot write`() throws {
        let place = BookPlace()
        #expect(throws: BookError.failed(errno: ENOENT)) { try place.open(.readOnly) }
        let book = try place.open()
        let entry = BookEntry.sample(1, "http://example.org/")
        try book.commit([.put(entry)])
        book.close()
        let reader = try place.open(.readOnly)
        #expect(try loaded(reader) == [entry])
        #expect(throws: BookError.failed(errno: EACCES)) { try reader.commit([.put(entry)]) }
    }

    @Test func `a book of another store or version is refused and left alone`() throws {
        let place = BookPlace()
        try place.open().close()
        let before = place.contents()
        #expect(throws: BookError.damaged(BookDefect("it belongs to another store"))) {
            try Book.open(place.path, storeID: [1], sizeMax: 1 << 30, calls: place.calls)
        }
        #expect(place.contents() == before)
    }

    @Test func `calls fail after the book is closed`() throws {
        let place = BookPlace()
        let book = try place.open()
        book.close()
        #expect(throws: BookError.failed(errno: EBADF)) { try loaded(book) }
        #expect(throws: BookError.failed(errno: EBADF)) { try book.commit([.forgetSegment(1)]) }
    }

    @Test func `a directory that cannot be made is an error`() {
        #expect(throws: BookError.failed(errno: ENOENT)) {
            try Book.open(
                "/nonexistent/book", storeID: BookPlace.storeID, sizeMax: 1 << 30, calls: BookCalls())
        }
    }

    @Test(arguments: 0..<8) func `any batches leave the same content as a dictionary`(_ seed: UInt64) throws {
        let place = BookPlace()
        var book = try place.open(sizeMax: 256 << 20)
        var random = BookRandom(seed)
        var model: [UInt64: (entry: BookEntry, head: [UInt8]?)] = [:]
        let keys = (0..<300).map { BookEntry.random(UInt64($0), using: &random).key }
        for _ in 0..<60 {
            var batch: [BookChange] = []
            var after = model
            for _ in 0..<Int.random(in: 1...120, using: &random) {
                let id = UInt64.random(in: 0..<300, using: &random)
                switch Int.random(in: 0..<10, using: &random) {
                case 0..<5:
                    var entry = BookEntry.random(id, using: &random)
                    entry.key = keys[Int(id)]
                    if let old = after[id] {
                        entry.hasRenewedHead = old.head != nil && Bool.random(using: &random)
                    }
                    batch.append(.put(entry))
                    after[id] = (entry, entry.hasRenewedHead ? after[id]!.head : nil)
                case 5..<7:
                    guard let old = after[id] else { continue }
                    batch.append(.remove(old.entry.id, key: old.entry.key))
                    after[id] = nil
                default:
                    guard var old = after[id] else { continue }
                    let attributes = BookEntry.random(id, using: &random).attributes
                    old.head = Array(repeating: UInt8(id & 255), count: Int.random(in: 0...9000, using: &random))
                    batch.append(.renew(old.entry.id, key: old.entry.key, attributes, head: old.head!))
                    old.entry.attributes = attributes
                    old.entry.hasRenewedHead = true
                    after[id] = old
                }
            }
            if Int.random(in: 0..<5, using: &random) == 0 {
                place.calls.answer(Int(-EIO))
                if !batch.isEmpty { #expect(throws: BookError.failed(errno: EIO)) { try book.commit(batch) } }
                place.calls.answer(0)
            } else {
                try book.commit(batch)
                model = after
            }
            if Int.random(in: 0..<6, using: &random) == 0 {
                book.close()
                book = try place.open(sizeMax: 256 << 20)
            }
            let found = Dictionary(uniqueKeysWithValues: try loaded(book).map { ($0.id.rawValue, $0) })
            #expect(found == model.mapValues { $0.entry })
            for (id, state) in model {
                #expect(try book.renewal(of: ObjectID(rawValue: id))?.head == state.head)
            }
            for tag in 0..<7 {
                let tag = Array("tag\(tag)-0".utf8)
                let expected = model.values.map(\.entry).filter { $0.attributes.tags.contains(tag) }
                #expect(try book.page(tag: tag, limit: 1000).entries == expected.sorted { $0.id < $1.id })
            }
        }
        #expect(try BookCheck.run(place.path)?.objectCount == UInt64(model.count))
        #expect(book.damagedCount == 0)
    }

    @Test func `readers on other threads see whole batches while the map grows and moves`() throws {
        let place = BookPlace()
        let book = try place.open()
        let isDone = Atomic<Bool>(false)
        let head = [UInt8](repeating: 1, count: 50_000)
        let writer = OwnedThread(
            try startThread(name: "writer") {
                for round in 0..<8 as Range<UInt64> {
                    let entries = (0..<250).map { BookEntry.sample(round * 250 + $0, "http://example.org/\($0)") }
                    do throws(BookError) {
                        try book.commit(
                            entries.flatMap {
                                [.put($0), .renew($0.id, key: $0.key, $0.attributes, head: head)]
                            })
                    } catch {
                        Issue.record("\(error)")
                    }
                }
                isDone.store(true, ordering: .releasing)
            })
        defer { writer.join() }
        var counts: Set<Int> = []
        repeat {
            let entries = try loaded(book)
            counts.insert(entries.count)
            #expect(entries.count % 250 == 0)
            if let last = entries.last { #expect(try book.renewal(of: last.id)?.head == head) }
        } while !isDone.load(ordering: .acquiring)
        #expect(try loaded(book).count == 2000)
        #expect(book.fileBytes > 64 << 20)
        #expect(try BookCheck.run(place.path)?.objectCount == 2000)
    }

    @Test func `a book passes the check while it is being written`() throws {
        let place = BookPlace()
        let book = try place.open()
        try book.commit([.forgetSegment(0)])
        let isDone = Atomic<Bool>(false)
        let writer = OwnedThread(
            try startThread(name: "writer") {
                for round in 0..<60 as Range<UInt64> {
                    do throws(BookError) {
                        try book.commit((0..<50).map { .put(.sample($0 * 60 + round, "http://example.org/\($0)")) })
                    } catch {
                        Issue.record("\(error)")
                    }
                }
                isDone.store(true, ordering: .releasing)
            })
        defer { writer.join() }
        repeat {
            let check = try BookCheck.run(place.path)
            #expect(check.map { $0.objectCount % 50 } == 0)
        } while !isDone.load(ordering: .acquiring)
    }

    @Test func `the check reads pages that were added after it opened the file`() throws {
        let place = BookPlace()
        let book = try place.open()
        try book.commit([.forgetSegment(0)])
        let pages = try #require(try BookPages(place.path))
        try book.commit((0..<5000).map { .put(.sample($0, "http://example.org/\($0)")) })
        let root = try BookRoots(pages).newer
        #expect(root.lastPage * UInt64(root.pageBytes) > pages.fileBytes)
        let walk = try BookWalk(pages, root)
        for tree in try walk.databases().values { try walk.walk(tree) }
    }

    @Test func `after an error of the medium the book is opened again and continues`() throws {
        let place = BookPlace()
        let book = try place.open()
        let entry = BookEntry.sample(1, "http://example.org/")
        try book.commit([.put(entry)])
        try book.environment.reopen()
        #expect(try loaded(book) == [entry])
        try book.commit([.remove(entry.id, key: entry.key)])
        #expect(try loaded(book).isEmpty)
        book.close()
        #expect(throws: BookError.failed(errno: EBADF)) { try book.environment.reopen() }
    }

    private static func addressed(_ id: UInt64, _ addresses: [String], tags: [String] = []) -> BookEntry {
        var entry = BookEntry.sample(id, "http://m1.example.org/sha256:\(id)#digest", tags: tags)
        entry.attributes.tags += addresses.map { AddressTag.tag(of: Array($0.utf8)) }
        return entry
    }

    /// What has its key by a digest.
    @Test func `an object with addresses is listed by each of them, once, and not by its key`() throws {
        let place = BookPlace()
        let book = try place.open()
        let long = "http://m1.example.org:8080/long/" + String(repeating: "x", count: 210)
        let plain = BookEntry.sample(1, "http://m1.example.org/debian/InRelease")
        let entries = [
            plain, Self.addressed(2, ["http://m1.example.org/debian/by-hash/2"], tags: ["t"]),
            Self.addressed(
                3,
                [
                    "http://m2.example.net/debian/by-hash/3", "http://m1.example.org/debian/by-hash/3",
                    "http://m1.example.org/other/3",
                ]), Self.addressed(4, ["https://m2.example.net:8443/by-hash/4", "http://192.0.2.7/4"]),
            Self.addressed(5, [long]),
        ]
        try book.commit(entries.map { .put($0) })
        func numbers(_ range: BookRange, limit: Int) throws -> [UInt64] {
            try listed { cursor in try book.page(after: cursor, in: range, limit: limit) }.map(\.id.rawValue).sorted()
        }
        func key(_ text: String) -> [UInt8] { Array(text.utf8) }
        let ranges: [(BookRange, [UInt64])] = [
            (.all, [1, 2, 3, 4, 5]), (.keyPrefix(key("http")), [1, 2, 3, 4, 5]),
            (.keyPrefix(key("http://m1.example.org/debian/")), [1, 2, 3]),
            (.keyPrefix(key("http://m1.example.org/other/")), [3]), (.keyPrefix(key("http://m2.example.net/")), [3]),
            (.keyPrefix(key("http://m2")), [3]), (.keyPrefix(key("https://m2.example.net:8443/")), [4]),
            (.keyPrefix(key("http://m1.example.org/sha256:")), []), (.host(key("m1.example.org")), [1, 2, 3, 5]),
            (.host(key("m2.example.net")), [3, 4]), (.host(key("192.0.2.7")), [4]),
            (.below(key("example.org")), [1, 2, 3, 5]), (.below(key("net")), [3, 4]),
            (.below(key("m1.example.org")), []), (.host(key("m3.example.org")), []),
            // Of a long address only the beginning is kept.
            (.keyPrefix(key(long + "/more")), [5]), (.keyPrefix(key("http://m1.example.org:8080/lang/")), []),
        ]
        for (range, expected) in ranges {
            for limit in [1, 2, 9] { #expect(try numbers(range, limit: limit) == expected, "\(range) \(limit)") }
        }
        #expect(try book.page(tag: key("t"), limit: 9).entries.map(\.id.rawValue) == [2])
        // With other addresses it is found by these.
        let renewed = Self.addressed(3, ["http://m3.example.org/3"]).attributes
        try book.commit([
            .renew(entries[2].id, key: entries[2].key, renewed, head: [1]), .remove(plain.id, key: plain.key),
        ])
        #expect(try numbers(.host(key("m1.example.org")), limit: 9) == [2, 5])
        #expect(try numbers(.host(key("m3.example.org")), limit: 9) == [3])
        try book.commit([.remove(entries[2].id, key: entries[2].key)])
        #expect(try numbers(.host(key("m3.example.org")), limit: 9) == [])
    }

    @Test(arguments: [
        "http://example.org/a?b", "https://[2001:db8::1]:8443/", "http://EXAMPLE.org/", "http://example.org",
        "http://example.org:80/", "http://a/" + String(repeating: "x", count: 240),
    ]) func `an address is a tag that leads back to it, and that no response has`(_ address: String) {
        let tag = AddressTag.tag(of: Array(address.utf8))
        #expect(AddressTag.address(of: tag) == Array(address.utf8))
        #expect(tag.count <= 255 && AddressTag.isOne(tag))
        #expect(!AddressTag.isOne(Array(address.utf8)) && AddressTag.address(of: Array(address.utf8)) == nil)
    }

    @Test func `an object may have any number of tags`() throws {
        let place = BookPlace()
        let book = try place.open()
        var entry = BookEntry.sample(1, "http://example.org/", tags: (0..<5000).map { "t\($0)" } + ["", "t1"])
        try book.commit([.put(entry)])
        #expect(try loaded(book) == [entry])
        #expect(try book.page(tag: Array("t4999".utf8), limit: 2).entries == [entry])
        #expect(try book.page(tag: [], limit: 2).entries == [entry])
        entry.attributes.tags = [Array("t7".utf8)]
        try book.commit([.put(entry)])
        #expect(try book.page(tag: Array("t4999".utf8), limit: 2).entries.isEmpty)
        #expect(try book.page(tag: Array("t7".utf8), limit: 2).entries == [entry])
    }

    // MARK: helpers

    private func loaded(_ book: Book) throws -> [BookEntry] {
        var entries: [BookEntry] = []
        try book.load {
            entries.append($0)
            return true
        }
        return entries
    }

    private func listed(
        _ page: (BookCursor?) throws -> (entries: [BookEntry], next: BookCursor?)
    ) throws -> [BookEntry] {
        var (entries, cursor) = try page(nil)
        while let at = cursor {
            let (more, next) = try page(at)
            entries += more
            cursor = next
        }
        return entries
    }

    private func lockBytes(_ place: BookPlace) -> UInt64 {
        var status = stat()
        return unsafe stat(place.path + "/lock.mdb", &status) == 0 ? UInt64(status.st_size) : 0
    }
}
