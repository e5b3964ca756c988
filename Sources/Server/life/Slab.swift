/// Identifies an occupant of a worker's slab: its slot, and the generation that tells it from earlier occupants of that slot.
///
/// Only this number travels between threads, never a connection. A job for a connection that has closed finds a newer generation, and
/// does nothing.
package struct ConnectionID: Hashable, Sendable {
    package var slot: UInt32
    package var generation: UInt32

    package init(slot: UInt32, generation: UInt32) {
        self.slot = slot
        self.generation = generation
    }

    /// As one number, which is never zero.
    var number: UInt64 { (UInt64(generation) << 32 | UInt64(slot)) &+ 1 }
}

/// Occupants by slot. A slot is used again with the next generation. A generation repeats after 2³² occupants of one slot; no job
/// waits for that long.
final class Slab<Occupant: AnyObject> {
    private struct Slot {
        var generation: UInt32
        var occupant: Occupant?
    }
    // Nothing is called while one of the two changes, and no occupant is released: the unchecked access is exclusive.
    @exclusivity(unchecked) private var slots: [Slot] = []
    @exclusivity(unchecked) private var free: [UInt32] = []
    private(set) var count = 0

    /// Makes an occupant for a free slot. `make` must not use the slab.
    func insert(_ make: (ConnectionID) -> Occupant) -> Occupant {
        let id = reserve()
        let occupant = make(id)
        put(occupant, at: id)
        return occupant
    }

    /// Gives the occupant a slot. Returns its number.
    func insert(_ occupant: Occupant) -> ConnectionID {
        let id = reserve()
        put(occupant, at: id)
        return id
    }

    private func reserve() -> ConnectionID {
        count += 1
        if let index = unsafe free.popLast() {
            return unsafe ConnectionID(slot: index, generation: slots[Int(index)].generation)
        }
        unsafe slots.append(Slot(generation: 0, occupant: nil))
        return unsafe ConnectionID(slot: UInt32(slots.count - 1), generation: 0)
    }

    private func put(_ occupant: Occupant, at id: ConnectionID) {
        unsafe precondition(slots[Int(id.slot)].occupant == nil, "a place has one occupant at a time")
        unsafe precondition(
            slots[Int(id.slot)].generation == id.generation, "jobs for an earlier occupant do not find a new one")
        unsafe slots[Int(id.slot)].occupant = occupant
    }

    /// The occupant with this number. Returns nil if it has been removed.
    subscript(_ id: ConnectionID) -> Occupant? {
        guard unsafe slots.indices.contains(Int(id.slot)), unsafe slots[Int(id.slot)].generation == id.generation
        else { return nil }
        return unsafe slots[Int(id.slot)].occupant
    }

    /// Removes the occupant with this number. Returns nil if it has been removed before.
    func remove(_ id: ConnectionID) -> Occupant? {
        guard let occupant = self[id] else { return nil }
        // The generation changes at once, not when the slot is used again: a job that comes in between finds nothing.
        unsafe slots[Int(id.slot)].occupant = nil
        unsafe slots[Int(id.slot)].generation &+= 1
        unsafe free.append(id.slot)
        count -= 1
        unsafe precondition(count + free.count == slots.count, "every slot is occupied or free")
        return occupant
    }

    func removeAll() {
        let left = unsafe slots
        unsafe slots = []
        unsafe free = []
        count = 0
        _ = consume left
    }

    /// The occupants with their numbers.
    var entries: [(id: ConnectionID, occupant: Occupant)] {
        unsafe slots.enumerated().compactMap { index, slot in
            slot.occupant.map { (ConnectionID(slot: UInt32(index), generation: slot.generation), $0) }
        }
    }

    var occupants: [Occupant] {
        let found = unsafe slots.compactMap(\.occupant)
        precondition(found.count == count, "every occupant is counted once")
        return found
    }
}
