/// Which side broke a tunnel off. `close` in the log line of the tunnel names it; the manual uses this list.
package enum TunnelBreak: String, CaseIterable, Sendable {
    case clientReset = "client-reset"
    case originReset = "origin-reset"

    /// One sentence for the manual.
    package var explanation: StaticString {
        switch self {
        case .clientReset:
            "The client reset its connection, or the connection failed otherwise; Larder reset that to the origin."
        case .originReset:
            "The origin, or the next proxy, reset its connection, ended TLS without `close_notify`, or the connection failed otherwise; Larder reset that to the client."
        }
    }
}
