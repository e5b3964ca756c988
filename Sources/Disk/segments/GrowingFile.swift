import Glibc

/// The file of a large object whose length is not known yet: blocks from the end of the head part on, and zeros where the head
/// part will be. The table is in memory alone.
///
/// The head part is written last (`finish`). So a file that was left behind by a crash has none, and says of itself that it never
/// was whole: `LargeFile.open` refuses it, and the next start deletes it.
final class GrowingFile: Sendable {
    let path: String
    let blocks: LargeBlocks
    private let headPart: Int
    private let name: FileName

    private init(_ path: String, _ file: DiskFile, headPart: Int) {
        self.path = path
        self.headPart = headPart
        blocks = LargeBlocks(file, at: headPart, [])
        name = FileName(path, isNew: true)
    }

    /// Creates the file. There must be no such file, and there is none if this fails.
    /// - Parameter headPart: bytes that the head part will have.
    static func create(
        _ path: String, headPart: Int, bytes: UInt64, calls: any DiskCalls
    ) throws(DiskFileError) -> GrowingFile {
        precondition(headPart > 0 && headPart % 4096 == 0, "the head part of a large object is padded")
        let file = try DiskFile.open(path, flags: O_RDWR | O_CREAT | O_EXCL, calls: calls)
        do throws(DiskFileError) {
            try file.allocate(Int(bytes))
        } catch {
            _ = calls.unlink(path)  // report the first error
            throw error
        }
        return GrowingFile(path, file, headPart: headPart)
    }

    /// What the file of a body with this many blocks takes at most.
    static func fileBytes(headPart: Int, blocks: Int) -> UInt64 {
        LargeLayout(headPart: headPart, length: blocks * blockBytes, tableIsBehind: true).fileBytes
    }

    /// Allocates space for the file, so that it has this many bytes.
    func allocate(_ bytes: UInt64) throws(DiskFileError) { try blocks.file.allocate(Int(bytes)) }

    /// Whether exactly the blocks of a body of this length are present.
    func hasAll(_ length: Int) -> Bool { blocks.extents == (length > 0 ? [0..<length] : []) }

    /// Makes it the file of a whole object: writes the table, cuts off what is allocated behind it, and writes the head part. The
    /// head part comes last, so that a file that has one has the table as well. If this fails the file is as useless as before.
    func finish(
        _ length: Int, _ identity: SegmentIdentity, id: ObjectID, key: [UInt8], attributes: ObjectAttributes,
        head: [UInt8]
    ) throws(DiskFileError) -> LargeFile {
        precondition(hasAll(length), "all blocks are there")
        var part: [UInt8] = []
        let stored: StoredHead
        do throws(RecordError) {
            try RecordCodec.append(
                large: id, key: key, attributes: attributes, head: head, bodyLength: length, tableIsBehind: true,
                in: identity, to: &part)
            stored = try LargeFile.decode(part, identity)
        } catch { throw .header(error) }
        precondition(part.count == headPart, "the head part takes the bytes that were kept for it")
        let layout = LargeLayout(headPart: headPart, length: length, tableIsBehind: true)
        precondition(layout.blocksStart == headPart, "the blocks stay where they are")
        try blocks.file.write(blocks.entries.bytes, at: layout.tableStart)
        try blocks.file.truncate(to: layout.end)
        // Nothing is synchronized between these writes. If a power cut keeps the head part and loses the table, the blocks are
        // absent to the next process.
        try blocks.file.write(part, at: 0)
        return LargeFile(path, stored, layout, blocks, name)
    }

    /// Deletes the file. Whoever holds it can still read.
    func delete() { _ = blocks.file.calls.unlink(path) }
}
