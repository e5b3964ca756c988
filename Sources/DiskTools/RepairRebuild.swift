import Disk
import Glibc

/// A new book, built next to the old one from what is intact in it, or from the segments alone. It replaces the old book when it is
/// complete.
struct BookRebuild: ~Copyable {
    private let store: VerifiedStore
    private let book: Book

    private var path: String { store.path + "/book.new" }

    /// No real limit: the size of the store is enforced while it runs.
    static let sizeMax: UInt64 = 1 << 40
    private static let batchChanges = 16_384
    /// Numbers that may have been given out without a trace: as many as a store reserves at a time.
    private static let idsSkipped: UInt64 = 1 << 20
    /// A store that lost its book while it ran takes its numbers from the clock: a million for each second.
    private static var idOfClock: UInt64 { UInt64(max(time(nil), 0) + 1) << 20 }

    init(_ store: VerifiedStore) throws(BookError) {
        self.store = store
        // An earlier attempt may have been interrupted.
        try Self.discard(store.path + "/book.new")
        book = try Book.open(
            store.path + "/book.new", storeID: store.id.bytes, sizeMax: Self.sizeMax, calls: store.calls)
    }

    func commit(_ changes: [BookChange]) throws(BookError) { try Self.commit(changes, to: book) }

    static func commit(_ changes: [BookChange], to book: Book) throws(BookError) {
        for start in stride(from: 0, to: changes.count, by: batchChanges) {
            try book.commit(Array(changes[start..<min(start + batchChanges, changes.count)]))
        }
    }

    // MARK: from the old book

    /// Copies every entry that can be read.
    func copy() throws(BookError) {
        let old = try Book.open(
            store.bookPath, storeID: store.id.bytes, access: .readOnly, sizeMax: .max, calls: store.calls)
        defer { old.close() }
        var changes: [BookChange] = [.reserveIDs(below: old.reservedIDs)]
        changes += try old.segments().map { .segment($0, $1) }
        var cursor: BookCursor?
        repeat {
            let page = try old.page(after: cursor, limit: 1024)
            for entry in page.entries {
                var plain = entry
                plain.hasRenewedHead = false
                changes.append(.put(plain))
                guard entry.hasRenewedHead, let renewal = try old.renewal(of: entry.id) else { continue }
                changes.append(.renew(entry.id, key: entry.key, renewal.attributes, head: renewal.head))
            }
            cursor = page.next
            if changes.count >= Self.batchChanges {
                try commit(changes)
                changes = []
            }
        } while cursor != nil
        try commit(changes)
    }

    // MARK: from the segments

    private struct Standing {
        var segment: UInt32
        var offset: UInt64
    }

    /// Adds every object that has a whole record and that no drop record names. If a record was copied forward, the later one counts: it
    /// contains the head that was renewed until then. Later renewals are lost with the book.
    func gather(_ files: [VerifiedStore.File]) throws(BookError) {
        var dropped: Set<ObjectID> = []
        var standing: [ObjectID: Standing] = [:]
        var last = ObjectID(rawValue: 0)
        for file in files where !file.isLarge {
            scan(file.number, .everything) { found in
                switch found {
                case .object(let head):
                    standing[head.id] = Standing(segment: file.number, offset: head.place.offset)
                    last = max(last, head.id)
                case .drops(let drops, _, _):
                    dropped.formUnion(drops.map(\.id))
                    last = max(last, drops.map(\.id).max() ?? last)
                case .damagedObject, .damaged: break
                }
            }
        }
        for file in files where !file.isLarge {
            var changes: [BookChange] = []
            scan(file.number, .heads) { found in
                guard case .object(let head) = found, !dropped.contains(head.id),
                    let place = standing[head.id], place.segment == file.number, place.offset == head.place.offset
                else { return }
                changes.append(
                    .put(BookEntry(id: head.id, key: head.key, place: head.place, attributes: head.attributes)))
            }
            changes.append(.segment(file.number, BookSegment(coveredEnd: file.bytes, isClosed: true)))
            try commit(changes)
        }
        last = max(last, try gatherLarge(files, dropped))
        let first = max(min(last, .countedMax).rawValue + Self.idsSkipped, Self.idOfClock)
        try commit([.reserveIDs(below: ObjectID(rawValue: first))])
    }

    /// Returns the highest object number among them.
    private func gatherLarge(
        _ files: [VerifiedStore.File], _ dropped: Set<ObjectID>
    ) throws(BookError) -> ObjectID {
        var last = ObjectID(rawValue: 0)
        var changes: [BookChange] = []
        for file in files where file.isLarge {
            do throws(DiskFileError) {
                let large = try LargeFile.open(
                    store.path(of: file.number, isLarge: true), store.identity(file.number), writes: false,
                    calls: store.calls)
                last = max(last, large.id)
                // If the book has the file but not its object, the next start deletes the file.
                changes.append(.segment(file.number, BookSegment(coveredEnd: large.fileBytes, isClosed: true)))
                guard !dropped.contains(large.id) else { continue }
                changes.append(
                    .put(
                        BookEntry(
                            id: large.id, key: large.head.key, place: large.place, attributes: large.head.attributes,
                            isComplete: large.isComplete)))
            } catch { continue }  // this was reported, and the file is of no use
        }
        try commit(changes)
        return last
    }

    private func scan(_ number: UInt32, _ depth: RecordScan.Depth, _ visit: (RecordScan.Found) -> Void) {
        do throws(DiskFileError) {
            let file = try SegmentFile.open(
                store.path(of: number, isLarge: false), store.identity(number), checksHeader: false, calls: store.calls)
            var scan = RecordScan(file, depth: depth, mode: .search)
            do throws(DiskReadError) {
                while let found = try scan.next() { visit(found) }
            } catch { return }  // this was reported; the records before it count
        } catch { return }
    }

    // MARK: replacing the old book

    /// - Returns: where the old book is now, below the directory of the store. Nil if there was none.
    consuming func finish() throws(BookError) -> String? {
        book.close()
        var moved: String?
        if store.bytes(of: store.bookPath) != nil {
            var name = "book.damaged-\(time(nil))"
            while store.bytes(of: "\(store.path)/\(name)") != nil { name += "-again" }
            try Self.check(store.calls.rename(store.bookPath, to: "\(store.path)/\(name)"))
            moved = name
        }
        try Self.check(store.calls.rename(path, to: store.bookPath))
        try Self.check(Int(-Directory.synchronize(store.path)))
        return moved
    }

    private static func discard(_ path: String) throws(BookError) {
        for name in ["data.mdb", "lock.mdb"] {
            guard unsafe unlink("\(path)/\(name)") == 0 || errno == ENOENT || errno == ENOTDIR else {
                throw .failed(errno: errno)
            }
        }
        guard unsafe rmdir(path) == 0 || errno == ENOENT else { throw .failed(errno: errno) }
    }

    private static func check(_ status: Int) throws(BookError) {
        if status < 0 { throw .failed(errno: CInt(-status)) }
    }
}
