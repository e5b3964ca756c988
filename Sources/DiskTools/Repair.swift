import Disk
import Glibc

/// The repairs that a verification asks for: first in the files, then in the book. Everything that is dropped can be fetched again.
///
/// Bytes between records that are no records are overwritten with drop records that name no object. A later walk through the segment
/// then finds its way, and the next verification has nothing to report.
struct BookRepair: Sendable {
    private var removals: [BookEntry] = []
    private var lostBlocks: [(entry: BookEntry, blocks: [Int])] = []
    private var ends: [UInt32: UInt64] = [:]
    private var fills: [UInt32: [Range<UInt64>]] = [:]
    /// Shared segments that need a new header.
    var headers: [UInt32] = []
    /// Files of large objects to delete.
    var deletions: [UInt32] = []
    /// Some entries of the book cannot be addressed: everything intact goes into a new book.
    var mustRewrite = false

    mutating func remove(_ entry: BookEntry) {
        removals.append(entry)
        guard entry.place.kind == .packed else { return }
        fill(Self.range(entry), of: entry.place.segment)
    }

    /// The object turned out to be intact after all: nothing of it is overwritten.
    mutating func keep(_ entry: BookEntry) {
        guard entry.place.kind == .packed else { return }
        fills[entry.place.segment]?.removeAll { $0.overlaps(Self.range(entry)) }
    }

    mutating func lost(_ blocks: [Int], of entry: BookEntry) { lostBlocks.append((entry, blocks)) }

    /// The book claims more of a segment than the file has.
    mutating func cover(_ number: UInt32, _ end: UInt64) { ends[number] = end }

    mutating func fill(_ range: Range<UInt64>, of number: UInt32) { fills[number, default: []].append(range) }

    private static func range(_ entry: BookEntry) -> Range<UInt64> {
        entry.place.offset..<entry.place.offset + entry.place.recordLength
    }

    // MARK: carrying it out

    /// - Returns: where the old book was moved to, if it was replaced. Nil if it was not.
    func carryOut(
        in store: VerifiedStore, hasBook: Bool, files: [VerifiedStore.File]
    ) throws(DiskRefusal) -> String? {
        do throws(DiskFileError) {
            for number in headers { try writeHeader(number, store) }
            for (number, ranges) in fills { try fill(ranges, number, store) }
            for (entry, blocks) in lostBlocks { try remove(blocks, of: entry, store) }
            for number in deletions { try delete(number, store) }
        } catch .failed(let code) { throw Directory.refusal(store.path, code) } catch {
            throw .failed(path: store.path, errno: EIO)
        }
        do throws(BookError) {
            guard hasBook, !mustRewrite else {
                return hasBook || !files.isEmpty ? try replaceBook(in: store, hasBook: hasBook, files: files) : nil
            }
            try changeBook(in: store)
            return nil
        } catch .failed(let code) { throw Directory.refusal(store.bookPath, code) } catch .full {
            throw .failed(path: store.bookPath, errno: ENOSPC)
        } catch { throw .failed(path: store.bookPath, errno: EIO) }
    }

    private var changes: [BookChange] {
        removals.map { .remove($0.id, key: $0.key) }
            + lostBlocks.map { entry, _ in
                var entry = entry
                entry.isComplete = false
                return .put(entry)
            } + ends.map { .segment($0, BookSegment(coveredEnd: $1, isClosed: true)) }
    }

    private func changeBook(in store: VerifiedStore) throws(BookError) {
        guard !changes.isEmpty else { return }
        let book = try Book.open(
            store.bookPath, storeID: store.id.bytes, sizeMax: BookRebuild.sizeMax, calls: store.calls)
        defer { book.close() }
        try BookRebuild.commit(changes, to: book)
    }

    private func replaceBook(
        in store: VerifiedStore, hasBook: Bool, files: [VerifiedStore.File]
    ) throws(BookError) -> String? {
        let rebuild = try BookRebuild(store)
        if hasBook {
            try rebuild.copy()
            try rebuild.commit(changes)
        } else {
            try rebuild.gather(files)
        }
        return try rebuild.finish()
    }

    // MARK: files

    private func writeHeader(_ number: UInt32, _ store: VerifiedStore) throws(DiskFileError) {
        let file = try DiskFile.open(store.path(of: number, isLarge: false), flags: O_RDWR, calls: store.calls)
        try file.write(SegmentHeader(identity: store.identity(number), created: now()).bytes, at: 0)
        try file.synchronize()
    }

    private func fill(_ ranges: [Range<UInt64>], _ number: UInt32, _ store: VerifiedStore) throws(DiskFileError) {
        let file: DiskFile
        do throws(DiskFileError) {
            file = try DiskFile.open(store.path(of: number, isLarge: false), flags: O_RDWR, calls: store.calls)
        } catch .failed(errno: ENOENT) { return }
        let length = UInt64(try file.length())
        for range in Self.joined(ranges) where range.upperBound <= length {
            try file.write(filler(range, store.identity(number)), at: Int(range.lowerBound))
        }
        try file.synchronize()
    }

    /// Joins ranges that overlap or touch.
    static func joined(_ ranges: [Range<UInt64>]) -> [Range<UInt64>] {
        var joined: [Range<UInt64>] = []
        for range in ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) {
            if let last = joined.last, range.lowerBound <= last.upperBound {
                joined[joined.count - 1] = last.lowerBound..<max(last.upperBound, range.upperBound)
            } else {
                joined.append(range)
            }
        }
        return joined
    }

    /// Drop records that fill the whole range. They name object number zero, which no object has. Zeros if not even one record fits.
    private func filler(_ range: Range<UInt64>, _ segment: SegmentIdentity) -> [UInt8] {
        let nobody = DroppedObject(id: ObjectID(rawValue: 0), segment: 0)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(range.count)
        while range.count - bytes.count >= RecordHeader.byteCount {
            let left = (range.count - bytes.count - RecordHeader.byteCount) / DroppedObject.byteCount
            // What is left behind this record must have room for another one.
            let most = RecordCodec.dropsMax - RecordHeader.byteCount / DroppedObject.byteCount
            let count = left <= RecordCodec.dropsMax ? left : most
            do throws(RecordError) {
                try RecordCodec.append(
                    drops: repeatElement(nobody, count: count), storedAt: now(), in: segment,
                    at: range.lowerBound + UInt64(bytes.count), to: &bytes)
            } catch { preconditionFailure("so many drops fit into one record") }
        }
        bytes.append(zeros: range.count - bytes.count)
        precondition(bytes.count == range.count, "a filler takes exactly the bytes it overwrites")
        return bytes
    }

    private func remove(_ blocks: [Int], of entry: BookEntry, _ store: VerifiedStore) throws(DiskFileError) {
        let number = entry.place.segment
        let large = try LargeFile.open(
            store.path(of: number, isLarge: true), store.identity(number), calls: store.calls)
        for block in blocks { try large.remove(block: block) }
        try large.synchronize()
    }

    private func delete(_ number: UInt32, _ store: VerifiedStore) throws(DiskFileError) {
        let path = store.path(of: number, isLarge: true)
        let status = store.calls.unlink(path)
        guard status == 0 || status == Int(-ENOENT) else { throw .failed(errno: CInt(-status)) }
        try DiskFile.synchronizeDirectory(of: path, calls: store.calls)
    }

    private func now() -> Int64 { Int64(time(nil)) }
}
