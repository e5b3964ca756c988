import Synchronization

/// What is counted since the start: the sums of `DiskStatistics`.
final class DiskStoreCounters: Sendable {
    let storedObjects = Atomic<UInt64>(0)
    let storedBytes = Atomic<UInt64>(0)
    let refusedBusy = Atomic<UInt64>(0)
    let refusedPinned = Atomic<UInt64>(0)
    let droppedObjects = Atomic<UInt64>(0)
    let evictedObjects = Atomic<UInt64>(0)
    let evictedBytes = Atomic<UInt64>(0)
    let movedBytes = Atomic<UInt64>(0)
    let damagedObjects = Atomic<UInt64>(0)
    let readErrors = Atomic<UInt64>(0)
    let writeErrors = Atomic<UInt64>(0)
    let commits = Atomic<UInt64>(0)
    /// Objects that were taken, and could not be written after all.
    let lostObjects = Atomic<UInt64>(0)

    /// Each is read by itself. While the store is in use, counts that belong together may differ for a moment.
    func fill(_ statistics: inout DiskStatistics) {
        statistics.storedObjects = storedObjects.load(ordering: .relaxed)
        statistics.storedBytes = storedBytes.load(ordering: .relaxed)
        statistics.refusedBusy = refusedBusy.load(ordering: .relaxed)
        statistics.refusedPinned = refusedPinned.load(ordering: .relaxed)
        statistics.droppedObjects = droppedObjects.load(ordering: .relaxed)
        statistics.evictedObjects = evictedObjects.load(ordering: .relaxed)
        statistics.evictedBytes = evictedBytes.load(ordering: .relaxed)
        statistics.movedBytes = movedBytes.load(ordering: .relaxed)
        statistics.damagedObjects = damagedObjects.load(ordering: .relaxed)
        statistics.readErrors = readErrors.load(ordering: .relaxed)
        statistics.writeErrors = writeErrors.load(ordering: .relaxed)
        statistics.commits = commits.load(ordering: .relaxed)
    }
}

extension Atomic<UInt64> {
    func count(_ more: UInt64 = 1) { add(more, ordering: .relaxed) }
}
