import Glibc

/// Work for several threads, where one item may lead to more items. It ends when no item is left and no thread works on one.
@safe final class WorkQueue<Item: Sendable>: @unchecked Sendable {  // the lock protects the state
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
        precondition(status == 0, "a lock can be created")
    }

    deinit {
        unsafe pthread_cond_destroy(change)
        unsafe pthread_mutex_destroy(lock)
        unsafe change.deallocate()
        unsafe lock.deallocate()
    }

    /// Takes the next item in the order in which they were added. Waits while other threads may still add some. Returns nil when all
    /// work is done.
    ///
    /// The caller must call `finish` when it has done the item.
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

    /// Ends an item that was taken, and adds the items to which it led.
    func finish(adding more: [Item]) {
        unsafe pthread_mutex_lock(lock)
        busy -= 1
        items += more
        unsafe pthread_cond_broadcast(change)
        unsafe pthread_mutex_unlock(lock)
    }
}
