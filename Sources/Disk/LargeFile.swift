/// The file of one large object (docs/storage-format.md): a head part of a multiple of 4096 bytes, a table with 8 bytes per block, and
/// from the next multiple of 4096 on the blocks at fixed places, each there or not.
///
/// A block is there where its entry says so and its checksum is right; one that is found damaged is no longer there. Any thread
/// reads; blocks are written by any thread, each by one at a time.
package final class LargeFile: @unchecked Sendable {
    package let path: String
    /// As it was read, or written.
    package let head: StoredHead

    package var id: ObjectID { head.id }
    package var place: Place { head.place }
    package var length: Int { Int(head.place.bodyLength) }
    package var blockCount: Int { (length + blockBytes - 1) / blockBytes }
    /// Of the whole file.
    package var fileBytes: UInt64 { fatalError() }

    /// Makes the file and takes its room; nothing is there yet. There must be no such file; where it fails there is none.
    package static func create(
        _ path: String, _ identity: SegmentIdentity, id: ObjectID, key: [UInt8], attributes: ObjectAttributes,
        head: [UInt8], length: Int, calls: any DiskCalls
    ) throws(DiskFileError) -> LargeFile { fatalError() }

    /// Opens a file and reads its head and table. Blocks.
    package static func open(
        _ path: String, _ identity: SegmentIdentity, calls: any DiskCalls
    ) throws(DiskFileError) -> LargeFile { fatalError() }

    /// The bytes of the file that a large object takes; nil: it can not be one.
    package static func fileBytes(
        key: [UInt8], attributes: ObjectAttributes, head: [UInt8], length: Int
    ) -> UInt64? { fatalError() }

    /// The blocks that are there, as ranges of bytes: in order, never adjacent.
    package var extents: [Range<Int>] { fatalError() }
    package var isComplete: Bool { fatalError() }
    package func has(block: Int) -> Bool { fatalError() }

    /// A block that is written, and not yet in the table.
    package struct WrittenBlock: Sendable {
        package let block: Int
        let entry: UInt64
    }

    /// Writes the bytes of a whole block (the last may be shorter).
    /// - Parameter offset: of the block's first byte in `source`.
    package func write(block: Int, from source: any BodyBytes, at offset: Int) throws(DiskFileError) -> WrittenBlock {
        fatalError()
    }

    /// Enters blocks into the table: from here on they can be read.
    package func publish(_ blocks: [WrittenBlock]) throws(DiskFileError) { fatalError() }

    /// Takes a block out of the table.
    package func remove(block: Int) throws(DiskFileError) { fatalError() }

    /// Puts what was written on the medium, and the first time the file's name as well.
    package func synchronize() throws(DiskFileError) { fatalError() }

    /// Reads blocks and compares their checksums; one that is damaged is taken out of the table.
    /// - Parameters:
    ///   - offset: a multiple of `blockBytes`.
    ///   - room: whole blocks, or up to the end of the object.
    package func read(from offset: Int, into room: UnsafeMutableRawBufferPointer, waits: Bool) -> DiskRead {
        fatalError()
    }

    /// Tells the kernel that the bytes will be wanted soon.
    package func readAhead(from offset: Int, length: Int) { fatalError() }

    init(path: String, head: StoredHead) {
        self.path = path
        self.head = head
    }
}
