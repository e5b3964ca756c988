// Which of these modules a C type belongs to depends on which is loaded first: all are named.
import CAres
import CLarder
import CLibevent
import Glibc

/// One thread's loop over libevent: waits for descriptors and timers, calls back, turn after turn.
///
/// Everything registered here is called on the thread that runs `run()`, and nothing here may be touched from any
/// other thread, except `inbox`. The base has no lock (`EVENT_BASE_FLAG_NOLOCK`) and no change list: what is added
/// or removed is told to epoll at once. Whatever is registered must be removed before the loop goes away.
@safe package final class EventLoop {
    let base: OpaquePointer
    /// The one way in from other threads.
    package let inbox: Inbox
    package let timers: TimerWheel

    private var inboxEvent = IOEvent()
    private var isRunning = false
    private var isStopping = false
    private var endOfTurn: [() -> Void] = []
    private var monotonicOfTurn: MonotonicTime?
    private var wallOfTurn: timespec?

    package init() throws(EventLoopError) {
        inbox = try Inbox()
        unsafe base = try EventLoop.makeBase()
        timers = TimerWheel()
        timers.attach(to: self)
        unsafe inboxEvent.assign(
            self, fd: inbox.wakeUpDescriptor, .read,
            { _, _, context in
                unsafe Unmanaged<EventLoop>.fromOpaque(context!).takeUnretainedValue().inbox.drain()
            }, Unmanaged.passUnretained(self).toOpaque())
        inboxEvent.add()
    }

    deinit {
        inbox.close()
        inboxEvent.clear()
        timers.detach()
        unsafe event_base_free(base)
    }

    /// A write to a peer that has gone is an error where it happens, not the end of the process: splice(2) can not be
    /// told so call by call.
    private static let brokenPipesIgnored: Void = { _ = signal(SIGPIPE, SIG_IGN) }()

    private static func makeBase() throws(EventLoopError) -> OpaquePointer {
        brokenPipesIgnored
        guard let configuration = unsafe event_config_new() else { throw .outOfMemory }
        defer { unsafe event_config_free(configuration) }
        let flags = EVENT_BASE_FLAG_NOLOCK.rawValue | EVENT_BASE_FLAG_IGNORE_ENV.rawValue
        guard unsafe event_config_set_flag(configuration, CInt(flags)) == 0,
            let base = unsafe event_base_new_with_config(configuration)
        else { throw .noBackend }
        return unsafe base
    }

    /// Turns until `stop()`; after each turn runs what `afterTurn` was given during it.
    package func run() {
        precondition(!isRunning, "a loop runs once at a time")
        isRunning = true
        while !isStopping { turn() }
        isStopping = false
        isRunning = false
        forgetClocks()
    }

    /// Ends `run()` after the current turn. From another thread: `inbox.post`.
    package func stop() { isStopping = true }

    private func turn() {
        forgetClocks()
        // Does not wait when work was left over from before the first turn.
        let flags = EVLOOP_ONCE | (endOfTurn.isEmpty ? 0 : EVLOOP_NONBLOCK)
        let status = unsafe event_base_loop(base, flags)
        precondition(status >= 0, "epoll failed under the loop")
        runEndOfTurn()
    }

    /// Runs `work` when the callbacks of this turn are done. Work given while that happens waits for the next turn.
    package func afterTurn(_ work: @escaping () -> Void) { endOfTurn.append(work) }

    private func runEndOfTurn() {
        guard !endOfTurn.isEmpty else { return }
        var work: [() -> Void] = []
        swap(&work, &endOfTurn)
        for item in work { item() }
        guard endOfTurn.isEmpty else { return }
        work.removeAll(keepingCapacity: true)
        swap(&work, &endOfTurn)  // the array's memory serves the next turn
    }

    // MARK: Clocks

    /// The monotonic time, read at most once per turn.
    package var now: MonotonicTime {
        if let time = monotonicOfTurn { return time }
        let time = MonotonicTime.read()
        if isRunning { monotonicOfTurn = time }
        return time
    }

    /// Seconds since 1970 (UTC), read at most once per turn.
    package var wallSeconds: Int64 { Int64(wallClock.tv_sec) }

    /// 1/1024 s since 1970 (UTC), in steps of a scheduler tick; read at most once per turn.
    package var wallTicks: Int64 { fixedPoint(wallClock) }

    /// Microseconds since 1970 (UTC), in steps of a scheduler tick; read at most once per turn.
    package var wallMicroseconds: Int64 { Int64(wallClock.tv_sec) &* 1_000_000 &+ Int64(wallClock.tv_nsec / 1000) }

    private func forgetClocks() {
        monotonicOfTurn = nil
        wallOfTurn = nil
    }

    private var wallClock: timespec {
        if let time = wallOfTurn { return time }
        let time = readClock(CLOCK_REALTIME_COARSE)
        if isRunning { wallOfTurn = time }
        return time
    }
}

/// The time now in 1/1024 s since 1970 (UTC), for threads without a loop: by the clock that loops read.
package func readWallTicks() -> Int64 { fixedPoint(readClock(CLOCK_REALTIME_COARSE)) }

/// 1024 / 10⁹ is 1,125,899.9 / 2⁴⁰: a multiplication and a shift in place of a division.
private func fixedPoint(_ time: timespec) -> Int64 {
    Int64(time.tv_sec) << 10 | (Int64(time.tv_nsec) &* 1_125_899) >> 40
}

/// Why a loop could not be made: the machine's fault, at start.
package enum EventLoopError: Error, Equatable {
    case outOfMemory
    case noBackend  // libevent found no epoll
    case noEventDescriptor(errno: CInt)
    case noThread(errno: CInt)
}
