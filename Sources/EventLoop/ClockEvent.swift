// Import all of these: which module a C type belongs to depends on which one is loaded first.
import CAres
import CLarder
import CLibevent
import Glibc

/// One libevent timer, precise to about a millisecond. For connection attempts, the resolver and brakes. The timer wheel serves all other
/// time limits.
@safe struct ClockEvent: ~Copyable {
    private var raw: UnsafeMutablePointer<event>?
    private(set) var isAdded = false

    init() { unsafe raw = nil }

    deinit {
        guard let raw = unsafe raw else { return }
        // The loop of a stopped timer may be gone, so libevent must not be asked to remove it.
        if isAdded { unsafe event_del(raw) }
        unsafe raw.deallocate()
    }

    /// Sets the timer, in place of an earlier time. The callback must call `hasFired()`.
    mutating func start(
        _ loop: EventLoop, after delay: Duration, _ callback: ReadinessCallback,
        _ context: UnsafeMutableRawPointer
    ) {
        stop()
        let event = unsafe raw ?? .allocate(capacity: 1)
        let status = unsafe event_assign(event, loop.base, -1, 0, callback, context)
        precondition(status == 0, "event_assign refused valid flags")
        unsafe raw = event
        let microseconds = max(0, delay.nanosecondsClamped / 1000)
        var interval = timeval(tv_sec: Int(microseconds / 1_000_000), tv_usec: Int(microseconds % 1_000_000))
        let added = unsafe event_add(event, &interval)
        precondition(added == 0, "no memory for a timer")
        isAdded = true
    }

    mutating func stop() {
        guard isAdded, let raw = unsafe raw else { return }
        unsafe event_del(raw)
        isAdded = false
    }

    mutating func hasFired() { isAdded = false }
}

/// A time limit that is precise to about a millisecond, for waits that are shorter than a tick of the timer wheel. Stop it before its loop ends.
package final class PreciseTimer {
    private let loop: EventLoop
    private let action: () -> Void
    private var clock = ClockEvent()
    /// When the action is due. Nil if the timer does not run.
    package private(set) var deadline: MonotonicTime?

    package init(_ loop: EventLoop, _ action: @escaping () -> Void) {
        self.loop = loop
        self.action = action
    }

    /// Runs the action once at `time`, in place of an earlier time that was set.
    package func start(at time: MonotonicTime) {
        deadline = time
        let now = loop.now
        let wait = time > now ? time.nanoseconds - now.nanoseconds : 0
        unsafe clock.start(
            loop, after: .nanoseconds(Int64(clamping: wait)),
            { _, _, context in
                let this = unsafe Unmanaged<PreciseTimer>.fromOpaque(context!).takeUnretainedValue()
                this.clock.hasFired()
                this.deadline = nil
                this.action()
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    package func stop() {
        clock.stop()
        deadline = nil
    }
}
