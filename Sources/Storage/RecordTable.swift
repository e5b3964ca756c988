/// Maps keys to variants, by open addressing with linear probing, at most half full. Protected by the lock of its shard.
///
/// Lists of variants are immutable and shared: a look-up returns one with a single retain and allocates nothing.
@safe struct RecordTable {
    @safe private struct Slot {
        var key: StorageKey
        /// Newest first, never empty. Nil if the slot is free.
        private(set) var variants: [StoredRecord]?
        /// The first of the variants, so that the key can be compared without a retain. Unretained: `variants` owns it.
        private(set) var newest: Unmanaged<StoredRecord>?

        init(_ key: StorageKey, _ variants: [StoredRecord]?) {
            self.key = key
            self.variants = variants
            unsafe newest = variants.map { unsafe Unmanaged.passUnretained($0[0]) }
        }

        @inline(__always)
        func hasKey(_ bytes: UnsafeRawBufferPointer) -> Bool {
            unsafe newest.unsafelyUnwrapped._withUnsafeGuaranteedRef { unsafe $0.hasKey(bytes) }
        }
    }
    private static let capacityMin = 16

    private var slots: UnsafeMutablePointer<Slot>
    private var capacity: Int
    /// The number of keys.
    private(set) var count = 0

    init() {
        capacity = Self.capacityMin
        unsafe slots = Self.allocate(capacity)
    }

    /// Frees the memory. The table must not be used afterwards.
    func free() {
        unsafe slots.deinitialize(count: capacity)
        unsafe slots.deallocate()
    }

    /// Returns all variants under the key, newest first. Returns nil if there are none.
    @inline(__always)
    func variants(_ key: StorageKey, _ keyBytes: UnsafeRawBufferPointer) -> [StoredRecord]? {
        let index = unsafe find(key, keyBytes)
        return unsafe index < 0 ? nil : slots[index].variants
    }

    /// Returns the newest of the variants under the key. Returns nil if there are none.
    @inline(__always)
    func newest(_ key: StorageKey, _ keyBytes: UnsafeRawBufferPointer) -> StoredRecord? {
        let index = unsafe find(key, keyBytes)
        return unsafe index < 0 ? nil : slots[index].newest?.takeUnretainedValue()
    }

    /// Stores a list of variants under their key. An empty list frees the slot.
    mutating func set(_ variants: [StoredRecord], _ key: StorageKey, _ keyBytes: [UInt8], into doomed: inout Doomed) {
        let index = unsafe keyBytes.withUnsafeBytes { unsafe find(key, $0) }
        if index < 0 {
            if !variants.isEmpty { add(Slot(key, variants), into: &doomed) }
            return
        }
        if let old = unsafe slots[index].variants { doomed.add(old) }
        if variants.isEmpty { vacate(index) } else { unsafe slots[index] = Slot(key, variants) }
    }

    /// Returns the response with this body, found by the hash alone. Returns nil if it is no longer stored.
    func record(carrying body: Body, _ key: StorageKey) -> StoredRecord? {
        var index = home(key)
        while let variants = unsafe slots[index].variants {
            if unsafe slots[index].key == key, let found = variants.first(where: { $0.body === body }) { return found }
            index = (index + 1) & (capacity - 1)
        }
        return nil
    }

    func forEach(_ body: ([StoredRecord]) -> Void) {
        for index in 0..<capacity { if let variants = unsafe slots[index].variants { body(variants) } }
    }

    /// Returns the slot of a key, or a negative number if it has none.
    @inline(__always)
    private func find(_ key: StorageKey, _ keyBytes: UnsafeRawBufferPointer) -> Int {
        var index = home(key)
        while unsafe slots[index].variants != nil {
            if unsafe slots[index].key == key, unsafe slots[index].hasKey(keyBytes) {
                return index
            }
            index = (index &+ 1) & (capacity &- 1)
        }
        return -1
    }

    private func home(_ key: StorageKey) -> Int { Int(truncatingIfNeeded: key.low) & (capacity &- 1) }

    private mutating func add(_ slot: Slot, into doomed: inout Doomed) {
        if count * 2 >= capacity { grow(&doomed) }
        place(slot)
        count += 1
    }

    private func place(_ slot: Slot) {
        var index = home(slot.key)
        while unsafe slots[index].variants != nil { index = (index + 1) & (capacity - 1) }
        unsafe slots[index] = slot
    }

    /// Frees a slot and moves the slots behind it forward, so that no probe ends early.
    private mutating func vacate(_ freed: Int) {
        let mask = capacity - 1
        var hole = freed
        var index = (hole + 1) & mask
        while unsafe slots[index].variants != nil {
            let distance = unsafe (index - home(slots[index].key)) & mask
            if distance >= (index - hole) & mask {
                unsafe slots[hole] = slots[index]
                hole = index
            }
            index = (index + 1) & mask
        }
        unsafe slots[hole] = Slot(StorageKey(high: 0, low: 0), nil)
        precondition(count > 0, "only a slot in use is freed")
        count -= 1
    }

    private mutating func grow(_ doomed: inout Doomed) {
        let old = unsafe UnsafeMutableBufferPointer(start: slots, count: capacity)
        capacity *= 2
        precondition(count * 2 < capacity, "a probe ends at a free slot")
        unsafe slots = Self.allocate(capacity)
        for index in old.indices where unsafe old[index].variants != nil { unsafe place(old[index]) }
        unsafe old.deinitialize()
        unsafe doomed.blocks.append(UnsafeMutableRawPointer(old.baseAddress!))
    }

    private static func allocate(_ capacity: Int) -> UnsafeMutablePointer<Slot> {
        let slots = UnsafeMutablePointer<Slot>.allocate(capacity: capacity)
        unsafe slots.initialize(repeating: Slot(StorageKey(high: 0, low: 0), nil), count: capacity)
        return unsafe slots
    }
}
