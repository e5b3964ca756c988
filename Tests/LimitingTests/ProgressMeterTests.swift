import Limiting
import Testing

@Suite("limits.download_rate_min, limits.upload_rate_min: a meter of one peer") struct ProgressMeterTests {
    private typealias Verdict = ProgressMeter.Verdict
    private static let second: UInt64 = 1_000_000_000
    /// 1000 bytes in ten seconds.
    private static let terms = ProgressMeter.Terms(rate: 100, window: 10 * second)

    private enum Event {
        case pause
        case resume
        /// Bytes that were moved since the beginning, bytes that wait, and what the meter says.
        case judge(moved: UInt64, waiting: UInt64, Verdict)
    }

    private struct Row: CustomTestStringConvertible, Sendable {
        let rule: String
        /// What waits for the peer when the meter begins.
        var waiting: UInt64 = .max
        /// In seconds since the beginning.
        let events: [(at: UInt64, Event)]
        var testDescription: String { rule }
    }

    private static let rows = [
        Row(
            rule: "before the window is over nothing is decided",
            events: [(4, .judge(moved: 0, waiting: .max, .undecided(after: 6 * second)))]),
        Row(rule: "exactly the rate is enough", events: [(10, .judge(moved: 1000, waiting: .max, .passed))]),
        Row(rule: "a byte less is too slow", events: [(10, .judge(moved: 999, waiting: .max, .tooSlow))]),
        Row(
            rule: "each window is judged by its own bytes",
            events: [
                (10, .judge(moved: 5000, waiting: .max, .passed)), (20, .judge(moved: 6000, waiting: .max, .passed)),
                (30, .judge(moved: 6999, waiting: .max, .tooSlow)),
            ]),
        Row(
            rule: "a look that is late does not ask for more",
            events: [
                (25, .judge(moved: 1000, waiting: .max, .passed)),
                (34, .judge(moved: 1000, waiting: .max, .undecided(after: second))),
            ]),
        Row(
            rule: "who takes all that waited at the beginning is fast enough", waiting: 10,
            events: [(10, .judge(moved: 10, waiting: 0, .passed))]),
        Row(
            rule: "who leaves some of it is not", waiting: 10, events: [(10, .judge(moved: 9, waiting: 500, .tooSlow))]),
        Row(
            rule: "who has nothing to take is never too slow", waiting: 0,
            events: [
                (10, .judge(moved: 0, waiting: 0, .passed)), (20, .judge(moved: 0, waiting: 7, .passed)),
                (30, .judge(moved: 6, waiting: 7, .tooSlow)),
            ]),
        Row(
            rule: "the time in which the peer waits does not count",
            events: [
                (6, .pause), (100, .judge(moved: 3, waiting: .max, .undecided(after: 4 * second))), (106, .resume),
                (109, .judge(moved: 3, waiting: .max, .undecided(after: second))),
                (110, .judge(moved: 3, waiting: .max, .tooSlow)),
            ]),
        Row(
            rule: "pausing and going on twice changes nothing",
            events: [
                (2, .pause), (5, .pause), (9, .resume), (11, .resume),
                (16, .judge(moved: 0, waiting: .max, .undecided(after: second))),
            ]),
        Row(
            rule: "a window that ends in a pause is judged, and the next one begins paused",
            events: [
                (12, .pause), (50, .judge(moved: 1000, waiting: .max, .passed)),
                (90, .judge(moved: 1000, waiting: .max, .undecided(after: 10 * second))), (90, .resume),
                (100, .judge(moved: 1000, waiting: .max, .tooSlow)),
            ]),
    ]

    @Test(arguments: rows) private func `the verdicts`(_ row: Row) {
        let start = 77 * Self.second
        var meter = ProgressMeter(Self.terms, moved: 400, waiting: row.waiting, now: start)
        for (seconds, event) in row.events {
            let now = start + seconds * Self.second
            switch event {
            case .pause: meter.pause(now: now)
            case .resume: meter.resume(now: now)
            case .judge(let moved, let waiting, let verdict):
                #expect(
                    meter.judge(moved: 400 + moved, waiting: waiting, now: now) == verdict,
                    "\(row.rule), after \(seconds) seconds")
            }
        }
    }

    @Test func `a rate that no number holds asks for a large number of bytes`() {
        let terms = ProgressMeter.Terms(rate: 1 << 40, window: 3600 * Self.second)
        var meter = ProgressMeter(terms, moved: 0, now: 0)
        #expect(meter.judge(moved: 1 << 50, now: 3600 * Self.second) == .tooSlow)
    }
}
