package import Credentials
package import Framing

/// Why a next proxy opened no connection to the origin.
package enum NextProxyFailure: Error, Equatable, Sendable {
    /// Its name could not be resolved.
    case unresolved(NameFailure)
    case unreachable(ConnectFailure)
    /// The TLS handshake with the proxy itself failed.
    case insecure(SecurityFailure)
    /// Its answer to CONNECT: the status.
    case refused(status: UInt16)
    /// Its answer to a SOCKS request (RFC 1928 §6).
    case socksRefused(SocksReply)
    /// It does not accept the user and the password, or wants some that Larder does not have.
    case logIn
    /// A log-in that takes several messages, NTLM or Negotiate, has not come to its end.
    case logInIncomplete(ConnectionLogIn.Failure)
    /// Its answer is neither HTTP nor SOCKS, whichever its URL says.
    case unintelligible

    /// Whether the proxy itself failed. Otherwise its answer is about the destination.
    package var isOfProxy: Bool {
        switch self {
        case .unresolved, .unreachable, .insecure, .logIn, .logInIncomplete, .unintelligible: true
        // A status above 599 counts as 500 (RFC 9110 §15).
        case .refused(let status): status == 500 || status == 503 || status > 599
        case .socksRefused(let reply): reply.isOfProxy
        }
    }
}

extension NextProxyFailure: CustomStringConvertible {
    package var description: String {
        switch self {
        case .unresolved(.notFound): "its name does not exist"
        case .unresolved(.timedOut): "the name servers did not tell its address in time"
        case .unresolved(.tooMany): "too many names are being looked up"
        case .unresolved(.unasked): "the name servers have been silent about its name lately"
        case .unreachable(.refused): "it refuses connections"
        case .unreachable(.timedOut): "it did not answer in time"
        case .unreachable(.unroutable): "there is no network route to it"
        case .unreachable(.terminated): "it closed the connection"
        case .insecure(.certificate): "its certificate is not trusted"
        case .insecure(.pin): "its certificate has another public key than the pinned ones"
        case .insecure(.clientCertificate): "it wants a certificate of the client"
        case .insecure(.clientCertificateRefused): "it refuses the certificate that it was shown"
        case .insecure(.disagreement): "it does not speak TLS, or no version or cipher in common"
        case .insecure(.noSession): "no TLS session could be made"
        case .refused(let status): "it answered CONNECT with \(status)"
        case .socksRefused(let reply): "it answered the SOCKS request with \(reply.rawValue), \(reply.meaning)"
        case .logIn: "it does not accept the user and the password of its route, or the route has none"
        case .logInIncomplete(let cause): "the log-in did not come to its end: \(cause)"
        case .unintelligible: "its answer is not what its URL promises, HTTP or SOCKS"
        }
    }
}

extension SocksReply {
    /// Whether it says that the proxy failed, rather than what is behind it.
    var isOfProxy: Bool {
        switch self {
        case .generalFailure, .commandNotSupported, .addressTypeNotSupported: true
        case .succeeded, .notAllowed, .networkUnreachable, .hostUnreachable, .connectionRefused, .timeToLiveExpired:
            false
        }
    }

    /// RFC 1928 §6, in words.
    var meaning: String {
        switch self {
        case .succeeded: "succeeded"
        case .generalFailure: "general failure"
        case .notAllowed: "not allowed by its rules"
        case .networkUnreachable: "network unreachable"
        case .hostUnreachable: "host unreachable"
        case .connectionRefused: "connection refused"
        case .timeToLiveExpired: "TTL expired"
        case .commandNotSupported: "command not supported"
        case .addressTypeNotSupported: "address type not supported"
        }
    }
}
