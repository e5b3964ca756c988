/// Names one occupant of a worker's slab: the slot, and the generation that tells it from earlier ones.
///
/// The only reference to a connection that travels between threads: a message for one that is gone meets a newer
/// generation and is dropped.
package struct ConnectionID: Hashable, Sendable {
    package var slot: UInt32
    package var generation: UInt32
}

/// Occupants by slot; slots are used again, generations are not.
struct Slab<Occupant: AnyObject> {
    private struct Slot {
        var generation: UInt32
        var occupant: Occupant?
    }
    private var slots: [Slot] = []
    private var free: [UInt32] = []
    private(set) var count = 0

    mutating func insert(_ make: (ConnectionID) -> Occupant) -> Occupant {
        count += 1
        if let index = free.popLast() {
            let occupant = make(ConnectionID(slot: index, generation: slots[Int(index)].generation))
            slots[Int(index)].occupant = occupant
            return occupant
        }
        let occupant = make(ConnectionID(slot: UInt32(slots.count), generation: 0))
        slots.append(Slot(generation: 0, occupant: occupant))
        return occupant
    }

    subscript(_ id: ConnectionID) -> Occupant? {
        guard slots.indices.contains(Int(id.slot)), slots[Int(id.slot)].generation == id.generation else { return nil }
        return slots[Int(id.slot)].occupant
    }

    mutating func remove(_ id: ConnectionID) -> Occupant? {
        guard let occupant = self[id] else { return nil }
        slots[Int(id.slot)].occupant = nil
        slots[Int(id.slot)].generation &+= 1
        free.append(id.slot)
        count -= 1
        return occupant
    }

    var occupants: [Occupant] { slots.compactMap(\.occupant) }
}
