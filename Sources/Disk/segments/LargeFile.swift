import EventLoop
import Glibc

/// The file of one large object (docs/storage-format.md): a head part of a multiple of 4096 bytes; a table with 8 bytes for each
/// block; and, from the next multiple of 4096 on, the blocks at fixed places.
///
/// A block is present if its entry in the table says so and the checksum in that entry matches the bytes. Bytes are written
/// before the entry. Nothing is synchronized in between, so a power cut may keep the entry and lose the bytes: readers trust the
/// checksum alone. A block whose bytes do not match is treated as absent from then on.
///
/// Threads: any thread reads. Any thread may write a block, but no block is written by two threads at once. The content of a
/// block never changes: writing it again writes the same bytes. `table` has a lock; the file needs none.
package final class LargeFile: Sendable {
    package let path: String
    /// The head as it is in the file. A renewed head is in the book.
    package let head: StoredHead
    private let file: DiskFile
    private let name: FileName
    /// One entry for each block, `absent` if the block is not present.
    private let table: Locked<[BlockEntry]>

    package var id: ObjectID { head.id }
    package var place: Place { head.place }
    package var length: Int { Int(head.place.bodyLength) }
    package var blockCount: Int { (length + blockBytes - 1) / blockBytes }
    /// The length of the whole file.
    package var fileBytes: UInt64 { UInt64(dataStart + padded(length, to: 4096)) }

    private var tableStart: Int { Int(head.place.headLength) }
    private var dataStart: Int { LargeFile.dataStart(headPart: tableStart, length: length) }

    private init(_ path: String, _ head: StoredHead, _ file: DiskFile, _ table: [BlockEntry], isNew: Bool) {
        precondition(head.place.kind == .large && head.place.offset == 0, "the file has one record, at its beginning")
        precondition(
            UInt64(table.count) == (head.place.bodyLength + UInt64(blockBytes) - 1) / UInt64(blockBytes),
            "the table has one entry for each block")
        self.path = path
        self.head = head
        self.file = file
        self.table = Locked(table)
        name = FileName(path, isNew: isNew)
    }

    // MARK: creating and opening

    /// Creates the file and allocates its space; no block is present. There must be no such file, and there is none if this
    /// fails. Nothing is on the medium before `synchronize`.
    package static func create(
        _ path: String, _ identity: SegmentIdentity, id: ObjectID, key: [UInt8], attributes: ObjectAttributes,
        head: [UInt8], length: Int, calls: any DiskCalls
    ) throws(DiskFileError) -> LargeFile {
        var part: [UInt8] = []
        let stored: StoredHead
        do throws(RecordError) {
            try RecordCodec.append(
                large: id, key: key, attributes: attributes, head: head, bodyLength: length, in: identity, to: &part)
            stored = try decode(part, identity)
        } catch { throw .header(error) }
        let file = try DiskFile.open(path, flags: O_RDWR | O_CREAT | O_EXCL, calls: calls)
        do throws(DiskFileError) {
            let end = dataStart(headPart: part.count, length: length) + length
            try file.allocate(end)
            try file.truncate(to: end)
            try file.write(part, at: 0)
        } catch {
            _ = calls.unlink(path)  // report the first error
            throw error
        }
        let table = [BlockEntry](repeating: .absent, count: (length + blockBytes - 1) / blockBytes)
        return LargeFile(path, stored, file, table, isNew: true)
    }

    /// Opens a file and reads its head and table. Blocks.
    /// - Parameter writes: whether blocks may be written.
    package static func open(
        _ path: String, _ identity: SegmentIdentity, writes: Bool = true, calls: any DiskCalls
    ) throws(DiskFileError) -> LargeFile {
        let file = try DiskFile.open(path, flags: writes ? O_RDWR : O_RDONLY, calls: calls)
        let head = try head(of: file, identity)
        let length = Int(head.place.bodyLength)
        let blocks = (length + blockBytes - 1) / blockBytes
        let bytes = try read(file, blocks * BlockEntry.byteCount, at: Int(head.place.headLength))
        let table = (0..<blocks).map { block in
            let end = (block + 1) * BlockEntry.byteCount
            guard end <= bytes.count else { return BlockEntry.absent }
            let entry = BlockEntry(rawValue: unsafe bytes.span.bytes.number(at: end - BlockEntry.byteCount))
            return entry.isOf(length: min(blockBytes, length - block * blockBytes)) ? entry : .absent
        }
        return LargeFile(path, head, file, table, isNew: false)
    }

    /// How long the file of a large object is. Returns nil if the object is too large for any file.
    package static func fileBytes(
        key: [UInt8], attributes: ObjectAttributes, head: [UInt8], length: Int
    ) -> UInt64? {
        let part = RecordCodec.headPartLength(
            kind: .large, key: key, attributes: attributes, head: head, bodyLength: length)
        guard let part, UInt64(length) < RecordHeader.recordBytesMax - UInt64(part) else { return nil }
        return UInt64(dataStart(headPart: part, length: length) + padded(length, to: 4096))
    }

    // MARK: which blocks are present

    /// The blocks that are present, as ranges of bytes: in order, adjacent ones joined.
    package var extents: [Range<Int>] {
        table.withLock { table in
            var extents: [Range<Int>] = []
            for (block, entry) in table.enumerated() where entry != .absent {
                let range = range(block)
                if let last = extents.last, last.upperBound == range.lowerBound {
                    extents[extents.count - 1] = last.lowerBound..<range.upperBound
                } else {
                    extents.append(range)
                }
            }
            return extents
        }
    }

    package var isComplete: Bool { table.withLock { !$0.contains(.absent) } }
    package func has(block: Int) -> Bool {
        precondition(block >= 0 && block < blockCount, "the object has this block")
        return table.withLock { $0[block] != .absent }
    }

    // MARK: writing

    /// A block whose bytes are written and whose entry is not.
    package struct WrittenBlock: Sendable {
        package let block: Int
        fileprivate let entry: BlockEntry
    }

    /// Writes the bytes of a whole block; the last one may be shorter. `publish` must follow.
    /// - Parameter offset: where the block begins in `source`.
    package func write(block: Int, from source: any BodyBytes, at offset: Int) throws(DiskFileError) -> WrittenBlock {
        let range = range(block)
        var vectors = unsafe [iovec]()
        var checksum = Checksum()
        unsafe source.forEachVector(from: offset, length: range.count) { vector in
            unsafe checksum.add(UnsafeRawBufferPointer(start: vector.iov_base, count: vector.iov_len))
            unsafe vectors.append(vector)
        }
        let outcome = unsafe vectors.withUnsafeMutableBufferPointer { vectors in
            Result { () throws(DiskFileError) in unsafe try file.write(vectors, at: dataStart + range.lowerBound) }
        }
        try outcome.get()
        return WrittenBlock(block: block, entry: BlockEntry(length: range.count, checksum: checksum.value))
    }

    /// Enters blocks into the table, first in the file and then in memory: from here on they can be read. If writing fails, none
    /// of them can.
    package func publish(_ blocks: [WrittenBlock]) throws(DiskFileError) {
        precondition(
            blocks.allSatisfy { $0.entry.isOf(length: range($0.block).count) }, "an entry has the length of its block")
        var left = blocks.sorted { $0.block < $1.block }[...]
        while let first = left.first {
            // One write for each run of adjacent blocks.
            let run = left.enumerated().prefix { $1.block == first.block + $0 }.count
            precondition(run > 0, "a run has at least its first block")
            try write(left.prefix(run).map(\.entry), from: first.block)
            left = left.dropFirst(run)
        }
        table.withLock { table in
            for written in blocks { table[written.block] = written.entry }
        }
    }

    /// Takes a block out of the table, first in memory and then in the file: no reader may see it once its entry is going away.
    package func remove(block: Int) throws(DiskFileError) {
        precondition(block >= 0 && block < blockCount, "the object has this block")
        table.withLock { $0[block] = .absent }
        try write([.absent], from: block)
    }

    /// Puts everything written on the medium, and after the first call the name of the file too.
    package func synchronize() throws(DiskFileError) {
        try file.synchronize()
        try name.synchronize(calls: file.calls)
    }

    // MARK: reading

    /// Reads blocks and compares their checksums. A damaged block is absent afterwards, in memory; its entry in the file changes
    /// when the block is written again. Returns `damaged` if a block is absent.
    /// - Parameters:
    ///   - offset: a multiple of `blockBytes`.
    ///   - room: a buffer for whole blocks; it may end with the object.
    package func read(from offset: Int, into room: UnsafeMutableRawBufferPointer, waits: Bool) -> DiskRead {
        let end = offset + room.count
        precondition(
            offset >= 0 && offset % blockBytes == 0 && end <= length && (end % blockBytes == 0 || end == length),
            "a read covers whole blocks")
        let blocks = offset / blockBytes..<(end + blockBytes - 1) / blockBytes
        let entries = table.withLock { Array($0[blocks]) }
        guard !entries.contains(.absent) else { return .damaged }
        let got = unsafe file.read(into: room, at: dataStart + offset, waits: waits)
        guard got >= 0 else { return DiskRead(DiskReadError(got)) }
        var outcome = DiskRead.done
        for (block, entry) in zip(blocks, entries) {
            let start = block * blockBytes - offset
            let bytes = unsafe UnsafeRawBufferPointer(rebasing: room[start..<start + range(block).count])
            if start + bytes.count <= got, unsafe Checksum.crc32c(bytes) == entry.checksum { continue }
            outcome = .damaged
            table.withLock { table in
                if table[block] == entry { table[block] = .absent }
            }
        }
        return outcome
    }

    /// Tells the kernel that these bytes will be wanted soon.
    package func readAhead(from offset: Int, length: Int) { file.readAhead(dataStart + offset, length) }
}

extension LargeFile {
    /// Where the blocks begin: behind head part and table, at a multiple of 4096.
    private static func dataStart(headPart: Int, length: Int) -> Int {
        padded(headPart + (length + blockBytes - 1) / blockBytes * BlockEntry.byteCount, to: 4096)
    }

    private func range(_ block: Int) -> Range<Int> {
        precondition(block >= 0 && block * blockBytes < length, "the object has this block")
        return block * blockBytes..<min((block + 1) * blockBytes, length)
    }

    /// Writes entries of the table. Eight bytes each: no entry crosses a sector, so a power cut leaves it old or new.
    private func write(_ entries: [BlockEntry], from block: Int) throws(DiskFileError) {
        precondition(block >= 0 && block + entries.count <= blockCount, "the table has these entries")
        var bytes: [UInt8] = []
        for entry in entries { bytes.append(number: entry.rawValue) }
        try file.write(bytes, at: tableStart + block * BlockEntry.byteCount)
    }

    /// Reads the head. The first read usually has all of it; only a very long head needs a second one.
    private static func head(of file: DiskFile, _ identity: SegmentIdentity) throws(DiskFileError) -> StoredHead {
        var part = try read(file, 4096, at: 0)
        let length: Int
        do throws(RecordError) {
            length = try RecordHeader(unsafe part.span.bytes).headPartLength
        } catch { throw .header(error) }
        if length > part.count { part = try read(file, length, at: 0) }
        do throws(RecordError) { return try decode(part, identity) } catch { throw .header(error) }
    }

    /// Decodes the head part of a large object.
    package static func decode(_ part: [UInt8], _ identity: SegmentIdentity) throws(RecordError) -> StoredHead {
        let (header, content) = try RecordCodec.decode(unsafe part.span.bytes, in: identity, at: 0)
        guard header.kind == .large, case .object(let head) = content else { throw .unknownKind(header.kind.rawValue) }
        return head
    }

    /// Reads bytes and waits for them; fewer at the end of the file.
    private static func read(_ file: DiskFile, _ count: Int, at offset: Int) throws(DiskFileError) -> [UInt8] {
        do throws(DiskReadError) {
            return try file.bytes(count, at: offset, waits: true)
        } catch .failed(let code) { throw .failed(errno: code) } catch { throw .failed(errno: EIO) }
    }
}

/// What the table says of one block: its checksum in the lower 32 bits, its length above them, and in the highest bit that it is
/// present.
struct BlockEntry: RawRepresentable, Equatable, Sendable {
    static let byteCount = 8
    static let absent = BlockEntry(rawValue: 0)
    let rawValue: UInt64

    init(rawValue: UInt64) { self.rawValue = rawValue }

    init(length: Int, checksum: UInt32) {
        precondition(length > 0 && length <= blockBytes, "a block has between 1 byte and 64 KiB")
        rawValue = UInt64(checksum) | (UInt64(length) | 1 << 31) << 32
    }

    var checksum: UInt32 { UInt32(truncatingIfNeeded: rawValue) }

    /// Whether this is the entry of a present block of that length.
    func isOf(length: Int) -> Bool { rawValue >> 32 == UInt64(length) | 1 << 31 }
}
