@testable import EventLoop
import Testing

@Suite("Names: whose queries are open") struct QueryPlacesTests {
    private static func client(_ number: Int) -> SocketAddress { SocketAddress(v4: UInt32(number), port: 0) }

    /// Takes places until there is none.
    private static func fill(_ places: inout QueryPlaces, for asker: SocketAddress?) -> Int {
        var count = 0
        while places.take(for: asker) { count += 1 }
        return count
    }

    @Test func `each who asks for all that there is leaves as much as it has`() {
        var places = QueryPlaces(countMax: 1000)
        let counts = (1...4).map { Self.fill(&places, for: Self.client($0)) }
        #expect(counts == [500, 250, 125, 63])
        let hasPlace = places.take(for: Self.client(9))
        #expect(hasPlace)
    }

    @Test func `the process itself takes what is free, and no more`() {
        var places = QueryPlaces(countMax: 10)
        let counts = [Self.client(1), nil].map { Self.fill(&places, for: $0) }
        #expect(counts == [5, 5])
        let hasPlace = places.take(for: Self.client(2))
        #expect(!hasPlace)
    }

    @Test func `a place that is given back is free again`() {
        var places = QueryPlaces(countMax: 4)
        let first = Self.fill(&places, for: Self.client(1))
        places.give(back: Self.client(1))
        let second = Self.fill(&places, for: Self.client(1))
        #expect(first == 2 && second == 1 && places.count == 2)
    }
}
