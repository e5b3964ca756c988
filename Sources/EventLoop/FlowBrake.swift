// Import all of these: which module a C type belongs to depends on which one is loaded first.
import CAres
import CLarder
import CLibevent
import Glibc

/// Decides how many bytes a flow may move, and when. It belongs to one flow.
package protocol FlowPacer: AnyObject {
    /// Pays for the next bytes.
    ///
    /// - Parameters:
    ///   - moved: bytes since the last call.
    ///   - overdrawn: bytes that were moved without having been paid for.
    /// - Returns: how many bytes are paid for, and from when on they may be moved.
    func reserve(moved: Int, overdrawn: Int, now: MonotonicTime) -> (count: Int, from: MonotonicTime)
    /// No more bytes are moved.
    ///
    /// - Parameter unused: bytes that were paid for and not moved. Negative if more were moved.
    func end(moved: Int, unused: Int, now: MonotonicTime)
}

/// Holds one flow of bytes to the rate that its pacer allows.
///
/// ```
/// free ──room is used up, the next is not due──▶ holding ──it is due, `released`──▶ free
/// ```
@safe package final class FlowBrake {
    private let loop: EventLoop
    private var pacer: (any FlowPacer)?
    private var clock = ClockEvent()
    private var released: (() -> Void)?
    /// Bytes that are paid for and not moved. Negative if more were moved.
    private var left = 0
    private var moved = 0
    /// Whether no byte may be moved until `released` is called.
    package private(set) var isHolding = false

    package init(_ loop: EventLoop, _ pacer: any FlowPacer) {
        self.loop = loop
        self.pacer = pacer
    }

    deinit { precondition(pacer == nil, "the pacer was not told of the end") }

    /// - Parameter released: called by the loop when bytes may be moved again, after `room` was zero.
    package func start(released: @escaping () -> Void) { self.released = released }

    /// How many bytes may be moved now. If it is zero, `released` is called when there is room.
    package func room() -> Int {
        guard let pacer, !isHolding else { return isHolding ? 0 : .max }
        if left > 0 { return left }
        let now = loop.now
        let (count, from) = pacer.reserve(moved: moved, overdrawn: -left, now: now)
        precondition(count > 0, "a flow that may move nothing would never end")
        left = count
        moved = 0
        guard from > now else { return left }
        isHolding = true
        unsafe clock.start(
            loop, after: from.duration(since: now),
            { _, _, context in unsafe Unmanaged<FlowBrake>.fromOpaque(context!).takeUnretainedValue().release() },
            Unmanaged.passUnretained(self).toOpaque())
        return 0
    }

    /// Bytes were moved. There may be more than `room` said; the flow pays for them later.
    package func note(_ count: Int) {
        left -= count
        moved += count
    }

    /// The flow has ended: there is no limit any more, and `released` is not called. It may be called twice.
    package func stop() {
        clock.stop()
        isHolding = false
        released = nil
        pacer?.end(moved: moved, unused: left, now: loop.now)
        pacer = nil
    }

    private func release() {
        clock.hasFired()
        isHolding = false
        released?()
    }
}
