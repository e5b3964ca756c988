/// The life of a relay: what follows when a side fails, when time has passed, and when something else ends the tunnel.
///
///     open ──failure──▶ cut ──delivered, or too late──▶ ended
///       └──closed, idle, cancelled────────────────────────┘
///
/// TCP drops what it has not delivered when a reset arrives (RFC 9293 §3.10.7.4), and a reset sent at once would drop what waits in the
/// socket towards the living side. Servers often send a whole answer and then reset, because they left a part of the request unread. So the
/// bytes that the failed side had sent go first, and the reset follows when they are acknowledged or `cutLimit` has passed.
package struct RelayLife {
    /// A peer that does not take the last bytes gets its reset after this.
    package static let cutLimit: Duration = .seconds(5)
    /// Nothing tells that bytes have been acknowledged, so they are looked for.
    package static let cutInterval: Duration = .milliseconds(100)

    package enum Next: Equatable, Sendable {
        case nothing
        /// Call `timerFired` after this time.
        case wait(Duration)
        /// Pass on the last bytes of this side, which has failed, and call `drained`. No event waits for either side any more.
        case drain(TunnelSide)
        /// Close both connections.
        case end(TunnelEnd)
    }

    private enum State {
        case open
        case cut(TunnelSide, errno: CInt, deadline: MonotonicTime)
        case ended
    }
    private var state = State.open
    private let idle: Duration

    /// - Parameter idle: the tunnel ends when no byte was moved for so long.
    package init(idle: Duration) { self.idle = idle }

    /// Whether bytes are moved, in both directions.
    package var isOpen: Bool { if case .open = state { true } else { false } }

    /// The connection of a side was reset, or failed otherwise.
    package mutating func failed(_ side: TunnelSide, errno: CInt, now: MonotonicTime) -> Next {
        precondition(isOpen, "a relay looks for failures while it is open")
        state = .cut(side, errno: errno, deadline: now.advanced(by: RelayLife.cutLimit))
        return .drain(side)
    }

    /// - Parameter isDelivered: nothing is left to do for the last bytes.
    package mutating func drained(isDelivered: Bool, now: MonotonicTime) -> Next {
        guard case .cut(let side, let errno, let deadline) = state else {
            preconditionFailure("only what a failed side has sent is drained")
        }
        guard isDelivered || now >= deadline else { return .wait(RelayLife.cutInterval) }
        return end(.failed(side, errno: errno))
    }

    /// - Parameter isHeld: nothing was moved because a rate did not allow it.
    package mutating func timerFired(isHeld: Bool) -> Next {
        switch state {
        case .open: isHeld ? .wait(idle) : end(.idle)
        case .cut(let side, _, _): .drain(side)
        case .ended: .nothing
        }
    }

    /// Both sides sent their last byte, and all bytes were passed on.
    package mutating func closed() -> Next {
        precondition(isOpen, "a relay that was cut does not end in order")
        return end(.closed)
    }

    /// What the client has sent must not be passed on.
    package mutating func refused() -> Next { isOpen ? end(.refused) : .nothing }

    /// Larder ends the tunnel.
    package mutating func cancelled() -> Next {
        switch state {
        case .open: end(.cancelled)
        case .cut(let side, let errno, _): end(.failed(side, errno: errno))
        case .ended: .nothing
        }
    }

    private mutating func end(_ end: TunnelEnd) -> Next {
        state = .ended
        return .end(end)
    }
}
