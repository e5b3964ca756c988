import EventLoop
import Testing

/// Tests that wait for several sides at once run on threads of their own. The threads that all tests share may be taken for minutes by tests
/// that block, and the sides here have limits of time.
struct OwnThreads: SuiteTrait, TestTrait, TestScoping {
    var isRecursive: Bool { true }

    func provideScope(
        for test: Test, testCase: Test.Case?, performing body: @Sendable () async throws -> Void
    ) async throws {
        try await withTaskExecutorPreference(TestThreads.shared) { try await body() }
    }
}

extension Trait where Self == OwnThreads {
    static var onOwnThreads: Self { OwnThreads() }
}

extension Task where Success: Sendable, Failure == any Error {
    /// A task beside the test, on the same threads. A plain `Task` leaves them: it begins after all tests that wait for the shared threads.
    static func onOwnThreads(_ body: @escaping @Sendable () async throws -> Success) -> Self {
        Task(executorPreference: TestThreads.shared, operation: body)
    }
}

private final class TestThreads: TaskExecutor {
    static let shared = TestThreads()

    private let jobs = Locked<[UnownedJob]>([])
    private let signal = CountingSemaphore()

    private init() {
        for _ in 0..<4 {
            do {
                // It lives as long as the tests.
                _ = try startThread(name: "test") { while true { self.runNext() } }
            } catch { preconditionFailure("a thread can be started") }
        }
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        jobs.withLock { $0.append(job) }
        signal.signal()
    }

    private func runNext() {
        signal.wait()
        let job = jobs.withLock { $0.removeFirst() }
        unsafe job.runSynchronously(on: asUnownedTaskExecutor())
    }
}
