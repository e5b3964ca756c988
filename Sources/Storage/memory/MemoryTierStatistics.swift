/// Numbers of the memory tier, summed over its shards at slightly different moments.
package struct MemoryTierStatistics: Equatable, Sendable {
    /// The most bytes that the tier may take.
    package var budgetBytes = 0
    /// Bytes of stored responses, of evicted ones that are still being read, and of windows.
    package var usedBytes = 0
    /// Bytes of pages that are kept for the next body. They count against the budget, and are freed when it is short.
    package var spareBytes = 0
    package var recordCount = 0
    package var smallCount = 0
    package var smallBytes = 0
    package var mainCount = 0
    package var mainBytes = 0
    /// Keys of evicted responses that are remembered.
    package var ghostCount = 0
    package var transferCount = 0
    /// Since the start.
    package var evictions = 0
    package var evictedBytes = 0
    /// How often the budget had no space.
    package var refused = 0
    /// How often something was taken beyond the budget: a page of a body whose transfer would have broken off otherwise, or a response that the back
    /// store had.
    package var overdrawn = 0

    package init() {}
}
