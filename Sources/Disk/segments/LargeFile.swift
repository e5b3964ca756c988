import Glibc

/// The file of one large object (docs/storage-format.md): a head part of a multiple of 4096 bytes, a table with 8 bytes for each
/// block, and the blocks at fixed places. `LargeLayout` says where each of them begins.
///
/// Bytes of a block are written before its entry in the table. Nothing is synchronized in between, so a power cut may keep the
/// entry and lose the bytes: readers trust the checksum in the entry alone (`LargeBlocks`). The content of a block never changes:
/// writing it again writes the same bytes.
///
/// Threads: as `LargeBlocks`.
package final class LargeFile: Sendable {
    package let path: String
    /// The head as it is in the file. A renewed head is in the book.
    package let head: StoredHead
    private let blocks: LargeBlocks
    private let layout: LargeLayout
    private let name: FileName

    package var id: ObjectID { head.id }
    package var place: Place { head.place }
    package var length: Int { layout.length }
    package var blockCount: Int { layout.blockCount }
    /// The length of the whole file.
    package var fileBytes: UInt64 { layout.fileBytes }

    /// - Parameter name: of the file, to be synchronized with it.
    init(_ path: String, _ head: StoredHead, _ layout: LargeLayout, _ blocks: LargeBlocks, _ name: FileName) {
        precondition(head.place.kind == .large && head.place.offset == 0, "the file has one record, at its beginning")
        precondition(head.place.bodyLength == UInt64(layout.length), "the layout is that of the object")
        precondition(blocks.entries.count == layout.blockCount, "the table has one entry for each block")
        self.path = path
        self.head = head
        self.layout = layout
        self.blocks = blocks
        self.name = name
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
        let layout = LargeLayout(headPart: part.count, length: length, tableIsBehind: false)
        do throws(DiskFileError) {
            try file.allocate(layout.end)
            // `allocate` leaves the length of the file as it is. If the file system cannot allocate, the file is sparse.
            try file.truncate(to: layout.end)
            try file.write(part, at: 0)
        } catch {
            _ = calls.unlink(path)  // report the first error
            throw error
        }
        let table = [BlockEntry](repeating: .absent, count: layout.blockCount)
        return LargeFile(
            path, stored, layout, LargeBlocks(file, at: layout.blocksStart, table), FileName(path, isNew: true))
    }

    /// Opens a file and reads its head and table. Blocks. Throws `header(.unwritten)` for the file of an object that never was
    /// whole (`GrowingFile`).
    /// - Parameter writes: whether blocks may be written.
    package static func open(
        _ path: String, _ identity: SegmentIdentity, writes: Bool = true, calls: any DiskCalls
    ) throws(DiskFileError) -> LargeFile {
        let file = try DiskFile.open(path, flags: writes ? O_RDWR : O_RDONLY, calls: calls)
        let (head, layout) = try head(of: file, identity)
        let length = layout.length
        let bytes = try read(file, layout.blockCount * BlockEntry.byteCount, at: layout.tableStart)
        let table = (0..<layout.blockCount).map { block in
            let end = (block + 1) * BlockEntry.byteCount
            guard end <= bytes.count else { return BlockEntry.absent }
            let entry = BlockEntry(rawValue: unsafe bytes.span.bytes.number(at: end - BlockEntry.byteCount))
            // An entry that cannot be ours was left by a power cut or by damage: the block counts as absent and is fetched again.
            return entry.isOf(length: min(blockBytes, length - block * blockBytes)) ? entry : .absent
        }
        return LargeFile(
            path, head, layout, LargeBlocks(file, at: layout.blocksStart, table), FileName(path, isNew: false))
    }

    /// How long the file of a large object is whose length is known. Returns nil if the object is too large for any file.
    package static func fileBytes(
        key: [UInt8], attributes: ObjectAttributes, head: [UInt8], length: Int
    ) -> UInt64? {
        let part = RecordCodec.headPartLength(
            kind: .large, key: key, attributes: attributes, head: head, bodyLength: length)
        guard let part, UInt64(length) < RecordHeader.recordBytesMax - UInt64(part) else { return nil }
        return LargeLayout(headPart: part, length: length, tableIsBehind: false).fileBytes
    }

    // MARK: which blocks are present

    /// The blocks that are present, as ranges of bytes: in order, adjacent ones joined.
    package var extents: [Range<Int>] { blocks.extents }
    package var isComplete: Bool { blocks.isComplete }
    package func has(block: Int) -> Bool {
        precondition(block >= 0 && block < blockCount, "the object has this block")
        return blocks.has(block: block)
    }

    // MARK: writing

    /// Writes the bytes of a whole block; the last one may be shorter. `publish` must follow.
    /// - Parameter offset: where the block begins in `source`.
    package func write(block: Int, from source: any BodyBytes, at offset: Int) throws(DiskFileError) -> WrittenBlock {
        precondition(block >= 0 && block < blockCount, "the object has this block")
        return try blocks.write(block: block, from: source, at: offset, count: byteCount(ofBlock: block))
    }

    private func byteCount(ofBlock block: Int) -> Int { min(blockBytes, length - block * blockBytes) }

    /// Enters blocks into the table, first in the file and then in memory: from here on they can be read. If writing fails, none
    /// of them can.
    package func publish(_ written: [WrittenBlock]) throws(DiskFileError) {
        precondition(
            written.allSatisfy { $0.entry.isOf(length: byteCount(ofBlock: $0.block)) },
            "an entry has the length of its block")
        var left = written.sorted { $0.block < $1.block }[...]
        while let first = left.first {
            // One write for each run of adjacent blocks.
            let run = left.enumerated().prefix { $1.block == first.block + $0 }.count
            precondition(run > 0, "a run has at least its first block")
            try write(left.prefix(run).map(\.entry), from: first.block)
            left = left.dropFirst(run)
        }
        blocks.enter(written)
    }

    /// Takes a block out of the table, first in memory and then in the file: no reader may see it once its entry is going away.
    package func remove(block: Int) throws(DiskFileError) {
        precondition(block >= 0 && block < blockCount, "the object has this block")
        blocks.remove(block: block)
        try write([.absent], from: block)
    }

    /// Writes entries of the table. Eight bytes each: no entry crosses a sector, so a power cut leaves it old or new.
    private func write(_ entries: [BlockEntry], from block: Int) throws(DiskFileError) {
        precondition(block >= 0 && block + entries.count <= blockCount, "the table has these entries")
        try blocks.file.write(entries.bytes, at: layout.tableStart + block * BlockEntry.byteCount)
    }

    /// Puts everything written on the medium, and after the first call the name of the file too.
    package func synchronize() throws(DiskFileError) {
        try blocks.file.synchronize()
        try name.synchronize(calls: blocks.file.calls)
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
            offset >= 0 && end <= length && (end % blockBytes == 0 || end == length), "a read covers whole blocks")
        return unsafe blocks.read(from: offset, into: room, waits: waits)
    }

    /// As `LargeBlocks.cached`.
    func cached(from offset: Int, limit: Int) -> OpenFileRange? { blocks.cached(from: offset, limit: limit) }

    /// Tells the kernel that these bytes will be wanted soon.
    package func readAhead(from offset: Int, length: Int) { blocks.readAhead(from: offset, length: length) }
}

extension [BlockEntry] {
    /// As they stand in a table.
    var bytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count * BlockEntry.byteCount)
        for entry in self { bytes.append(number: entry.rawValue) }
        return bytes
    }
}

// MARK: the head

extension LargeFile {
    /// Reads the head. The first read usually has all of it; only a very long head needs a second one.
    private static func head(
        of file: DiskFile, _ identity: SegmentIdentity
    ) throws(DiskFileError) -> (StoredHead, LargeLayout) {
        var part = try read(file, 4096, at: 0)
        if part.allSatisfy({ $0 == 0 }) { throw .header(.unwritten) }
        let header: RecordHeader
        do throws(RecordError) { header = try RecordHeader(unsafe part.span.bytes) } catch { throw .header(error) }
        if header.headPartLength > part.count { part = try read(file, header.headPartLength, at: 0) }
        do throws(RecordError) {
            let head = try decode(part, identity)
            return (
                head,
                LargeLayout(
                    headPart: header.headPartLength, length: Int(head.place.bodyLength),
                    tableIsBehind: header.tableIsBehind)
            )
        } catch { throw .header(error) }
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
