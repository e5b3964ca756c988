package import Access

package enum NameFailure: Error, Equatable, Sendable { case notFound, timedOut }
package enum ConnectFailure: Equatable, Sendable { case refused, timedOut, unroutable, terminated }
package enum SecurityFailure: Equatable, Sendable {
    /// The certificate is not accepted.
    case certificate
    /// No common version or cipher, or no TLS at all.
    case disagreement
    /// No session could be made: our own fault.
    case noSession
}

/// Why no connection was opened.
package enum OpeningFailure: Error, Equatable, Sendable {
    case nameNotFound
    case nameTimeout
    /// No address may be dialled; why the first may not.
    case denied(Denial)
    case unreachable(ConnectFailure)
    case insecure(SecurityFailure)
    /// The next proxy opens no tunnel to the destination.
    case proxyRefused(status: UInt16)
    case proxyUnintelligible

    /// Whether another route may do better, because the way failed and not what the rules of access say.
    ///
    /// A proxy that refuses a tunnel speaks for the destination, unless it wants credentials that we do not have (407)
    /// or is itself out of order (500, 503).
    package var isOfRoute: Bool {
        switch self {
        case .denied: false
        case .proxyRefused(let status): status == 407 || status == 500 || status == 503
        case .nameNotFound, .nameTimeout, .unreachable, .insecure, .proxyUnintelligible: true
        }
    }
}
