import EventLoop
import Glibc

/// One open segment: a header of 4096 bytes, then records one behind the other (docs/storage-format.md).
///
/// A segment is only appended to by the process that created it. A file that was opened is never written again: behind its last
/// whole record a crash may have left anything, and no later record may follow that. Damage is reported and left as it is.
///
/// Threads: any thread reads, also while the file is being deleted. Only the writer appends, and only it touches `end` and
/// `spoiled`.
package final class SegmentFile: @unchecked Sendable {  // see "Threads" above
    package static let headerBytes = SegmentHeader.byteCount

    package let path: String
    package let identity: SegmentIdentity
    private let file: DiskFile
    private let name: FileName
    private let isWritable: Bool
    /// Where the next record goes. Zero if the file was opened.
    package private(set) var end: UInt64
    /// The error after which a partly written batch could not be cut off: every further write throws it.
    private var spoiled: DiskFileError?

    private init(_ path: String, _ identity: SegmentIdentity, _ file: DiskFile, isWritable: Bool) {
        self.path = path
        self.identity = identity
        self.file = file
        self.isWritable = isWritable
        name = FileName(path, isNew: isWritable)
        end = isWritable ? UInt64(SegmentFile.headerBytes) : 0
    }

    /// Creates the file. There must be none, and there is none if this fails. File and name are on the medium after the first
    /// `synchronize`.
    /// - Parameters:
    ///   - created: seconds of the wall clock.
    ///   - room: how many bytes to allocate at once. Zero: the file grows as it is written.
    package static func create(
        _ path: String, _ identity: SegmentIdentity, created: Int64, room: Int, calls: any DiskCalls
    ) throws(DiskFileError) -> SegmentFile {
        precondition(room >= 0, "no negative number of bytes is allocated")
        let file = try DiskFile.open(path, flags: O_RDWR | O_CREAT | O_EXCL, calls: calls)
        do throws(DiskFileError) {
            if room > 0 { try file.allocate(room) }
            try file.write(SegmentHeader(identity: identity, created: created).bytes, at: 0)
        } catch {
            _ = calls.unlink(path)  // report the first error
            throw error
        }
        return SegmentFile(path, identity, file, isWritable: true)
    }

    /// Opens a file for reading.
    /// - Parameter checksHeader: false: trust the records alone, which say themselves where they belong.
    package static func open(
        _ path: String, _ identity: SegmentIdentity, checksHeader: Bool = true, calls: any DiskCalls
    ) throws(DiskFileError) -> SegmentFile {
        let file = try DiskFile.open(path, flags: O_RDONLY, calls: calls)
        if checksHeader {
            let bytes: [UInt8]
            do throws(DiskReadError) {
                bytes = try file.bytes(headerBytes, at: 0, waits: true)
            } catch .failed(let code) { throw .failed(errno: code) } catch { throw .failed(errno: EIO) }
            do throws(RecordError) {
                let header = try SegmentHeader(unsafe bytes.span.bytes)
                guard header.identity == identity else { throw .wrongPlace }
            } catch { throw .header(error) }
        }
        return SegmentFile(path, identity, file, isWritable: false)
    }

    /// The length of the file.
    package func length() throws(DiskFileError) -> UInt64 { UInt64(try file.length()) }

    // MARK: writing

    /// Writes the batch at `end`, for which it was made. If that fails, nothing of the batch remains, `end` is unchanged, and the
    /// same place can be tried again. If even the rest of the batch cannot be cut off, every further write fails.
    package func append(_ batch: RecordBatch) throws(DiskFileError) {
        precondition(isWritable && batch.identity == identity && batch.start == end, "a batch is made for its place")
        precondition(batch.byteCount % 16 == 0, "records end at a multiple of 16")
        precondition(end >= UInt64(SegmentFile.headerBytes) && end % 16 == 0, "records stand behind the header")
        if let spoiled { throw spoiled }
        do throws(DiskFileError) {
            unsafe try batch.withVectors { vectors throws(DiskFileError) in unsafe try file.write(vectors, at: Int(end))
            }
        } catch {
            // A later scan would find the whole records of the batch, although nobody was told that they are stored.
            do throws(DiskFileError) { try file.truncate(to: Int(end)) } catch { spoiled = error }
            throw error
        }
        end += UInt64(batch.byteCount)
    }

    /// Puts everything appended on the medium, and after the first call the name of the file too. Any thread may call this.
    package func synchronize() throws(DiskFileError) {
        try file.synchronize()
        try name.synchronize(calls: file.calls)
    }

    /// Releases space that was allocated in advance. Nothing is appended after this.
    package func finish() throws(DiskFileError) {
        precondition(isWritable, "only a file that is being written is finished")
        precondition(end >= UInt64(SegmentFile.headerBytes), "the header of a segment stays")
        try file.truncate(to: Int(end))
    }

    // MARK: reading

    /// Reads the head part at a place. The index knows the body length only in units of 16; the result has the exact one.
    package func readHead(_ place: Place, waits: Bool) throws(DiskReadError) -> StoredHead {
        precondition(place.offset % 16 == 0, "a record begins at a multiple of 16")
        return try head(file.bytes(Int(place.headLength), at: Int(place.offset), waits: waits), place)
    }

    /// Reads blocks of a body and compares their checksums.
    /// - Parameters:
    ///   - place: with the exact length of the body.
    ///   - offset: in the body, a multiple of `blockBytes`.
    ///   - room: a buffer for whole blocks; it may end with the body.
    package func readBody(
        of place: Place, checksums: [UInt32], offset: Int, into room: UnsafeMutableRawBufferPointer, waits: Bool
    ) -> DiskRead {
        precondition(offset >= 0 && offset + room.count <= place.bodyLength, "a read stays within the body")
        let got = unsafe file.read(into: room, at: Int(place.offset) + Int(place.headLength) + offset, waits: waits)
        guard got >= 0 else { return DiskRead(DiskReadError(got)) }
        guard got == room.count, unsafe isRight(room, offset, Int(place.bodyLength), checksums) else { return .damaged }
        return .done
    }

    /// Bytes of a body that were verified before. Nil if reading them may block.
    package func cachedBody(of place: Place, from offset: Int, count: Int) -> OpenFileRange? {
        precondition(offset >= 0 && count > 0 && offset + count <= place.bodyLength, "a range lies within the body")
        return file.cached(Int(place.offset) + Int(place.headLength) + offset, count)
    }

    /// Reads head and body in one call.
    /// - Parameter room: a buffer of the exact or of the padded length of the body.
    package func readRecord(
        _ place: Place, into room: UnsafeMutableRawBufferPointer, waits: Bool
    ) throws(DiskReadError) -> StoredHead {
        precondition(
            UInt64(padded(room.count, to: 16)) == padded(place.bodyLength, to: 16),
            "the buffer has the length of the body")
        var got = 0
        let headLength = Int(place.headLength)
        let part = unsafe [UInt8](unsafeUninitializedCapacity: headLength) { part, initialized in
            unsafe withUnsafeTemporaryAllocation(of: iovec.self, capacity: 2) { vectors in
                unsafe vectors.initializeElement(at: 0, to: iovec(iov_base: part.baseAddress, iov_len: headLength))
                unsafe vectors.initializeElement(at: 1, to: iovec(iov_base: room.baseAddress, iov_len: room.count))
                got = unsafe file.read(vectors, at: Int(place.offset), waits: waits)
            }
            initialized = min(max(got, 0), headLength)
        }
        guard got >= 0 else { throw DiskReadError(got) }
        let head = try head(part, place)
        let length = Int(head.place.bodyLength)
        guard got == headLength + room.count, length <= room.count,
            unsafe isRight(.init(rebasing: room[..<length]), 0, length, head.checksums)
        else { throw .damaged }
        return head
    }

    /// Reads up to `count` bytes, for scans; fewer at the end of the file.
    func bytes(_ count: Int, at offset: UInt64) throws(DiskReadError) -> [UInt8] {
        try file.bytes(count, at: Int(offset), waits: true)
    }

    private func head(_ part: [UInt8], _ place: Place) throws(DiskReadError) -> StoredHead {
        guard place.segment == identity.number else { throw .damaged }
        do throws(RecordError) {
            let content = try RecordCodec.decode(unsafe part.span.bytes, in: identity, at: place.offset).content
            guard case .object(let head) = content, head.place.kind == place.kind,
                head.place.headLength == place.headLength, head.place.recordLength == place.recordLength
            else { throw .wrongPlace }
            return head
        } catch { throw .damaged }
    }
}

/// Compares the blocks of a body, read from `offset` on, with their checksums.
func isRight(
    _ bytes: UnsafeMutableRawBufferPointer, _ offset: Int, _ bodyLength: Int, _ checksums: [UInt32]
) -> Bool {
    precondition(offset >= 0 && offset + bytes.count <= bodyLength, "the blocks lie within the body")
    precondition(
        offset % blockBytes == 0 && (bytes.count % blockBytes == 0 || offset + bytes.count == bodyLength),
        "a read covers whole blocks")
    var at = 0
    while at < bytes.count {
        let end = min(at + blockBytes, bytes.count)
        let block = (offset + at) / blockBytes
        guard block < checksums.count,
            unsafe Checksum.crc32c(UnsafeRawBufferPointer(rebasing: bytes[at..<end])) == checksums[block]
        else { return false }
        at = end
    }
    return true
}

/// The name of a new file in its directory, which has to be synchronized once.
final class FileName: Sendable {
    private let path: String
    private let isNew: Locked<Bool>

    init(_ path: String, isNew: Bool) {
        self.path = path
        self.isNew = Locked(isNew)
    }

    func synchronize(calls: any DiskCalls) throws(DiskFileError) {
        // Two threads may both do this, which does no harm. It is noted only after it succeeded, so that a failure is tried again.
        guard isNew.withLock({ $0 }) else { return }
        try DiskFile.synchronizeDirectory(of: path, calls: calls)
        isNew.withLock { $0 = false }
    }
}
