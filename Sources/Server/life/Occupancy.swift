import Synchronization

/// A counter of connections, exchanges or tunnels over all workers. It bounds the whole process, not one peer.
final class Occupancy: Sendable {
    private let count = Atomic<Int>(0)

    /// One place. It is free again when the last reference is released, on any thread.
    final class Place: Sendable {
        private let occupancy: Occupancy
        fileprivate init(_ occupancy: Occupancy) { self.occupancy = occupancy }
        deinit {
            let before = occupancy.count.wrappingSubtract(1, ordering: .relaxed).oldValue
            precondition(before > 0, "a place is freed once")
        }
    }

    /// Takes a place. Returns nil if `limit` places are taken.
    func take(limit: Int) -> Place? {
        precondition(limit >= 0, "a limit is not negative")
        guard count.wrappingAdd(1, ordering: .relaxed).oldValue < limit else {
            count.wrappingSubtract(1, ordering: .relaxed)
            return nil
        }
        return Place(self)
    }
}
