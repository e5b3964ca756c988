import EventLoop
import Synchronization
import Testing

@testable import Disk

@Suite("The jobs that wait for the writer")
struct WriterQueueTests {
    private let queue = WriterQueue(bytesMax: 100, wakeBytes: 0, nap: .zero)

    private func put(_ bytes: Int, isBounded: Bool = true) -> Bool {
        queue.put(.call {}, bytes: bytes, isBounded: isBounded)
    }

    /// Takes and finishes all jobs.
    private func write() {
        guard case .jobs(_, _, let bytes) = queue.take() else { return }
        queue.done(bytes)
    }

    @Test func `the level rises with what waits and falls when it is written`() {
        #expect(!queue.isHalfFull && !queue.isFull)
        #expect(put(49) && !queue.isHalfFull)
        #expect(put(1) && queue.isHalfFull && !queue.isFull)
        #expect(!put(51), "that would be more than may wait")
        #expect(put(50) && queue.isFull)
        #expect(put(50, isBounded: false) && queue.isFull, "what was promised is taken however much waits")
        guard case .jobs(_, _, let bytes) = queue.take() else { return #expect(Bool(false)) }
        #expect(bytes == 150 && queue.isFull, "what was taken waits until it is written")
        queue.done(bytes)
        #expect(!queue.isHalfFull)
    }

    @Test func `those who wait are woken once, when less than half of what may wait is waiting`() {
        let wakes = Counter()
        func wait() { queue.whenLow { wakes.count() } }
        var count: Int { wakes.value }
        wait()
        #expect(count == 1, "nothing waits")
        #expect(put(60))
        wait()
        wait()
        #expect(count == 1)
        queue.setBound(110)
        #expect(count == 1, "more than half of that waits")
        write()
        #expect(count == 3)
        #expect(put(60))
        wait()
        queue.setBound(1000)
        #expect(count == 4, "less than half of the new bound waits")
        write()
        #expect(count == 4)
    }

    @Test func `those who wait are woken when the queue ends, and at once after that`() {
        let wakes = Counter()
        #expect(put(100))
        queue.whenLow { wakes.count() }
        #expect(wakes.value == 0)
        queue.close()
        #expect(wakes.value == 1)
        queue.whenLow { wakes.count() }
        #expect(wakes.value == 2)
    }

    @Test func `a queue is stuck if much waits and nothing is written`() {
        #expect(!queue.isStuck(for: .zero), "nothing waits")
        #expect(put(60))
        #expect(queue.isStuck(for: .zero) && !queue.isStuck(for: .seconds(3600)))
        write()
        #expect(!queue.isStuck(for: .zero))
    }

    @Test func `a line of the log is due once a minute`() {
        let line = RareLine()
        func now(_ seconds: Int64) -> MonotonicTime { MonotonicTime(nanoseconds: 0).advanced(by: .seconds(seconds)) }
        #expect(line.isDue(now(100)) && !line.isDue(now(101)) && !line.isDue(now(159)))
        #expect(line.isDue(now(160)) && !line.isDue(now(161)) && line.isDue(now(300)))
    }
}

private final class Counter: Sendable {
    private let number = Atomic(0)
    var value: Int { number.load(ordering: .relaxed) }
    func count() { number.add(1, ordering: .relaxed) }
}
