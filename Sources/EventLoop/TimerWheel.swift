import Glibc

/// An object with a time limit. A subclass defines what happens when it has passed.
///
/// The object itself is the entry in the wheel's lists, so setting a limit allocates nothing. The wheel does not retain it: cancel the
/// limit before the object is released.
@safe open class TimedObject {
    /// When `timerFired` is due. Nil if no limit is set.
    package final var deadline: MonotonicTime? { limit == .max ? nil : MonotonicTime(nanoseconds: limit) }
    // For the wheel only: properties that other files can write would be checked for exclusive access at every use.
    /// `deadline` in nanoseconds; the largest number stands for none. An optional time would take twice the memory.
    fileprivate final var limit = UInt64.max
    // Unmanaged, so that moving an object between lists counts no references.
    fileprivate final var previous: Unmanaged<TimedObject>?
    fileprivate final var next: Unmanaged<TimedObject>?
    /// The slot that the object is filed in; −1 if none.
    fileprivate final var slot: Int32 = -1

    package init() {}

    deinit { precondition(slot < 0, "the time limit was not cancelled") }

    /// Called on the loop's thread when the limit has passed, at most two ticks late and never early. The object is no longer scheduled
    /// then, and may schedule itself again.
    open func timerFired() { preconditionFailure("a subclass overrides this") }
}

/// A time limit that runs a closure.
package final class Timer: TimedObject {
    private let action: () -> Void

    package init(_ action: @escaping () -> Void) { self.action = action }

    override package func timerFired() { action() }
}

/// The time limits of one loop: a ring of slots of 100 ms each, with the objects to check when the time of the slot has come.
///
/// Filing is lazy. Extending a deadline, which every read and write on a connection does, is one store: the object stays in its slot, and
/// is filed again when that slot's time has come. An object whose deadline lies beyond the ring is handled in the same way. Every
/// operation is O(1). The ticks stop with the first one that finds no object filed.
@safe package final class TimerWheel {
    static let tickNanoseconds: UInt64 = 100_000_000
    /// The slots cover 102.4 s. Most limits are shorter, so they are filed once.
    static let slotCount = 1024
    /// The index of the list of objects that are due in the present tick.
    private static let due = slotCount

    private var loop: Unmanaged<EventLoop>?
    private let heads: UnsafeMutablePointer<Unmanaged<TimedObject>?>
    private var clock: TickEvent
    private var tick: UInt64 = 0
    private(set) var count = 0

    init() throws(EventLoopError) {
        clock = try TickEvent()
        unsafe loop = nil
        unsafe heads = .allocate(capacity: TimerWheel.slotCount + 1)
        unsafe heads.initialize(repeating: nil, count: TimerWheel.slotCount + 1)
    }

    deinit { unsafe heads.deallocate() }

    func attach(to loop: EventLoop) {
        unsafe self.loop = Unmanaged.passUnretained(loop)
        unsafe clock.attach(
            to: loop,
            { _, _, context in
                unsafe Unmanaged<TimerWheel>.fromOpaque(context!).takeUnretainedValue().advance()
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    func detach() {
        precondition(count == 0, "a time limit was not cancelled before the end of its loop")
        clock.detach()
        unsafe loop = nil
    }

    /// Sets the limit of `object` to `delay` from now, in place of an earlier one.
    package func schedule(_ object: TimedObject, after delay: Duration) {
        schedule(object, afterNanoseconds: UInt64(clamping: delay.wholeNanoseconds))
    }

    /// Sets the limit of `object` to `time`, in place of an earlier one. It fires in the next tick if the time has passed.
    package func schedule(_ object: TimedObject, at time: MonotonicTime) {
        guard let loop = unsafe loop else { preconditionFailure("the loop of this wheel has ended") }
        let now = unsafe loop._withUnsafeGuaranteedRef { $0.now }
        schedule(object, afterNanoseconds: time > now ? time.nanoseconds - now.nanoseconds : 0)
    }

    /// Sets the limit with a delay in the unit of the clock, for callers that do this very often.
    package func schedule(_ object: TimedObject, afterNanoseconds delay: UInt64) {
        guard let loop = unsafe loop else { preconditionFailure("the loop of this wheel has ended") }
        let now = unsafe loop._withUnsafeGuaranteedRef { $0.now }
        let deadline = now.nanoseconds &+ min(delay, 1 << 62)
        // The limit of an object that was cancelled is later than all others.
        if object.slot >= 0, deadline >= object.limit {
            object.limit = deadline
            return
        }
        if object.slot >= 0 { unlink(object) }
        object.limit = deadline
        if count == 0 { startIfStopped(at: now) }
        file(object)
    }

    /// Removes the limit of `object`. Does nothing if none is set.
    package func cancel(_ object: TimedObject) {
        object.limit = .max
        guard object.slot >= 0 else { return }
        unlink(object)
    }

    private func startIfStopped(at now: MonotonicTime) {
        guard !clock.isRunning else { return }
        tick = now.nanoseconds / TimerWheel.tickNanoseconds
        clock.start(everyNanoseconds: TimerWheel.tickNanoseconds)
    }

    /// Checks every slot whose time has come since the last call.
    private func advance() {
        guard let loop = unsafe loop else { return }
        clock.hasFired()
        let now = unsafe loop._withUnsafeGuaranteedRef { $0.now }
        let target = now.nanoseconds / TimerWheel.tickNanoseconds
        // After a long stall every slot is checked once.
        if target > tick + UInt64(TimerWheel.slotCount) { tick = target - UInt64(TimerWheel.slotCount) }
        while tick < target {
            tick += 1
            moveToDue(slot: Int(tick % UInt64(TimerWheel.slotCount)))
            fireDue(at: now)
        }
        if count == 0 { clock.stop() }
    }

    /// Fires the objects that are due. Each may schedule and cancel others, even those that are due at the same time.
    private func fireDue(at now: MonotonicTime) {
        while let object = unsafe heads[TimerWheel.due]?.takeUnretainedValue() {
            unlink(object)
            if object.limit <= now.nanoseconds {
                object.limit = .max
                object.timerFired()
            } else {
                file(object)
            }
        }
    }

    private func moveToDue(slot: Int) {
        while let object = unsafe heads[slot]?.takeUnretainedValue() {
            unlink(object)
            link(object, into: TimerWheel.due)
        }
    }

    /// Files the object in the first slot whose time is not before the deadline, or in the last slot if the deadline lies beyond the ring.
    private func file(_ object: TimedObject) {
        precondition(object.limit != .max, "the object has no deadline")
        let width = TimerWheel.tickNanoseconds
        let exact = object.limit / width + (object.limit % width == 0 ? 0 : 1)
        let wanted = min(max(exact, tick + 1), tick + UInt64(TimerWheel.slotCount - 1))
        link(object, into: Int(wanted % UInt64(TimerWheel.slotCount)))
    }

    private func link(_ object: TimedObject, into slot: Int) {
        let entry = unsafe Unmanaged.passUnretained(object)
        let head = unsafe heads[slot]
        unsafe object.previous = nil
        unsafe object.next = unsafe head
        unsafe head?._withUnsafeGuaranteedRef { unsafe $0.previous = unsafe entry }
        unsafe heads[slot] = unsafe entry
        object.slot = Int32(slot)
        count += 1
    }

    private func unlink(_ object: TimedObject) {
        let (previous, next) = unsafe (object.previous, object.next)
        if let previous = unsafe previous {
            unsafe previous._withUnsafeGuaranteedRef { unsafe $0.next = unsafe next }
        } else {
            unsafe heads[Int(object.slot)] = unsafe next
        }
        unsafe next?._withUnsafeGuaranteedRef { unsafe $0.previous = unsafe previous }
        object.slot = -1
        count -= 1
    }
}
