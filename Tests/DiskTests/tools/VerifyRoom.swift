import Foundation
import Glibc

@testable import Disk
@testable import DiskTools

/// A store's directory with files made by hand, removed with it: segments with objects and drop records, large objects, a book.
final class VerifyRoom {
    let path = FileManager.default.temporaryDirectory.path + "/larder-verify-\(UUID().uuidString)"
    let id: StoreID
    private(set) var objects: [UInt64: (entry: BookEntry, body: [UInt8])] = [:]

    init() throws {
        let directory = try Directory.open(path, size: 64 << 20)
        try directory.makeSubdirectories()
        id = directory.storeID
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    func segmentPath(_ number: UInt32) -> String { "\(path)/segments/\(hexadecimal(number)).seg" }

    func largePath(_ number: UInt32) -> String {
        "\(path)/large/\(hexadecimal(number).suffix(2))/\(hexadecimal(number)).seg"
    }

    private func hexadecimal(_ number: UInt32) -> String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: 8 - digits.utf8.count) + digits
    }

    func openBook(_ access: Book.Access = .readWrite) throws -> Book {
        try Book.open(
            path + "/book", storeID: id.bytes, access: access, sizeMax: 1 << 30, calls: SystemCalls())
    }

    func commit(_ changes: [BookChange]) throws {
        let book = try openBook()
        try book.commit(changes)
        book.close()
    }

    func entries() throws -> [UInt64: BookEntry] {
        let book = try openBook(.readOnly)
        defer { book.close() }
        var entries: [UInt64: BookEntry] = [:]
        try book.load { entry in
            entries[entry.id.rawValue] = entry
            return true
        }
        return entries
    }

    /// A closed segment with an object for each length, then a drop record for `drops`. The book is told of all.
    @discardableResult
    func addSegment(
        _ number: UInt32, ids: [UInt64], lengths: [Int], drops: [DroppedObject] = [], isInBook: Bool = true
    ) throws -> [BookEntry] {
        let file = try SegmentFile.create(
            segmentPath(number), SegmentIdentity(store: id, number: number), created: 1_700_000_000, room: 0,
            calls: SystemCalls())
        var batch = RecordBatch(file.identity, at: file.end)
        var entries: [BookEntry] = []
        for (id, length) in zip(ids, lengths) {
            let object = PackedObject.sample(id, body: length)
            let place = try batch.add(object)
            let entry = BookEntry(id: object.id, key: object.key, place: place, attributes: object.attributes)
            entries.append(entry)
            if isInBook { objects[id] = (entry, object.bodyBytes) }
        }
        if !drops.isEmpty { batch.add(drops: drops, storedAt: 1) }
        try file.append(batch)
        try file.finish()
        guard isInBook else { return entries }
        try commit(
            entries.map { .put($0) } + [.segment(number, BookSegment(coveredEnd: file.end, isClosed: true))])
        return entries
    }

    /// A large object of which the blocks are there.
    @discardableResult
    func addLarge(_ number: UInt32, id: UInt64, length: Int, blocks: Range<Int>, isInBook: Bool = true) throws
        -> BookEntry
    {
        try FileManager.default.createDirectory(
            atPath: (largePath(number) as NSString).deletingLastPathComponent, withIntermediateDirectories: true)
        let body = SegmentTestBody(length: length, seed: id)
        let file = try LargeFile.create(
            largePath(number), SegmentIdentity(store: self.id, number: number), id: ObjectID(rawValue: id),
            key: Array("https://large.example/\(id)".utf8), attributes: .sample(), head: [1, 2, 3], length: length,
            calls: SystemCalls())
        try file.fill(blocks, from: body)
        let entry = BookEntry(
            id: file.id, key: file.head.key, place: file.place, attributes: file.head.attributes,
            isComplete: file.isComplete)
        guard isInBook else { return entry }
        objects[id] = (entry, body.bytes)
        try commit([
            .put(entry), .segment(number, BookSegment(coveredEnd: file.fileBytes, isClosed: true)),
        ])
        return entry
    }

    func verify(
        repair: Bool = false, calls: any DiskCalls = SystemCalls(), _ progress: (VerifyProgress) -> Void = { _ in }
    ) throws(DiskRefusal) -> VerifyReport {
        try DiskTools.verify(path: path, repair: repair, calls: calls, progress: progress)
    }

    /// Changes some bits of one byte.
    func flip(_ offset: Int, of file: String, mask: UInt8 = 0x10) {
        let fd = unsafe open(file, O_RDWR)
        precondition(fd >= 0, "the file is there")
        defer { close(fd) }
        var byte: UInt8 = 0
        precondition(unsafe pread(fd, &byte, 1, off_t(offset)) == 1, "the file is so long")
        byte ^= mask
        _ = unsafe pwrite(fd, &byte, 1, off_t(offset))
    }

    /// Changes the byte so far behind each place where the bytes stand in the book. Returns how many there were.
    @discardableResult
    func flipInBook(behind bytes: [UInt8], by distance: Int = 0) throws -> Int {
        let file = path + "/book/data.mdb"
        let contents = try Data(contentsOf: URL(filePath: file))
        var count = 0
        var start = contents.startIndex
        while let range = contents.range(of: Data(bytes), in: start..<contents.endIndex) {
            flip(range.lowerBound + distance, of: file)
            count += 1
            start = range.upperBound
        }
        return count
    }

    func append(_ bytes: [UInt8], to file: String) throws {
        let handle = try FileHandle(forWritingTo: URL(filePath: file))
        defer { try? handle.close() }
        try handle.seekToEnd()
        try handle.write(contentsOf: Data(bytes))
    }

    /// Names and contents of all files, but for LMDB's table of readers.
    func contents() throws -> [String: Data] {
        var contents: [String: Data] = [:]
        for name in try FileManager.default.subpathsOfDirectory(atPath: path) where !name.hasSuffix("lock.mdb") {
            contents[name] = FileManager.default.contents(atPath: "\(path)/\(name)")
        }
        return contents
    }

    /// Objects of the book whose bytes are not those that were put.
    func wrongObjects() throws -> [UInt64] {
        try entries().values.filter { entry in
            guard let (put, body) = objects[entry.id.rawValue], put.key == entry.key else { return true }
            return try self.body(of: entry).map { $0 != body } ?? true
        }.map(\.id.rawValue).sorted()
    }

    /// Nil: it cannot be read whole.
    private func body(of entry: BookEntry) throws -> [UInt8]? {
        let identity = SegmentIdentity(store: id, number: entry.place.segment)
        guard entry.place.kind == .packed else {
            let file = try LargeFile.open(largePath(entry.place.segment), identity, writes: false, calls: SystemCalls())
            let all = objects[entry.id.rawValue]?.body ?? []
            for extent in file.extents where file.bytes(extent).bytes != Array(all[extent]) { return nil }
            return all  // what is not there is fetched
        }
        let file = try SegmentFile.open(
            segmentPath(entry.place.segment), identity, checksHeader: false, calls: SystemCalls())
        return try file.record(entry.place).body
    }
}

extension VerifyReport {
    var kinds: [VerifyFinding.Kind] { findings.map(\.kind) }
    var keys: Set<String> { Set(findings.map { String(decoding: $0.key, as: UTF8.self) }.filter { !$0.isEmpty }) }
}

/// The calls of the kernel, and something that happens when a file is opened.
final class VerifyCalls: DiskCalls, @unchecked Sendable {  // verify is one thread
    private let inner = SystemCalls()
    private var counts: [String: Int] = [:]
    private var hook: (String, Int) throws -> Void = { _, _ in }
    private(set) var failure: (any Error)?

    /// - Parameter hook: called before a file is opened, with its path and the how manieth time it is.
    func whenOpened(_ hook: @escaping (String, Int) throws -> Void) { self.hook = hook }
    func openings(of path: String) -> Int { counts[path, default: 0] }

    func open(_ path: String, flags: CInt, mode: mode_t) -> Int {
        counts[path, default: 0] += 1
        do { try hook(path, counts[path, default: 0]) } catch { failure = error }
        return inner.open(path, flags: flags, mode: mode)
    }
    func close(_ fd: CInt) { inner.close(fd) }
    func pwritev(_ fd: CInt, _ vectors: UnsafePointer<iovec>, _ count: Int, at offset: Int) -> Int {
        unsafe inner.pwritev(fd, vectors, count, at: offset)
    }
    func preadv(_ fd: CInt, _ vectors: UnsafePointer<iovec>, _ count: Int, at offset: Int, waits: Bool) -> Int {
        unsafe inner.preadv(fd, vectors, count, at: offset, waits: waits)
    }
    func synchronize(_ fd: CInt) -> Int { inner.synchronize(fd) }
    func truncate(_ fd: CInt, to length: Int) -> Int { inner.truncate(fd, to: length) }
    func allocate(_ fd: CInt, offset: Int, length: Int) -> Int {
        inner.allocate(fd, offset: offset, length: length)
    }
    func length(_ fd: CInt) -> Int { inner.length(fd) }
    func readAhead(_ fd: CInt, offset: Int, length: Int) { inner.readAhead(fd, offset: offset, length: length) }
    func unlink(_ path: String) -> Int { inner.unlink(path) }
    func rename(_ from: String, to: String) -> Int { inner.rename(from, to: to) }
    func mayCommit() -> Int { inner.mayCommit() }
    func free(_ path: String) -> Int { inner.free(path) }
}
