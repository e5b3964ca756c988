@testable import Server
import Testing

@Suite("Connections that go on in a later turn")
struct PostponedReadersTests {
    private func id(_ slot: UInt32) -> ConnectionID { ConnectionID(slot: slot, generation: 1) }

    @Test func `those that came first go first, and what is added in a turn waits for the next`() {
        var readers = PostponedReaders()
        let isArranged = [1, 2, 3].map { readers.add(id($0)) }
        #expect(isArranged == [true, false, false], "one turn is arranged for all")
        readers.beginTurn()
        var gone = [readers.next()]
        let isArrangedWithin = readers.add(id(4))
        #expect(!isArrangedWithin)
        gone += [readers.next(), readers.next(), readers.next()]
        #expect(gone == [id(1), id(2), id(3), nil])
        let isMore = readers.endTurn()
        #expect(isMore, "the one that was added meanwhile")
    }

    @Test func `one that is postponed in each turn goes on once in each`() {
        var readers = PostponedReaders()
        var turnsArranged = readers.add(id(1)) ? 1 : 0
        for _ in 0..<20 {
            #expect(turnsArranged == 1)
            turnsArranged = 0
            readers.beginTurn()
            while let next = readers.next() { if readers.add(next) { turnsArranged += 1 } }
            if readers.endTurn() { turnsArranged += 1 }
        }
    }

    @Test func `a turn that ends early leaves the others in their order`() {
        var readers = PostponedReaders()
        for slot in 0..<5000 as Range<UInt32> { _ = readers.add(id(slot)) }
        var gone: [ConnectionID] = []
        var isMore = true
        while isMore {
            readers.beginTurn()
            for _ in 0..<700 { if let next = readers.next() { gone.append(next) } }
            isMore = readers.endTurn()
        }
        #expect(gone == (0..<5000).map { id($0) })
        let isArranged = readers.add(id(7))
        #expect(isArranged, "nothing was due any more")
    }
}
