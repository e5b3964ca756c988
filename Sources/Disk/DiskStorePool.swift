import EventLoop

/// Threads for reads that block. The queue is bounded: what finds it full is refused.
final class DiskStorePool: Sendable {
    private struct State {
        var queue: [@Sendable () -> Void] = []
        /// Index of the oldest job in `queue`.
        var first = 0
        var isShutDown = false
    }
    private let state = Locked(State())
    private let work = CountingSemaphore()
    private let queueMax: Int
    private let threads = Locked<[OwnedThread]>([])

    init(threads count: Int, queueMax: Int) throws(EventLoopError) {
        self.queueMax = queueMax
        for number in 0..<count {
            let thread = OwnedThread(try startThread(name: "disk-read-\(number)") { [self] in run() })
            threads.withLock { $0.append(thread) }
        }
    }

    func submit(_ job: @escaping @Sendable () -> Void) -> Bool {
        let isAccepted = state.withLock { state in
            guard !state.isShutDown, state.queue.count - state.first < queueMax else { return false }
            state.queue.append(job)
            return true
        }
        if isAccepted { work.signal() }
        return isAccepted
    }

    /// Finishes what was accepted, then ends the threads. From outside of the pool.
    func shutdown() {
        state.withLock { $0.isShutDown = true }
        let threads = threads.withLock { threads in
            defer { threads = [] }
            return threads
        }
        for _ in threads { work.signal() }
        for thread in threads { thread.join() }
    }

    private func run() {
        while true {
            work.wait()
            guard let job = next() else { return }
            job()
        }
    }

    /// Nil only at the end: each signal stands for a job or for the end.
    private func next() -> (@Sendable () -> Void)? {
        state.withLock { state in
            guard state.first < state.queue.count else { return nil }
            let job = state.queue[state.first]
            state.first += 1
            if state.first == state.queue.count {
                state.queue.removeAll(keepingCapacity: true)
                state.first = 0
            } else if state.first >= queueMax {
                state.queue.removeFirst(state.first)
                state.first = 0
            }
            return job
        }
    }
}
