/// What the memory tier holds and has done, summed over its shards at slightly different moments.
package struct MemoryTierStatistics: Equatable, Sendable {
    /// Bytes it may take.
    package var budgetBytes = 0
    /// Bytes in stored responses, including those that were evicted and are still being read, and in windows.
    package var usedBytes = 0
    /// Bytes in pages kept for the next body: counted against the budget, given back when it is short.
    package var spareBytes = 0
    package var recordCount = 0
    package var smallCount = 0
    package var smallBytes = 0
    package var mainCount = 0
    package var mainBytes = 0
    /// Keys remembered after eviction.
    package var ghostCount = 0
    package var transferCount = 0
    /// Since the start.
    package var evictions = 0
    package var evictedBytes = 0
    /// Times the budget had no room.
    package var refused = 0
    /// Pages taken beyond the budget, by bodies that outgrew it.
    package var overdrawn = 0

    package init() {}
}
