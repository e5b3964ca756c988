package import Disk

/// Why an export or an import can not be done.
package enum ArchiveError: Error, Equatable, Sendable {
    /// The directory holds no store yet.
    case noStore(String)
    case store(DiskRefusal)
    case book(String, BookError)
    /// The archive can not be opened, read or written.
    case archive(String, errno: CInt)
    case notAnExport(String)
    case unknownVersion(String, Int)
    /// The file holds an export that is complete.
    case alreadyWhole(String)
    /// The file holds the beginning of another export: of another zone, or of another choice.
    case another(String)
    /// The store takes nothing more.
    case storeOff(reason: String)
    /// What was taken could not all be written.
    case notWritten
}

/// How far an export or import is, in bytes of the archive; the total is an estimate while exporting.
package struct ArchiveProgress: Equatable, Sendable {
    package var bytesDone: UInt64
    package var bytesTotal: UInt64
}
