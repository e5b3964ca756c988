import Glibc
import Synchronization

/// Threads for work that would hold up a loop: password hashes, files.
///
/// The queue is bounded: what finds it full is refused at once, and its client told so. Jobs of one submitter may
/// finish in any order.
package final class BlockingPool: Sendable {
    private struct State {
        var queue: [@Sendable () -> Void] = []
        /// Index of the oldest job in `queue`; those before it are done.
        var first = 0
        var isShuttingDown = false
        var threads: [OwnedThread] = []
    }
    private let state = Locked(State())
    private let jobsWaiting = CountingSemaphore()
    private let queueMax: Int

    /// - Parameter name: of the threads, which get a number behind it; with that at most 15 bytes.
    package init(name: String = "blocking", threads: Int, queueMax: Int) throws(EventLoopError) {
        precondition(threads > 0 && queueMax > 0, "a pool has threads and a queue")
        self.queueMax = queueMax
        for number in 0..<threads {
            let thread = OwnedThread(try startThread(name: "\(name)-\(number)") { [self] in work() })
            state.withLock { $0.threads.append(thread) }
        }
    }

    /// Runs `work` on a thread of the pool and `then` with its result on the loop of `inbox`.
    /// - Returns: false when the queue is full or the pool shut down; neither closure runs then.
    package func submit<T: Sendable>(
        _ work: @escaping @Sendable () -> T, then: @escaping @Sendable (T) -> Void, on inbox: Inbox
    ) -> Bool {
        submit {
            let result = work()
            inbox.post { then(result) }
        }
    }

    /// Runs `job` on a thread of the pool.
    /// - Returns: false when the queue is full or the pool shut down; it does not run then.
    package func submit(_ job: @escaping @Sendable () -> Void) -> Bool {
        let isAccepted = state.withLock { state in
            guard !state.isShuttingDown, state.queue.count - state.first < queueMax else { return false }
            state.queue.append(job)
            return true
        }
        if isAccepted { jobsWaiting.signal() }
        return isAccepted
    }

    /// Finishes what was accepted, then ends the threads. Must be called once, from outside the pool.
    package func shutdown() {
        let threads = state.withLock { state in
            state.isShuttingDown = true
            return state.threads
        }
        for _ in threads { jobsWaiting.signal() }
        for thread in threads { thread.join() }
    }

    private func work() {
        while true {
            jobsWaiting.wait()
            guard let job = takeJob() else { return }
            job()
        }
    }

    /// Nil only when the pool shuts down and nothing is left: each signal stands for a job or for the end.
    private func takeJob() -> (@Sendable () -> Void)? {
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
