import CLibevent

/// A callback from the loop. It gets the descriptor, libevent's reason, and the context that was given to `assign`.
package typealias ReadinessCallback = @convention(c) (CInt, Int16, UnsafeMutableRawPointer?) -> Void

/// What an event waits for.
@usableFromInline
package enum Readiness: Sendable {
    case read, write

    var flags: Int16 { Int16(self == .read ? EV_READ : EV_WRITE) }
}

/// An event that waits for one descriptor: level-triggered, until it is removed.
///
/// It is stored in the connection that it belongs to. The `struct event` exists only while assigned. The loop must outlive it, and the
/// descriptor must stay open until `remove()`, `clear()` or the end of the owner. All of these may be called from within the callback.
@safe package struct IOEvent: ~Copyable {
    private var raw: UnsafeMutablePointer<event>?
    /// libevent knows it. A connection would need eight bytes to know it, too.
    package var isAdded: Bool {
        guard let raw = unsafe raw else { return false }
        return unsafe CInt(raw.pointee.ev_evcallback.evcb_flags) & EVLIST_INSERTED != 0
    }

    package init() { unsafe raw = nil }

    deinit {
        guard let raw = unsafe raw else { return }
        if isAdded { unsafe event_del(raw) }
        unsafe raw.deallocate()
    }

    /// Assigns the event to a descriptor, in place of an earlier one. The callback is not called before `add()`.
    package mutating func assign(
        _ loop: EventLoop, fd: CInt, _ kind: Readiness, _ callback: ReadinessCallback,
        _ context: UnsafeMutableRawPointer
    ) {
        remove()
        let event = unsafe raw ?? .allocate(capacity: 1)
        let status = unsafe event_assign(event, loop.base, fd, kind.flags | Int16(EV_PERSIST), callback, context)
        precondition(status == 0, "event_assign refused valid flags")
        unsafe raw = event
    }

    package var isAssigned: Bool { unsafe raw != nil }

    /// Starts waiting. Does nothing if the event is added already.
    package mutating func add() {
        guard !isAdded else { return }
        guard let raw = unsafe raw else { preconditionFailure("the event is not assigned") }
        let status = unsafe event_add(raw, nil)
        precondition(status == 0, "epoll_ctl failed: the descriptor is closed, or the kernel has no memory")
    }

    /// Replaces the callback without a system call, while the event waits. For a descriptor that gets another owner.
    package mutating func redirect(_ callback: ReadinessCallback, _ context: UnsafeMutableRawPointer) {
        guard let raw = unsafe raw else { preconditionFailure("the event is not assigned") }
        unsafe raw.pointee.ev_evcallback.evcb_cb_union.evcb_callback = callback
        unsafe raw.pointee.ev_evcallback.evcb_arg = context
    }

    /// Stops waiting. The event stays assigned.
    package mutating func remove() {
        guard isAdded, let raw = unsafe raw else { return }
        unsafe event_del(raw)
    }

    /// Stops waiting, and frees the memory.
    package mutating func clear() {
        remove()
        if let raw = unsafe raw { unsafe raw.deallocate() }
        unsafe raw = nil
    }
}
