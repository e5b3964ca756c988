package import Disk

/// How far a verification is.
package struct VerifyProgress: Sendable, Equatable {
    package enum Phase: Sendable, CaseIterable {
        /// The pages of the book.
        case book
        /// Records and blocks, with all their checksums.
        case segments
        /// Each entry of the book against what was found.
        case entries
        /// Only where `repair` was asked for.
        case repair
    }
    package var phase: Phase
    /// Of all files. Rises, also from phase to phase, and ends at `bytesTotal`.
    package var bytesDone: UInt64
    /// As the files were when it began.
    package var bytesTotal: UInt64

    package init(phase: Phase, bytesDone: UInt64, bytesTotal: UInt64) {
        self.phase = phase
        self.bytesDone = bytesDone
        self.bytesTotal = bytesTotal
    }
}

/// One thing that is not as it should be.
package struct VerifyFinding: Sendable, Equatable {
    package enum Kind: String, Sendable, CaseIterable {
        /// The book is no sound LMDB environment, or can not be read.
        case bookDamaged = "book-damaged"
        /// An entry of the book that is not what was written.
        case entryDamaged = "entry-damaged"
        /// The book knows an object whose file is not there.
        case segmentMissing = "segment-missing"
        /// The file's header, or bytes between its records, are not what they should be; nothing that is live needs them.
        case segmentDamaged = "segment-damaged"
        /// The book knows an object, and at its place stands something else, or nothing.
        case recordDamaged = "record-damaged"
        /// A block's checksum is wrong.
        case blockDamaged = "block-damaged"
        /// A file that nothing refers to, and of which nothing can be made.
        case fileUnknown = "file-unknown"
        /// An object that is not found by one of its tags.
        case tagWrong = "tag-wrong"
        /// The file could not be read.
        case readFailed = "read-failed"
    }
    package var kind: Kind
    /// The cache key; empty where none is known.
    package var key: [UInt8]
    /// Below the store's directory; empty where it is about no file.
    package var file: String
    /// In the file.
    package var offset: UInt64
    /// For the operator, in words.
    package var text: String
    /// It was put right.
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

/// What a verification found.
package struct VerifyReport: Sendable, Equatable {
    /// A proxy was using the store: what it wrote or moved meanwhile was not looked at, and is no finding.
    package var wasInUse = false
    /// Objects of the book that are whole.
    package var objectsGood: UInt64 = 0
    /// Of these in files of their own.
    package var largeGood: UInt64 = 0
    package var segmentsRead: UInt64 = 0
    package var blocksRead: UInt64 = 0
    /// Of all files that were read.
    package var bytesRead: UInt64 = 0
    package var bookBytes: UInt64 = 0
    /// All findings, also those that are not listed.
    package var findingCount: UInt64 = 0
    package var repairedCount: UInt64 = 0
    /// The first of them, at most `findingsMax`.
    package var findings: [VerifyFinding] = []
    /// Objects that are whole and not in the book: written after its last commit, and taken in at the next start.
    package var objectsNew: UInt64 = 0
    /// Where the damaged book was moved to, below the store's directory.
    package var bookMovedTo: String?

    package static let findingsMax = 1000

    package init() {}

    /// Nothing is wrong, or nothing any more.
    package var isFine: Bool { findingCount == repairedCount }

    mutating func add(_ finding: VerifyFinding) {
        findingCount += 1
        if finding.isRepaired { repairedCount += 1 }
        if findings.count < Self.findingsMax { findings.append(finding) }
    }
}

/// Reads all of a store and says what is wrong. Blocks, for as long as it takes to read everything.
///
/// Without `repair` nothing is changed, and a proxy may be using the store: what changes meanwhile is looked up again in
/// the book before it is called wrong. `repair` needs the store for itself (`.inUse` is thrown where a proxy has it): what is
/// damaged is dropped, a damaged book is made anew; where that fails it throws, and what was dropped till then stays so.
///
/// An object in a record that was superseded, or removed, is nothing to the book, and nothing here either. What a crash left at the
/// end of a segment is no damage: the next start takes in what is whole of it.
/// - Parameter progress: called on the same thread, about every MiB.
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
