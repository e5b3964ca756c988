/// Identifies an occupant of a worker's slab: its slot, and the generation that tells it from earlier occupants of that slot.
///
/// Only this number travels between threads, never a connection. A job for a connection that has closed finds a newer generation, and
/// does nothing.
package struct ConnectionID: Hashable, Sendable {
    package var slot: UInt32
    package var generation: UInt32
}

/// Occupants by slot. A slot is used again with the next generation. A generation repeats after 2³² occupants of one slot; no job
/// waits for that long.
struct Slab<Occupant: AnyObject> {
    private struct Slot {
        var generation: UInt32
        var occupant: Occupant?
    }
    private var slots: [Slot] = []
    private var free: [UInt32] = []
    private(set) var count = 0

    /// Makes an occupant for a free slot. `make` must not use the slab.
    mutating func insert(_ make: (ConnectionID) -> Occupant) -> Occupant {
        count += 1
        if let index = free.popLast() {
            precondition(slots[Int(index)].occupant == nil, "a free slot has no occupant")
            let occupant = make(ConnectionID(slot: index, generation: slots[Int(index)].generation))
            slots[Int(index)].occupant = occupant
            return occupant
        }
        let occupant = make(ConnectionID(slot: UInt32(slots.count), generation: 0))
        slots.append(Slot(generation: 0, occupant: occupant))
        return occupant
    }

    /// The occupant with this number. Returns nil if it has been removed.
    subscript(_ id: ConnectionID) -> Occupant? {
        guard slots.indices.contains(Int(id.slot)), slots[Int(id.slot)].generation == id.generation else { return nil }
        return slots[Int(id.slot)].occupant
    }

    /// Removes the occupant with this number. Returns nil if it has been removed before.
    mutating func remove(_ id: ConnectionID) -> Occupant? {
        guard let occupant = self[id] else { return nil }
        slots[Int(id.slot)].occupant = nil
        slots[Int(id.slot)].generation &+= 1
        free.append(id.slot)
        count -= 1
        precondition(count + free.count == slots.count, "every slot is occupied or free")
        return occupant
    }

    var occupants: [Occupant] { slots.compactMap(\.occupant) }
}
