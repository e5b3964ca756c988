package import Message

/// Scheme, host and port (RFC 9110 §4.3.1): what the target URI and `Host` name.
package struct Origin: Hashable, Sendable {
    package let scheme: Scheme
    package let endpoint: Endpoint

    package init(_ scheme: Scheme, _ endpoint: Endpoint) {
        self.scheme = scheme
        self.endpoint = endpoint
    }
}

extension Origin: CustomStringConvertible {
    /// `https://a.example:443`.
    package var description: String { "\(scheme == .https ? "https" : "http")://\(endpoint)" }
}

/// Who has authenticated a connection as a whole (NTLM, Negotiate: RFC 4559 §6). Nobody else may use the connection.
package enum BoundIdentity: Hashable, Sendable {
    /// A pin: one client connection, by a number that no other pin of the worker has.
    case client(UInt64)
    /// Larder itself, with the secrets of one credential, which have a number of their own in the process.
    case credential(secretNumber: UInt64)
}

/// What two requests must have in common to use the same connection.
package struct LinkKey: Hashable, Sendable {
    package let origin: Origin
    package let route: Route
    package let tlsProfile: TLSProfile
    package let dialling: Dialling
    /// Nil for a connection that may carry every request.
    package let identity: BoundIdentity?

    /// - Parameter origin: where the requests go. A peer gets requests for all origins over the same connections.
    package init(
        _ origin: Origin, over route: Route = .direct, tlsProfile: TLSProfile = .general,
        dialling: Dialling = .general, identity: BoundIdentity? = nil
    ) {
        self.route = route
        if case .peer(let peer) = route {
            self.origin = Origin(.http, peer.endpoint)
            self.tlsProfile = .general
            self.dialling = .general
            self.identity = nil
            return
        }
        self.origin = origin
        self.tlsProfile = origin.scheme == .https ? tlsProfile : .general
        self.dialling = dialling
        self.identity = identity
    }

    /// The connection to open. The origin's host is dialled, or named to a next proxy. With TLS it is sent as SNI, and the certificate must
    /// name it, unless the profile has another name.
    package var goal: OpeningGoal {
        let use: OpeningGoal.Use =
            origin.scheme == .https
            ? .secured(serverName: tlsProfile.serverName ?? origin.endpoint.host, tlsProfile) : .plain
        return OpeningGoal(origin.endpoint, for: use, over: route)
    }

    /// As `==`, which other modules call through a witness table.
    package func isSame(as other: LinkKey) -> Bool { self == other }
}
