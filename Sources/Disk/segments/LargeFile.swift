import EventLoop
import Glibc

/// The file of one large object (docs/storage-format.md): a head part of a multiple of 4096 bytes, a table with 8 bytes per block, and
/// from the next multiple of 4096 on the blocks at fixed places, each there or not.
///
/// A block is there where its entry says so and its checksum is right; one that is found damaged is no longer there. Any thread
/// reads; blocks are written by any thread, each by one at a time. What an object's bytes are never changes: a block that is
/// written again gets the same.
package final class LargeFile: Sendable {
    package let path: String
    /// As it stands in the file.
    package let head: StoredHead
    private let file: DiskFile
    private let name: FileName
    /// Per block: its entry in the table, zero where it is not there.
    private let table: Locked<[BlockEntry]>

    package var id: ObjectID { head.id }
    package var place: Place { head.place }
    package var length: Int { Int(head.place.bodyLength) }
    package var blockCount: Int { (length + blockBytes - 1) / blockBytes }
    /// Of the whole file.
    package var fileBytes: UInt64 { UInt64(dataStart + padded(length, to: 4096)) }

    private var tableStart: Int { Int(head.place.headLength) }
    private var dataStart: Int { LargeFile.dataStart(headPart: tableStart, length: length) }

    private init(_ path: String, _ head: StoredHead, _ file: DiskFile, _ table: [BlockEntry], isNew: Bool) {
        self.path = path
        self.head = head
        self.file = file
        self.table = Locked(table)
        name = FileName(path, isNew: isNew)
    }

    // MARK: life

    /// Makes the file and takes its room; nothing is there yet. There must be no such file; where it fails there is none.
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
            _ = calls.unlink(path)  // the first error is the one to be told
            throw error
        }
        let table = [BlockEntry](repeating: .absent, count: (length + blockBytes - 1) / blockBytes)
        return LargeFile(path, stored, file, table, isNew: true)
    }

    /// Opens a file and reads its head and table. Blocks.
    /// - Parameter writes: false: for reading alone.
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

    /// The bytes of the file that a large object takes; nil: it can not be one.
    package static func fileBytes(
        key: [UInt8], attributes: ObjectAttributes, head: [UInt8], length: Int
    ) -> UInt64? {
        let part = RecordCodec.headPartLength(
            kind: .large, key: key, attributes: attributes, head: head, bodyLength: length)
        guard let part, UInt64(length) < RecordHeader.recordBytesMax - UInt64(part) else { return nil }
        return UInt64(dataStart(headPart: part, length: length) + padded(length, to: 4096))
    }

    // MARK: what is there

    /// The blocks that are there, as ranges of bytes: in order, never adjacent.
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
    package func has(block: Int) -> Bool { table.withLock { $0[block] != .absent } }

    // MARK: writing

    /// A block that is written, and not yet in the table.
    package struct WrittenBlock: Sendable {
        package let block: Int
        fileprivate let entry: BlockEntry
    }

    /// Writes the bytes of a whole block (the last may be shorter).
    /// - Parameter offset: of the block's first byte in `source`.
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

    /// Enters blocks into the table, on the disk and then in memory: from here on they can be read. Where it fails none of them
    /// can.
    package func publish(_ blocks: [WrittenBlock]) throws(DiskFileError) {
        var left = blocks.sorted { $0.block < $1.block }[...]
        while let first = left.first {
            // As many as stand side by side.
            let run = left.enumerated().prefix { $1.block == first.block + $0 }.count
            try write(left.prefix(run).map(\.entry), from: first.block)
            left = left.dropFirst(run)
        }
        table.withLock { table in
            for written in blocks { table[written.block] = written.entry }
        }
    }

    /// Takes a block out of the table, in memory and on the disk.
    package func remove(block: Int) throws(DiskFileError) {
        table.withLock { $0[block] = .absent }
        try write([.absent], from: block)
    }

    /// Puts what was written on the medium, and the first time the file's name as well.
    package func synchronize() throws(DiskFileError) {
        try file.synchronize()
        try name.synchronize(calls: file.calls)
    }

    // MARK: reading

    /// Reads blocks and compares their checksums; one that is damaged is no longer there, in memory: its entry is put right when it
    /// is written anew. Blocks that are not there are `damaged`.
    /// - Parameters:
    ///   - offset: a multiple of `blockBytes`.
    ///   - room: whole blocks, or up to the end of the object.
    package func read(from offset: Int, into room: UnsafeMutableRawBufferPointer, waits: Bool) -> DiskRead {
        let end = offset + room.count
        precondition(
            offset >= 0 && offset % blockBytes == 0 && end <= length && (end % blockBytes == 0 || end == length),
            "whole blocks")
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

    /// Tells the kernel that the bytes will be wanted soon.
    package func readAhead(from offset: Int, length: Int) { file.readAhead(dataStart + offset, length) }
}

extension LargeFile {
    private static func dataStart(headPart: Int, length: Int) -> Int {
        padded(headPart + (length + blockBytes - 1) / blockBytes * BlockEntry.byteCount, to: 4096)
    }

    private func range(_ block: Int) -> Range<Int> { block * blockBytes..<min((block + 1) * blockBytes, length) }

    private func write(_ entries: [BlockEntry], from block: Int) throws(DiskFileError) {
        var bytes: [UInt8] = []
        for entry in entries { bytes.append(number: entry.rawValue) }
        try file.write(bytes, at: tableStart + block * BlockEntry.byteCount)
    }

    private static func head(of file: DiskFile, _ identity: SegmentIdentity) throws(DiskFileError) -> StoredHead {
        var part = try read(file, 4096, at: 0)
        let length: Int
        do throws(RecordError) {
            length = try RecordHeader(unsafe part.span.bytes).headPartLength
        } catch { throw .header(error) }
        if length > part.count { part = try read(file, length, at: 0) }
        do throws(RecordError) { return try decode(part, identity) } catch { throw .header(error) }
    }

    /// Reads the head part of a large object.
    package static func decode(_ part: [UInt8], _ identity: SegmentIdentity) throws(RecordError) -> StoredHead {
        let (header, content) = try RecordCodec.decode(unsafe part.span.bytes, in: identity, at: 0)
        guard header.kind == .large, case .object(let head) = content else { throw .unknownKind(header.kind.rawValue) }
        return head
    }

    private static func read(_ file: DiskFile, _ count: Int, at offset: Int) throws(DiskFileError) -> [UInt8] {
        do throws(DiskReadError) {
            return try file.bytes(count, at: offset, waits: true)
        } catch .failed(let code) { throw .failed(errno: code) } catch { throw .failed(errno: EIO) }
    }
}

/// What the table of a large object says of one block: its checksum in the lower 32 bits; above them its length, and bit 31 for
/// being there.
struct BlockEntry: RawRepresentable, Equatable, Sendable {
    static let byteCount = 8
    static let absent = BlockEntry(rawValue: 0)
    let rawValue: UInt64

    init(rawValue: UInt64) { self.rawValue = rawValue }

    init(length: Int, checksum: UInt32) {
        rawValue = UInt64(checksum) | (UInt64(length) | 1 << 31) << 32
    }

    var checksum: UInt32 { UInt32(truncatingIfNeeded: rawValue) }

    /// False for anything that is not an entry of a block of that length that is there.
    func isOf(length: Int) -> Bool { rawValue >> 32 == UInt64(length) | 1 << 31 }
}
