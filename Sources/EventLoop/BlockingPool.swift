import Glibc
import Synchronization

/// Threads for work that would block a loop: password hashes, compression, files.
///
/// The queue is bounded: a job that finds it full is refused at once. Jobs may finish in any order.
package final class BlockingPool: Sendable {
    private struct State {
        var queue: [@Sendable () -> Void] = []
        /// The index of the oldest job in `queue`. The jobs before it have been taken.
        var first = 0
        var isShuttingDown = false
        var threads: [OwnedThread] = []
    }
    private let state = Locked(State())
    private let jobsWaiting = CountingSemaphore()
    private let queueMax: Int

    /// - Parameter name: the name of the threads. A number is appended; the kernel keeps 15 bytes in all.
    package init(name: String = "blocking", threads: Int, queueMax: Int) throws(EventLoopError) {
        precondition(threads > 0 && queueMax > 0, "a pool needs threads and a queue")
        self.queueMax = queueMax
        for number in 0..<threads {
            let thread = OwnedThread(try startThread(name: "\(name)-\(number)") { [self] in work() })
            state.withLock { $0.threads.append(thread) }
        }
    }

    /// Runs `work` on a thread of the pool, and then `then` with its result on the loop of `inbox`.
    ///
    /// - Returns: false if the queue is full or the pool was shut down. Neither closure runs then.
    package func submit<T: Sendable>(
        _ work: @escaping @Sendable () -> T, then: @escaping @Sendable (T) -> Void, on inbox: Inbox
    ) -> Bool {
        submit {
            let result = work()
            inbox.post { then(result) }
        }
    }

    /// Runs `job` on a thread of the pool.
    ///
    /// - Returns: false if the queue is full or the pool was shut down. The job does not run then.
    package func submit(_ job: @escaping @Sendable () -> Void) -> Bool {
        let isAccepted = state.withLock { state in
            guard !state.isShuttingDown, state.queue.count - state.first < queueMax else { return false }
            state.queue.append(job)
            return true
        }
        if isAccepted { jobsWaiting.signal() }
        return isAccepted
    }

    /// Runs the jobs that were accepted, then ends the threads. Blocks. Must be called once, and not on a thread of the pool.
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
            // What was loaded here is freed by others, also while there is nothing to do.
            while !jobsWaiting.wait(timeout: ThreadMemory.period) { ThreadMemory.collect() }
            guard let job = takeJob() else { return }
            job()
        }
    }

    /// The next job. Nil only if the pool is shut down and no job is left: each signal stands for a job or for the end.
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
