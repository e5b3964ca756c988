/// One part of a `RecordTable`: keys and their variants, by open addressing with linear probing, at most half full.
///
/// It is a view of memory that the table owns: a head, and behind it the slots.
@safe struct RecordSegment {
    @safe struct Slot {
        let key: StorageKey
        /// Newest first, never empty. Nil if the slot is free.
        let variants: [StoredRecord]?
        /// The first of the variants, so that the key can be compared without a retain. Unretained: `variants` owns it.
        private let newestReference: Unmanaged<StoredRecord>?

        init(_ key: StorageKey, _ variants: [StoredRecord]?) {
            self.key = key
            self.variants = variants
            unsafe newestReference = variants.map { unsafe Unmanaged.passUnretained($0[0]) }
        }

        static let free = Slot(StorageKey(high: 0, low: 0), nil)

        var newest: StoredRecord? { unsafe newestReference?.takeUnretainedValue() }

        @inline(__always)
        func hasKey(_ bytes: UnsafeRawBufferPointer) -> Bool {
            unsafe newestReference.unsafelyUnwrapped._withUnsafeGuaranteedRef { unsafe $0.hasKey(bytes) }
        }
    }

    /// The beginning of the memory. It has room for one slot.
    private struct Head {
        let depth: Int
        var count = 0
    }

    let memory: UnsafeMutableRawPointer
    /// The number of slots: one less than a power of two, so that head and slots take a power of two in bytes.
    let capacity: Int

    /// A segment that was made before.
    @inline(__always)
    init(_ memory: UnsafeMutableRawPointer, capacity: Int) {
        unsafe self.memory = memory
        self.capacity = capacity
    }

    /// Allocates an empty segment. See `depth`.
    init(depth: Int, capacity: Int) {
        unsafe memory = .allocate(
            byteCount: (capacity + 1) * MemoryLayout<Slot>.stride, alignment: MemoryLayout<Slot>.alignment)
        self.capacity = capacity
        _ = unsafe memory.initializeMemory(as: Head.self, to: Head(depth: depth))
        unsafe slots.initialize(repeating: .free, count: capacity)
    }

    /// Frees the memory.
    func free() {
        unsafe slots.deinitialize(count: capacity)
        unsafe memory.deallocate()
    }

    private var head: UnsafeMutablePointer<Head> { unsafe memory.assumingMemoryBound(to: Head.self) }

    @inline(__always)
    private var slots: UnsafeMutablePointer<Slot> {
        unsafe (memory + MemoryLayout<Slot>.stride).assumingMemoryBound(to: Slot.self)
    }

    /// How many bits of `RecordTable.directoryBits` all its keys have in common.
    var depth: Int { unsafe head.pointee.depth }

    /// Whether one more key would be more than half.
    var isFull: Bool { unsafe (head.pointee.count + 1) * 2 > capacity }

    @inline(__always)
    subscript(index: Int) -> Slot { unsafe slots[index] }

    /// Replaces the variants of a slot in use.
    func set(_ index: Int, _ slot: Slot) { unsafe slots[index] = slot }

    /// The slot at which the search for a key begins.
    @inline(__always)
    func home(_ key: StorageKey) -> Int {
        Int(truncatingIfNeeded: ((key.low & 0xffff_ffff) &* UInt64(truncatingIfNeeded: capacity)) &>> 32)
    }

    @inline(__always)
    func next(_ index: Int) -> Int { index &+ 1 == capacity ? 0 : index &+ 1 }

    /// Returns the slot of a key, or a negative number if it has none.
    @inline(__always)
    func find(_ key: StorageKey, _ keyBytes: UnsafeRawBufferPointer) -> Int {
        var index = home(key)
        while unsafe slots[index].variants != nil {
            if unsafe slots[index].key == key, unsafe slots[index].hasKey(keyBytes) {
                return index
            }
            index = next(index)
        }
        return -1
    }

    /// Adds a key that is not there.
    func add(_ slot: Slot) {
        precondition(!isFull, "a search ends at a free slot")
        unsafe slots[freeSlot(slot.key)] = slot
        unsafe head.pointee.count += 1
    }

    private func freeSlot(_ key: StorageKey) -> Int {
        var index = home(key)
        while unsafe slots[index].variants != nil { index = next(index) }
        return index
    }

    /// Frees a slot and moves the slots behind it forward, so that no search ends early.
    func vacate(_ freed: Int) {
        var hole = freed
        var index = next(hole)
        while unsafe slots[index].variants != nil {
            if unsafe distance(from: home(slots[index].key), to: index) >= distance(from: hole, to: index) {
                unsafe slots[hole] = slots[index]
                hole = index
            }
            index = next(index)
        }
        unsafe slots[hole] = .free
        precondition(unsafe head.pointee.count > 0, "only a slot in use is freed")
        unsafe head.pointee.count -= 1
    }

    private func distance(from start: Int, to end: Int) -> Int { end >= start ? end - start : end - start + capacity }

    /// Moves all keys to other segments, which have room for them. Only the memory is left.
    /// - Parameter target: the segment of a key.
    func moveAll(to target: (StorageKey) -> RecordSegment) {
        for index in 0..<capacity where unsafe slots[index].variants != nil {
            let key = unsafe slots[index].key
            let other = target(key)
            // Moved, not copied: nothing is retained, and no response is touched.
            unsafe (other.slots + other.freeSlot(key)).moveUpdate(from: slots + index, count: 1)
            unsafe other.head.pointee.count += 1
        }
    }

    func forEach(_ body: ([StoredRecord]) -> Void) {
        for index in 0..<capacity { if let variants = unsafe slots[index].variants { body(variants) } }
    }
}
