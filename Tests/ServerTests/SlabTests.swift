import Testing

@testable import Server

private final class Occupant {
    let id: ConnectionID
    init(_ id: ConnectionID) { self.id = id }
}

@Suite("Slots and generations")
struct SlabTests {
    @Test func `a slot is used again with another generation`() {
        let slab = Slab<Occupant>()
        let first = slab.insert { Occupant($0) }
        #expect(slab[first.id] === first)
        #expect(slab.remove(first.id) === first)
        let second = slab.insert { Occupant($0) }
        #expect(second.id.slot == first.id.slot)
        #expect(second.id != first.id)
        #expect(slab[first.id] == nil, "a message for the one that left meets nobody")
        #expect(slab.remove(first.id) == nil)
        #expect(slab[second.id] === second)
    }

    @Test func `an occupant is found after others are removed`() {
        let slab = Slab<Occupant>()
        let all = (0..<100).map { _ in slab.insert { Occupant($0) } }
        for occupant in all where occupant.id.slot % 3 == 0 { #expect(slab.remove(occupant.id) != nil) }
        #expect(slab.count == all.count { $0.id.slot % 3 != 0 })
        for occupant in all { #expect((slab[occupant.id] === occupant) == (occupant.id.slot % 3 != 0)) }
        #expect(slab.occupants.count == slab.count)
    }
}
