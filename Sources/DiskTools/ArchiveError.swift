package import Disk

/// Why an export or an import cannot be done.
package enum ArchiveError: Error, Equatable, Sendable {
    /// The directory has no store.
    case noStore(String)
    case store(DiskRefusal)
    case book(String, BookError)
    /// The archive cannot be opened, read or written.
    case archive(String, errno: CInt)
    case notAnExport(String)
    case unknownVersion(String, Int)
    /// The file is a complete export already.
    case alreadyWhole(String)
    /// The file is the beginning of another export: of another zone, or with another selection.
    case another(String)
    /// The store does not accept anything.
    case storeOff(reason: String)
    /// Something that was accepted could not be written.
    case notWritten
}

/// The progress of an export or import, in bytes of the archive. While exporting, the total is an estimate.
package struct ArchiveProgress: Equatable, Sendable {
    package var bytesDone: UInt64
    package var bytesTotal: UInt64
}
