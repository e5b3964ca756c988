package import Access

/// Why a name could not be resolved.
package enum NameFailure: Error, Equatable, Sendable { case notFound, timedOut }
/// Why no connection could be made, or why it ended too early.
package enum ConnectFailure: Equatable, Sendable { case refused, timedOut, unroutable, terminated }
/// Why a TLS handshake failed.
package enum SecurityFailure: Equatable, Sendable {
    /// The certificate was not accepted.
    case certificate
    /// The peer asked for a certificate of the client, and refused the connection without one.
    case clientCertificate
    /// There is no common version or cipher, or the peer does not speak TLS.
    case disagreement
    /// No session could be made, which is Larder's own fault.
    case noSession
}

/// Why no connection was opened.
package enum OpeningFailure: Error, Equatable, Sendable {
    case nameNotFound
    case nameTimeout
    /// No address may be dialled. The denial is that of the first one.
    case denied(Denial)
    case unreachable(ConnectFailure)
    case insecure(SecurityFailure)
    /// The next proxy refused to open a tunnel.
    case proxyRefused(status: UInt16)
    case proxyUnintelligible

    /// Whether another route may succeed, because this one failed. A denial by the access rules is not a failure of the route.
    ///
    /// A proxy that refuses a tunnel speaks for the destination, unless it asks for credentials (407) or has itself failed (500, 503).
    package var isOfRoute: Bool {
        switch self {
        case .denied: false
        case .proxyRefused(let status): status == 407 || status == 500 || status == 503
        case .nameNotFound, .nameTimeout, .unreachable, .insecure, .proxyUnintelligible: true
        }
    }
}
