import Requesting
import Testing

@Suite("requests: the queue") struct RequestQueueTests {
    @Test func `higher priorities begin first, each in the order of arrival`() {
        var queue = RequestQueue(runningMax: 100, waitingMax: 100)
        for (number, priority) in [(1, .low), (2, .normal), (3, .high), (4, .normal), (5, .high), (6, .low)]
            as [(UInt64, RequestQueue.Priority)]
        { #expect(queue.add(number, priority) == .queued) }
        var order: [UInt64] = []
        while let next = queue.next() { order.append(next) }
        #expect(order == [3, 5, 2, 4, 1, 6])
    }

    @Test func `only so many run at a time`() {
        var queue = RequestQueue(runningMax: 2, waitingMax: 100)
        for number in 1...4 { _ = queue.add(UInt64(number), .normal) }
        #expect(queue.next() == 1)
        #expect(queue.next() == 2)
        #expect(queue.next() == nil)
        queue.finished()
        #expect(queue.next() == 3)
        #expect(queue.next() == nil)
    }

    @Test func `the queue has a bound, and a request that can run at once does not wait`() {
        var queue = RequestQueue(runningMax: 1, waitingMax: 2)
        #expect(queue.add(1, .normal) == .queued)
        #expect(queue.next() == 1)
        #expect(queue.add(2, .normal) == .queued)
        #expect(queue.add(3, .high) == .queued)
        #expect(queue.add(4, .high) == .full)
        var direct = RequestQueue(runningMax: 1, waitingMax: 0)
        #expect(direct.add(1, .normal) == .queued)
        #expect(direct.next() == 1)
        #expect(direct.add(2, .normal) == .full)
    }

    @Test func `no priority starves`() {
        var queue = RequestQueue(runningMax: 1, waitingMax: 1000)
        _ = queue.add(1001, .normal)
        _ = queue.add(1002, .low)
        var order: [UInt64] = []
        for number in 1...60 {
            _ = queue.add(UInt64(number), .high)
            guard let next = queue.next() else { return #expect(Bool(false), "one waits") }
            order.append(next)
            queue.finished()
        }
        // Each has been passed over 16 times; the lower one waits for the one above it as well.
        #expect(order.firstIndex(of: 1001).map { $0 <= 17 } == true)
        #expect(order.firstIndex(of: 1002).map { $0 <= 17 } == true)
        // The urgent ones keep their order.
        #expect(order.filter { $0 < 1000 } == order.filter { $0 < 1000 }.sorted())
    }

    @Test func `a request that waits can be removed`() {
        var queue = RequestQueue(runningMax: 10, waitingMax: 10)
        for number in 1...3 { _ = queue.add(UInt64(number), .low) }
        #expect(queue.remove(2) == true)
        #expect(queue.remove(2) == false)
        #expect(queue.next() == 1)
        #expect(queue.remove(1) == false, "it runs")
        #expect(queue.next() == 3)
        #expect(queue.waitingCount == 0)
    }

    @Test(arguments: [UInt64(1), 2, 3]) func `whatever happens, each request leaves the queue once`(_ seed: UInt64) {
        var random = Random(state: seed)
        var queue = RequestQueue(runningMax: 4, waitingMax: 50)
        var (waiting, left, number): (Set<UInt64>, Set<UInt64>, UInt64) = ([], [], 0)
        for _ in 0..<20_000 {
            switch random.next(below: 4) {
            case 0, 1:
                number += 1
                let priority = RequestQueue.Priority.allCases[Int(random.next(below: 3))]
                if queue.add(number, priority) == .queued { waiting.insert(number) }
            case 2:
                if let victim = waiting.min(), random.next(below: 3) == 0 {
                    #expect(queue.remove(victim) == true)
                    waiting.remove(victim)
                }
            default:
                if queue.runningCount > 0 { queue.finished() }
                while let next = queue.next() {
                    #expect(waiting.remove(next) != nil)
                    #expect(left.insert(next).inserted)
                }
            }
            #expect(queue.waitingCount == waiting.count && queue.runningCount <= 4 && waiting.count <= 54)
        }
    }

    private struct Random {
        var state: UInt64
        mutating func next(below bound: UInt64) -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return (state >> 33) % bound
        }
    }
}
