import Testing

@testable import LimitTables

@Suite("Places that are bounded")
struct OccupancyTests {
    private let occupancy = Occupancy()

    @Test func `no more places are taken than the limit allows`() {
        #expect(occupancy.enter(limit: 2))
        #expect(occupancy.enter(limit: 2))
        #expect(!occupancy.enter(limit: 2))
        occupancy.leave()
        #expect(occupancy.enter(limit: 2), "an attempt that was refused takes no place")
    }

    @Test func `a place is free again when its object is released`() {
        var place = occupancy.take(limit: 1)
        #expect(place != nil)
        #expect(occupancy.take(limit: 1) == nil)
        place = nil
        #expect(occupancy.enter(limit: 1))
    }

    @Test func `places with and without an object count alike`() {
        #expect(occupancy.enter(limit: 1))
        #expect(occupancy.take(limit: 1) == nil)
        occupancy.leave()
        let place = occupancy.take(limit: 1)
        #expect(!occupancy.enter(limit: 1))
        withExtendedLifetime(place) {}
    }

    @Test func `a limit of zero leaves no place`() {
        #expect(!occupancy.enter(limit: 0))
        #expect(occupancy.take(limit: 0) == nil)
    }
}
