import Glibc

/// A POSIX semaphore.
@safe final class Semaphore: @unchecked Sendable {
    private let raw: UnsafeMutablePointer<sem_t>
    init() {
        unsafe raw = .allocate(capacity: 1)
        _ = unsafe sem_init(raw, 0, 0)
    }
    deinit {
        _ = unsafe sem_destroy(raw)
        unsafe raw.deallocate()
    }
    func signal() { _ = unsafe sem_post(raw) }
    func wait() { while unsafe sem_wait(raw) != 0 && errno == EINTR {} }

    /// - Returns: false where the time ran out.
    func wait(timeout: Duration) -> Bool {
        var until = timespec()
        _ = unsafe clock_gettime(CLOCK_REALTIME, &until)
        let nanoseconds = until.tv_nsec + Int(timeout.components.attoseconds / 1_000_000_000)
        until.tv_sec += Int(timeout.components.seconds) + nanoseconds / 1_000_000_000
        until.tv_nsec = nanoseconds % 1_000_000_000
        while unsafe sem_timedwait(raw, &until) != 0 {
            if errno != EINTR { return false }
        }
        return true
    }
}
