import EventLoop
import Synchronization
import Testing

@Suite("Blocking pool")
struct PoolTests {
    /// Lets a job stand still until the test says so.
    private final class Gate: Sendable {
        private let isOpen = Atomic(false)
        func open() { isOpen.store(true, ordering: .releasing) }
        func pass() { while !isOpen.load(ordering: .acquiring) {} }
    }

    @Test func `results come back on the loop's thread`() throws {
        let loop = try EventLoop()
        let pool = try BlockingPool(threads: 2, queueMax: 100)
        let inbox = loop.inbox
        let sum = Locked(0)
        let left = Locked(50)
        for number in 1...50 {
            let isAccepted = pool.submit(
                { number * 2 },
                then: { result in
                    sum.withLock { $0 += result }
                    left.withLock { $0 -= 1 }
                }, on: inbox)
            #expect(isAccepted)
        }
        runLoop(loop) { left.withLock { $0 == 0 } }
        #expect(sum.withLock { $0 } == 2550)
        pool.shutdown()
    }

    @Test func `a full queue refuses, and shutdown finishes what was accepted`() throws {
        let loop = try EventLoop()
        let pool = try BlockingPool(threads: 1, queueMax: 2)
        let inbox = loop.inbox
        let gate = Gate()
        let started = Gate()
        let done = Locked(0)
        let job: @Sendable () -> Void = { done.withLock { $0 += 1 } }
        func submit(_ work: @escaping @Sendable () -> Void) -> Bool { pool.submit(work, then: {}, on: inbox) }
        let first = submit {
            started.open()
            gate.pass()
            job()
        }
        started.pass()
        let others = [submit(job), submit(job), submit(job)]
        #expect(first)
        #expect(others == [true, true, false])
        gate.open()
        pool.shutdown()
        #expect(done.withLock { $0 } == 3)
        let late = submit(job)
        #expect(!late)
    }
}
