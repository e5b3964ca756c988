import EventLoop
import Testing

@testable import Server

@Suite("The wait of a fetch for the disk")
struct DiskWaitTests {
    private func at(_ seconds: Int64) -> MonotonicTime { MonotonicTime(nanoseconds: 0).advanced(by: .seconds(seconds)) }

    @Test func `all pauses together are bounded`() {
        var wait = DiskWait()
        let first = wait.begin(at(100))
        #expect(first == DiskWait.most && wait.isUnderWay)
        let beside = wait.begin(at(101))
        #expect(beside == nil, "a pause is under way")
        let hasEnded = wait.end(at(104))
        #expect(hasEnded && !wait.isUnderWay)
        let endsAgain = wait.end(at(105))
        #expect(!endsAgain, "none is under way")
        let second = wait.begin(at(200))
        #expect(second == DiskWait.most - .seconds(4))
        _ = wait.end(at(300))
        let third = wait.begin(at(301))
        #expect(third == nil, "the time is used up")
    }
}
