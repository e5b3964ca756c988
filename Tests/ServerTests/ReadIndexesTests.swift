import EventLoop
import Storage
import Testing

@testable import Server

@Suite("Which indexes have been read for their digests")
struct ReadIndexesTests {
    private static let key = StorageKey(high: 1, low: 2)
    private var read = ReadIndexes()

    private mutating func begins(_ body: Body, under key: StorageKey = key, at seconds: Int) -> Bool {
        read.begins(key, body, now: .seconds(seconds))
    }

    @Test mutating func `an index is read once, and again half a day later, if it changes, or if nobody read it`()
        throws
    {
        let (first, second) = (try body([1]), try body([2]))
        let asked = [0, 43_199, 43_200, 86_399].map { begins(first, at: $0) }
        #expect(asked == [true, false, true, false], "before what it promised is forgotten")
        let isReadAnew = begins(second, at: 86_399)
        read.forget(Self.key)
        let isReadAfterAll = begins(second, at: 86_399)
        #expect(isReadAnew && isReadAfterAll)
    }

    @Test mutating func `so many are remembered, those whose bodies are there first`() throws {
        let kept = try body([1])
        let isFirst = begins(kept, at: 0)
        var others = 0
        for number in 0..<5000 where begins(try body([2]), under: StorageKey(high: 3, low: UInt64(number)), at: 0) {
            others += 1
        }
        let isAgain = begins(kept, at: 0)
        #expect(isFirst && others == 5000 && !isAgain)
    }
}
