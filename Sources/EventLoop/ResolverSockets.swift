// Import all of these: which module a C type belongs to depends on which one is loaded first.
import CAres
import CLarder
import CLibevent
import Glibc

/// Connects the sockets and timeouts of one c-ares channel to a loop.
///
/// c-ares reports which of its sockets it waits for. The loop tells it when they are ready and when a timeout has passed.
@safe final class ResolverSockets {
    private let loop: EventLoop
    private var channel: ares_channel?
    private var watches: [CInt: Watch] = [:]
    private var clock = ClockEvent()

    private final class Watch {
        var readable = IOEvent()
        var writable = IOEvent()
    }

    init(_ loop: EventLoop) {
        self.loop = loop
        unsafe channel = nil
    }

    private var context: UnsafeMutableRawPointer { unsafe Unmanaged.passUnretained(self).toOpaque() }

    func attach(_ channel: ares_channel) { unsafe self.channel = unsafe channel }

    /// Removes all events. Called after the channel was destroyed, because nothing may call it any more.
    func detach() {
        unsafe channel = nil
        clock.stop()
        watches = [:]
    }

    static let stateChanged: @convention(c) (UnsafeMutableRawPointer?, CInt, CInt, CInt) -> Void = {
        context, fd, wantsRead, wantsWrite in
        let sockets = unsafe Unmanaged<ResolverSockets>.fromOpaque(context!).takeUnretainedValue()
        sockets.watch(fd, read: wantsRead != 0, write: wantsWrite != 0)
    }

    private func watch(_ fd: CInt, read: Bool, write: Bool) {
        guard read || write else {
            watches[fd] = nil
            return
        }
        let watch = watches[fd] ?? Watch()
        watches[fd] = watch
        unsafe set(&watch.readable, read, fd, .read) { fd, _, context in
            unsafe Unmanaged<ResolverSockets>.fromOpaque(context!).takeUnretainedValue().process(read: fd, write: -1)
        }
        unsafe set(&watch.writable, write, fd, .write) { fd, _, context in
            unsafe Unmanaged<ResolverSockets>.fromOpaque(context!).takeUnretainedValue().process(read: -1, write: fd)
        }
    }

    private func set(
        _ event: inout IOEvent, _ wanted: Bool, _ fd: CInt, _ kind: Readiness, _ callback: ReadinessCallback
    ) {
        guard wanted else { return event.remove() }
        if !event.isAssigned { unsafe event.assign(loop, fd: fd, kind, callback, context) }
        event.add()
    }

    private func process(read: CInt, write: CInt) {
        guard let channel = unsafe channel else { return }
        unsafe ares_process_fd(channel, read, write)
        restartClock()
    }

    /// Sets the timer for the next timeout of c-ares.
    func restartClock() {
        guard let channel = unsafe channel else { return }
        var wait = timeval()
        guard unsafe ares_timeout(channel, nil, &wait) != nil else { return clock.stop() }
        let delay = Duration.microseconds(Int64(wait.tv_sec) * 1_000_000 + Int64(wait.tv_usec))
        unsafe clock.start(
            // One millisecond more: otherwise the loop may wake just before the time, and turn for nothing.
            loop, after: delay + .milliseconds(1),
            { _, _, context in
                let sockets = unsafe Unmanaged<ResolverSockets>.fromOpaque(context!).takeUnretainedValue()
                sockets.clock.hasFired()
                sockets.process(read: -1, write: -1)
            }, context)
    }
}
