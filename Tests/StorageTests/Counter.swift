import Storage
import Synchronization

/// Counts wake-ups, from any thread.
final class Counter: Sendable {
    private let calls = Atomic<Int>(0)

    var count: Int { calls.load(ordering: .sequentiallyConsistent) }

    var wake: Wake { Wake { self.calls.add(1, ordering: .sequentiallyConsistent) } }
}
