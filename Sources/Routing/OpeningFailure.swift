package import Access

/// Why a name could not be resolved.
package enum NameFailure: Error, Equatable, Sendable { case notFound, timedOut }
/// Why no connection could be made, or why it ended too early.
package enum ConnectFailure: Equatable, Sendable { case refused, timedOut, unroutable, terminated }
/// Why a TLS handshake failed.
package enum SecurityFailure: Equatable, Sendable {
    /// The certificate was not accepted.
    case certificate
    /// No public key of the certificate is pinned.
    case pin
    /// The peer asked for a certificate of the client, and refused the connection without one.
    case clientCertificate
    /// The peer refused the certificate that it was shown.
    case clientCertificateRefused
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
    /// Nothing was tried: the origin has not accepted connections lately.
    case unavailable
    case insecure(SecurityFailure)
    /// The PAC file of the request's rule says nothing that can be used, and the rule names no other route.
    case routeUnknown
    /// The next proxy, or the way to it, failed.
    case nextProxy(NextProxy, NextProxyFailure)

    /// Whether another route may succeed, because this one failed. A denial by the access rules is not a failure of the route, and a proxy
    /// that refuses a tunnel may speak for the destination.
    package var isOfRoute: Bool {
        switch self {
        case .denied, .routeUnknown: false
        case .nextProxy(_, let failure): failure.isOfProxy
        case .nameNotFound, .nameTimeout, .unreachable, .unavailable, .insecure: true
        }
    }
}
