/// The ghost queue of S3-FIFO: it remembers the keys that were last evicted from the small queue, and forgets the oldest first. If a
/// remembered key comes back, its response goes directly to the main queue.
///
/// It is a set-associative table of 32-bit fingerprints with the time at which they were noted, eight bytes each. Entries expire by
/// age and are never unlinked. A false match costs a place in the main queue; it never causes a wrong answer.
@safe struct GhostQueue {
    private struct Mark {
        var fingerprint: UInt32 = 0
        /// The value of `clock` when the key was noted. Zero if the entry is free.
        var noted: UInt32 = 0
    }
    private static let ways = 8
    /// The fewest keys that are remembered, however few responses the main queue has.
    static let countMin = 128

    private var marks: UnsafeMutablePointer<Mark>
    private var bucketCount: Int
    private var clock: UInt32 = 0
    /// How many of the latest keys are remembered.
    private var limit = GhostQueue.countMin

    init() {
        bucketCount = 4
        unsafe marks = .allocate(capacity: 4 * Self.ways)
        unsafe marks.initialize(repeating: Mark(), count: 4 * Self.ways)
    }

    func free() { unsafe marks.deallocate() }

    /// Remembers a key. From now on the latest `limit` keys are remembered.
    mutating func note(_ key: StorageKey, limit: Int, into doomed: inout Doomed) {
        precondition(limit >= 0, "a limit is not negative")
        self.limit = max(limit, Self.countMin)
        if self.limit > bucketCount * Self.ways / 2 { grow(&doomed) }
        clock = clock == .max ? 1 : clock + 1
        place(Mark(fingerprint: fingerprint(key), noted: clock))
    }

    /// Returns whether the key was remembered, and forgets it.
    mutating func take(_ key: StorageKey) -> Bool {
        let wanted = fingerprint(key)
        for index in bucket(wanted) where unsafe marks[index].fingerprint == wanted && isValid(index) {
            unsafe marks[index] = Mark()
            return true
        }
        return false
    }

    /// How many keys are remembered. This examines the whole table: use it for tests and statistics only.
    var count: Int { (0..<bucketCount * Self.ways).count { isValid($0) } }

    private func fingerprint(_ key: StorageKey) -> UInt32 { UInt32(truncatingIfNeeded: key.low ^ (key.high >> 32)) }

    private func bucket(_ fingerprint: UInt32) -> Range<Int> {
        let first = (Int(fingerprint) & (bucketCount - 1)) * Self.ways
        return first..<first + Self.ways
    }

    private func isValid(_ index: Int) -> Bool {
        unsafe marks[index].noted != 0 && age(index) < UInt32(clamping: limit)
    }

    private func age(_ index: Int) -> UInt32 { unsafe clock &- marks[index].noted }

    private mutating func place(_ mark: Mark) {
        let candidates = bucket(mark.fingerprint)
        var chosen = candidates.lowerBound
        for index in candidates {
            if unsafe marks[index].noted == 0 {
                chosen = index
                break
            }
            if age(index) > age(chosen) { chosen = index }
        }
        unsafe marks[chosen] = mark
    }

    private mutating func grow(_ doomed: inout Doomed) {
        let old = unsafe UnsafeBufferPointer(start: marks, count: bucketCount * Self.ways)
        while limit > bucketCount * Self.ways / 2 { bucketCount *= 2 }
        unsafe marks = .allocate(capacity: bucketCount * Self.ways)
        unsafe marks.initialize(repeating: Mark(), count: bucketCount * Self.ways)
        for index in old.indices where unsafe old[index].noted != 0 { unsafe place(old[index]) }
        unsafe doomed.blocks.append(UnsafeMutableRawPointer(mutating: old.baseAddress!))
    }
}
