import Testing

@testable import EventLoop

@Suite("When freed memory is taken back") struct CollectPaceTests {
    @Test func `while nothing is freed by others, it is never looked for`() {
        var pace = CollectPace()
        #expect(!pace.isDue(freed: 0, after: .seconds(3600)))
        pace.took(.milliseconds(1), freed: 70_000)
        #expect(!pace.isDue(freed: 70_000, after: .seconds(3600)))
    }

    @Test(arguments: [
        (1, 999, false), (1, 1000, true), (4095, 999, false), (4096, 100, true), (4096, 99, false),
        (1_000_000, 99, false),
    ])
    func `a few are taken back after a second, many at once, if it takes a fiftieth of the time`(
        _ count: UInt32, _ elapsed: Int, _ isDue: Bool
    ) {
        var pace = CollectPace()
        pace.took(.milliseconds(2), freed: 5)
        #expect(pace.isDue(freed: 5 + count, after: .milliseconds(elapsed)) == isDue)
    }

    @Test func `the count may overflow`() {
        var pace = CollectPace()
        pace.took(.zero, freed: .max - 10)
        #expect(!pace.isDue(freed: .max - 10, after: .seconds(2)))
        #expect(!pace.isDue(freed: 20, after: .milliseconds(500)))
        #expect(pace.isDue(freed: 20, after: .seconds(1)))
        #expect(pace.isDue(freed: 5000, after: .milliseconds(1)))
    }
}
