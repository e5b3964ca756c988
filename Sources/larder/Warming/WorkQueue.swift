import Glibc

/// What several threads have to do, where doing one thing may bring more: at its end nothing is left and nobody is at work.
@safe final class WorkQueue<Item: Sendable>: @unchecked Sendable {  // the state is reached under the lock alone
    private let lock: UnsafeMutablePointer<pthread_mutex_t>
    private let change: UnsafeMutablePointer<pthread_cond_t>
    private var items: [Item]
    private var next = 0
    private var busy = 0

    init(_ items: [Item]) {
        self.items = items
        unsafe lock = .allocate(capacity: 1)
        unsafe change = .allocate(capacity: 1)
        let status = unsafe pthread_mutex_init(lock, nil) + pthread_cond_init(change, nil)
        precondition(status == 0, "a lock can be made")
    }

    deinit {
        unsafe pthread_cond_destroy(change)
        unsafe pthread_mutex_destroy(lock)
        unsafe change.deallocate()
        unsafe lock.deallocate()
    }

    /// The next thing to do, in the order of adding; waits while others may still add some. nil: all is done.
    ///
    /// Who takes one calls `finish` when it is done.
    func take() -> Item? {
        unsafe pthread_mutex_lock(lock)
        defer { unsafe pthread_mutex_unlock(lock) }
        while next == items.count {
            if busy == 0 { return nil }
            unsafe pthread_cond_wait(change, lock)
        }
        busy += 1
        next += 1
        return items[next - 1]
    }

    /// The thing that was taken is done, and brought these.
    func finish(adding more: [Item]) {
        unsafe pthread_mutex_lock(lock)
        busy -= 1
        items += more
        unsafe pthread_cond_broadcast(change)
        unsafe pthread_mutex_unlock(lock)
    }
}
