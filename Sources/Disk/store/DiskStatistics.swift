package struct DiskStatistics: Sendable, Equatable {
    package var sizeBytes: UInt64 = 0
    /// All files: segments, large objects, book.
    package var usedBytes: UInt64 = 0
    package var liveBytes: UInt64 = 0
    package var pinnedLimitBytes: UInt64 = 0
    package var pinnedBytes: UInt64 = 0
    package var objectCount = 0
    package var largeCount = 0
    package var segmentCount = 0
    package var bookBytes: UInt64 = 0
    /// Bytes that wait to be written.
    package var waitingBytes = 0
    // These count from the start of the process.
    package var storedObjects: UInt64 = 0
    package var storedBytes: UInt64 = 0
    package var refusedBusy: UInt64 = 0
    package var refusedPinned: UInt64 = 0
    /// Accepted and not written after all, because there was no space or writing failed.
    package var droppedObjects: UInt64 = 0
    package var evictedObjects: UInt64 = 0
    package var evictedBytes: UInt64 = 0
    /// Bytes that were copied forward to free a segment.
    package var movedBytes: UInt64 = 0
    package var damagedObjects: UInt64 = 0
    package var readErrors: UInt64 = 0
    package var writeErrors: UInt64 = 0
    package var commits: UInt64 = 0

    package init() {}
}
