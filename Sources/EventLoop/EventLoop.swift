// Import all of these: which module a C type belongs to depends on which one is loaded first.
import CAres
import CLarder
import CLibevent
import Glibc

/// The event loop of one thread, on libevent: in each turn it waits for descriptors and timers, and calls back.
///
/// Callbacks run on the thread that calls `run()`. No other thread may use the loop, except for `inbox`. The base has no lock
/// (`EVENT_BASE_FLAG_NOLOCK`) and no change list: epoll is told at once what is added and removed. Nor does it keep the time of a turn
/// (`EVENT_BASE_FLAG_NO_CACHE_TIME`), which it would read in each. Everything that is registered must be removed before the loop is
/// destroyed.
@safe package final class EventLoop {
    let base: OpaquePointer
    /// Where other threads post jobs for this loop.
    package let inbox: Inbox
    package let timers: TimerWheel

    private var inboxEvent = IOEvent()
    private var isRunning = false
    private var isStopping = false
    private var endOfTurn: [() -> Void] = []
    private var monotonicOfTurn: MonotonicTime?
    private var exactOfTurn: MonotonicTime?
    private var wallOfTurn: timespec?
    private var microsecondsOfTurn: Int64?

    /// Grows by one with each turn. Reading and setting it calls nothing: the unchecked access is exclusive.
    package var turnNumber: UInt64 { unsafe uncheckedTurnNumber }
    @exclusivity(unchecked) private var uncheckedTurnNumber: UInt64 = 0

    package init() throws(EventLoopError) {
        inbox = try Inbox()
        timers = try TimerWheel()
        unsafe base = try EventLoop.makeBase()
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

    /// Ignores SIGPIPE, so that a write to a peer that is gone returns an error and does not end the process. `splice` has no flag for
    /// that.
    private static let brokenPipesIgnored: Void = { _ = signal(SIGPIPE, SIG_IGN) }()

    private static func makeBase() throws(EventLoopError) -> OpaquePointer {
        brokenPipesIgnored
        guard let configuration = unsafe event_config_new() else { throw .outOfMemory }
        defer { unsafe event_config_free(configuration) }
        let flags =
            EVENT_BASE_FLAG_NOLOCK.rawValue | EVENT_BASE_FLAG_IGNORE_ENV.rawValue
            | EVENT_BASE_FLAG_NO_CACHE_TIME.rawValue
        guard unsafe event_config_set_flag(configuration, CInt(flags)) == 0,
            let base = unsafe event_base_new_with_config(configuration)
        else { throw .noBackend }
        return unsafe base
    }

    /// Runs turns until `stop()`. After each turn runs the work that `afterTurn` was given during it.
    package func run() {
        precondition(!isRunning, "the loop is running already")
        isRunning = true
        while !isStopping { turn() }
        isStopping = false
        isRunning = false
        forgetClocks()
    }

    /// Ends `run()` after the present turn. Other threads post a job that calls it.
    package func stop() { isStopping = true }

    private func turn() {
        forgetClocks()
        unsafe uncheckedTurnNumber &+= 1
        // Do not wait if there is work from before the first turn.
        let flags = EVLOOP_ONCE | (endOfTurn.isEmpty ? 0 : EVLOOP_NONBLOCK)
        let status = unsafe event_base_loop(base, flags)
        precondition(status >= 0, "epoll failed")
        runEndOfTurn()
    }

    /// Runs `work` after the callbacks of this turn. Work that is added meanwhile waits for the next turn.
    package func afterTurn(_ work: @escaping () -> Void) { endOfTurn.append(work) }

    private func runEndOfTurn() {
        guard !endOfTurn.isEmpty else { return }
        var work: [() -> Void] = []
        swap(&work, &endOfTurn)
        for item in work { item() }
        guard endOfTurn.isEmpty else { return }
        work.removeAll(keepingCapacity: true)
        swap(&work, &endOfTurn)  // keep the array's memory for the next turn
    }

    // MARK: Clocks

    /// The monotonic time, read at most once in a turn.
    package var now: MonotonicTime {
        if let time = monotonicOfTurn { return time }
        let time = MonotonicTime.read()
        if isRunning { monotonicOfTurn = time }
        return time
    }

    /// The monotonic time in full resolution, read at most once in a turn. It costs more than `now`.
    package var nowExactly: MonotonicTime {
        if let time = exactOfTurn { return time }
        let time = MonotonicTime.readExactly()
        if isRunning { exactOfTurn = time }
        return time
    }

    /// Seconds since 1970 (UTC), read at most once in a turn.
    package var wallSeconds: Int64 { Int64(wallClock.tv_sec) }

    /// The time since 1970 (UTC) in 1/1024 s, in steps of a scheduler tick, read at most once in a turn.
    package var wallTicks: Int64 { fixedPoint(wallClock) }

    /// Milliseconds since 1970 (UTC), from the clock of `wallTicks`.
    package var wallMilliseconds: Int64 { Int64(wallClock.tv_sec) &* 1000 &+ Int64(wallClock.tv_nsec / 1_000_000) }

    /// Microseconds since 1970 (UTC), read at most once in a turn. Exact, which costs more than `wallTicks`.
    package var wallMicroseconds: Int64 {
        if let time = microsecondsOfTurn { return time }
        let time = readWallMicroseconds()
        if isRunning { microsecondsOfTurn = time }
        return time
    }

    private func forgetClocks() {
        monotonicOfTurn = nil
        exactOfTurn = nil
        wallOfTurn = nil
        microsecondsOfTurn = nil
    }

    private var wallClock: timespec {
        if let time = wallOfTurn { return time }
        let time = readClock(CLOCK_REALTIME_COARSE)
        if isRunning { wallOfTurn = time }
        return time
    }
}

/// The time since 1970 (UTC) in 1/1024 s, from the clock that loops read. For threads without a loop.
package func readWallTicks() -> Int64 { fixedPoint(readClock(CLOCK_REALTIME_COARSE)) }

/// Microseconds since 1970 (UTC). For threads without a loop.
package func readWallMicroseconds() -> Int64 {
    let time = readClock(CLOCK_REALTIME)
    return Int64(time.tv_sec) &* 1_000_000 &+ Int64(time.tv_nsec / 1000)
}

/// Converts nanoseconds to 1/1024 s. 1024 / 10⁹ is 1,125,899.9 / 2⁴⁰, so a multiplication and a shift replace a division.
private func fixedPoint(_ time: timespec) -> Int64 {
    Int64(time.tv_sec) << 10 | (Int64(time.tv_nsec) &* 1_125_899) >> 40
}

/// Why a loop could not be made.
package enum EventLoopError: Error, Equatable, CustomStringConvertible {
    case outOfMemory
    case noBackend  // libevent found no epoll
    case noEventDescriptor(errno: CInt)
    case noThread(errno: CInt)

    package var description: String {
        switch self {
        case .outOfMemory: "there is no memory for an event loop"
        case .noBackend: "this system has no epoll"
        case .noEventDescriptor(let code): "no event descriptor can be made: \(systemErrorText(code))"
        case .noThread(let code): "no thread can be started: \(systemErrorText(code))"
        }
    }
}
