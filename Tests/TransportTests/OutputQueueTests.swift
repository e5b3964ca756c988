import Testing
import Transport

@Suite("Bytes wait in order until a socket accepts them")
struct OutputQueueTests {
    private func text(_ queue: borrowing OutputQueue) -> String {
        unsafe queue.withBytes { unsafe String(decoding: $0, as: UTF8.self) }
    }

    @Test func `accepted bytes are removed, and the others stay in order`() {
        var queue = OutputQueue()
        queue.append(Array("abc".utf8))
        queue.advance(by: 2)
        var lent = queue.lendBytes()
        lent.append(contentsOf: "def".utf8)
        queue.takeBack(lent)
        #expect(text(queue) == "cdef")
        let count = queue.count
        #expect(count == 4)
        queue.advance(by: 4)
        let isEmpty = queue.isEmpty
        #expect(isEmpty)
    }

    @Test func `bytes that are lent come back with what was written behind them`() {
        var queue = OutputQueue()
        queue.append("first ")
        let lent = queue.lendBytes()
        let isEmpty = queue.isEmpty
        #expect(isEmpty, "nothing of what is lent can be sent meanwhile")
        queue.takeBack(lent + Array("second".utf8))
        #expect(text(queue) == "first second")
    }

    @Test func `unsent bytes at the end can be removed`() {
        var queue = OutputQueue()
        queue.append(Array("interim final".utf8))
        queue.advance(by: 3)
        queue.truncate(to: 5)
        #expect(text(queue) == "erim ")
        queue.truncate(to: 0)
        let isEmpty = queue.isEmpty
        #expect(isEmpty)
    }

    @Test func `a peer that always leaves a few bytes does not make the queue grow`() {
        var queue = OutputQueue()
        queue.append([UInt8(ascii: "x")])
        for _ in 0..<1000 {
            queue.append([UInt8](repeating: 1, count: 1024))
            queue.advance(by: 1024)
        }
        let count = queue.count
        #expect(count == 1)
        let held = queue.bytesHeld
        #expect(held <= 128 << 10)
    }
}
