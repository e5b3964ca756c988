import EventLoop

/// Runs asynchronous work to its end on the calling thread. For commands, whose main thread has nothing else to do.
///
/// It needs no other thread, so it may be called on one of the few that tasks share.
func blocking<Value: Sendable, Failure: Error>(
    _ work: @escaping @Sendable () async throws(Failure) -> Value
) throws(Failure) -> Value {
    let outcome = Locked<Result<Value, Failure>?>(nil)
    let thread = CallingThread()
    Task.detached(executorPreference: thread) {
        let result: Result<Value, Failure>
        do throws(Failure) { result = .success(try await work()) } catch { result = .failure(error) }
        outcome.withLock { $0 = result }
    }
    while true {
        thread.runNext()
        if let result = outcome.withLock({ $0 }) { return try result.get() }
    }
}

/// Keeps the jobs of a task and of its children for the thread that waits for them.
private final class CallingThread: TaskExecutor {
    private let jobs = Locked<[UnownedJob]>([])
    private let signal = CountingSemaphore()

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        jobs.withLock { $0.append(job) }
        signal.signal()
    }

    /// Waits for a job, and runs it.
    func runNext() {
        signal.wait()
        let job = jobs.withLock { $0.removeFirst() }
        unsafe job.runSynchronously(on: asUnownedTaskExecutor())
    }
}
