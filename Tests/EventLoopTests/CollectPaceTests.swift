import Testing

@testable import EventLoop

@Suite("How often freed memory is taken back") struct CollectPaceTests {
    @Test func `while nothing is freed it is looked for four times a second`() {
        var pace = CollectPace()
        for _ in 0..<10 {
            #expect(pace.pause == .milliseconds(250))
            pace.took(.zero)
        }
    }

    /// - Parameter share: of the time that passes, what it takes to take back what was freed in it.
    @Test(arguments: [0.01, 0.1, 0.19])
    func `what is freed all the time is taken back in portions of two milliseconds`(_ share: Double) {
        var pace = CollectPace()
        pace.took(pace.pause * share)
        for _ in 0..<5 {
            let duration = pace.pause * share
            #expect(abs(duration / .milliseconds(2) - 1) < 0.01, "\(duration)")
            pace.took(duration)
        }
    }

    @Test func `no matter how much it is, the thread has pauses, and they become long again`() {
        var pace = CollectPace()
        pace.took(.seconds(1))
        #expect(pace.pause == .milliseconds(10))
        var pauses: [Duration] = []
        for _ in 0..<6 {
            pace.took(.microseconds(10))
            pauses.append(pace.pause)
        }
        #expect(pauses == [20, 40, 80, 160, 250, 250].map { .milliseconds($0) })
    }
}
