/// One of the two connections of a tunnel.
package enum TunnelSide: Equatable, Sendable {
    /// The client's.
    case a
    /// The origin's, or that of the next proxy.
    case b
}

/// How a tunnel ended.
package enum TunnelEnd: Equatable, Sendable {
    /// Both sides sent their last byte, and all bytes were passed on.
    case closed
    /// No byte was moved for the idle limit.
    case idle
    /// The connection of a side was reset, or failed otherwise.
    case failed(TunnelSide, errno: CInt)
    case cancelled
    /// Nothing is passed on. The client has been told that the tunnel is open, and gets an alert or the end of the connection.
    case refused

    /// Whether the connection of `side` is closed with a reset.
    ///
    /// An orderly end (FIN) says that the peer has all that there is. Where the tunnel was cut off that is not so, and the end of a protocol
    /// that ends its messages with the connection must not look complete.
    ///
    /// - Parameter isOwed: bytes that were read wait for this side.
    package func resets(_ side: TunnelSide, isOwed: Bool) -> Bool {
        switch self {
        case .closed: false
        case .idle: isOwed
        case .failed(let failed, _): failed != side
        case .cancelled: true
        case .refused: side == .b
        }
    }
}

/// Which end of one direction of a tunnel failed.
package enum FlowEnd: Equatable, Sendable { case source, sink }

/// A tunnel of which one side has failed, until the other is reset.
///
/// TCP drops what it has not delivered when a reset arrives (RFC 9293 §3.10.7.4), and a reset sent at once would drop what waits in the
/// socket towards the living side. Servers often send a whole answer and then reset, because they left a part of the request unread. So the
/// bytes that the failed side had sent go first, and the reset follows when they are acknowledged or `limit` has passed.
package struct TunnelCut {
    /// A peer that does not take the last bytes gets its reset after this.
    package static let limit: Duration = .seconds(5)
    /// Nothing tells that bytes have been acknowledged, so they are looked for.
    package static let interval: Duration = .milliseconds(100)

    package let failed: TunnelSide
    private let errno: CInt
    private let deadline: MonotonicTime

    package init(_ failed: TunnelSide, errno: CInt, now: MonotonicTime) {
        self.failed = failed
        self.errno = errno
        deadline = now.advanced(by: TunnelCut.limit)
    }

    package var end: TunnelEnd { .failed(failed, errno: errno) }

    package func isLate(_ now: MonotonicTime) -> Bool { now >= deadline }
}
