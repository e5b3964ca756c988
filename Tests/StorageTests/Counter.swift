import Storage
import Synchronization

/// Counts wake-ups, from any thread.
final class Counter: Sendable {
    private let calls = Atomic<Int>(0)

    var count: Int { calls.load(ordering: .sequentiallyConsistent) }

    var wake: Wake { Wake { self.calls.add(1, ordering: .sequentiallyConsistent) } }
}

/// A sum that threads add to.
final class ByteCount: Sendable {
    private let value = Atomic<Int>(0)
    var count: Int { value.load(ordering: .relaxed) }
    func add(_ count: Int) { value.add(count, ordering: .relaxed) }
}
