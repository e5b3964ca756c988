import Message
import Origins
import Testing

@Suite("queues for connections: clients take turns") struct FairQueueTests {
    private static func client(_ letter: Character) -> IPAddress { IPAddress(v4: UInt32(letter.asciiValue!)) }

    /// Requests are named by client and number: `a1`. Returns those that found no place.
    @discardableResult
    private func fill(_ queue: inout FairQueue<String>, _ names: String, countMax: Int = 100) -> [String] {
        names.split(separator: " ").compactMap {
            queue.append(String($0), from: Self.client($0.first!), countMax: countMax)
        }
    }

    private func drain(_ queue: inout FairQueue<String>) -> String {
        var names: [String] = []
        while let name = queue.next() { names.append(name) }
        return names.joined(separator: " ")
    }

    @Test(arguments: [
        ("a1 a2 a3", "a1 a2 a3"), ("a1 a2 a3 b1", "a1 b1 a2 a3"), ("a1 a2 a3 b1 b2 c1", "a1 b1 c1 a2 b2 a3"),
        ("b1 a1 a2 b2 c1 b3", "b1 a1 c1 a2 b2 b3"), ("", ""),
    ])
    func `each client has a turn in each round`(came: String, left: String) {
        var queue = FairQueue<String>()
        fill(&queue, came)
        #expect(drain(&queue) == left)
    }

    @Test func `who comes later waits for no more than one request of each of the others`() {
        var queue = FairQueue<String>()
        fill(&queue, "a1 a2 a3 a4 b1 b2")
        #expect(queue.next() == "a1" && queue.next() == "b1" && queue.next() == "a2")
        fill(&queue, "c1 c2")
        #expect(drain(&queue) == "b2 c1 a3 c2 a4")
    }

    @Test func `who has been served does not have to wait for what others asked for since`() {
        var queue = FairQueue<String>()
        fill(&queue, "a1 b1 b2 b3 b4")
        #expect(queue.next() == "a1" && queue.next() == "b1" && queue.next() == "b2")
        fill(&queue, "a2")
        #expect(drain(&queue) == "a2 b3 b4")
    }

    @Test func `requests that may not take what is there are passed over, and keep their places`() {
        var queue = FairQueue<String>()
        fill(&queue, "a1 b1 a2")
        #expect(queue.next { $0 == "a2" } == "a2" && queue.next { $0 == "x" } == nil)
        #expect(drain(&queue) == "a1 b1" && queue.isEmpty)
    }

    @Test func `a full queue takes a request of a client that has fewer, in place of the last of who has most`() {
        var queue = FairQueue<String>()
        #expect(fill(&queue, "a1 a2 a3 b1", countMax: 4) == [])
        #expect(fill(&queue, "c1", countMax: 4) == ["a3"])
        // No client would have fewer afterwards than the one that makes room.
        #expect(fill(&queue, "b2 a4 d1", countMax: 4) == ["b2", "a4", "a2"])
        #expect(drain(&queue) == "a1 b1 c1 d1")
        #expect(fill(&queue, "a1", countMax: 0) == ["a1"] && queue.count == 0)
    }

    @Test func `requests of no client share their turns`() {
        var queue = FairQueue<String>()
        for name in ["1", "2", "3"] { _ = queue.append(name, from: nil, countMax: 9) }
        fill(&queue, "a1")
        #expect(drain(&queue) == "1 a1 2 3")
    }

    @Test func `all that come in leave once, whatever the order`() {
        var queue = FairQueue<Int>()
        var random = SystemRandomNumberGenerator()
        var (waiting, turns) = (Set<Int>(), 0)
        for number in 0..<5000 {
            let client = Self.client(["a", "b", "c", "d"].randomElement(using: &random)!)
            waiting.insert(number)
            if let displaced = queue.append(number, from: client, countMax: 40) { waiting.remove(displaced) }
            if Bool.random(using: &random), let next = queue.next(where: { $0 % 3 != 0 }) {
                #expect(waiting.remove(next) != nil)
                turns += 1
            }
            #expect(queue.count == waiting.count)
        }
        while let next = queue.next() { #expect(waiting.remove(next) != nil) }
        #expect(waiting.isEmpty && turns > 0)
    }
}
