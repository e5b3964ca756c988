import Testing
import Transaction

@Suite("Retries: how many, and when") struct RetriesTests {
    @Test func `a proxy without traffic may repeat ten requests`() {
        var budget = RetryBudget()
        #expect((1...11).map { _ in budget.take() } == Array(repeating: true, count: 10) + [false])
    }

    static let shares: [(percent: Int, retries: Int)] = [(0, 0), (10, 20), (50, 100), (100, 200)]
    @Test(arguments: shares) func `requests earn retries`(percent: Int, retries: Int) {
        var budget = RetryBudget()
        while budget.take() {}
        var count = 0
        for _ in 1...200 {
            budget.noteRequest(percent: percent)
            while budget.take() { count += 1 }
        }
        #expect(count == retries)
    }

    @Test func `what is not used is saved, within a bound`() {
        var budget = RetryBudget()
        for _ in 1...10_000 { budget.noteRequest(percent: 10) }
        var count = 0
        while budget.take() { count += 1 }
        #expect(count == 100)
    }

    static let pauses: [(attempt: Int, random: UInt16, milliseconds: Int)] = [
        (1, 0, 50), (1, .max, 100), (2, 0, 100), (2, .max, 200), (3, .max, 400), (11, .max, 102_400),
        (500, .max, 102_400),
    ]
    @Test(arguments: pauses) func `each pause is twice as long, and a random part of it is waited`(
        attempt: Int, random: UInt16, milliseconds: Int
    ) {
        #expect(retryPause(.milliseconds(100), attempt: attempt, random: random) == .milliseconds(milliseconds))
    }
}
