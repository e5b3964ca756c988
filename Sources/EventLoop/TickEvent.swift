import CLarder
import Glibc

/// A timer of the kernel that fires again and again, as a descriptor that becomes readable (timerfd_create(2)).
///
/// For the timer wheel, which nearly always runs. While libevent has a timer of its own, it reads the clock twice in each turn of the loop.
@safe struct TickEvent: ~Copyable {
    private let descriptor: Descriptor
    private var event = IOEvent()
    private(set) var isRunning = false

    init() throws(EventLoopError) {
        let fd = clarder_timerfd()
        guard fd >= 0 else { throw .noEventDescriptor(errno: errno) }
        descriptor = Descriptor(adopting: fd)
    }

    /// Ties the timer to a loop. The callback must call `hasFired()`.
    mutating func attach(
        to loop: EventLoop, _ callback: ReadinessCallback, _ context: UnsafeMutableRawPointer
    ) {
        unsafe event.assign(loop, fd: descriptor.rawValue, .read, callback, context)
        event.add()
    }

    mutating func detach() { event.clear() }

    mutating func start(everyNanoseconds pause: UInt64) {
        set(Int(pause))
        isRunning = true
    }

    mutating func stop() {
        set(0)
        isRunning = false
    }

    /// Makes the descriptor wait for the next time.
    func hasFired() {
        var count: UInt64 = 0
        _ = unsafe read(descriptor.rawValue, &count, 8)  // if this fails, the next turn tries again
    }

    private func set(_ nanoseconds: Int) {
        let status = clarder_timerfd_repeat(descriptor.rawValue, nanoseconds)
        precondition(status == 0, "timerfd_settime refused a valid time")
    }
}
