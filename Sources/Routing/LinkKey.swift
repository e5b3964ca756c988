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

/// A pin: the one client connection whose requests may use a connection that is authenticated as a whole (NTLM, Negotiate: RFC 4559 §6).
/// Each pin of a worker has a number of its own.
package struct BoundIdentity: Hashable, Sendable {
    package let client: UInt64
    package init(client: UInt64) { self.client = client }
}

/// What two requests must have in common to use the same connection.
package struct LinkKey: Hashable, Sendable {
    package let origin: Origin
    package let route: Route
    package let tlsProfile: TLSProfile
    package let dialling: Dialling
    /// Nil for a connection that may carry requests of every client.
    package let identity: BoundIdentity?

    package init(
        _ origin: Origin, over route: Route = .direct, tlsProfile: TLSProfile = .general,
        dialling: Dialling = .general, identity: BoundIdentity? = nil
    ) {
        self.origin = origin
        self.route = route
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
