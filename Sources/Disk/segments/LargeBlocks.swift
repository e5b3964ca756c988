import EventLoop
import Glibc

/// The blocks of a large object in its file, and in memory the table that says which of them are present.
///
/// A block is present if the table has an entry for it and the checksum in that entry matches the bytes. A block whose bytes do
/// not match is absent from then on. Where the table stands in the file, and whether it stands there at all, is for the owner to
/// know (`LargeFile`, `GrowingFile`).
///
/// Threads: any thread reads. Any thread may write a block, but no block is written by two threads at once.
final class LargeBlocks: Sendable {
    let file: DiskFile
    /// Where the first block begins in the file.
    private let start: Int
    /// One entry for each block, `absent` if the block is not present.
    private let table: Locked<[BlockEntry]>

    /// A bit for each block that was read and found right. A block that leaves the page cache is read again first.
    private let verified = Locked<[UInt64]>([])

    init(_ file: DiskFile, at start: Int, _ table: [BlockEntry]) {
        precondition(start % 4096 == 0, "blocks begin at a multiple of 4096")
        self.file = file
        self.start = start
        self.table = Locked(table)
    }

    // MARK: which blocks are present

    var entries: [BlockEntry] { table.withLock { $0 } }

    /// The blocks that are present, as ranges of bytes: in order, adjacent ones joined.
    var extents: [Range<Int>] {
        table.withLock { table in
            var extents: [Range<Int>] = []
            for (block, entry) in table.enumerated() where entry != .absent {
                let range = block * blockBytes..<block * blockBytes + entry.length
                if let last = extents.last, last.upperBound == range.lowerBound {
                    extents[extents.count - 1] = last.lowerBound..<range.upperBound
                } else {
                    extents.append(range)
                }
            }
            return extents
        }
    }

    /// No entry of the table is absent.
    var isComplete: Bool { table.withLock { !$0.contains(.absent) } }

    func has(block: Int) -> Bool { table.withLock { block < $0.count && $0[block] != .absent } }

    // MARK: writing

    /// Writes the bytes of a block. `enter` must follow.
    /// - Parameters:
    ///   - offset: where the block begins in `source`.
    ///   - count: bytes of the block; only the last one is shorter than `blockBytes`.
    func write(
        block: Int, from source: any BodyBytes, at offset: Int, count: Int
    ) throws(DiskFileError) -> WrittenBlock {
        precondition(block >= 0 && count > 0 && count <= blockBytes, "a block has between 1 byte and 64 KiB")
        var vectors = unsafe [iovec]()
        var checksum = Checksum()
        unsafe source.forEachVector(from: offset, length: count) { vector in
            unsafe checksum.add(UnsafeRawBufferPointer(start: vector.iov_base, count: vector.iov_len))
            unsafe vectors.append(vector)
        }
        let place = start + block * blockBytes
        let outcome = unsafe vectors.withUnsafeMutableBufferPointer { vectors in
            Result { () throws(DiskFileError) in unsafe try file.write(vectors, at: place) }
        }
        try outcome.get()
        return WrittenBlock(block: block, entry: BlockEntry(length: count, checksum: checksum.value))
    }

    /// Enters written blocks into the table in memory: from here on they can be read.
    func enter(_ blocks: [WrittenBlock]) {
        table.withLock { table in
            for written in blocks {
                while table.count <= written.block { table.append(.absent) }
                table[written.block] = written.entry
            }
        }
    }

    func remove(block: Int) {
        table.withLock { $0[block] = .absent }
        markVerified(block..<block + 1, false)
    }

    private func markVerified(_ blocks: Range<Int>, _ isVerified: Bool) {
        verified.withLock { words in
            for block in blocks where isVerified || block / 64 < words.count {
                while words.count <= block / 64 { words.append(0) }
                if isVerified {
                    words[block / 64] |= 1 << UInt64(block % 64)
                } else {
                    words[block / 64] &= ~(1 << UInt64(block % 64))
                }
            }
        }
    }

    // MARK: reading

    /// Reads blocks and compares their checksums. Returns `damaged` if a block is absent, or was damaged: then it is absent
    /// afterwards.
    /// - Parameters:
    ///   - offset: a multiple of `blockBytes`.
    ///   - room: a buffer for whole blocks; it may end with the last one.
    func read(from offset: Int, into room: UnsafeMutableRawBufferPointer, waits: Bool) -> DiskRead {
        precondition(offset >= 0 && offset % blockBytes == 0, "a read begins with a block")
        let blocks = offset / blockBytes..<(offset + room.count + blockBytes - 1) / blockBytes
        let entries = table.withLock { table in
            blocks.upperBound <= table.count ? Array(table[blocks]) : [.absent]
        }
        guard !entries.contains(.absent) else { return .damaged }
        let got = unsafe file.read(into: room, at: start + offset, waits: waits)
        guard got >= 0 else { return DiskRead(DiskReadError(got)) }
        var outcome = DiskRead.done
        for (block, entry) in zip(blocks, entries) {
            let first = block * blockBytes - offset
            precondition(first + entry.length <= room.count, "a read covers whole blocks")
            let bytes = unsafe UnsafeRawBufferPointer(rebasing: room[first..<first + entry.length])
            if first + bytes.count <= got, unsafe Checksum.crc32c(bytes) == entry.checksum { continue }
            outcome = .damaged
            table.withLock { table in
                if table[block] == entry { table[block] = .absent }
            }
        }
        markVerified(blocks, outcome == .done)
        return outcome
    }

    /// The bytes from `offset` on that were verified and are in the page cache, at most `limit`. Nil if there are none: `read` them.
    func cached(from offset: Int, limit: Int) -> OpenFileRange? {
        precondition(offset >= 0 && limit > 0, "a range has bytes")
        let first = offset / blockBytes
        let most = (offset + min(limit, Self.cachedBytesMax) + blockBytes - 1) / blockBytes
        let end = verified.withLock { words in
            (first..<most).first { $0 / 64 >= words.count || words[$0 / 64] & 1 << UInt64($0 % 64) == 0 } ?? most
        }
        let presentEnd = table.withLock { table in
            let blocks = table[min(first, table.count)..<min(end, table.count)].prefix { $0 != .absent }
            return blocks.reduce(first * blockBytes) { $0 + $1.length }
        }
        let count = min(presentEnd - offset, limit, Self.cachedBytesMax)
        guard count > 0 else { return nil }
        if let range = file.cached(start + offset, count) { return range }
        markVerified(first..<end, false)
        return nil
    }

    /// At most so many bytes are sent at once: they may leave the page cache while they are sent.
    private static let cachedBytesMax = 1 << 20

    /// Tells the kernel that these bytes will be wanted soon.
    func readAhead(from offset: Int, length: Int) { file.readAhead(start + offset, length) }
}

/// A block whose bytes are written and whose entry is not.
package struct WrittenBlock: Sendable {
    package let block: Int
    let entry: BlockEntry
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

    /// Bytes of the block; 0 where it is absent.
    var length: Int { Int(rawValue >> 32 & 0x7FFF_FFFF) }

    /// Whether this is the entry of a present block of that length.
    func isOf(length: Int) -> Bool { rawValue >> 32 == UInt64(length) | 1 << 31 }
}
