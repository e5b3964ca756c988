import Rules

/// The `access` section of the configuration: who may use the proxy, and what they may reach through it.
package struct AccessSettings: Sendable, Equatable {
    /// `access.clients` as written; nil if it is left out.
    package var namedClients: [AddressRange]?
    package var privateDestinations: PrivateDestinations = .deny
    /// `access.authentication.basic.users`. Nil: clients need not authenticate.
    package var basicUsersFile: String?
    package var basicRealm = "larder"
    package var basicRemember: Duration = .seconds(60)
    package var rules: [AccessRule] = []
    /// `access.default` as written; nil if it is left out.
    package var writtenDefault: DefaultEffect?
    /// Ports that CONNECT may name without a rule that names them.
    package var connectPorts: [ClosedRange<UInt16>] = [443...443]

    package init() {}

    package enum PrivateDestinations: String, CaseIterable, Sendable { case deny, allow }
    package enum DefaultEffect: String, CaseIterable, Sendable { case allow, deny }

    /// Nil: clients need not authenticate.
    package var authentication: BasicAuthentication? {
        basicUsersFile.map { BasicAuthentication(realm: basicRealm, usersFile: $0, remember: basicRemember) }
    }

    /// Who may use the proxy at all. Nil: any address may, because clients have to authenticate.
    package var clients: [AddressRange]? {
        if let namedClients { return namedClients }
        return authentication == nil ? AddressRange.loopback : nil
    }

    /// What happens if no rule matches: deny if there are rules that decide, otherwise allow.
    package var defaultEffect: DefaultEffect { writtenDefault ?? (rules.allSatisfy(\.isReport) ? .allow : .deny) }
}

/// Basic proxy authentication (RFC 7617).
package struct BasicAuthentication: Sendable, Equatable {
    package var realm: String
    /// Path of an htpasswd file.
    package var usersFile: String
    /// How long credentials that were right are accepted without hashing the password again.
    package var remember: Duration

    package init(realm: String, usersFile: String, remember: Duration) {
        self.realm = realm
        self.usersFile = usersFile
        self.remember = remember
    }
}
