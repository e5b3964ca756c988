import EventLoop
import Synchronization

/// What was removed while the index is still being filled: those who fill it leave that out.
final class DiskStoreLoading: Sendable {
    private struct State {
        var ids: Set<ObjectID> = []
        /// By key's hash: objects with numbers up to this one are gone.
        var through: [UInt64: ObjectID] = [:]
        var calls: [@Sendable () -> Void] = []
        var waiters: [BlockingAnswer] = []
        var isLoaded = false
        var isStopped = false
    }
    private let state = Locked(State())
    private let isDone = Atomic(false)

    var isLoaded: Bool { isDone.load(ordering: .acquiring) }

    func whenLoaded(_ call: @escaping @Sendable () -> Void) {
        let isLoaded = state.withLock { state in
            if !state.isLoaded { state.calls.append(call) }
            return state.isLoaded
        }
        if isLoaded { call() }
    }

    func finish() {
        isDone.store(true, ordering: .releasing)
        let (calls, waiters) = state.withLock { state in
            defer { state = State(isLoaded: true) }
            return (state.calls, state.waiters)
        }
        for call in calls { call() }
        for waiter in waiters { waiter.give(true) }
    }

    /// It will not be loaded any more: the store ends.
    func stop() {
        let waiters = state.withLock { state in
            state.isStopped = true
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.give(false) }
    }

    /// Blocks until the index is filled. False: that took longer, or the store ends before.
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

    /// Something was removed, and who fills the index may not have met it.
    var hasRemovals: Bool {
        !isLoaded && state.withLock { !$0.isLoaded && (!$0.ids.isEmpty || !$0.through.isEmpty) }
    }

    func removed(_ id: ObjectID) {
        guard !isLoaded else { return }
        state.withLock { state in
            if !state.isLoaded { state.ids.insert(id) }
        }
    }

    /// - Parameter last: the newest object there was.
    func removedAll(_ hash: UInt64, through last: ObjectID) {
        guard !isLoaded else { return }
        state.withLock { state in
            if !state.isLoaded { state.through[hash] = last }
        }
    }

    /// Runs `take` where the object was not removed meanwhile; under the lock, so that no removal comes in between.
    func take(_ hash: UInt64, _ id: ObjectID, _ take: () -> Void) -> Bool {
        state.withLock { state in
            if !state.ids.isEmpty, state.ids.contains(id) { return false }
            if !state.through.isEmpty, let through = state.through[hash], id <= through { return false }
            take()
            return true
        }
    }
}
