// Which of these modules a C type belongs to depends on which is loaded first: all are named.
import CAres
import CLarder
import CLibevent
import Glibc

/// One libevent timer, precise to a millisecond or so. For the few that need it: connection attempts, the resolver
/// and the wheel, which stands for all others.
@safe struct ClockEvent: ~Copyable {
    private var raw: UnsafeMutablePointer<event>?
    private(set) var isAdded = false

    enum Repeat { case once, forever }

    init() { unsafe raw = nil }

    deinit {
        guard let raw = unsafe raw else { return }
        // Of a stopped one the loop may be gone already: libevent must not look for it there.
        if isAdded { unsafe event_del(raw) }
        unsafe raw.deallocate()
    }

    /// Sets the timer; a time set before is forgotten. The callback of a `.once` timer calls `hasFired()`.
    mutating func start(
        _ loop: EventLoop, after delay: Duration, _ mode: Repeat = .once, _ callback: ReadinessCallback,
        _ context: UnsafeMutableRawPointer
    ) {
        stop()
        let event = unsafe raw ?? .allocate(capacity: 1)
        let status = unsafe event_assign(event, loop.base, -1, Int16(mode == .once ? 0 : EV_PERSIST), callback, context)
        precondition(status == 0, "event_assign refuses only wrong flags")
        unsafe raw = event
        let microseconds = max(0, delay.nanosecondsClamped / 1000)
        var interval = timeval(tv_sec: Int(microseconds / 1_000_000), tv_usec: Int(microseconds % 1_000_000))
        let added = unsafe event_add(event, &interval)
        precondition(added == 0, "a timer needs only memory")
        isAdded = true
    }

    mutating func stop() {
        guard isAdded, let raw = unsafe raw else { return }
        unsafe event_del(raw)
        isAdded = false
    }

    mutating func hasFired() { isAdded = false }
}
