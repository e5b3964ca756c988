import Glibc

/// Moves bytes between two sockets in both directions, after CONNECT (RFC 9110 §9.3.6) or a 101.
///
/// When one side has sent its last byte, the sending side towards the other is closed; the other direction goes on. When one side is reset
/// or fails otherwise, so is the other (`RelayLife`). A side is not read while the other does not accept what was read before, and no event
/// waits for it then, so the loop does not spin. The relay retains itself from `start` until it calls `finished`, once, with both
/// descriptors closed.
@safe package final class TunnelRelay: TimedObject {
    private let loop: EventLoop
    private let pipes: PipePool
    private let buffer: UnsafeMutableRawBufferPointer
    private let idle: Duration
    /// Holds what `b` sends to a rate. Nil: without limit.
    private let brake: FlowBrake?
    /// How many of the bytes from `b` the brake knows.
    private var noted: UInt64 = 0
    private var finished: ((TunnelEnd) -> Void)?
    private var life: RelayLife
    private var keptAlive: TunnelRelay?
    private var a: Descriptor?
    private var b: Descriptor?
    // Neither a flow nor an event calls back: the unchecked accesses below are exclusive.
    private var forward: TunnelFlow {
        _read { yield unsafe uncheckedForward }
        _modify { yield unsafe &uncheckedForward }
    }
    @exclusivity(unchecked) private var uncheckedForward: TunnelFlow
    private var backward: TunnelFlow {
        _read { yield unsafe uncheckedBackward }
        _modify { yield unsafe &uncheckedBackward }
    }
    @exclusivity(unchecked) private var uncheckedBackward: TunnelFlow
    /// What waits for the two sockets.
    private struct Events: ~Copyable {
        var aReadable: IOEvent
        var aWritable = IOEvent()
        var bReadable = IOEvent()
        var bWritable = IOEvent()
    }
    private var events: Events {
        _read { yield unsafe uncheckedEvents }
        _modify { yield unsafe &uncheckedEvents }
    }
    @exclusivity(unchecked) private var uncheckedEvents: Events

    /// - Parameters:
    ///   - buffer: the loop's shared buffer, at least 64 KiB. It is used within callbacks only, and must outlive the relay.
    ///   - aReadable: the event that waited for `a` until now, if any. Using it saves two system calls.
    ///   - greeting: what tells `a` that it has its tunnel. It is sent first, and is not among the bytes that are counted.
    ///   - initialAToB: bytes that were read from `a` before. They are sent first. `initialBToA` likewise.
    ///   - idle: the tunnel ends when no byte was moved for so long.
    ///   - brake: holds the bytes from `b` to `a` to a rate. The relay starts and stops it.
    package init(
        loop: EventLoop, pipes: PipePool, buffer: UnsafeMutableRawBufferPointer,
        a: consuming Descriptor, aReadable: consuming IOEvent = IOEvent(), b: consuming Descriptor,
        greeting: [UInt8] = [], initialAToB: [UInt8] = [], initialBToA: [UInt8] = [], idle: Duration,
        brake: FlowBrake? = nil,
        finished: @escaping (TunnelEnd) -> Void
    ) {
        self.loop = loop
        self.pipes = pipes
        unsafe self.buffer = unsafe buffer
        self.idle = idle
        life = RelayLife(idle: idle)
        self.brake = brake
        self.finished = finished
        unsafe uncheckedForward = TunnelFlow(from: a.rawValue, to: b.rawValue, initial: initialAToB)
        unsafe uncheckedBackward = TunnelFlow(
            from: b.rawValue, to: a.rawValue, greeting: greeting, initial: initialBToA)
        self.a = consume a
        self.b = consume b
        unsafe uncheckedEvents = Events(aReadable: aReadable)
    }

    /// Bytes that the second side accepted from the first.
    package var aToB: UInt64 { forward.count }
    /// Bytes that the first side accepted from the second, without the greeting.
    package var bToA: UInt64 { backward.count }

    package func start() {
        keptAlive = self
        brake?.start { [unowned self] in released() }
        loop.timers.schedule(self, after: idle)
        watch()
        let (toB, toA) = (forward.sinkReady(), backward.sinkReady())
        // The kernel tells an error once: no event would tell it again.
        if case .failed(_, let code) = toB { return fail(.b, code) }
        if case .failed(_, let code) = toA { return fail(.a, code) }
        updateInterest()
    }

    package func cancel() { perform(life.cancelled()) }

    override package func timerFired() { perform(life.timerFired(isHeld: brake?.isHolding == true)) }

    private func watch() {
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        let (a, b) = (forward.source, backward.source)
        if events.aReadable.isAssigned {
            unsafe events.aReadable.redirect(onAReadable, context)
        } else {
            unsafe events.aReadable.assign(loop, fd: a, .read, onAReadable, context)
        }
        unsafe events.aWritable.assign(loop, fd: a, .write, onAWritable, context)
        unsafe events.bReadable.assign(loop, fd: b, .read, onBReadable, context)
        unsafe events.bWritable.assign(loop, fd: b, .write, onBWritable, context)
    }

    fileprivate enum Event {
        case aReadable, aWritable, bReadable, bWritable

        /// The side at an end of the flow that the event moves on.
        func side(_ end: FlowEnd) -> TunnelSide {
            switch (self, end) {
            case (.aReadable, .source), (.bWritable, .source), (.bReadable, .sink), (.aWritable, .sink): .a
            case (.aReadable, .sink), (.bWritable, .sink), (.bReadable, .source), (.aWritable, .source): .b
            }
        }
    }

    fileprivate func on(_ event: Event) {
        guard life.isOpen else { return }
        let step =
            switch event {
            case .aReadable: unsafe forward.sourceReady(buffer, pipes, room: .max)
            case .aWritable: backward.sinkReady()
            case .bReadable: readBackward()
            case .bWritable: forward.sinkReady()
            }
        noteBackward()
        if case .failed(let flowEnd, let code) = step { return fail(event.side(flowEnd), code) }
        forward.finishIfDrained()
        backward.finishIfDrained()
        if forward.isDone && backward.isDone { return perform(life.closed()) }
        loop.timers.schedule(self, after: idle)
        updateInterest()
    }

    private func readBackward() -> TunnelFlow.Step {
        guard let brake else { return unsafe backward.sourceReady(buffer, pipes, room: .max) }
        let room = brake.room()
        guard room > 0 else { return .going }
        return unsafe backward.sourceReady(buffer, pipes, room: room)
    }

    /// Tells the brake what `a` has accepted since the last call.
    private func noteBackward() {
        guard let brake else { return }
        brake.note(Int(backward.count - noted))
        noted = backward.count
    }

    /// Time has passed, so `b` may be read again.
    private func released() {
        guard life.isOpen else { return }
        loop.timers.schedule(self, after: idle)
        updateInterest()
    }

    private func updateInterest() {
        set(&events.aReadable, forward.wantsSource)
        set(&events.bWritable, forward.isBlocked)
        set(&events.bReadable, backward.wantsSource && brake?.isHolding != true)
        set(&events.aWritable, backward.isBlocked)
    }

    private func set(_ event: inout IOEvent, _ wanted: Bool) {
        if wanted { event.add() } else { event.remove() }
    }

    private func fail(_ side: TunnelSide, _ code: CInt) {
        let next = life.failed(side, errno: code, now: loop.now)
        events.aReadable.remove()
        events.aWritable.remove()
        events.bReadable.remove()
        events.bWritable.remove()
        perform(next)
    }

    private func perform(_ next: RelayLife.Next) {
        switch next {
        case .nothing: break
        case .wait(let time): loop.timers.schedule(self, after: time)
        case .drain(.a): perform(life.drained(isDelivered: unsafe forward.drain(buffer, pipes), now: loop.now))
        case .drain(.b): perform(life.drained(isDelivered: unsafe backward.drain(buffer, pipes), now: loop.now))
        case .end(let end): self.end(end)
        }
    }

    private func end(_ reason: TunnelEnd) {
        guard let finished else { return }
        self.finished = nil
        loop.timers.cancel(self)
        noteBackward()
        brake?.stop()
        events.aReadable.clear()
        events.aWritable.clear()
        events.bReadable.clear()
        events.bWritable.clear()
        if reason.resets(.a, isOwed: backward.isBlocked) { Sockets.resetOnClose(backward.sink) }
        if reason.resets(.b, isOwed: forward.isBlocked) { Sockets.resetOnClose(forward.sink) }
        forward.end(pipes)
        backward.end(pipes)
        a = nil
        b = nil
        keptAlive = nil
        finished(reason)
    }
}

private func relay(_ context: UnsafeMutableRawPointer?) -> TunnelRelay {
    unsafe Unmanaged<TunnelRelay>.fromOpaque(context!).takeUnretainedValue()
}
private let onAReadable: ReadinessCallback = { _, _, context in unsafe relay(context).on(.aReadable) }
private let onAWritable: ReadinessCallback = { _, _, context in unsafe relay(context).on(.aWritable) }
private let onBReadable: ReadinessCallback = { _, _, context in unsafe relay(context).on(.bReadable) }
private let onBWritable: ReadinessCallback = { _, _, context in unsafe relay(context).on(.bWritable) }
