/// Maps keys to variants, by extendible hashing (Fagin et al., "Extendible Hashing: A Fast Access Method for Dynamic Files", ACM TODS 1979). Protected by
/// the lock of its shard.
///
/// The table consists of segments, which a directory finds by a few bits of the hash. A segment that is full is split in two. So however many keys there
/// are, the table grows by some 250 of them at a time, and nobody waits for longer than the few microseconds which that takes. While there is only one
/// segment, it is doubled until it has its full length.
///
/// Lists of variants are immutable and shared: a look-up returns one with a single retain and allocates nothing.
@safe struct RecordTable {
    /// 512 bytes, and 16 KiB.
    private static let capacityMin = 15
    private static let capacityMax = 511

    /// The memory of 2 to the power of `depth` segments. A segment whose depth is less is there more than once.
    private var directory: UnsafeMutablePointer<UnsafeMutableRawPointer>
    private var depth = 0
    /// The number of slots of each segment.
    private var capacity: Int
    /// The number of keys.
    private(set) var count = 0

    init() {
        capacity = Self.capacityMin
        unsafe directory = .allocate(capacity: 1)
        unsafe directory.initialize(to: RecordSegment(depth: 0, capacity: capacity).memory)
    }

    /// Frees the memory. The table must not be used afterwards.
    func free() {
        forEachSegment { $0.free() }
        unsafe directory.deallocate()
    }

    /// Returns all variants under the key, newest first. Returns nil if there are none.
    @inline(__always)
    func variants(_ key: StorageKey, _ keyBytes: UnsafeRawBufferPointer) -> [StoredRecord]? {
        let segment = segment(of: key)
        let index = unsafe segment.find(key, keyBytes)
        return index < 0 ? nil : segment[index].variants
    }

    /// Returns the newest of the variants under the key. Returns nil if there are none.
    @inline(__always)
    func newest(_ key: StorageKey, _ keyBytes: UnsafeRawBufferPointer) -> StoredRecord? {
        let segment = segment(of: key)
        let index = unsafe segment.find(key, keyBytes)
        return index < 0 ? nil : segment[index].newest
    }

    /// Stores a list of variants under their key. An empty list frees the slot.
    mutating func set(_ variants: [StoredRecord], _ key: StorageKey, _ keyBytes: [UInt8], into doomed: inout Doomed) {
        let segment = segment(of: key)
        let index = unsafe keyBytes.withUnsafeBytes { unsafe segment.find(key, $0) }
        if index < 0 {
            if !variants.isEmpty { add(RecordSegment.Slot(key, variants), into: &doomed) }
            return
        }
        if let old = segment[index].variants { doomed.add(old) }
        if variants.isEmpty {
            segment.vacate(index)
            count -= 1
        } else {
            segment.set(index, RecordSegment.Slot(key, variants))
        }
    }

    /// Returns the response with this body, found by the hash alone. Returns nil if it is no longer stored.
    func record(carrying body: Body, _ key: StorageKey) -> StoredRecord? {
        let segment = segment(of: key)
        var index = segment.home(key)
        while let variants = segment[index].variants {
            if segment[index].key == key, let found = variants.first(where: { $0.body === body }) { return found }
            index = segment.next(index)
        }
        return nil
    }

    func forEach(_ body: ([StoredRecord]) -> Void) { forEachSegment { $0.forEach(body) } }

    // MARK: Segments

    /// The half of the hash that selects a segment. The other one selects a slot.
    @inline(__always)
    private static func directoryBits(_ key: StorageKey) -> Int { Int(truncatingIfNeeded: key.low &>> 32) }

    @inline(__always)
    private func segment(of key: StorageKey) -> RecordSegment {
        unsafe RecordSegment(directory[Self.directoryBits(key) & ((1 &<< depth) &- 1)], capacity: capacity)
    }

    private func forEachSegment(_ body: (RecordSegment) -> Void) {
        // A segment is there once for each value of the bits beyond its depth. It is visited where they are zero, which comes last: `body` may free it.
        for index in (0..<1 << depth).reversed() {
            let segment = unsafe RecordSegment(directory[index], capacity: capacity)
            if index >> segment.depth == 0 { body(segment) }
        }
    }

    private mutating func add(_ slot: RecordSegment.Slot, into doomed: inout Doomed) {
        while segment(of: slot.key).isFull {
            if capacity < Self.capacityMax { lengthen(&doomed) } else { split(Self.directoryBits(slot.key), &doomed) }
        }
        segment(of: slot.key).add(slot)
        count += 1
    }

    /// Doubles the only segment.
    private mutating func lengthen(_ doomed: inout Doomed) {
        precondition(depth == 0, "segments that were split have their full length")
        let old = unsafe RecordSegment(directory[0], capacity: capacity)
        capacity = capacity * 2 + 1
        let new = RecordSegment(depth: 0, capacity: capacity)
        old.moveAll { _ in new }
        unsafe doomed.blocks.append(old.memory)
        unsafe directory[0] = new.memory
    }

    /// Splits the segment of keys with these bits.
    private mutating func split(_ bits: Int, _ doomed: inout Doomed) {
        let old = unsafe RecordSegment(directory[bits & ((1 << depth) - 1)], capacity: capacity)
        let common = old.depth
        if common == depth { doubleDirectory(&doomed) }
        let low = RecordSegment(depth: common + 1, capacity: capacity)
        let high = RecordSegment(depth: common + 1, capacity: capacity)
        old.moveAll { key in Self.directoryBits(key) >> common & 1 == 0 ? low : high }
        unsafe doomed.blocks.append(old.memory)
        for index in stride(from: bits & ((1 << common) - 1), to: 1 << depth, by: 1 << common) {
            unsafe directory[index] = index >> common & 1 == 0 ? low.memory : high.memory
        }
    }

    private mutating func doubleDirectory(_ doomed: inout Doomed) {
        precondition(depth < 32, "the hashes of different keys differ in some of 32 bits")
        let old = unsafe directory
        let length = 1 << depth
        unsafe directory = .allocate(capacity: 2 * length)
        unsafe directory.initialize(from: old, count: length)
        unsafe (directory + length).initialize(from: old, count: length)
        depth += 1
        unsafe doomed.blocks.append(UnsafeMutableRawPointer(old))
    }
}
