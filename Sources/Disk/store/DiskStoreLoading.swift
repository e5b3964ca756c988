import EventLoop
import Synchronization

/// The removals that happen while the index is being filled. `Recovery` leaves the removed objects out.
///
/// An object can be removed before `Recovery` meets it: a purge must not wait for the start, and must not be undone by it either.
///
/// Threads: any thread notes a removal; the loader alone calls `take` and `finish`. `isDone` lets removals skip the lock once the index
/// is filled. It is set before the noted removals are dropped, so a removal that sees it unset and takes the lock looks again
/// (`isLoaded` of the state).
final class DiskStoreLoading: Sendable {
    private struct State {
        var ids: Set<ObjectID> = []
        /// By the hash of the key: objects with numbers up to this one are removed.
        var through: [UInt64: ObjectID] = [:]
        var calls: [@Sendable () -> Void] = []
        var waiters: [BlockingAnswer] = []
        var isLoaded = false
        var isStopped = false
    }
    private let state = Locked(State())
    private let isDone = Atomic(false)
    private let isUnderWay = Atomic(true)

    var isLoaded: Bool { isDone.load(ordering: .acquiring) }
    /// The index is filled, or the store ended before that. The index gets no further objects from `Recovery`.
    var isOver: Bool { !isUnderWay.load(ordering: .acquiring) }

    /// Calls once the loading is over; at once if it is over already. A caller that the end of the store left waiting would wait for ever.
    func whenOver(_ call: @escaping @Sendable () -> Void) {
        let isOver = state.withLock { state in
            let isOver = state.isLoaded || state.isStopped
            if !isOver { state.calls.append(call) }
            return isOver
        }
        if isOver { call() }
    }

    func finish() {
        isDone.store(true, ordering: .releasing)
        isUnderWay.store(false, ordering: .releasing)
        let (calls, waiters) = state.withLock { state in
            defer { state = State(isLoaded: true) }
            return (state.calls, state.waiters)
        }
        for call in calls { call() }
        for waiter in waiters { waiter.give(true) }
    }

    /// The store ends before it is loaded.
    func stop() {
        isUnderWay.store(false, ordering: .releasing)
        let (calls, waiters) = state.withLock { state in
            state.isStopped = true
            defer {
                state.calls = []
                state.waiters = []
            }
            return (state.calls, state.waiters)
        }
        for call in calls { call() }
        for waiter in waiters { waiter.give(false) }
    }

    /// Blocks until the index is filled. Returns false if that takes too long or the store ends first.
    func wait(_ timeout: Duration) -> Bool {
        if isLoaded { return true }
        let answer = BlockingAnswer()
        let known: Bool? = state.withLock { state in
            if state.isLoaded || state.isStopped { return state.isLoaded }
            state.waiters.append(answer)
            return nil
        }
        return known ?? answer.wait(timeout)
    }

    /// Whether something was removed that `Recovery` may not have met yet.
    var hasRemovals: Bool {
        !isLoaded && state.withLock { !$0.isLoaded && (!$0.ids.isEmpty || !$0.through.isEmpty) }
    }

    func removed(_ id: ObjectID) {
        guard !isLoaded else { return }
        state.withLock { state in
            if !state.isLoaded { state.ids.insert(id) }
        }
    }

    /// - Parameter last: the newest object when the removal was requested.
    func removedAll(_ hash: UInt64, through last: ObjectID) {
        guard !isLoaded else { return }
        state.withLock { state in
            if !state.isLoaded { state.through[hash] = last }
        }
    }

    /// Calls `take` unless the object was removed. The lock is held during the call: no removal can come in between.
    func take(_ hash: UInt64, _ id: ObjectID, _ take: () -> Void) -> Bool {
        state.withLock { state in
            if !state.ids.isEmpty, state.ids.contains(id) { return false }
            if !state.through.isEmpty, let through = state.through[hash], id <= through { return false }
            take()
            return true
        }
    }
}
