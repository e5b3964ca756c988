package import Message

/// The identity of an authenticated client. Only an authentication scheme makes one, or a program that has the proxy in its own process.
package struct Identity: Sendable, Hashable {
    /// The name in rules and in the log.
    package let name: String
    package let scheme: AuthenticationSchemeName
    /// The groups of the client; empty for schemes without groups.
    package let groups: [String]
    /// The monotonic time from which the client must authenticate again. Nil: only the scope limits the identity.
    package let expiry: Duration?
    /// When what proved the identity ends by itself, as whoever issued it dated it: a token. Nil: it has no such end, or `expiry` is the end.
    package let end: Expiry?
    package let scope: Scope

    package init(
        name: String, scheme: AuthenticationSchemeName, groups: [String] = [], expiry: Duration? = nil,
        end: Expiry? = nil, scope: Scope = .request
    ) {
        self.name = name
        self.scheme = scheme
        self.groups = groups
        self.expiry = expiry
        self.end = end
        self.scope = scope
    }

    /// What the identity applies to.
    package enum Scope: Sendable {
        /// One request. The next one must be authenticated by itself.
        case request
        /// The connection on which the client was authenticated, until it closes.
        case connection
    }
}

/// The authentication schemes that Larder speaks, by their names in RFC 9110 §11.1.
package enum AuthenticationSchemeName: String, CaseIterable, Sendable {
    case negotiate = "Negotiate"
    case basic = "Basic"
    case digest = "Digest"
    case bearer = "Bearer"
    /// No scheme of HTTP: the client has shown a certificate in the handshake of TLS.
    case certificate = "Certificate"
}
