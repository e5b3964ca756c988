import Glibc
import Storage

/// Runs `body` in `count` threads of the system at once and returns when all have ended.
func inThreads(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) {
    final class Start: Sendable {
        let index: Int
        let body: @Sendable (Int) -> Void
        init(_ index: Int, _ body: @escaping @Sendable (Int) -> Void) {
            self.index = index
            self.body = body
        }
    }
    let threads = (0..<count).map { index in
        var thread = pthread_t()
        let start = unsafe Unmanaged.passRetained(Start(index, body)).toOpaque()
        let status = unsafe pthread_create(
            &thread, nil,
            { argument in
                let start = unsafe Unmanaged<Start>.fromOpaque(argument!).takeRetainedValue()
                start.body(start.index)
                return nil
            }, start)
        precondition(status == 0, "pthread_create failed")
        return thread
    }
    for thread in threads { _ = pthread_join(thread, nil) }
}

/// Blocks one thread until another signals; signals are counted, so none is lost.
@safe final class Gate: @unchecked Sendable {
    private let semaphore: UnsafeMutablePointer<sem_t>

    init() {
        unsafe semaphore = .allocate(capacity: 1)
        unsafe semaphore.initialize(to: sem_t())
        let status = unsafe sem_init(semaphore, 0, 0)
        precondition(status == 0)
    }

    deinit {
        _ = unsafe sem_destroy(semaphore)
        unsafe semaphore.deallocate()
    }

    var wake: Wake { Wake { _ = unsafe sem_post(self.semaphore) } }

    func wait() { while unsafe sem_wait(semaphore) != 0 {} }
}
