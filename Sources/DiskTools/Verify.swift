package import Disk

/// The progress of a verification.
package struct VerifyProgress: Sendable, Equatable {
    package enum Phase: Sendable, CaseIterable {
        /// Checking the pages of the book.
        case book
        /// Reading records and blocks and comparing all checksums.
        case segments
        /// Comparing the entries of the book with what was found.
        case entries
        /// Only if `repair` was requested.
        case repair
    }
    package var phase: Phase
    /// Counts all files. Increases through all phases up to `bytesTotal`.
    package var bytesDone: UInt64
    /// The length of all files when the verification began.
    package var bytesTotal: UInt64

    package init(phase: Phase, bytesDone: UInt64, bytesTotal: UInt64) {
        self.phase = phase
        self.bytesDone = bytesDone
        self.bytesTotal = bytesTotal
    }
}

/// One thing that is wrong.
package struct VerifyFinding: Sendable, Equatable {
    package enum Kind: String, Sendable, CaseIterable {
        /// The book is not a valid LMDB environment, or cannot be read.
        case bookDamaged = "book-damaged"
        /// An entry of the book is not what was written.
        case entryDamaged = "entry-damaged"
        /// The book has an object whose file does not exist.
        case segmentMissing = "segment-missing"
        /// The header of a file, or bytes between its records, are damaged. Nothing that is in use needs them.
        case segmentDamaged = "segment-damaged"
        /// The book has an object, and its record is not at its place.
        case recordDamaged = "record-damaged"
        /// The checksum of a block is wrong.
        case blockDamaged = "block-damaged"
        /// A file that nothing refers to, and that is of no use.
        case fileUnknown = "file-unknown"
        /// A tag does not lead to its objects.
        case tagWrong = "tag-wrong"
        /// The file could not be read.
        case readFailed = "read-failed"
    }
    package var kind: Kind
    /// The cache key. Empty if it is unknown.
    package var key: [UInt8]
    /// The file, relative to the directory of the store. Empty if the finding concerns no file.
    package var file: String
    /// The offset in the file.
    package var offset: UInt64
    /// A sentence for the operator.
    package var text: String
    /// Whether it was repaired.
    package var isRepaired: Bool

    package init(
        _ kind: Kind, key: [UInt8] = [], file: String = "", offset: UInt64 = 0, text: String, isRepaired: Bool = false
    ) {
        self.kind = kind
        self.key = key
        self.file = file
        self.offset = offset
        self.text = text
        self.isRepaired = isRepaired
    }
}

/// The result of a verification.
package struct VerifyReport: Sendable, Equatable {
    /// A proxy was using the store. What it wrote or moved meanwhile was not examined, and is not reported.
    package var wasInUse = false
    /// Intact objects in the book.
    package var objectsGood: UInt64 = 0
    /// Those among them that have a file of their own.
    package var largeGood: UInt64 = 0
    package var segmentsRead: UInt64 = 0
    package var blocksRead: UInt64 = 0
    /// The length of all files that were read.
    package var bytesRead: UInt64 = 0
    package var bookBytes: UInt64 = 0
    /// All findings, including those that are not listed.
    package var findingCount: UInt64 = 0
    package var repairedCount: UInt64 = 0
    /// The first findings, at most `findingsMax`.
    package var findings: [VerifyFinding] = []
    /// Whole objects that the book does not have. They were written after its last commit, and the next start adds them.
    package var objectsNew: UInt64 = 0
    /// Where the damaged book was moved to, relative to the directory of the store.
    package var bookMovedTo: String?

    package static let findingsMax = 1000

    package init() {}

    /// Whether nothing is wrong, or nothing any more.
    package var isFine: Bool { findingCount == repairedCount }

    mutating func add(_ finding: VerifyFinding) {
        findingCount += 1
        if finding.isRepaired { repairedCount += 1 }
        if findings.count < Self.findingsMax { findings.append(finding) }
    }
}

/// Reads a whole store and reports what is wrong. Blocks until everything is read.
///
/// Without `repair` nothing is changed, and a proxy may be using the store: whatever looks wrong is looked up in the book again before
/// it is reported. `repair` needs the store to itself and throws `.inUse` if a proxy has it. It drops what is damaged and rebuilds a
/// damaged book. If it throws, what it dropped before stays dropped.
///
/// Records that were superseded or removed are not reported. Neither is what a crash left at the end of a segment: the next start adds
/// what is whole of it.
/// - Parameter progress: called on the same thread, about once for each MiB.
package func verify(
    path: String, repair: Bool, progress: (VerifyProgress) -> Void
) throws(DiskRefusal) -> VerifyReport {
    try verify(path: path, repair: repair, calls: SystemCalls(), progress: progress)
}

func verify(
    path: String, repair: Bool, calls: any DiskCalls, progress: (VerifyProgress) -> Void
) throws(DiskRefusal) -> VerifyReport {
    let store = try VerifiedStore.open(path, locks: repair, calls: calls)
    var verification = try Verification(store, repairs: repair)
    return try verification.run(progress)
}
