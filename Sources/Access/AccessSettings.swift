package import Authentication
import Rules

/// The `access` section of the configuration: who may use the proxy, and what they may reach through it.
package struct AccessSettings: Sendable, Equatable {
    /// `access.clients` as written; nil if it is left out.
    package var namedClients: [AddressRange]?
    package var privateDestinations: PrivateDestinations = .deny
    package var authentication = AuthenticationSettings()
    package var rules: [AccessRule] = []
    /// `access.default` as written; nil if it is left out.
    package var writtenDefault: DefaultEffect?
    /// Ports that CONNECT may name without a rule that names them.
    package var connectPorts: [ClosedRange<UInt16>] = [443...443]

    package init() {}

    package enum PrivateDestinations: String, CaseIterable, Sendable { case deny, allow }
    package enum DefaultEffect: String, CaseIterable, Sendable { case allow, deny }

    /// Who may use the proxy at all. Nil: any address may, because clients have to authenticate.
    package var clients: [AddressRange]? {
        if let namedClients { return namedClients }
        return authentication.isRequired ? nil : AddressRange.loopback
    }

    /// What happens if no rule matches: deny if there are rules that decide, otherwise allow.
    package var defaultEffect: DefaultEffect { writtenDefault ?? (rules.allSatisfy(\.isReport) ? .allow : .deny) }
}
