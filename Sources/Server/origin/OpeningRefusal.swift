import Access
import Credentials
import Routing
import Transaction

/// Why a fetch or a tunnel gets no connection, as the client is told.
struct OpeningRefusal {
    let refusal: Refusal
    /// The access rule that forbids the connection, if one does.
    let denial: Denial?

    init(_ refusal: Refusal) {
        self.refusal = refusal
        denial = nil
    }

    init(_ failure: OpeningFailure) {
        if case .denied(let denial) = failure { self.denial = denial } else { denial = nil }
        refusal = Refusal(failure)
    }
}

extension Refusal {
    init(_ failure: OpeningFailure) {
        switch failure {
        case .nameNotFound: self = .nameNotFound
        case .nameTimeout: self = .nameTimeout
        case .nameUnasked: self = .nameServersSilent
        case .tooManyNames: self = .tooManyRequests
        case .denied(let denial): self = Refusal(denial)
        case .unreachable(.refused): self = .connectionRefused
        case .unreachable(.timedOut): self = .connectionTimeout
        case .unreachable(.unroutable): self = .destinationUnroutable
        case .unreachable(.terminated): self = .connectionTerminated
        case .unavailable: self = .originUnavailable
        case .insecure(.certificate): self = .tlsCertificate
        case .insecure(.pin): self = .tlsPin
        case .insecure(.clientCertificate): self = .clientCertificateRequired
        case .insecure(.clientCertificateRefused): self = .clientCertificateRefused
        case .insecure(.disagreement): self = .tlsProtocol
        case .insecure(.noSession): self = .internalError
        case .routeUnknown: self = .routeUnknown
        case .nextProxy(_, let failure): self.init(failure)
        }
    }

    init(_ failure: NextProxyFailure) {
        switch failure {
        case .unresolved, .unreachable, .insecure: self = .nextProxyUnreachable
        case .refused, .socksRefused: self = .nextProxyRefused
        case .logIn: self = .nextProxyLogIn
        case .logInIncomplete: self = .nextProxyLogInIncomplete
        case .unintelligible: self = .nextProxyInvalid
        }
    }

    /// - Parameter failure: of a log-in at an origin.
    init(_ failure: ConnectionLogIn.Failure) {
        switch failure {
        case .refused: self = .credentialRefused
        case .unproven: self = .originUnproven
        case .noToken, .connectionEnded, .tooManyLegs, .outOfOrder: self = .credentialLogInIncomplete
        }
    }

    init(_ failure: NameFailure) {
        switch failure {
        case .notFound: self = .nameNotFound
        case .timedOut: self = .nameTimeout
        case .unasked: self = .nameServersSilent
        case .tooMany: self = .tooManyRequests
        }
    }
}
