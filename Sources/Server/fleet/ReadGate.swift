import EventLoop
internal import Synchronization

/// Whether workers ask the fleet's thread for responses of Redis at all. While Redis is away, each question would wake that thread and the worker
/// again, for nothing.
///
/// The fleet's thread closes the gate when it turns a question away because of the server, and opens it as soon as it can read. It opens by itself after a moment: then one question finds
/// out.
final class ReadGate: Sendable {
    /// When it opens, or has opened, in nanoseconds of the monotonic clock.
    private let opensAt = Atomic<UInt64>(0)
    private static let pause = Duration.milliseconds(50)

    func isOpen(_ now: MonotonicTime) -> Bool { now.nanoseconds >= opensAt.load(ordering: .relaxed) }

    func close(_ now: MonotonicTime) {
        opensAt.store(now.advanced(by: ReadGate.pause).nanoseconds, ordering: .relaxed)
    }

    func open() { opensAt.store(0, ordering: .relaxed) }
}
