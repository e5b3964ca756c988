import EventLoop
import Testing

@Suite("Calls that may hang")
struct CallPoolTests {
    /// Notes which calls have run, in their order.
    private final class Notes: Sendable {
        private let list = Locked<[String]>([])
        private let semaphore = CountingSemaphore()
        func add(_ text: String) {
            list.withLock { $0.append(text) }
            semaphore.signal()
        }
        /// Waits for so many more notes, at most 20 seconds each.
        func wait(for count: Int) {
            for _ in 0..<count { #expect(semaphore.wait(timeout: .seconds(20)), "waited in vain") }
        }
        var all: [String] { list.withLock { $0 } }
    }

    @Test func `calls with one key run one after the other, and what hangs holds up its own key alone`() {
        let pool = CallPool(name: "calls", threadsMax: 4, waitingMax: 10)
        let (gate, notes) = (CountingSemaphore(), Notes())
        let first = pool.submit(key: "slow") {
            notes.add("begun")
            gate.wait()
            notes.add("slow 1")
        }
        notes.wait(for: 1)
        let second = pool.submit(key: "slow") { notes.add("slow 2") }
        let other = pool.submit(key: "quick") { notes.add("quick") }
        #expect(first && second && other)
        notes.wait(for: 1)
        #expect(notes.all == ["begun", "quick"])
        #expect(pool.counts.waiting == 1)
        gate.signal()
        notes.wait(for: 2)
        #expect(notes.all == ["begun", "quick", "slow 1", "slow 2"])
    }

    @Test func `there are never more threads than allowed, and a full queue refuses`() {
        let pool = CallPool(name: "calls", threadsMax: 2, waitingMax: 2)
        let (gate, notes) = (CountingSemaphore(), Notes())
        func submit(_ key: String) -> Bool {
            pool.submit(key: key) {
                notes.add(key)
                gate.wait()
            }
        }
        let running = [submit("a"), submit("b")]
        notes.wait(for: 2)
        let others = [submit("c"), submit("d"), submit("e")]
        #expect(running == [true, true])
        #expect(others == [true, true, false])
        #expect(pool.counts == (waiting: 2, threads: 2))
        for _ in 1...4 { gate.signal() }
        notes.wait(for: 2)
        #expect(Set(notes.all) == ["a", "b", "c", "d"])
    }

    @Test func `closing drops the calls that wait`() {
        let pool = CallPool(name: "calls", threadsMax: 1, waitingMax: 10)
        let (gate, notes) = (CountingSemaphore(), Notes())
        let first = pool.submit(key: "a") {
            notes.add("first")
            gate.wait()
            notes.add("its end")
        }
        notes.wait(for: 1)
        let second = pool.submit(key: "a") { notes.add("second") }
        #expect(first && second)
        pool.close()
        gate.signal()
        notes.wait(for: 1)
        let late = pool.submit(key: "b") { notes.add("late") }
        #expect(!late)
        #expect(notes.all == ["first", "its end"])
    }
}
