import CLarder
import Glibc

/// A POSIX semaphore. It counts signals; `wait` takes one, or sleeps until there is one.
@safe package final class CountingSemaphore: @unchecked Sendable {
    private let raw: UnsafeMutablePointer<sem_t>

    package init() {
        unsafe raw = .allocate(capacity: 1)
        let status = unsafe sem_init(raw, 0, 0)
        precondition(status == 0, "sem_init refused zero")
    }

    deinit {
        unsafe sem_destroy(raw)
        unsafe raw.deallocate()
    }

    package func signal() { unsafe sem_post(raw) }

    package func wait() {
        while unsafe sem_wait(raw) != 0 { precondition(errno == EINTR, "a semaphore fails only when interrupted") }
    }

    /// Returns false if there was no signal in time, by the clock that never goes back.
    package func wait(timeout: Duration) -> Bool {
        var until = timespec()
        _ = unsafe clock_gettime(CLOCK_MONOTONIC, &until)
        let nanoseconds = until.tv_nsec + Int(timeout.components.attoseconds / 1_000_000_000)
        until.tv_sec += Int(timeout.components.seconds) + nanoseconds / 1_000_000_000
        until.tv_nsec = nanoseconds % 1_000_000_000
        while unsafe clarder_sem_wait(raw, &until) != 0 {
            if errno != EINTR { return false }
        }
        return true
    }
}
