/// One file of shared records, opened: a header of 4096 bytes, then records one behind the other (docs/storage-format.md).
///
/// Reading is for any thread, and goes on where the file is deleted meanwhile. One thread appends. What is found damaged here
/// is reported and left as it is.
package final class SegmentFile: @unchecked Sendable {
    package static let headerBytes = 4096

    package let path: String
    package let identity: SegmentIdentity
    private let file: DiskFile
    /// Where the next record goes; meant for the thread that appends.
    package private(set) var end: UInt64

    /// Makes the file; there must be none. It and its name are on the medium after the first `synchronize`.
    /// - Parameters:
    ///   - created: seconds of the wall clock.
    ///   - room: bytes to be taken for it at once; zero: as it grows.
    package static func create(
        _ path: String, _ identity: SegmentIdentity, created: Int64, room: Int, calls: any DiskCalls
    ) throws(DiskFileError) -> SegmentFile { fatalError() }

    /// Opens a file for reading.
    /// - Parameter checks: the header must be right; otherwise only records are looked at, which say themselves where they belong.
    package static func open(
        _ path: String, _ identity: SegmentIdentity, checksHeader: Bool = true, calls: any DiskCalls
    ) throws(DiskFileError) -> SegmentFile { fatalError() }

    /// Bytes of the file.
    package func length() throws(DiskFileError) -> UInt64 { fatalError() }

    /// Writes the batch at `end`. Where it fails `end` is where it was: the same place can be tried again.
    package func append(_ batch: RecordBatch) throws(DiskFileError) { fatalError() }

    /// Puts what was appended on the medium, and the first time the file's name as well.
    package func synchronize() throws(DiskFileError) { fatalError() }

    /// Cuts what was written beyond `end`, and gives the room taken in advance back: when nothing more is appended.
    package func finish() throws(DiskFileError) { fatalError() }

    /// Reads the head part at a place. Of `place.bodyLength` only the padded value matters; the result has the exact one.
    package func readHead(_ place: Place, waits: Bool) throws(DiskReadError) -> StoredHead { fatalError() }

    /// Reads blocks of a body and compares their checksums.
    /// - Parameters:
    ///   - place: with the exact length of the body.
    ///   - offset: in the body, a multiple of `blockBytes`.
    ///   - room: whole blocks, or up to the end of the body.
    package func readBody(
        of place: Place, checksums: [UInt32], offset: Int, into room: UnsafeMutableRawBufferPointer, waits: Bool
    ) -> DiskRead { fatalError() }

    /// Reads head and body in one call.
    /// - Parameter room: of the body's exact length, or of the padded one where only that is known.
    package func readRecord(
        _ place: Place, into room: UnsafeMutableRawBufferPointer, waits: Bool
    ) throws(DiskReadError) -> StoredHead { fatalError() }

    init(path: String, identity: SegmentIdentity, file: DiskFile, end: UInt64) {
        self.path = path
        self.identity = identity
        self.file = file
        self.end = end
    }
}
