import Synchronization

/// How many of something there are at once, over all workers: what bounds the whole process and not one peer.
final class Occupancy: Sendable {
    private let count = Atomic<Int>(0)

    /// One of them; it is given back when the last reference goes away.
    final class Place: Sendable {
        private let occupancy: Occupancy
        fileprivate init(_ occupancy: Occupancy) { self.occupancy = occupancy }
        deinit {
            let before = occupancy.count.wrappingSubtract(1, ordering: .relaxed).oldValue
            precondition(before > 0, "a place is given back once")
        }
    }

    /// Returns nil where there are as many as there may be.
    func take(limit: Int) -> Place? {
        guard count.wrappingAdd(1, ordering: .relaxed).oldValue < limit else {
            count.wrappingSubtract(1, ordering: .relaxed)
            return nil
        }
        return Place(self)
    }
}
