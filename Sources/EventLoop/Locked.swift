import Glibc

/// A value and the lock that guards it.
///
/// A pthread mutex and not `Synchronization.Mutex`: it costs the same (a few nanoseconds when nobody else wants it), and
/// ThreadSanitizer knows what it orders. The other is taken in the library, out of the sanitizer's sight, and makes it
/// report races that are none.
@safe package final class Locked<Value>: @unchecked Sendable {  // the value is reached under the lock alone
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private var value: Value

    package init(_ value: sending Value) {
        self.value = value
        unsafe mutex = .allocate(capacity: 1)
        unsafe mutex.initialize(to: pthread_mutex_t())
        let status = unsafe pthread_mutex_init(mutex, nil)
        precondition(status == 0, "a lock can be made")
    }

    deinit {
        unsafe pthread_mutex_destroy(mutex)
        unsafe mutex.deinitialize(count: 1)
        unsafe mutex.deallocate()
    }

    package func withLock<Result, Failure: Error>(
        _ body: (inout Value) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        unsafe pthread_mutex_lock(mutex)
        defer { unsafe pthread_mutex_unlock(mutex) }
        return try body(&value)
    }
}
