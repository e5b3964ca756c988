import EventLoop
import Synchronization

/// A line of the log that is written once a minute at most, however often its cause occurs.
final class RareLine: Sendable {
    private static let interval: Duration = .seconds(60)
    /// Nanoseconds of the monotonic clock. Zero: never.
    private let lastAt = Atomic<UInt64>(0)

    /// Whether the line is due. Of several threads that ask at once, one gets true.
    func isDue(_ now: MonotonicTime = .read()) -> Bool {
        let last = lastAt.load(ordering: .relaxed)
        guard last == 0 || now.duration(since: MonotonicTime(nanoseconds: last)) >= Self.interval else { return false }
        return lastAt.compareExchange(expected: last, desired: max(now.nanoseconds, 1), ordering: .relaxed).exchanged
    }
}
