package import Access

/// Why a name could not be resolved.
package enum NameFailure: Error, Equatable, Sendable, CustomStringConvertible {
    case notFound, timedOut
    /// The name servers have been silent lately, and were not asked.
    case unasked
    /// Too many names are being looked up, for this client or in all.
    case tooMany

    package var description: String {
        switch self {
        case .notFound: "the name has no address"
        case .timedOut: "no name server has answered in time"
        case .unasked: "no name server has answered lately, and none was asked"
        case .tooMany: "too many names are being looked up"
        }
    }
}
/// Why no connection could be made, or why it ended too early.
package enum ConnectFailure: Equatable, Sendable, CustomStringConvertible {
    case refused, timedOut, unroutable, terminated

    package var description: String {
        switch self {
        case .refused: "the connection is refused"
        case .timedOut: "no connection within its time limit"
        case .unroutable: "there is no route to it"
        case .terminated: "the connection has ended too early"
        }
    }
}
/// Why a TLS handshake failed.
package enum SecurityFailure: Equatable, Sendable, CustomStringConvertible {
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

    package var description: String {
        switch self {
        case .certificate: "its certificate is not accepted"
        case .pin: "no public key of its certificate is pinned"
        case .clientCertificate: "it wants a certificate of the client"
        case .clientCertificateRefused: "it refuses the certificate of the client"
        case .disagreement: "no common version or cipher of TLS, or no TLS"
        case .noSession: "no TLS session can be made"
        }
    }
}

/// Why no connection was opened.
package enum OpeningFailure: Error, Equatable, Sendable, CustomStringConvertible {
    case nameNotFound
    case nameTimeout
    /// Nothing was tried: the name servers have been silent about the name lately.
    case nameUnasked
    /// Nothing was tried: too many names are being looked up.
    case tooManyNames
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

    package var description: String {
        switch self {
        case .nameNotFound: "\(NameFailure.notFound)"
        case .nameTimeout: "\(NameFailure.timedOut)"
        case .nameUnasked: "\(NameFailure.unasked)"
        case .tooManyNames: "\(NameFailure.tooMany)"
        case .denied(let denial): "denied: \(denial.reason.rawValue)"
        case .unreachable(let failure): "\(failure)"
        case .unavailable: "it has not accepted connections lately"
        case .insecure(let failure): "\(failure)"
        case .routeUnknown: "the PAC file names no route"
        case .nextProxy(let proxy, let failure): "\(proxy): \(failure)"
        }
    }

    /// Whether another route may succeed, because this one failed. A denial by the access rules is not a failure of the route, and a proxy
    /// that refuses a tunnel may speak for the destination.
    package var isOfRoute: Bool {
        switch self {
        case .denied, .routeUnknown, .tooManyNames: false
        case .nextProxy(_, let failure): failure.isOfProxy
        case .nameNotFound, .nameTimeout, .nameUnasked, .unreachable, .unavailable, .insecure: true
        }
    }
}
