import Synchronization

/// A counter of connections, exchanges, tunnels or kept bodies over all workers. It bounds the whole process, not one peer.
package final class Occupancy: Sendable {
    private let count = Atomic<Int>(0)

    /// One place. It is free again when the last reference is released, on any thread.
    package final class Place: Sendable {
        private enum Hold {
            case own(Occupancy)
            /// Indirect, so that the places of most connections have no room for it.
            indirect case limited(Place, ConnectionLimits)
        }
        private let hold: Hold

        /// What a client connection holds besides.
        package var connectionLimits: ConnectionLimits? {
            switch hold {
            case .own: nil
            case .limited(_, let limits): limits
            }
        }

        fileprivate init(_ occupancy: Occupancy) { hold = .own(occupancy) }

        /// The same place, with limits that are held as long.
        package init(_ place: Place, with limits: ConnectionLimits) { hold = .limited(place, limits) }

        deinit { if case .own(let occupancy) = hold { occupancy.leave() } }
    }

    package init() {}

    /// Takes a place. Returns nil if `limit` places are taken.
    package func take(limit: Int) -> Place? { enter(limit: limit) ? Place(self) : nil }

    /// Takes a place for a caller that frees it itself, once, with `leave`. Returns false if `limit` places are taken.
    package func enter(limit: Int) -> Bool {
        precondition(limit >= 0, "a limit is not negative")
        guard count.wrappingAdd(1, ordering: .relaxed).oldValue < limit else {
            count.wrappingSubtract(1, ordering: .relaxed)
            return false
        }
        return true
    }

    package func leave() {
        let before = count.wrappingSubtract(1, ordering: .relaxed).oldValue
        precondition(before > 0, "a place is freed once")
    }
}
