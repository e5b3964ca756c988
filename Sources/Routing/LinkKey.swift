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

/// How TLS is spoken to an origin: which certificates are believed and which one is shown. Zero is the configuration's
/// only profile today.
package struct TLSProfile: Hashable, Sendable {
    package let number: UInt16
    package init(_ number: UInt16 = 0) { self.number = number }
}

/// Who a connection belongs to after its client has proved an identity for the whole connection (NTLM, Negotiate:
/// RFC 4559 §6). Nobody else's requests may use it.
package struct BoundIdentity: Hashable, Sendable {
    package let client: UInt64
    package init(client: UInt64) { self.client = client }
}

/// What two requests must have in common to share a connection.
package struct LinkKey: Hashable, Sendable {
    package let origin: Origin
    package let route: Route
    package let tlsProfile: TLSProfile
    /// Nil for connections that carry anybody's requests.
    package let identity: BoundIdentity?

    package init(
        _ origin: Origin, over route: Route = .direct, tlsProfile: TLSProfile = TLSProfile(),
        identity: BoundIdentity? = nil
    ) {
        self.origin = origin
        self.route = route
        self.tlsProfile = tlsProfile
        self.identity = identity
    }
}
