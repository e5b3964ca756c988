/// Who a client proved to be, and how. Only an authentication scheme makes one.
package struct Identity: Sendable, Hashable {
    /// What rules, the log and people call the client.
    package let name: String
    package let scheme: AuthenticationSchemeName
    /// The groups that the proof named; empty for schemes that know none.
    package let groups: [String]
    /// The moment of the monotonic clock from which the client must prove itself again. Nil: the scope alone ends it.
    package let expiry: Duration?
    package let scope: Scope

    package init(
        name: String, scheme: AuthenticationSchemeName, groups: [String] = [], expiry: Duration? = nil,
        scope: Scope = .request
    ) {
        self.name = name
        self.scheme = scheme
        self.groups = groups
        self.expiry = expiry
        self.scope = scope
    }

    /// What the proof covers.
    package enum Scope: Sendable {
        /// One request: the next one must bring its own proof.
        case request
        /// The connection it came on, until that is closed.
        case connection
    }
}

/// The authentication schemes that Larder speaks, by their names in RFC 9110 §11.1.
package enum AuthenticationSchemeName: String, CaseIterable, Sendable { case basic = "Basic" }
