import Message
@testable import Server
import Testing

@Suite("min_age: an index that was filtered when the clock was ahead") struct FilteredIndexClockTests {
    @Test func `is filtered again after the clock was set back`() {
        let made = WallTime(secondsSinceEpoch: 1_000_000)
        let result = FilteredIndexes.Result(content: .asStored, madeAt: made, changesAt: made + Seconds(60))
        #expect(result.holds(at: made) && result.holds(at: made + Seconds(59)) && !result.holds(at: made + Seconds(60)))
        // Another worker may have read the clock a moment before.
        #expect(result.holds(at: made + Seconds(-5)) && !result.holds(at: made + Seconds(-6)))
        #expect(!FilteredIndexes.Result(content: .asStored, madeAt: made).holds(at: made + Seconds(-86_400)))
    }
}
