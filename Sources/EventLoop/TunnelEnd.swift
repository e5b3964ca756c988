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
