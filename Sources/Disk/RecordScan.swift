/// Walks through the records of a segment in their order. Blocks.
package struct RecordScan {
    package enum Depth: Sendable {
        /// Bodies are not read.
        case heads
        /// All of it is compared with its checksums.
        case everything
    }
    package enum Mode: Sendable {
        /// Ends with the first record that is not whole: what a crash left behind.
        case tail
        /// Looks for the next record behind what is damaged.
        case search
    }
    package enum Found: Sendable {
        case object(StoredHead)
        case drops([DroppedObject], at: UInt64, length: UInt64)
        /// Its head is right, its body or the padding is not. Only in mode `search`.
        case damagedObject(StoredHead, RecordError)
        /// No record stands here. Only in mode `search`.
        case damaged(Range<UInt64>, RecordError)
    }

    /// Where the records that were found end.
    package private(set) var end: UInt64
    /// Why it ended before the end of the file; nil: it did not.
    package private(set) var stop: RecordError?

    package init(_ file: SegmentFile, from: UInt64 = UInt64(SegmentFile.headerBytes), depth: Depth, mode: Mode = .tail)
    {
        end = from
    }

    /// nil: there is no more.
    package mutating func next() throws(DiskReadError) -> Found? { fatalError() }
}
