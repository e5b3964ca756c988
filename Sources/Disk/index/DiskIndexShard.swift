/// One open hash table with linear probing. A removal moves later entries back, so there are no tombstones.
///
/// Not synchronized: `DiskIndex` calls it under the lock of the shard. At least one slot is always free, so every search ends. The
/// memory is plain bytes, so the table can be moved without touching reference counts.
@safe final class DiskIndexShard {
    private var slots: UnsafeMutablePointer<DiskIndexEntry>
    private var capacity: Int
    private(set) var count = 0

    /// How many slots the table has at least. A table that grows has more slots than before.
    private static let capacityMin = 16

    init() {
        capacity = Self.capacityMin
        unsafe slots = Self.allocate(capacity)
    }

    deinit { unsafe slots.deallocate() }  // entries are plain bytes and need no deinitialization

    var tableBytes: Int { capacity * MemoryLayout<DiskIndexEntry>.stride }

    /// `body` must not change the table: entries move when it changes.
    func forEach(_ hash: UInt64, _ body: (DiskIndexEntry) -> Void) {
        var slot = home(of: hash)
        while unsafe !slots[slot].isFree {
            if unsafe slots[slot].hash == hash { unsafe body(slots[slot]) }
            slot = next(slot)
        }
    }

    func forEach(_ body: (DiskIndexEntry) -> Void) {
        for slot in 0..<capacity where unsafe !slots[slot].isFree { unsafe body(slots[slot]) }
    }

    func first(_ hash: UInt64, where matches: (DiskIndexEntry) -> Bool) -> DiskIndexEntry? {
        slot(of: hash, where: matches).map { unsafe slots[$0] }
    }

    /// `change` must leave the hash as it is, because the hash decides the slot.
    func update(
        _ hash: UInt64, where matches: (DiskIndexEntry) -> Bool, _ change: (inout DiskIndexEntry) -> Void
    ) -> Bool {
        guard let slot = slot(of: hash, where: matches) else { return false }
        unsafe change(&slots[slot])
        return true
    }

    func insert(_ entry: DiskIndexEntry) {
        precondition(!entry.isFree, "an entry leads to a record")
        // 56 to 75 % of the slots are in use: 43 to 57 bytes for an object. In a fuller table a search for what is not there
        // becomes slow, because it has to see a whole run: 8 slots at 75 %, 22 at 85 %.
        if (count + 1) * 4 > capacity * 3 { resize(to: capacity + capacity / 3) }
        precondition(count + 1 < capacity, "a free slot ends every search")
        place(entry)
        count += 1
    }

    /// Makes room for this many, so that the table need not grow in steps.
    func reserve(_ count: Int) {
        let capacity = count + count / 2
        if capacity > self.capacity { resize(to: capacity) }
    }

    func remove(_ hash: UInt64, where matches: (DiskIndexEntry) -> Bool) -> DiskIndexEntry? {
        guard var hole = slot(of: hash, where: matches) else { return nil }
        let removed = unsafe slots[hole]
        var slot = next(hole)
        // An entry may move into the hole unless that is before its home slot, counted around the end of the table.
        while unsafe !slots[slot].isFree {
            let distance = distance(from: unsafe home(of: slots[slot].hash), to: slot)
            if distance >= self.distance(from: hole, to: slot) {
                unsafe slots[hole] = slots[slot]
                hole = slot
            }
            slot = next(slot)
        }
        unsafe slots[hole] = .free
        precondition(count > 0, "what is removed was added")
        count -= 1
        // Half of a quarter-full table is half full: far from the bound at which it grows again.
        if capacity > Self.capacityMin, count * 4 < capacity { resize(to: max(Self.capacityMin, capacity / 2)) }
        return removed
    }

    private func slot(of hash: UInt64, where matches: (DiskIndexEntry) -> Bool) -> Int? {
        var slot = home(of: hash)
        while unsafe !slots[slot].isFree {
            if unsafe slots[slot].hash == hash, unsafe matches(slots[slot]) { return slot }
            slot = next(slot)
        }
        return nil
    }

    private func place(_ entry: DiskIndexEntry) {
        var slot = home(of: entry.hash)
        while unsafe !slots[slot].isFree { slot = next(slot) }
        unsafe slots[slot] = entry
    }

    private func resize(to newCapacity: Int) {
        precondition(newCapacity > count, "a free slot ends every search")
        let (old, oldCapacity) = unsafe (slots, capacity)
        unsafe slots = Self.allocate(newCapacity)
        capacity = newCapacity
        var moved = 0
        for slot in 0..<oldCapacity where unsafe !old[slot].isFree {
            unsafe place(old[slot])
            moved += 1
        }
        precondition(moved == count, "a table keeps its entries when its size changes")
        unsafe old.deallocate()
    }

    private static func allocate(_ capacity: Int) -> UnsafeMutablePointer<DiskIndexEntry> {
        let slots = UnsafeMutablePointer<DiskIndexEntry>.allocate(capacity: capacity)
        unsafe slots.initialize(repeating: .free, count: capacity)
        return unsafe slots
    }

    /// The slot where a search begins. The hash is mixed (the finalizer of SplitMix64): its top bits chose the shard already, and
    /// not every hash is a good one.
    private func home(of hash: UInt64) -> Int {
        var mixed = hash
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        mixed ^= mixed >> 31
        // Scales the hash to the capacity, which need not be a power of two, without a division.
        return Int(UInt64(capacity).multipliedFullWidth(by: mixed).high)
    }

    private func next(_ slot: Int) -> Int { slot + 1 == capacity ? 0 : slot + 1 }

    private func distance(from: Int, to: Int) -> Int { to >= from ? to - from : to + capacity - from }
}
