import CLibevent

/// What a callback from the loop looks like: the descriptor, libevent's reason, and the context given at `assign`.
package typealias ReadinessCallback = @convention(c) (CInt, Int16, UnsafeMutableRawPointer?) -> Void

/// What to wait for.
package enum Readiness: Sendable {
    case read, write

    var flags: Int16 { Int16(self == .read ? EV_READ : EV_WRITE) }
}

/// One registered interest in one descriptor: level-triggered, persistent until removed.
///
/// Lives in the connection it belongs to. The `struct event` exists only while assigned; the loop must outlive it,
/// and the descriptor must stay open until `remove()`, `clear()` or the end of the owner. All of these may be
/// called from inside the callback.
@safe package struct IOEvent: ~Copyable {
    private var raw: UnsafeMutablePointer<event>?
    package private(set) var isAdded = false

    package init() { unsafe raw = nil }

    deinit {
        guard let raw = unsafe raw else { return }
        if isAdded { unsafe event_del(raw) }
        unsafe raw.deallocate()
    }

    /// Ties the event to a descriptor; an earlier tie is cleared. Nothing is called before `add()`.
    package mutating func assign(
        _ loop: EventLoop, fd: CInt, _ kind: Readiness, _ callback: ReadinessCallback,
        _ context: UnsafeMutableRawPointer
    ) {
        remove()
        let event = unsafe raw ?? .allocate(capacity: 1)
        let status = unsafe event_assign(event, loop.base, fd, kind.flags | Int16(EV_PERSIST), callback, context)
        precondition(status == 0, "event_assign refuses only wrong flags")
        unsafe raw = event
    }

    package var isAssigned: Bool { unsafe raw != nil }

    /// Starts the waiting. Nothing happens when already added.
    package mutating func add() {
        guard !isAdded else { return }
        guard let raw = unsafe raw else { preconditionFailure("an event is assigned before it is added") }
        let status = unsafe event_add(raw, nil)
        precondition(status == 0, "epoll_ctl refused a descriptor: closed too early, or out of kernel memory")
        isAdded = true
    }

    /// Sends later calls elsewhere, without a system call: for a descriptor that changes hands while waited for.
    package mutating func redirect(_ callback: ReadinessCallback, _ context: UnsafeMutableRawPointer) {
        guard let raw = unsafe raw else { preconditionFailure("an event is assigned before it is redirected") }
        unsafe raw.pointee.ev_evcallback.evcb_cb_union.evcb_callback = callback
        unsafe raw.pointee.ev_evcallback.evcb_arg = context
    }

    /// Stops the waiting; the tie remains.
    package mutating func remove() {
        guard isAdded, let raw = unsafe raw else { return }
        unsafe event_del(raw)
        isAdded = false
    }

    /// Stops the waiting and gives the memory back.
    package mutating func clear() {
        remove()
        if let raw = unsafe raw { unsafe raw.deallocate() }
        unsafe raw = nil
    }
}
